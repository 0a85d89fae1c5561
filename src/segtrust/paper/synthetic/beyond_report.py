"""Tables and figures of the studies past ten pixels and past independence."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.evaluation import store_of
from segtrust.paper.synthetic.beyond import BeyondResults, parts_of, run_beyond
from segtrust.paper.synthetic.settings import Beyond
from segtrust.paper.synthetic.studies import HALVES, STUDIES, studies_of
from segtrust.report.figures import new_axes, save_figure, shade
from segtrust.report.runs import mark_running, open_run, write_run
from segtrust.report.styles import Style, style_of
from segtrust.report.tables import write_csv, write_markdown

__all__ = ["SUMMARY_FORMATS", "draw_study", "reproduce_beyond", "summarise_study"]

Row = dict[str, Any]

SUMMARY_FORMATS = {
    **dict.fromkeys(("spread", "rho_eta", "sharpness", "correlation", "length"), "g"),
    **dict.fromkeys(("risk", "aurc"), ".3f"),
    "bias": "+.4f",
    **dict.fromkeys(("standard error", "IDC(p) off", "swing"), ".4f"),
    **dict.fromkeys(("SDC off", "SDC to IDC(x)", "ε"), ".1e"),
}
"""How the columns of `summarise_study` are printed."""

_EXCESS = "+.2%"
_SHADES = ("#b3cde3", "#6497b1", "#005b96", "#03396c")
"""From weak to strong correlation: one hue, so that the order shows without its colours."""


def reproduce_beyond(
    out: str | Path,
    settings: Beyond | None = None,
    *,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> BeyondResults:
    """Run the studies and write tables, figures and ``run.json`` into a folder.

    Parameters
    ----------
    out, settings, workers, advance
        As for `segtrust.paper.synthetic.report.reproduce_synthetic`.
    """
    begin = time.perf_counter()
    settings, out = settings or Beyond(), Path(out)
    open_run(out, command="reproduce synthetic-beyond")
    store = store_of(out / "parts", settings.parameters())
    reused = store.count(part.name for part in parts_of(settings))
    mark_running(out, command="reproduce synthetic-beyond")
    results = run_beyond(settings, folder=out / "parts", workers=workers, advance=advance)
    computed = time.perf_counter()
    for name in studies_of(settings):
        _write_study(results, name, out)
    end = time.perf_counter()
    write_run(
        out,
        command="reproduce synthetic-beyond",
        parameters={
            **settings.parameters(),
            "workers": workers,
            "cores": os.cpu_count(),
            "reused parts": reused,
        },
        seconds=end - begin,
        seeds=_SEEDS,
        timings={**results.seconds(), "computed": computed - begin, "tables and figures": end - computed},
    )
    return results


_SEEDS = {
    "images": "numpy.random.RandomState; x, from 0 on for each number of pixels",
    "noise of image x": "x + 33",
    "shift of image x": "x + 2**31",
    "smooth map of image x": "numpy.random.default_rng([x, n])",
    "truths of image x": "numpy.random.default_rng([x, n, round(1e6 * length)])",
}


def _write_study(results: BeyondResults, name: str, out: Path) -> None:
    summary = summarise_study(results, name)
    write_csv(out / "tables" / f"{name}.csv", results.rows(name))
    write_csv(out / "tables" / f"{name}_images.csv", results.image_rows(name))
    formats = SUMMARY_FORMATS | {column: _EXCESS for column in summary[0] if column.endswith("above")}
    write_markdown(out / "tables" / f"{name}.md", summary, formats)
    save_figure(draw_study(results, name), out / "figures" / name)


def summarise_study(results: BeyondResults, name: str) -> list[Row]:
    """Bring the repeats of a study together: a row for each number of pixels and point.

    ``bias`` is the mean of IDC(p) - IDC(x), with its standard error from sampling truths. ``IDC(p) off``,
    ``SDC off`` and ``SDC to IDC(x)`` are root mean squares of IDC(p) - IDC(x), of SDC - IDC(p̂) and of SDC -
    IDC(x), the first and the last without the sampling's share; ``ε`` is the mean bound on the second,
    relative; ``swing`` the mean standard deviation of the Dice of an image. Then the AURC of IDC(x), and by
    how much those of the others exceed it. Images with empty masks are left out of all but risk and AURC.
    """
    study = STUDIES[name]
    return [
        {"n": n, **dict(zip(study.columns, point, strict=True)), **_summary(results, name, n, point)}
        for n in study.sizes(results.settings)
        for point in study.points(results.settings)
    ]


def _summary(results: BeyondResults, name: str, n: int, point: tuple[float, ...]) -> Row:
    repeats = results.repeats(name, n, point)
    some = _joined(repeats, "k") > 0
    x, p, sdc, epsilon = (_joined(repeats, key)[some] for key in ("idc(x)", "idc(p)", "sdc", "epsilon"))
    error = _joined(repeats, "standard_error")[some] if "standard_error" in repeats[0] else np.zeros(x.size)
    perturbed = name == "size" and point[1] > 0.0
    p_hat = _joined(repeats, "idc(p_hat)")[some] if perturbed else p
    row = {
        "risk": float(1.0 - np.mean([arrays["idc(x)"].mean() for arrays in repeats])),
        "bias": _mean(p - x),
        "standard error": float(np.sqrt((error**2).sum()) / max(x.size, 1)),
        "IDC(p) off": _root_mean_square(p - x, error),
        "SDC off": _root_mean_square(sdc - p_hat),
        "SDC to IDC(x)": _root_mean_square(sdc - x, error),
        "ε": _mean(epsilon),
    }
    swing = {"swing": _mean(_joined(repeats, "swing")[some])} if "swing" in repeats[0] else {}
    return row | swing | _excesses(name, repeats)


def _root_mean_square(differences: Any, error: Any = 0.0) -> float:
    """Leave out the share that sampling has; what is left may be below 0 by chance, and counts as 0."""
    return math.sqrt(max(0.0, _mean(differences**2 - np.square(error)))) if differences.size else math.nan


def _mean(values: Any) -> float:
    """Give NaN for no values at all: every mask is empty."""
    return float(values.mean()) if values.size else math.nan


def _joined(repeats: Sequence[dict[str, Any]], key: str) -> Any:
    return np.concatenate([arrays[key] for arrays in repeats])


def _excesses(name: str, repeats: Sequence[dict[str, Any]]) -> Row:
    """Give the mean AURC of IDC(x), and how much larger those of the others are."""
    estimators = STUDIES[name].estimators
    areas = dict(zip(estimators, np.mean([arrays["aurc"] for arrays in repeats], axis=0), strict=True))
    best = float(areas["idc(x)"])
    others = {each: area for each, area in areas.items() if each != "idc(x)"}
    return {
        "aurc": best,
        **{f"{_label(each)} above": float(_above(area, best)) for each, area in others.items()},
    }


def _above(area: Any, best: Any) -> Any:
    """Give the part by which an area exceeds the best; NaN where there is no risk at all."""
    return np.divide(area, best, out=np.full(np.shape(area), np.nan), where=np.asarray(best) > 0.0) - 1.0


def _label(estimator: str) -> str:
    return "IDC(x), halves" if estimator == HALVES else style_of(estimator).label


def draw_study(results: BeyondResults, name: str) -> Any:
    """Draw how far SDC, IDC(p) and IDC(x) are apart, and what that does to the AURC."""
    return _draw_size(results) if name == "size" else _draw_correlated(results, name)


def _off(repeats: Sequence[dict[str, Any]], first: str, second: str) -> Any:
    """Root mean square difference of two confidences in each repeat; sampling's share is left out."""
    found = []
    for arrays in repeats:
        some = arrays["k"] > 0
        error = arrays.get("standard_error", np.zeros(some.size)) if "idc(x)" in (first, second) else 0.0
        error = np.broadcast_to(error, some.shape)[some]
        found.append(_root_mean_square((arrays[first] - arrays[second])[some], error))
    return np.array(found)


_BOUND = Style("bound ε, relative", "#7f7f7f", (0, (1, 1.4)))


def _draw_size(results: BeyondResults) -> Any:
    """Draw differences and areas against the number of pixels, for images that differ."""
    settings = results.settings
    sizes = np.array(settings.sizes, float)
    figure, axes = new_axes(1, 2, width=7.0, height=2.7)
    by_size = [results.repeats("size", n, (settings.spread, 0.0)) for n in settings.sizes]
    for first, second, style in (
        ("sdc", "idc(p)", Style("SDC − IDC(p)", style_of("sdc").colour)),
        ("idc(p)", "idc(x)", Style("IDC(p) − IDC(x)", style_of("idc(p)").colour, (0, (4, 1.6)))),
    ):
        values = np.array([_off(repeats, first, second) for repeats in by_size]).T
        shade(axes[0, 0], sizes, np.where(values > 1e-12, values, np.nan), style, marker=3.0)
    bounds = np.array([[_mean(each["epsilon"][each["k"] > 0]) for each in repeats] for repeats in by_size]).T
    shade(axes[0, 0], sizes, bounds, _BOUND, marker=3.0)
    axes[0, 0].set(xlabel="pixels", ylabel="root mean square difference")
    _use_logarithms(axes[0, 0], "xy")
    for estimator in ("idc(p)", "sdc", "amsp", "random"):
        excess = np.array([_excess(repeats, "size", estimator) for repeats in by_size]).T
        shade(axes[0, 1], sizes, 100.0 * excess, style_of(estimator), marker=3.0)
    axes[0, 1].set(xlabel="pixels", ylabel="AURC above IDC(x), %")
    _use_logarithms(axes[0, 1], "x")
    for each in axes.flat:
        each.legend(frameon=False, fontsize=8)
    return figure


def _use_logarithms(ax: Any, which: str) -> None:
    """Make axes logarithmic, unless no point can be drawn on them: Matplotlib fails then."""
    points = np.concatenate([line.get_xydata() for line in ax.lines])
    points = points[np.isfinite(points).all(1)]
    if (points[:, ["xy".index(axis) for axis in which]] > 0.0).all(1).any():
        ax.set(**{f"{axis}scale": "log" for axis in which})


def _excess(repeats: Sequence[dict[str, Any]], name: str, estimator: str) -> Any:
    at, best = (STUDIES[name].estimators.index(each) for each in (estimator, "idc(x)"))
    return np.array([_above(arrays["aurc"][at], arrays["aurc"][best]) for arrays in repeats])


def _draw_correlated(results: BeyondResults, name: str) -> Any:
    """Draw against the number of pixels, a line for each strength and a row for each sharpness."""
    settings, study = results.settings, STUDIES[name]
    sizes = study.sizes(settings)
    figure, axes = new_axes(len(settings.sharpness), 3, width=7.0, height=2.3 * len(settings.sharpness))
    strengths = dict.fromkeys(point[1] for point in study.points(settings))
    for row, sharpness in zip(axes, settings.sharpness, strict=True):
        for colour, strength in zip(_shades(len(strengths)), strengths, strict=True):
            by_size = [results.repeats(name, n, (sharpness, strength)) for n in sizes]
            style = Style(f"{study.columns[1]} {strength:g}", colour)
            _draw_strength(row, np.array(sizes, float), by_size, style)
        for ax, title in zip(row, (*_TITLES, _SWINGS[name]), strict=True):
            ax.set(xlabel="pixels")
            _use_logarithms(ax, "x")
            ax.set_title(title, fontsize=8)
        row[0].set_ylabel(f"logits × {sharpness:g}")
        row[0].axhline(0.0, color="black", linewidth=0.6, zorder=1)
        for ax in row[1:]:
            ax.set_ylim(bottom=0.0)
    lines = axes[0, 0].lines[: len(strengths)]  # the line at 0 comes after them
    figure.legend(handles=lines, loc="outside lower center", ncols=len(strengths), frameon=False, fontsize=8)
    return figure


def _shades(count: int) -> list[str]:
    """Give as many shades as there are strengths; more than four are mixed of their neighbours."""
    if count <= len(_SHADES):
        return list(_SHADES[:count])
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    mixed = LinearSegmentedColormap.from_list("strengths", _SHADES)
    return [to_hex(mixed(at)) for at in np.linspace(0.0, 1.0, count)]


_TITLES = ("mean of IDC(p) − IDC(x)", "SDC − IDC(x), r.m.s.")
_SWINGS = {
    "copula": "standard deviation of the Dice,\nthe factor's share",
    "smooth": "standard deviation of the Dice\nof an image",
}


def _draw_strength(row: Any, sizes: Any, by_size: Sequence[Sequence[dict[str, Any]]], style: Style) -> None:
    some = [[arrays["k"] > 0 for arrays in repeats] for repeats in by_size]
    pairs = [list(zip(*each, strict=True)) for each in zip(by_size, some, strict=True)]
    biases = [[_mean((a["idc(p)"] - a["idc(x)"])[k]) for a, k in each] for each in pairs]
    swings = [[_mean(a["swing"][k]) for a, k in each] for each in pairs]
    off = [_off(repeats, "sdc", "idc(x)") for repeats in by_size]
    for ax, values in zip(row, (biases, off, swings), strict=True):
        shade(ax, sizes, np.array(values).T, style, marker=3.0)
