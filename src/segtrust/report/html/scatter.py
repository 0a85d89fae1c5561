"""Confidence against Dice, a dot a case; and confidences alone where no truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust.evaluation import EvaluatedSet
from segtrust.report.html.axes import Frame, axes_of, span_of
from segtrust.report.html.charts import Chart, numbers, short_name
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.quality import Quality, quality_of
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.words import set_title
from segtrust.report.styles import style_of

__all__ = ["confidence_chart", "scatter_chart", "shown_dots"]

_MOST_DOTS = 16_000
"""Of all sets of a page."""
_MOST_OF_SET = 2_000
_BINS = 30
_EXTREMES = 20
Row = dict[str, Any]


def shown_dots(confidence: Any, quality: Any, most: int) -> Any:
    """Choose which cases are dots: all, or a random sample with the extremes of both axes.

    Examples
    --------
    >>> shown_dots(np.arange(5.0), np.arange(5.0), 10).tolist()
    [0, 1, 2, 3, 4]
    """
    if confidence.size <= most:
        return np.arange(confidence.size)
    kept = [np.argsort(each, kind="stable") for each in (confidence, quality)]
    ends = np.concatenate([order[part] for order in kept for part in _ENDS])
    drawn = np.random.default_rng(0).permutation(confidence.size)[: most - ends.size]
    return np.unique(np.concatenate([ends, drawn]))


_ENDS = (slice(None, _EXTREMES), slice(-_EXTREMES, None))


def scatter_chart(found: EvaluatedSet, run: ReportedRun) -> Chart:
    """Draw a dot for each case of a set: the confidence that decides against how good the case is."""
    judged = quality_of(run)
    confidence, quality = found.confidences[run.main], judged.of(found.losses)
    at = shown_dots(confidence, quality, min(_MOST_OF_SET, _MOST_DOTS // max(len(run.sets), 1)))
    threshold = run.threshold_of(found.structure)
    frame = Frame(_across(confidence, threshold), _up(quality, judged))
    deferred = confidence[at] < threshold if threshold is not None else np.zeros(at.size, bool)
    label = style_of(run.main).label
    drawing = joined(
        axes_of(frame, f"confidence ({label})", judged.axis),
        _dots(frame, confidence[at], quality[at], ~deferred, "dots"),
        _dots(frame, confidence[at], quality[at], deferred, "dots deferred"),
        threshold_line(frame, threshold),
    )
    shown = "" if at.size == confidence.size else f" {at.size} of {confidence.size} cases are shown."
    below = " Orange ones, left of the threshold, are deferred." if deferred.any() else ""
    data = {
        "kind": "scatter",
        "axis": judged.axis,
        "cases": [short_name(found.rows[each]["case"]) for each in at],
        "series": [
            {"label": label, "x": numbers(confidence[at]), "y": numbers(quality[at]), **_told(found, at)}
        ],
    }
    described = (
        f"Confidence ({label}) against {judged.word} of {at.size} cases of {found.name}, {found.structure}."
    )
    title = set_title(found.name, confidence.size)
    return Chart(title, described, frame, drawing, f"A dot is a case.{below}{shown}", data)


def _told(found: EvaluatedSet, at: Any) -> dict[str, Any]:
    decisions = [found.rows[each].get("decision") or "" for each in at]
    return {"decision": decisions} if any(decisions) else {}


def _across(confidence: Any, threshold: float | None) -> tuple[float, float]:
    return span_of([*confidence, *([] if threshold is None else [threshold])])


def _up(values: Any, judged: Quality) -> tuple[float, float]:
    """Give the span from the worst case to a perfect one, with some room; never below 0."""
    perfect = 1.0 if judged.is_share else 0.0
    low, high = span_of([float(values.min()), float(values.max()), perfect])
    return max(low, 0.0), high


def _dots(frame: Frame, x: Any, y: Any, chosen: Any, kind: str) -> Html | None:
    """Draw dots as ends of lines without length: one element for all of them."""
    points = zip(x[chosen], y[chosen], strict=True)
    path = "".join(f"M{frame.point(*each)}h0" for each in points)
    return tag("path", d=path, class_=kind) if path else None


def threshold_line(frame: Frame, threshold: float | None) -> Html | None:
    """Draw the confidence from which on cases are accepted."""
    if threshold is None:
        return None
    x = frame.across(threshold)
    is_right = x > 0.7 * frame.width
    return joined(
        tag("path", d=f"M{x:.1f} {frame.top}V{frame.height - frame.bottom}", class_="threshold"),
        tag(
            "text",
            "accepted from here on" if not is_right else "accepted to the right",
            x=f"{x - 6 if is_right else x + 6:.1f}",
            y=frame.height - frame.bottom - 8,
            class_="mark end" if is_right else "mark",
        ),
    )


def confidence_chart(name: str, rows: Sequence[Row], run: ReportedRun) -> Chart:
    """Draw how often each confidence is met, for cases whose truth nobody knows."""
    values = np.array([row[run.main] for row in rows], np.float64)
    threshold = run.threshold_of(str(rows[0]["structure"]))
    span = _across(values, threshold)
    counts, edges = np.histogram(values, bins=_BINS, range=span)
    frame = Frame(span, (0.0, 1.08 * max(int(counts.max()), 1)))
    bars = [
        tag("path", d=_bar(frame, edges[place], edges[place + 1], number), class_="bar")
        for place, number in enumerate(counts)
        if number
    ]
    label = style_of(run.main).label
    drawing = joined(
        axes_of(frame, f"confidence ({label})", "cases"), *bars, threshold_line(frame, threshold)
    )
    described = f"Confidences ({label}) of {values.size} cases, {values.min():.3f} to {values.max():.3f}."
    caption = "How many cases have which confidence."
    return Chart(set_title(name, values.size), described, frame, drawing, caption)


def _bar(frame: Frame, left: float, right: float, number: int) -> str:
    start, end = frame.across(left) + 0.75, frame.across(right) - 0.75
    return f"M{start:.1f} {frame.up(0.0):.1f}V{frame.up(float(number)):.1f}H{end:.1f}V{frame.up(0.0):.1f}Z"
