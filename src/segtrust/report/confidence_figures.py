"""Figures of one confidence as files: its curve with a band, and confidence against quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import EvaluatedSet
from segtrust.report.evaluation import suffix_of
from segtrust.report.figures import new_axes, plain_name, save_figure
from segtrust.report.styles import style_of
from segtrust.risks import Risk
from segtrust.selective import Bootstrap, risk_band

__all__ = ["draw_bands", "draw_confidences", "draw_histograms", "save_confidence_figures", "save_histograms"]

Threshold = Callable[[str], float | None]
"""Gives that of a structure, if there is one."""
_GRID = np.linspace(0.005, 1.0, 200)
_RESAMPLES = 400
_BINS = 30


def save_confidence_figures(
    sets: Sequence[EvaluatedSet],
    estimator: str,
    threshold_of: Threshold,
    folder: Path,
    risk: Risk | None = None,
) -> list[Path]:
    """Write ``confidence_dice`` and ``risk_band`` for each structure; nothing where Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for structure in dict.fromkeys(each.structure for each in sets):
        chosen = [each for each in sets if each.structure == structure]
        suffix, threshold = suffix_of(structure, sets), threshold_of(structure)
        drawn = {"confidence_dice": draw_confidences(chosen, estimator, threshold, risk)}
        drawn["risk_band"] = draw_bands(chosen, estimator)
        for name, figure in drawn.items():
            written += save_figure(figure, folder / f"{name}{suffix}")
    return written


def save_histograms(
    confidences: Mapping[tuple[str, str], Any], estimator: str, threshold_of: Threshold, folder: Path
) -> list[Path]:
    """Write ``confidences`` for each structure, where no truth is known; nothing without Matplotlib.

    Parameters
    ----------
    confidences
        By set and structure.
    estimator, threshold_of
        What the confidences are of, and from which on cases of a structure are accepted.
    folder
        Where the figures go.
    """
    if find_spec("matplotlib") is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    structures = list(dict.fromkeys(structure for _, structure in confidences))
    written: list[Path] = []
    for number, structure in enumerate(structures):
        chosen = {name: found for (name, each), found in confidences.items() if each == structure}
        suffix = f"_{number}_{plain_name(structure)}" if len(structures) > 1 else ""
        figure = draw_histograms(chosen, estimator, threshold_of(structure))
        written += save_figure(figure, folder / f"confidences{suffix}")
    return written


def draw_histograms(confidences: Mapping[str, Any], estimator: str, threshold: float | None = None) -> Any:
    """Draw how many cases have which confidence; a panel a set."""
    figure, axes = new_axes(1, len(confidences), width=2.9 * len(confidences) + 0.4, height=2.7)
    style = style_of(estimator)
    for ax, (name, found) in zip(axes[0], confidences.items(), strict=True):
        ax.hist(found, bins=_BINS, color=style.colour)
        if threshold is not None:
            ax.axvline(threshold, color="black", linewidth=0.8, linestyle="--")
        ax.set(xlabel=f"confidence ({style.label})")
        ax.set_title(f"{name} (n = {len(found)})", fontsize=9)
    axes[0, 0].set_ylabel("cases")
    return figure


def draw_confidences(
    sets: Sequence[EvaluatedSet],
    estimator: str,
    threshold: float | None = None,
    risk: Risk | None = None,
) -> Any:
    """Draw the metric of a risk (one minus the loss if it is unknown) against the confidence.

    One dot per case and one panel per set.
    """
    is_share = risk is None or risk.higher_is_better
    figure, axes = new_axes(1, len(sets), width=2.9 * len(sets) + 0.4, height=2.7)
    style = style_of(estimator)
    for ax, found in zip(axes[0], sets, strict=True):
        dots = {"s": 9, "color": style.colour, "alpha": 0.6, "linewidths": 0, "rasterized": True}
        values = 1.0 - found.losses if is_share else found.losses
        ax.scatter(found.confidences[estimator], values, **dots)
        if threshold is not None:
            ax.axvline(threshold, color="black", linewidth=0.8, linestyle="--")
        ends = (min(0.0, float(values.min())), 1.02) if is_share else (0.0, 1.02 * float(values.max()) or 1.0)
        ax.set(xlabel=f"confidence ({style.label})", ylim=ends)
        ax.set_title(f"{found.name} (n = {len(found.rows)})", fontsize=9)
    label = "1 − loss" if risk is None else risk.label if is_share else risk.loss_label
    axes[0, 0].set_ylabel(label)
    return figure


def draw_bands(sets: Sequence[EvaluatedSet], estimator: str, bootstrap: Bootstrap | None = None) -> Any:
    """Draw the risk-coverage curve of one confidence with the interval of the risk at each coverage."""
    figure, axes = new_axes(1, len(sets), width=2.9 * len(sets) + 0.4, height=2.7)
    how = replace(bootstrap or Bootstrap(), resamples=_RESAMPLES)
    style = style_of(estimator)
    for ax, found in zip(axes[0], sets, strict=True):
        confidence, curve = found.confidences[estimator], found.curves[estimator]
        band = risk_band(confidence, found.losses, _GRID, patients=found.patients, bootstrap=how)
        ax.fill_between(_GRID, band.low, band.high, color=style.colour, alpha=0.2, linewidth=0.0)
        ax.plot(curve.coverages, curve.risks, **style.line())
        ax.set(xlabel="coverage", xlim=(0.0, 1.0), ylim=(0.0, max(0.01, 1.05 * float(band.high.max()))))
        ax.set_title(f"{found.name} (n = {len(found.rows)})", fontsize=9)
    axes[0, 0].set_ylabel("selective risk")
    return figure
