"""Figures as files, in the formats that papers, slides and web pages want."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segtrust.optional import require

__all__ = ["draw_validity", "new_axes", "save_figure"]

_FORMATS = ("png", "pdf", "svg")
_COLOURS = {"betting": "#0072b2", "hoeffding-bentkus": "#d55e00", "binomial": "#009e73"}


def new_axes(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    """Give a figure and a grid of axes, in inches; drawn without a display."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG, PDF and SVG; give the paths."""
    paths = [stem.with_suffix(f".{each}") for each in _FORMATS]
    for path in paths:
        figure.savefig(path, dpi=200)
    return paths


def draw_validity(outcomes: Sequence[Any], *, delta: float) -> Any:
    """Draw how often promises are broken, and the coverage that they cost, against the number of cases."""
    scenarios = list(dict.fromkeys(outcome.scenario for outcome in outcomes))
    figure, axes = new_axes(2, len(scenarios), width=2.9 * len(scenarios), height=4.8)
    for column, scenario in enumerate(scenarios):
        chosen = [outcome for outcome in outcomes if outcome.scenario == scenario]
        axes[0, column].set_title(f"{scenario}\n{chosen[0].target}", fontsize=8)
        _draw_broken(axes[0, column], chosen, delta)
        _draw_coverage(axes[1, column], chosen)
    axes[0, 0].set_ylabel("share of broken promises")
    axes[1, 0].set_ylabel("true coverage")
    for row in axes:
        row[-1].legend(frameon=False, fontsize=7)
    return figure


def _lines(axes: Any, outcomes: Sequence[Any], value: str) -> None:
    for name in dict.fromkeys(outcome.p_value for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.p_value == name]
        cases, values = [each.n for each in chosen], [getattr(each, value) for each in chosen]
        axes.plot(cases, values, marker="o", markersize=3, color=_COLOURS.get(name), label=name)
    axes.set_xscale("log")
    axes.set_xticks([each.n for each in outcomes], [str(each.n) for each in outcomes], minor=False)
    axes.set_xlabel("calibration cases")


def _draw_broken(axes: Any, outcomes: Sequence[Any], delta: float) -> None:
    _lines(axes, outcomes, "broken")
    axes.axhline(delta, color="black", linewidth=0.8, linestyle="--", label="promised")
    axes.set_ylim(0.0, 1.4 * delta)


def _draw_coverage(axes: Any, outcomes: Sequence[Any]) -> None:
    _lines(axes, outcomes, "coverage")
    axes.axhline(outcomes[0].oracle_coverage, color="black", linewidth=0.8, linestyle=":", label="oracle")
    axes.set_ylim(0.0, 1.0)
