"""Figures as files, in the formats that papers, slides and web pages want."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segtrust.optional import require

__all__ = ["draw_validity", "new_axes", "save_figure"]

_FORMATS = ("png", "pdf", "svg")
_COLOURS = {"betting": "#0072b2", "hoeffding-bentkus": "#d55e00", "binomial": "#009e73"}


def new_axes(columns: int, *, width: float = 7.0, height: float = 2.8) -> tuple[Any, Any]:
    """Give a figure and its axes, side by side; drawn without a display."""
    require("matplotlib", extra="plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG, PDF and SVG; give the paths."""
    paths = [stem.with_suffix(f".{each}") for each in _FORMATS]
    for path in paths:
        figure.savefig(path, dpi=200)
    return paths


def draw_validity(outcomes: Sequence[Any], *, delta: float) -> Any:
    """Draw how often promises are broken, and the coverage that they cost, against the number of cases."""
    losses = list(dict.fromkeys(outcome.loss for outcome in outcomes))
    figure, axes = new_axes(2 * len(losses), width=3.2 * 2 * len(losses))
    for column, loss in enumerate(losses):
        chosen = [outcome for outcome in outcomes if outcome.loss == loss]
        _draw_broken(axes[2 * column], chosen, delta)
        _draw_coverage(axes[2 * column + 1], chosen)
    axes[0].legend(frameon=False, fontsize=7)
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
    axes.set_title(f"{outcomes[0].loss} loss: broken promises", fontsize=9)
    axes.set_ylim(0.0, None)


def _draw_coverage(axes: Any, outcomes: Sequence[Any]) -> None:
    _lines(axes, outcomes, "coverage")
    axes.axhline(outcomes[0].oracle_coverage, color="black", linewidth=0.8, linestyle=":", label="oracle")
    axes.set_title(f"{outcomes[0].loss} loss: true coverage", fontsize=9)
    axes.set_ylim(0.0, 1.0)
