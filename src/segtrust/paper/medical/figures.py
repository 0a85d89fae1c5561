"""The paper's Figures 7 to 11: a panel for each task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from segtrust.evaluation import ALL_STRUCTURES, EvaluatedSet
from segtrust.paper.medical.sources import ID, OOD
from segtrust.paper.medical.study import TaskResult
from segtrust.report.evaluation import draw_panel
from segtrust.report.figures import new_axes
from segtrust.report.tuned_sets import draw_tuning_panel

__all__ = ["figures_of"]

Row = Mapping[str, Any]
_WIDTH, _HEIGHT = 7.0, 2.3
"""Of a figure over both columns of a paper, and of a row of panels; in inches."""
_COLUMNS = 3
_TICKS = 6


def figures_of(results: Sequence[TaskResult], tuning: Sequence[Row]) -> dict[str, Any]:
    """Give the figures by name; those out of distribution where there is such a set."""
    found = {"risk_coverage_id": _draw_risks(results, ID)}
    has_ood = any(each.name == OOD for result in results for each in result.sets)
    if has_ood:
        found["risk_coverage_ood"] = _draw_risks(results, OOD)
    if tuning:
        found["tuning_aurc_id"] = _draw_tuning(results, tuning, ID, "aurc")
    if tuning and has_ood:
        found["tuning_aurc_ood"] = _draw_tuning(results, tuning, OOD, "aurc")
        found["tuning_coverage_ood"] = _draw_tuning(results, tuning, OOD, "coverage")
    return found


def _shown(results: Sequence[TaskResult], tested: str) -> list[tuple[TaskResult, EvaluatedSet]]:
    """Give the sets that have a panel; where a case has several structures, each."""
    return [
        (result, each)
        for result in results
        for each in result.sets
        if each.name == tested and each.structure != ALL_STRUCTURES
    ]


def _panels(count: int) -> tuple[Any, list[Any]]:
    """Give a figure with so many panels in rows."""
    columns = 2 if count == 4 else min(_COLUMNS, count)
    rows = math.ceil(count / columns)
    width = _WIDTH * max(columns, 2) / _COLUMNS
    figure, axes = new_axes(rows, columns, width=width, height=_HEIGHT * rows + 0.5)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:count])


def _finish(figure: Any, axes: Sequence[Any], label: str) -> Any:
    """Name the axes at the left, and put one legend below all panels."""
    first = axes[0].get_subplotspec()
    for ax in axes:
        if ax.get_subplotspec().colspan.start == first.colspan.start:
            ax.set_ylabel(label)
    handles, labels = axes[0].get_legend_handles_labels()
    side, columns = ("right center", 1) if len(axes) == 1 else ("lower center", 3 if len(axes) == 2 else 5)
    place = {"loc": f"outside {side}", "ncols": columns, "fontsize": 8, "handlelength": 2.6}
    figure.legend(handles, labels, frameon=False, **place)
    return figure


def _title(result: TaskResult, found: EvaluatedSet) -> str:
    structure = "" if found.structure == "foreground" else f", {found.structure}"
    return f"{result.task.title}{structure} (n = {len(found.rows)})"


def _draw_risks(results: Sequence[TaskResult], tested: str) -> Any:
    """Draw risk-coverage curves; out of distribution with circles at the risk in distribution."""
    shown = _shown(results, tested)
    figure, axes = _panels(len(shown))
    for ax, (result, found) in zip(axes, shown, strict=True):
        draw_panel(ax, found, _id_risk(result, found), with_circles=tested == OOD)
        ax.set_title(_title(result, found), fontsize=9)
    return _finish(figure, axes, "selective risk")


def _id_risk(result: TaskResult, found: EvaluatedSet) -> float:
    """Give the mean loss of the same structure in distribution."""
    same = (each for each in result.sets if each.name == ID and each.structure == found.structure)
    return next(same, result.sets[0]).full_risk


def _draw_tuning(results: Sequence[TaskResult], tuning: Sequence[Row], tested: str, value: str) -> Any:
    shown = [
        (result, found, rows)
        for result, found in _shown(results, tested)
        if (rows := list(_rows_of(tuning, result, found)))
    ]
    figure, axes = _panels(len(shown))
    for ax, (result, found, rows) in zip(axes, shown, strict=True):
        draw_tuning_panel(ax, rows, value, most_ticks=_TICKS)
        ax.set_title(_title(result, found), fontsize=9)
    return _finish(figure, axes, "AURC" if value == "aurc" else "coverage (%)")


def _rows_of(tuning: Sequence[Row], result: TaskResult, found: EvaluatedSet) -> Iterator[Row]:
    key = (result.task.name, found.name, found.structure)
    return (row for row in tuning if (row["task"], row["set"], row["structure"]) == key)
