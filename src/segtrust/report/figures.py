"""Figures as files, in the formats that papers, slides and web pages want."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from segtrust._files import atomic_write
from segtrust._optional import require
from segtrust.report.styles import Style

__all__ = ["COLUMN", "new_axes", "plain_name", "save_figure", "shade"]

COLUMN = {"width": 3.5, "height": 2.6}
"""Size in inches of a figure that fills one column of a paper."""

_FORMATS = ("png", "pdf", "svg")
_DATED = ((), ("CreationDate",), ("Date",))
"""Entries that hold the date, by format."""


def new_axes(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    """Give a figure and a grid of axes, in inches; drawn without a display."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=8)
        each.xaxis.label.set_size(9)
        each.yaxis.label.set_size(9)
    return figure, axes


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG, PDF and SVG, without the date, so that equal figures are equal files.

    It is laid out once, and keeps that arrangement.

    Returns
    -------
    list of Path
        The files.
    """
    from matplotlib import rc_context

    paths = [stem.with_name(f"{stem.name}.{each}") for each in _FORMATS]
    with rc_context({"svg.hashsalt": stem.name, "pdf.fonttype": 42}):  # 42: text that journals accept
        for path, kind, dated in zip(paths, _FORMATS, _DATED, strict=True):
            with atomic_write(path) as draft:
                figure.savefig(draft, format=kind, dpi=300, metadata=dict.fromkeys(dated))
            figure.set_layout_engine("none")  # to find the arrangement takes as long as to draw it
    return paths


def plain_name(name: str) -> str:
    """Give a name of anything as part of a file's name.

    Examples
    --------
    >>> plain_name("site A/B")
    'site-A-B'
    """
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def shade(axes: Any, x: Any, repeats: Any, style: Style, *, marker: float = 0.0) -> None:
    """Draw the mean of some repeats as a line, and shade from their minimum to their maximum.

    Parameters
    ----------
    axes
        Where to draw.
    x
        Of each point.
    repeats
        Values, of shape (repeats, points).
    style
        Of the line; the shade has its colour.
    marker
        Size of a dot at each point, none where it is 0.
    """
    line = style.line() | ({"marker": "o", "markersize": marker} if marker else {})
    axes.fill_between(x, repeats.min(0), repeats.max(0), color=style.colour, alpha=0.2, linewidth=0.0)
    axes.plot(x, repeats.mean(0), **line)
