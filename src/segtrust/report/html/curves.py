"""Risk-coverage curves that can be read off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from segtrust.evaluation import REFERENCES, EvaluatedSet
from segtrust.report.html.axes import Frame, axes_of, inside
from segtrust.report.html.charts import Chart, indexed, numbers, places, short_name
from segtrust.report.html.colours import class_of, dashes_of
from segtrust.report.html.markup import Html, joined, tag
from segtrust.report.html.run import ReportedRun
from segtrust.report.html.words import set_title
from segtrust.report.styles import style_of
from segtrust.selective import RiskBand, RiskCoverageCurve, risk_band

__all__ = ["Line", "curve_chart", "lines_of"]

_MOST_POINTS = 40_000
"""Of all curves of a page."""
_MOST_OF_CURVE, _FEWEST_OF_CURVE = 400, 40
_RESAMPLES = 400
_LOWEST, _HIGHEST = 0.01, 2.0
"""Height of a chart at least, and at most: times the risk of all cases; as in the figures."""


class Line:
    """Points of a curve that are drawn, with the interval of the risk and the last accepted case at each.

    Attributes
    ----------
    name, coverages, risks, thresholds
        The estimator, and its curve where it is drawn.
    band
        ``None`` for the oracle and for random, which are no estimates.
    cases
        Name of the least sure case that is accepted.
    """

    def __init__(self, name: str, found: EvaluatedSet, curve: RiskCoverageCurve, how: Any, most: int) -> None:
        """Thin a curve, and draw its band."""
        at = places(curve.coverages.size, most)
        self.name = name
        self.coverages, self.risks, self.thresholds = (
            each[at] for each in (curve.coverages, curve.risks, curve.thresholds)
        )
        self.band: RiskBand | None = None
        self.cases: list[str] = []
        if name in found.confidences:
            confidence = found.confidences[name]
            few = replace(how.bootstrap, resamples=min(how.bootstrap.resamples, _RESAMPLES))
            self.band = risk_band(
                confidence, found.losses, self.coverages, patients=found.patients, bootstrap=few
            )
            self.cases = _last_accepted(confidence, self.thresholds, found)


def _last_accepted(confidence: Any, thresholds: Any, found: EvaluatedSet) -> list[str]:
    """Name a case whose confidence is the threshold; none is accepted where it is infinite."""
    order = np.argsort(confidence, kind="stable")
    at = np.minimum(np.searchsorted(confidence[order], thresholds), order.size - 1)
    names = [short_name(found.rows[place]["case"]) for place in order[at]]
    return [name if np.isfinite(threshold) else "" for name, threshold in zip(names, thresholds, strict=True)]


def points_a_curve(curves: int) -> int:
    """Give how many points each curve may have, so that the page stays small.

    Examples
    --------
    >>> points_a_curve(9), points_a_curve(500)
    (400, 80)
    """
    return max(_FEWEST_OF_CURVE, min(_MOST_OF_CURVE, _MOST_POINTS // max(curves, 1)))


def lines_of(found: EvaluatedSet, run: ReportedRun) -> list[Line]:
    """Give the lines of a set, those of references last."""
    most = points_a_curve(len(run.sets) * len(run.estimators))
    return [Line(name, found, curve, run.how, most) for name, curve in found.curves.items()]


def curve_chart(found: EvaluatedSet, run: ReportedRun, target: float) -> Chart:
    """Draw the curves of a set.

    Parameters
    ----------
    found, run
        The set, and the run that it is of.
    target
        Risk of all cases of the first set, which is drawn as a line.
    """
    lines = lines_of(found, run)
    frame = Frame((0.0, 1.0), (0.0, _height(found, lines, target)))
    drawing = joined(
        axes_of(frame, "coverage", "selective risk"),
        inside(
            frame,
            tag("path", d=f"M{frame.point(0.0, target)}H{frame.across(1.0):.1f}", class_="target"),
            None if target == found.full_risk else _target_name(frame, target),
            *(_band(line, frame, line.name == run.main) for line in lines if line.band is not None),
            *(_drawn(line, frame, line.name == run.main) for line in reversed(lines)),
        ),
        _operating_point(found, run, frame),
    )
    return Chart(
        set_title(found.name, len(found.rows)),
        _described(found, run),
        frame,
        drawing,
        _caption(found, run, lines),
        {"kind": "curve", **_data(lines)},
        _legend(lines, run.main),
    )


def _target_name(frame: Frame, risk: float) -> Html:
    """Name the risk of all cases of the first set in charts of others: random is a flat line as well."""
    x, y = frame.across(0.0) + 6, frame.up(risk) - 5
    return tag("text", "all cases of the first set", x=f"{x:.1f}", y=f"{y:.1f}", class_="mark target-name")


def _height(found: EvaluatedSet, lines: Sequence[Line], target: float) -> float:
    highest = max(float(line.risks.max()) for line in lines)
    return max(1.05 * min(highest, _HIGHEST * max(found.full_risk, target)), _LOWEST)


def _path(line: Line, frame: Frame, risks: Any) -> str:
    points = zip(line.coverages, risks, strict=True)
    return "M" + "L".join(frame.point(x, y) for x, y in points)


def _drawn(line: Line, frame: Frame, is_main: bool) -> Html:
    kind = "reference" if line.name in REFERENCES else "line"
    return tag(
        "path",
        d=_path(line, frame, line.risks),
        class_=f"{kind}{' main' if is_main else ''} {class_of(line.name)}",
        data_series=line.name,
        stroke_dasharray=dashes_of(line.name),
    )


def _band(line: Line, frame: Frame, is_main: bool) -> Html:
    """Draw the interval of a line; that of others than the main one is seen only when they are chosen."""
    assert line.band is not None
    there = _path(line, frame, line.band.high)
    back = [frame.point(x, y) for x, y in zip(line.coverages[::-1], line.band.low[::-1], strict=True)]
    kind = f"band{' main' if is_main else ''} {class_of(line.name)}"
    return tag("path", d=f"{there}L{'L'.join(back)}Z", class_=kind, data_series=line.name)


def _operating_point(found: EvaluatedSet, run: ReportedRun, frame: Frame) -> Html | None:
    """Mark where the policy stands on the main curve."""
    threshold = run.threshold_of(found.structure)
    if threshold is None:
        return None
    point = found.curves[run.main].at_threshold(threshold)
    if not np.isfinite(point.risk):
        return None
    x, y = frame.across(point.coverage), frame.up(min(point.risk, frame.y[1]))
    return joined(
        tag("path", d=f"M{x:.1f} {y:.1f}V{frame.height - frame.bottom}", class_="threshold"),
        tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="5.5", class_="policy"),
        tag(
            "text",
            "policy",
            x=f"{x - 9:.1f}" if point.coverage > 0.8 else f"{x + 9:.1f}",
            y=f"{max(y - 9, 22):.1f}",
            class_="mark end" if point.coverage > 0.8 else "mark",
        ),
    )


def _described(found: EvaluatedSet, run: ReportedRun) -> str:
    curve, label = found.curves[run.main], style_of(run.main).label
    return (
        f"Risk-coverage curves of {found.name}, {found.structure}. {label}: risk "
        f"{curve.risk_at_coverage(0.5):.3f} at half of the cases, {curve.full_risk:.3f} at all of them."
    )


def _caption(found: EvaluatedSet, run: ReportedRun, lines: Sequence[Line]) -> str:
    level = f"{run.how.bootstrap.level:.0%}"
    label = style_of(run.main).label
    text = (
        f"Mean loss ({run.loss_label}) of the accepted cases against their share. Shaded: {level} "
        f"bootstrap interval of {label} at each coverage. Thin line: risk of all cases of the first set."
    )
    longest = max(curve.coverages.size for curve in found.curves.values())
    shown = max(line.coverages.size for line in lines)
    return text if shown == longest else f"{text} {shown} of up to {longest} points a curve are drawn."


def _data(lines: Sequence[Line]) -> dict[str, Any]:
    estimates = [line for line in lines if line.band is not None]
    names, at = indexed([name for line in estimates for name in line.cases])
    series, begin = [], 0
    for line in estimates:
        assert line.band is not None
        end = begin + len(line.cases)
        series.append(
            {
                "name": line.name,
                "label": style_of(line.name).label,
                "class": class_of(line.name),
                "x": numbers(line.coverages),
                "y": numbers(line.risks),
                "threshold": numbers(line.thresholds),
                "low": numbers(line.band.low),
                "high": numbers(line.band.high),
                "case": at[begin:end],
            }
        )
        begin = end
    return {"series": series, "cases": names}


def _legend(lines: Sequence[Line], main: str) -> Html:
    """Name the lines; a button each, which the script makes choose its line."""
    return tag("div", *(_key(line, line.name == main) for line in lines), class_="legend")


def _key(line: Line, is_main: bool) -> Html:
    dashes = dashes_of(line.name)
    sample = tag(
        "svg",
        tag("path", d="M1 6H27", stroke_dasharray=dashes),
        view_box="0 0 28 12",
        aria_hidden="true",
        class_=class_of(line.name),
    )
    label = style_of(line.name).label
    if line.band is None:
        return tag("span", sample, label, class_="key")
    pressed = "true" if is_main else "false"
    return tag(
        "button", sample, label, type="button", class_="key", data_series=line.name, aria_pressed=pressed
    )
