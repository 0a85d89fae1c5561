"""Tables and figures of the paper's simulated experiments."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import store_of
from segtrust.paper.synthetic import (
    EXPERIMENTS,
    Experiment,
    Synthetic,
    SyntheticResults,
    run_synthetic,
)
from segtrust.paper.synthetic.paper import parts_of
from segtrust.report.figures import COLUMN, new_axes, save_figure, shade
from segtrust.report.runs import mark_running, open_run, write_run
from segtrust.report.styles import Style, style_of
from segtrust.report.tables import write_csv, write_markdown

__all__ = [
    "SUMMARY_FORMATS",
    "draw_areas",
    "draw_curves",
    "draw_relative_error",
    "relative_errors",
    "reproduce_synthetic",
    "summarise",
    "summarise_errors",
]

Row = dict[str, Any]

SUMMARY_FORMATS = {
    **dict.fromkeys(("mu_z", "rho_eta"), "g"),
    **dict.fromkeys(("aurc", "lowest", "highest", "risk", "alpha"), ".3f"),
    "above IDC(x)": ".1%",
}
_DRAWN_POINTS = 400
"""Points of a curve that are drawn; thousands would make files large and lines no finer."""


def reproduce_synthetic(
    out: str | Path,
    settings: Synthetic | None = None,
    *,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> SyntheticResults:
    """Run the paper's simulated experiments and write tables, figures and ``run.json`` into a folder.

    Parameters
    ----------
    out
        The folder. Finished parts are kept in ``out/parts``, so that a run that was stopped goes on.
    settings, workers, advance
        As for `segtrust.paper.synthetic.run_synthetic`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> results = reproduce_synthetic(folder, Synthetic(images=50, repeats=2))
    >>> sorted(path.name for path in folder.iterdir())
    ['figures', 'parts', 'run.json', 'tables']
    """
    begin = time.perf_counter()
    settings, out = settings or Synthetic(), Path(out)
    open_run(out, command="reproduce synthetic")
    store = store_of(out / "parts", settings.parameters())
    reused = store.count(part.name for part in parts_of(settings))
    mark_running(out, command="reproduce synthetic")
    results = run_synthetic(settings, folder=out / "parts", workers=workers, advance=advance)
    computed = time.perf_counter()
    _write_tables(results, out / "tables")
    _write_figures(results, out / "figures")
    end = time.perf_counter()
    timings = {**results.seconds(), "computed": computed - begin, "tables and figures": end - computed}
    write_run(
        out,
        command="reproduce synthetic",
        parameters={
            **settings.parameters(),
            "workers": workers,
            "cores": os.cpu_count(),
            "reused parts": reused,
        },
        seconds=end - begin,
        seeds=_seeds(settings),
        timings=timings,
    )
    return results


def _seeds(settings: Synthetic) -> dict[str, str]:
    last = settings.images * settings.repeats - 1
    return {
        "generator": "numpy.random.RandomState, one seed an image",
        "images": f"0 to {last}; repeat b has {settings.images}*b to {settings.images}*(b + 1) - 1",
        "noise of image x": "x + 33",
    }


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Bring the repeats of a table together: mean, lowest and highest AURC of each point and estimator.

    Estimators have their labels. ``above IDC(x)`` is the part by which the mean exceeds that of the
    full-posterior IDC.

    Examples
    --------
    >>> point = {"mu_z": 0.0, "rho_eta": 0.0, "risk": 0.2, "alpha": 0.5}
    >>> rows = [{"repeat": b, "estimator": "idc(x)", "aurc": 0.1 + b / 10, **point} for b in (0, 1)]
    >>> [(row["estimator"], row["lowest"], row["highest"]) for row in summarise(rows)]
    [('IDC(x)', 0.1, 0.2)]
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["mu_z"], row["rho_eta"], row["estimator"]), []).append(row)
    best = {key[:2]: _mean(group, "aurc") for key, group in groups.items() if key[2] == "idc(x)"}
    return [_summary(key, group, best[key[:2]]) for key, group in groups.items()]


def _summary(key: tuple[Any, ...], group: Sequence[Row], best: float) -> Row:
    areas = [row["aurc"] for row in group]
    return {
        "mu_z": key[0],
        "rho_eta": key[1],
        "estimator": style_of(key[2]).label,
        "aurc": _mean(group, "aurc"),
        "lowest": min(areas),
        "highest": max(areas),
        "above IDC(x)": _mean(group, "aurc") / best - 1.0 if best else math.nan,
        "risk": _mean(group, "risk"),
        "alpha": _mean(group, "alpha"),
    }


def _mean(rows: Sequence[Row], column: str) -> float:
    return float(np.mean([row[column] for row in rows]))


def relative_errors(results: SyntheticResults) -> Any:
    """|SDC - IDC(x)| / IDC(x) of all images whose mask is not empty."""
    repeats = results.repeats("ideal_model")
    k, sdc, idc = (np.concatenate([arrays[name] for arrays in repeats]) for name in ("k", "sdc", "idc_x"))
    some = k > 0
    return np.abs(sdc[some] - idc[some]) / idc[some]


def summarise_errors(results: SyntheticResults) -> list[Row]:
    """Bring the errors of the images together, and the bound that holds for each of them."""
    repeats = results.repeats("ideal_model")
    epsilon = np.concatenate([arrays["epsilon"] for arrays in repeats])
    bounds = epsilon[~np.isnan(epsilon)]
    named = {
        "SDC to IDC(x)": relative_errors(results),
        "bound ε on SDC to IDC(p)": bounds,
    }
    return [
        {
            "relative error": name,
            "images": values.size,
            "empty masks": int(epsilon.size - bounds.size),
            **_spread_of(values),
        }
        for name, values in named.items()
    ]


def _spread_of(values: Any) -> dict[str, float]:
    """Give mean, median, 95 % quantile and largest; NaN where every mask is empty."""
    if values.size == 0:
        return dict.fromkeys(("mean", "median", "95 %", "largest"), math.nan)
    middle, high = np.quantile(values, (0.5, 0.95))
    return {
        "mean": float(values.mean()),
        "median": float(middle),
        "95 %": float(high),
        "largest": float(values.max()),
    }


def _write_tables(results: SyntheticResults, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        rows = results.rows(name)
        write_csv(folder / f"{name}.csv", rows)
        write_markdown(folder / f"{name}.md", summarise(rows), SUMMARY_FORMATS)
    write_csv(folder / "relative_error.csv", results.relative_error_rows())
    formats: dict[str, str] = dict.fromkeys(("mean", "median", "95 %", "largest"), ".4f")
    write_markdown(folder / "relative_error.md", summarise_errors(results), formats)


def _write_figures(results: SyntheticResults, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ideal_model", "perturbed_model"):
        save_figure(draw_curves(results, name), folder / name)
    save_figure(draw_relative_error(results), folder / "relative_error")
    save_figure(draw_areas(results, "prevalence", against="alpha"), folder / "prevalence")
    save_figure(draw_areas(results, "perturbation", against="risk"), folder / "perturbation")


def draw_curves(results: SyntheticResults, name: str) -> Any:
    """Draw the true risk-coverage curves of an experiment: means, and minimum to maximum shaded."""
    experiment = EXPERIMENTS[name]
    repeats = results.repeats(name)
    figure, axes = new_axes(1, 1, **COLUMN)
    at = _drawn(results.settings.images)
    coverage = (at + 1) / results.settings.images
    for index, estimator in enumerate(each for each in experiment.estimators if each != "random"):
        curves = np.array([arrays["risks"][index, at] for arrays in repeats])
        shade(axes[0, 0], coverage, curves, _style_in(experiment, estimator))
    full = np.array([np.full(at.size, float(arrays["risk"][0])) for arrays in repeats])
    shade(axes[0, 0], coverage, full, style_of("random"))
    axes[0, 0].set(xlabel="coverage", ylabel="selective risk", xlim=(0.0, 1.0))
    axes[0, 0].set_ylim(bottom=0.0)
    axes[0, 0].legend(**_LEGEND, loc="lower right")
    return figure


def _drawn(images: int) -> Any:
    """Give the indices of the points that are drawn, closer together where the coverage is small."""
    spread = np.linspace(0.0, 1.0, _DRAWN_POINTS) ** 2
    return np.unique(np.round(spread * (images - 1)).astype(int))


_LEGEND: Mapping[str, Any] = {"frameon": False, "fontsize": 8, "labelspacing": 0.3, "handlelength": 2.6}


def draw_relative_error(results: SyntheticResults) -> Any:
    """Draw how the relative errors of the SDC are spread over all images."""
    errors = 100.0 * relative_errors(results)
    figure, axes = new_axes(1, 1, **COLUMN)
    ax, style = axes[0, 0], style_of("sdc")
    ax.set(xlabel="|SDC − IDC(x)| / IDC(x), %", ylabel="share of the images, %")
    if errors.size == 0:
        ax.text(0.5, 0.5, "every mask is empty", transform=ax.transAxes, ha="center", fontsize=8)
        return figure
    weights = np.full(errors.size, 100.0 / errors.size)
    ax.hist(errors, bins=60, weights=weights, color=style.colour, alpha=0.45)
    spread = _spread_of(errors)
    shown = (("mean", "mean", 1), ("95 %", "95 % quantile", 1), ("largest", "largest", -1))
    for name, label, side in shown:
        value = spread[name]
        ax.axvline(value, color="black", linewidth=0.8, linestyle="--")
        ax.annotate(
            f"{label}\n{value:.1f} %",
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4 * side, -2),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="top",
            fontsize=8,
        )
    ax.set_xlim(left=0.0)
    return figure


def draw_areas(results: SyntheticResults, name: str, *, against: str) -> Any:
    """Draw the AURC of each estimator along a grid: means, and minimum to maximum shaded."""
    repeats = results.repeats(name)
    figure, axes = new_axes(1, 1, **COLUMN)
    x = np.mean([arrays[against] for arrays in repeats], axis=0)
    order = np.argsort(x)
    for index, estimator in enumerate(EXPERIMENTS[name].estimators):
        areas = np.array([arrays["aurc"][order, index] for arrays in repeats])
        shade(axes[0, 0], x[order], areas, _style_in(EXPERIMENTS[name], estimator), marker=2.2)
    labels = {"alpha": "expected foreground ratio", "risk": "full-coverage risk"}
    axes[0, 0].set(xlabel=labels[against], ylabel="AURC")
    axes[0, 0].set_ylim(bottom=0.0)
    axes[0, 0].legend(**_LEGEND, **_PLACES[name])
    return figure


_PLACES: Mapping[str, Any] = {
    "prevalence": {"loc": "upper right"},
    "perturbation": {"loc": "lower right", "ncols": 2},
}


def _style_in(experiment: Experiment, estimator: str) -> Style:
    """Give the style of an estimator; with a perturbed model its label says what it is computed from."""
    style = style_of(estimator)
    if experiment.ideal or estimator not in ("sdc", "amsp"):
        return style
    return replace(style, label=f"{style.label}(p̂)")
