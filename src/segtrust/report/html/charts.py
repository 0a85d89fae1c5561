"""What all charts of a page share: the drawing, its data for the script, and the words below."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.report.html.axes import Frame
from segtrust.report.html.markup import Html, tag

__all__ = ["Chart", "chart_figure", "indexed", "numbers", "places", "short_name"]

_DIGITS = 9
"""Of numbers that the script shows; more than anybody reads."""
_LONGEST = 160
"""Letters of a name that a chart shows."""


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    title, described
        Above it, and in place of it for those who do not see it.
    frame, drawing
        The picture, as elements of SVG.
    caption
        Below it.
    data
        For the script that reads values off; ``None`` where there are none.
    controls
        Buttons that only the script understands.
    """

    title: str
    described: str
    frame: Frame
    drawing: Html
    caption: str
    data: Mapping[str, Any] | None = None
    controls: Html | None = None


def chart_figure(chart: Chart, name: str) -> Html:
    """Give a chart as a figure with its caption and, for the script, its data; ``name`` is its own."""
    frame = chart.frame
    is_live = chart.data is not None
    picture = tag(
        "svg",
        tag("title", chart.described),
        chart.drawing,
        tag("g", class_="cursor") if is_live else None,
        view_box=f"0 0 {frame.width:g} {frame.height:g}",
        role="img",
        aria_label=chart.described,
        tabindex="0" if is_live else None,
        aria_describedby=f"{name}-told" if is_live else None,
    )
    told = tag("output", id=f"{name}-told", class_="told", aria_live="polite") if is_live else None
    data = None
    if chart.data is not None:
        data = tag("script", _as_json({"frame": frame.to_dict(), **chart.data}), type="application/json")
    caption = tag("figcaption", chart.caption)
    heading = tag("h4", chart.title)
    return tag("figure", heading, chart.controls, picture, told, caption, data, class_="chart")


def _as_json(values: Mapping[str, Any]) -> Html:
    """Give data that cannot end the element that holds them."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c").replace("&", "\\u0026").replace("\u2028", "\\u2028"))


def numbers(values: Any) -> list[float | None]:
    """Give numbers for the script, short; infinity and what is no number are nothing.

    Examples
    --------
    >>> numbers([1 / 3, float("inf")])
    [0.333333333, None]
    """
    return [float(f"{each:.{_DIGITS}g}") if np.isfinite(each) else None for each in values]


def places(size: int, most: int) -> Any:
    """Choose places of a long row, evenly, the first and the last among them.

    Examples
    --------
    >>> places(10, 4).tolist(), places(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(int))


def short_name(name: Any) -> str:
    """Give a name, or its beginning and end where it is long."""
    text = str(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def indexed(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """Give each name once, and the place of each among them.

    Examples
    --------
    >>> indexed(["b", "a", "b"])
    (['b', 'a'], [0, 1, 0])
    """
    known: dict[str, int] = {}
    at = [known.setdefault(name, len(known)) for name in names]
    return list(known), at
