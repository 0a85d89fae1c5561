"""Tables and figures of tuning curves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write
from segtrust.evaluation import (
    ELSEWHERE,
    HERE,
    TuningOptions,
    summarise_tuning,
    tuning_curve,
)
from segtrust.paper.pairs import ImagePair
from segtrust.report.figures import new_axes, save_figure
from segtrust.report.runs import mark_running, open_run, write_run
from segtrust.report.styles import style_of
from segtrust.report.tables import markdown_table, write_csv
from segtrust.report.tuned_sets import draw_tuning_panel

__all__ = ["TUNED", "TuningRun", "draw_tuning", "reproduce_tuning", "tuning_table"]

Row = dict[str, Any]

TUNED = ("sdc", "sdc-tuned", "pla-tuned", "aef", "aef-sdc", "tla")
"""The estimators that are compared."""

_COLUMNS = 6
"""Sizes that a table for people shows."""


@dataclass(frozen=True)
class TuningRun:
    """What is to be run.

    Attributes
    ----------
    cases, elsewhere
        Cases to tune and test on, and cases of another distribution to test on as well.
    repeats, seed
        Splits for each size, and the seed of the first.
    left_out
        Cases that were left out because their truth is empty.
    """

    cases: Sequence[ImagePair]
    elsewhere: Sequence[ImagePair] = ()
    repeats: int = 50
    seed: int = 0
    left_out: int = 0

    @property
    def steps(self) -> int:
        """What progress is counted in."""
        return len(self.cases) + len(self.elsewhere) + self.repeats

    def parameters(self) -> Row:
        """Describe the run in plain values."""
        counts = {
            "cases": len(self.cases),
            "elsewhere": len(self.elsewhere),
            "left out, empty truth": self.left_out,
            "repeats": self.repeats,
        }
        folders = {
            f"folders {name}": sorted({str(pair.prediction.parent.resolve()) for pair in group})
            for name, group in (("here", self.cases), ("elsewhere", self.elsewhere))
        }
        return {**counts, **folders, "estimators": list(TUNED), "scikit-learn": version("scikit-learn")}

    def full_risk(self) -> float:
        """Mean loss of all cases here: the risk at which coverage is read off elsewhere."""
        from segtrust.confidence import loss_of

        return float(np.mean([loss_of(pair()) for pair in self.cases]))


def reproduce_tuning(
    out: Path, run: TuningRun, *, workers: int = 1, advance: Callable[[int], object] = lambda done: None
) -> list[Row]:
    """Compute tuning curves and write tables, figures and ``run.json`` into a folder; give the summary.

    Parameters
    ----------
    out
        The folder. Finished parts are kept in ``out/parts``, so that a run that was stopped goes on.
    run
        What to run.
    workers, advance
        As for `segtrust.evaluation.TuningOptions`.
    """
    from segtrust import __version__

    begin = time.perf_counter()
    open_run(out, command="reproduce tuning")
    mark_running(out, command="reproduce tuning")
    target = run.full_risk()
    options = TuningOptions(
        target_risk=target,
        elsewhere=run.elsewhere,
        folder=out / "parts",
        about={"segtrust": __version__, "scikit-learn": version("scikit-learn")},
        workers=workers,
        advance=advance,
    )
    rows = tuning_curve(run.cases, TUNED, repeats=run.repeats, seed=run.seed, options=options)
    computed = time.perf_counter()
    summary = summarise_tuning(rows)
    _write_tables(rows, summary, out / "tables")
    _write_figures(summary, out / "figures")
    write_run(
        out,
        command="reproduce tuning",
        parameters={**run.parameters(), "target_risk": target, "workers": workers, "cores": os.cpu_count()},
        seconds=time.perf_counter() - begin,
        seeds={
            "splits": f"numpy.random.RandomState, {run.seed} to {run.seed + run.repeats - 1}",
            "forests": 42,
        },
        timings={"computed": computed - begin},
    )
    return summary


def _write_tables(rows: Sequence[Row], summary: Sequence[Row], folder: Path) -> None:
    write_csv(folder / "tuning.csv", rows)
    write_csv(folder / "summary.csv", summary)
    for name, text in tables_of(summary).items():
        with atomic_write(folder / f"{name}.md") as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def tables_of(summary: Sequence[Row]) -> dict[str, str]:
    """Give the tables for people, by name."""
    found = {"aurc": tuning_table(summary, HERE, "aurc")}
    if any(row["set"] == ELSEWHERE for row in summary):
        found["aurc_elsewhere"] = tuning_table(summary, ELSEWHERE, "aurc")
        found["coverage_elsewhere"] = tuning_table(summary, ELSEWHERE, "coverage")
    return found


def tuning_table(summary: Sequence[Row], tested: str, value: str) -> str:
    """Give a Markdown table: a row for each estimator, a column for some of the sizes, mean ± deviation.

    Parameters
    ----------
    summary
        Of `segtrust.evaluation.summarise_tuning`.
    tested
        The set of test cases.
    value
        ``"aurc"``, or ``"coverage"`` in percent, with the share of repeats that do not reach the risk.
    """
    chosen = [row for row in summary if row["set"] == tested]
    sizes = sorted({row["size"] for row in chosen})
    shown = [sizes[i] for i in np.unique(np.linspace(0, len(sizes) - 1, _COLUMNS).round().astype(int))]
    cells = {(row["estimator"], row["size"]): _cell(row, value) for row in chosen}
    names = list(dict.fromkeys(row["estimator"] for row in chosen))
    rows = [
        {"estimator": style_of(name).label, **{str(size): cells[name, size] for size in shown}}
        for name in names
    ]
    return markdown_table(rows)


def _cell(row: Mapping[str, Any], value: str) -> str:
    shown = [row[value], row[f"{value}_std"]]
    if value == "aurc":
        return " ± ".join(f"{each:.3f}" for each in shown if each is not None)
    missed = f" ({row['not_reached']:.0%} not reached)" if row["not_reached"] else ""
    return " ± ".join(f"{100.0 * each:.1f}" for each in shown if each is not None) + missed


def _write_figures(summary: Sequence[Row], folder: Path) -> None:
    save_figure(draw_tuning(summary, HERE, "aurc"), folder / "aurc")
    if any(row["set"] == ELSEWHERE for row in summary):
        save_figure(draw_tuning(summary, ELSEWHERE, "aurc"), folder / "aurc_elsewhere")
        save_figure(draw_tuning(summary, ELSEWHERE, "coverage"), folder / "coverage_elsewhere")


_LABELS = {"aurc": "AURC", "coverage": "coverage at the risk of all cases here (%)"}


def draw_tuning(summary: Sequence[Row], tested: str, value: str) -> Any:
    """Draw the tuning curves of a set of test cases, see `draw_tuning_panel`."""
    figure, axes = new_axes(1, 1, width=5.2, height=3.2)
    draw_tuning_panel(axes[0, 0], [row for row in summary if row["set"] == tested], value)
    axes[0, 0].set_ylabel(_LABELS[value])
    figure.legend(loc="outside right center", frameon=False, fontsize=8, handlelength=2.6)
    return figure
