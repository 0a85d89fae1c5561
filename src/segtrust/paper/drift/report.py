"""Tables and figures of promises under drift, and of the alarms."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import TooFewCasesError
from segtrust.paper.drift.simulation import (
    ELSEWHERE,
    Drift,
    DriftResults,
    DriftSettings,
    Recorded,
    parts_of,
    run_drift,
    store_for,
)
from segtrust.paper.drift.streams import ALPHA, WINDOW
from segtrust.report.figures import new_axes, save_figure
from segtrust.report.runs import fresh_results, mark_running, open_run, write_run
from segtrust.report.tables import markdown_table, write_csv, write_text
from segtrust.selective import clopper_pearson

__all__ = ["curve_rows", "draw_alarms", "draw_risks", "reproduce_drift", "shown", "summarise_drift"]

Row = dict[str, Any]

_ALARMS = ("martingale", "batch")
_LEVEL = 0.95
_SHADES = ("#6497b1", "#005b96", "#011f4b")
"""From weak to strong: one hue, so that the order shows without its colours."""
_RISK, _SINCE, _ALARM = "#0072b2", "#009e73", "#d55e00"
_DECIMALS = {
    **dict.fromkeys(("risk_before", "risk_after", "ever", "ever_low", "ever_high"), 3),
    **dict.fromkeys(("delay", "delay_low", "delay_high", "exposed"), 0),
}


def reproduce_drift(
    out: str | Path,
    settings: DriftSettings | None = None,
    *,
    recorded: Recorded | None = None,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> DriftResults:
    """Run the streams and write tables, figures and ``run.json`` into a folder.

    Parameters
    ----------
    out
        Folder; finished parts are kept in it, and are not computed again.
    settings, recorded, workers, advance
        As for `segtrust.paper.drift.simulation.run_drift`.
    """
    begin = time.perf_counter()
    settings, out, command = settings or DriftSettings(), Path(out), "reproduce drift"
    open_run(out, command=command)
    store = store_for(settings, out / "parts")
    reused = store.count(part.name for part in parts_of(settings, recorded))
    mark_running(out, command=command)
    results = run_drift(settings, recorded=recorded, folder=out / "parts", workers=workers, advance=advance)
    with fresh_results(out):
        _write_results(results, out)
    run = {"workers": workers, "cores": os.cpu_count(), "reused parts": reused}
    write_run(
        out,
        command=command,
        parameters={**settings.parameters(), **run},
        seconds=time.perf_counter() - begin,
        seeds={"stream": "numpy.random.default_rng([seed, number, *bytes of the name of the drift])"},
    )
    return results


def _write_results(results: DriftResults, out: Path) -> None:
    rows = summarise_drift(results)
    write_csv(out / "tables" / "drift.csv", rows)
    write_text(out / "tables" / "drift.md", markdown_table(shown(rows)))
    write_csv(out / "tables" / "drift_curves.csv", curve_rows(results))
    simulated = [drift for drift in results.streams if drift is not ELSEWHERE]
    for strength in dict.fromkeys(drift.strength for drift in simulated if drift.strength):
        chosen = [drift for drift in simulated if drift.strength in ("", strength)]
        save_figure(draw_risks(results, chosen), out / "figures" / f"drift_risk_{strength}")
    save_figure(draw_alarms(results, simulated), out / "figures" / "drift_alarms")
    if ELSEWHERE in results.streams:
        save_figure(draw_risks(results, [ELSEWHERE]), out / "figures" / "drift_risk_elsewhere")


def summarise_drift(results: DriftResults) -> list[Row]:
    """Sum the streams up: a row for each drift and alarm.

    ``risk_before`` and ``risk_after`` are the mean true risks of the accepted cases at the beginning and at
    the end. ``ever`` is the share of the streams in which the alarm goes off at all, with its exact interval,
    for batches after the change; ``false`` that of the streams, or of the batches, that alarm before it. The
    others are of streams without a false alarm: quartiles of the cases from the change to the alarm; shares
    in which the promise breaks, at the moment (``now``) and for all accepted since the beginning (``since``),
    and of these, in which the alarm comes first, late or never; ``exposed`` is the median number of cases
    that are accepted above the target before the alarm, or the end.
    """
    return [_summary(results, drift, alarm) for drift in results.streams for alarm in _ALARMS]


def _summary(results: DriftResults, drift: Drift, alarm: str) -> Row:
    arrays = _certified(results.streams[drift])
    at, change = arrays[alarm], results.sources[drift].change
    early = at <= change
    ever = int(np.isfinite(at).sum())
    low, high = clopper_pearson(ever, at.size, _LEVEL)
    row = {
        "drift": drift.kind,
        "strength": drift.strength,
        "alarm": alarm,
        "streams": at.size,
        "risk_before": float(arrays["risk_now"][:, 0].mean()),
        "risk_after": float(arrays["risk_now"][:, -1].mean()),
        **{"ever": ever / at.size, "ever_low": low, "ever_high": high},
        "false": float(early.mean() if alarm == "martingale" else arrays["quiet_alarms"].mean()),
        **dict(zip(("delay_low", "delay", "delay_high"), _quartiles(at[~early] - change), strict=True)),
    }
    for name in ("now", "since"):
        row |= _order(at[~early], arrays[f"broken_{name}"][~early], name)
    return row | {"exposed": float(np.median(arrays[f"exposed_{alarm}"][~early]))}


def _certified(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out streams without a threshold, which have no curves."""
    some = np.isfinite(arrays["threshold"])
    if not some.any():
        raise TooFewCasesError(
            f"streams: expected a threshold in at least one of {some.size}, got none that can be certified. "
            "Give more calibration cases, a larger target, or more runs."
        )
    return {name: each[some] if len(each) == some.size else each for name, each in arrays.items()}


def _quartiles(cases: Any) -> list[float]:
    """Give quartiles that may be infinite; NaN for no streams at all."""
    if not cases.size:
        return [math.nan] * 3
    return [float(each) for each in np.quantile(cases, (0.25, 0.5, 0.75), method="inverted_cdf")]


def _order(alarm: Any, broken: Any, name: str) -> Row:
    """Tell how often the promise breaks, and whether the alarm came first; NaN where it never breaks."""
    breaks = np.isfinite(broken)
    first, never = alarm <= broken, np.isinf(alarm)
    shares = {"first": first, "late": ~first & ~never, "never": never}
    return {
        f"broken_{name}": float(breaks.mean()),
        **{
            f"{word}_{name}": float(each[breaks].mean()) if breaks.any() else math.nan
            for word, each in shares.items()
        },
    }


def shown(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Round rows for people: shares as per cent, and words for what never happens."""
    return [{name: _text(name, value) for name, value in row.items()} for row in rows]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "never"
    return f"{value:.{_DECIMALS[name]}f}" if name in _DECIMALS else f"{value:.1%}"


def curve_rows(results: DriftResults) -> list[Row]:
    """Give a row for each drift and window of cases: true and observed risks, and who has alarmed."""
    return [row for drift in results.streams for row in _curve(results, drift)]


def _curve(results: DriftResults, drift: Drift) -> list[Row]:
    arrays, change = _certified(results.streams[drift]), results.sources[drift].change
    with np.errstate(invalid="ignore"):
        observed = arrays["lost"].sum(axis=0) / arrays["taken"].sum(axis=0)
    bands = {name: np.quantile(arrays[name], (0.1, 0.5, 0.9), axis=0) for name in ("risk_now", "risk_since")}
    return [
        {
            "drift": drift.kind,
            "strength": drift.strength,
            "cases": end - change,
            **{
                f"{name}{part}": float(band[k, at])
                for name, band in bands.items()
                for k, part in enumerate(("_low", "", "_high"))
            },
            "risk_observed": float(observed[at]),
            **{alarm: float(np.mean(arrays[alarm] <= end)) for alarm in _ALARMS},
        }
        for at, end in enumerate(range(WINDOW, WINDOW * (observed.size + 1), WINDOW))
    ]


def _column(rows: Sequence[Row], name: str) -> Any:
    return np.array([row[name] for row in rows])


def draw_risks(results: DriftResults, drifts: Sequence[Drift]) -> Any:
    """Draw the true risk of the accepted cases over time, and when the martingale alarms; a panel a drift."""
    columns = min(3, len(drifts))
    lines = -(-len(drifts) // columns)
    figure, axes = new_axes(lines, columns, width=max(2.4 * columns, 4.4), height=2.1 * lines + 0.6)
    for panel, drift in zip(axes.flat, drifts, strict=False):
        _draw_risk(panel, results, drift)
    for panel in axes[:, 0]:
        panel.set_ylabel("risk of accepted cases")
    for panel in axes[-1]:
        panel.set_xlabel("cases since the change")
    _add_legend(figure, axes.flat[len(drifts) - 1], columns=max(2, columns))
    return figure


def _add_legend(figure: Any, axes: Any, *, columns: int) -> None:
    """Name below all panels what is drawn in one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=7)


def _draw_risk(axes: Any, results: DriftResults, drift: Drift) -> None:
    rows, target = _curve(results, drift), results.settings.target_risk
    cases = _column(rows, "cases")
    for name, label, colour, dashes in (
        ("risk_now", "true risk, at the moment", _RISK, "-"),
        ("risk_since", "true risk, since the beginning", _SINCE, (0, (4, 1.6))),
    ):
        low, middle, high = (_column(rows, f"{name}{part}") for part in ("_low", "", "_high"))
        steps = "pre" if name == "risk_now" else None  # it holds for a whole window
        axes.fill_between(cases, low, high, step=steps, color=colour, alpha=0.18, linewidth=0.0)
        drawn = {"color": colour, "linestyle": dashes, "linewidth": 1.4, "label": label}
        axes.plot(cases, middle, drawstyle="steps-pre" if steps else "default", **drawn)
    observed = {"linestyle": "none", "marker": ".", "markersize": 2.5, "color": "#7f7f7f"}
    axes.plot(cases, _column(rows, "risk_observed"), **observed, label=f"observed, windows of {WINDOW} cases")
    axes.axhline(target, color="black", linewidth=0.8, linestyle="--", label="promised at most")
    axes.axvline(0.0, color="#7f7f7f", linewidth=0.8, linestyle=":", label="change begins")
    _mark_alarm(axes, results, drift)
    axes.set_title(drift.kind, fontsize=8)
    axes.set_ylim(
        0.4 * target, max(1.5 * target, 1.1 * np.nanmax(_column(rows, "risk_now_high"), initial=0.0))
    )


def _mark_alarm(axes: Any, results: DriftResults, drift: Drift) -> None:
    """Mark the median and the quartiles of the martingale's alarm, and say how often it goes off."""
    arrays, change = _certified(results.streams[drift]), results.sources[drift].change
    at = arrays["martingale"]
    later = at[at > change] - change
    low, middle, high = _quartiles(later)
    end = WINDOW * arrays["risk_now"].shape[1] - change
    if np.isfinite(low):
        axes.axvspan(low, min(high, end), color=_ALARM, alpha=0.18, linewidth=0.0)
    median = middle if np.isfinite(middle) else math.nan  # nothing is drawn, but the legend has it
    axes.axvline(median, color=_ALARM, linewidth=1.2, label="alarm: median, quartiles")
    told = f"alarm in {np.mean(np.isfinite(later)):.0%}" if later.size else ""
    axes.annotate(told, (0.98, 0.04), xycoords="axes fraction", ha="right", fontsize=7, color=_ALARM)


def draw_alarms(results: DriftResults, drifts: Sequence[Drift]) -> Any:
    """Draw the share of streams that have alarmed, against the cases since the change, by kind of drift."""
    kinds = list(dict.fromkeys(drift.kind for drift in drifts))
    columns = min(3, len(kinds))
    lines = -(-len(kinds) // columns)
    figure, axes = new_axes(lines, columns, width=2.4 * columns, height=2.1 * lines + 0.5)
    for panel, kind in zip(axes.flat, kinds, strict=False):
        _draw_shares(panel, results, [drift for drift in drifts if drift.kind == kind])
    for panel in axes[:, 0]:
        panel.set_ylabel("share that have alarmed")
    for panel in axes[-1]:
        panel.set_xlabel("cases since the change")
    _add_legend(figure, axes.flat[len(kinds) - 1], columns=4)
    return figure


def _draw_shares(axes: Any, results: DriftResults, drifts: Sequence[Drift]) -> None:
    for drift, colour in zip(drifts, _SHADES[-len(drifts) :], strict=True):
        rows = _curve(results, drift)
        for alarm, dashes in (("martingale", "-"), ("batch", (0, (1, 1.4)))):
            label = f"{alarm}{f', {drift.strength}' * bool(drift.strength)}"
            line = {"color": colour, "linestyle": dashes, "linewidth": 1.3, "label": label}
            axes.step(_column(rows, "cases"), _column(rows, alarm), where="post", **line)
    axes.axhline(ALPHA, color="black", linewidth=0.8, linestyle="--", label=f"{ALPHA:.0%}")
    axes.axvline(0.0, color="#7f7f7f", linewidth=0.8, linestyle=":")
    axes.set_title(drifts[0].kind, fontsize=8)
    axes.set_ylim(0.0, 1.02)
