"""The paper's medical evaluation as a folder: tables, figures, and what every number was made of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from segtrust.experiments.medical.published import DEVIATIONS
from segtrust.experiments.medical.sources import FoundTasks
from segtrust.experiments.medical.study import MedicalSettings, TaskResult, WorkPlan, study_task
from segtrust.experiments.medical.tables import medical_tables
from segtrust.report.evaluation import write_evaluated
from segtrust.report.examples import save_examples
from segtrust.report.figures import save_figure
from segtrust.report.grids import Grid, write_grid
from segtrust.report.medical_figures import figures_of
from segtrust.report.medical_tables import grids_of
from segtrust.report.runs import mark_running, open_run, write_run
from segtrust.report.tables import write_csv, write_text
from segtrust.report.tuned_sets import write_tuning

__all__ = ["reproduce_medical", "steps_of"]

Row = Mapping[str, Any]
_COMMAND = "reproduce medical"


def steps_of(found: FoundTasks, settings: MedicalSettings) -> int:
    """Count what progress is told in: cases twice, if there are tuning curves, and splits of each set."""
    cases = sum(len(task.cases.cases) for task in found.tasks)
    sets = sum(len(task.sets) for task in found.tasks)
    return cases + (cases + sets * settings.repeats if settings.repeats else 0)


def reproduce_medical(
    out: Path,
    found: FoundTasks,
    settings: MedicalSettings,
    *,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> tuple[dict[str, Grid], list[TaskResult]]:
    """Evaluate all tasks; write tables, figures and ``run.json`` into a folder; give the tables for people.

    Parameters
    ----------
    out
        The folder. That of each task in it has its score table, its evaluation and its finished parts, so
        that a run that was stopped goes on.
    found
        The tasks.
    settings
        What is computed.
    workers, advance
        Processes at work; told of each step, see `steps_of`.
    """
    begin = time.perf_counter()
    open_run(out, command=_COMMAND)
    mark_running(out, command=_COMMAND)
    results = [
        study_task(task, settings, WorkPlan(out / "tasks" / task.name, workers, advance))
        for task in found.tasks
    ]
    computed = time.perf_counter()
    tables = medical_tables(results, interpolates=settings.interpolates)
    grids = grids_of(tables, found.tasks, settings.repeats)
    _write_tables(out, tables, grids)
    _write_tasks(out, results, settings)
    for name, figure in figures_of(results, tables["tuning"]).items():
        save_figure(figure, out / "figures" / name)
    for each in results:
        save_examples(each.sets, each.cases, out / "figures" / f"examples_{each.task.name}")
    _write_report(out, grids, found, settings)
    timings = {
        f"{each.task.name}, {step}": seconds for each in results for step, seconds in each.timings.items()
    }
    timings |= {"tables and figures": time.perf_counter() - computed}
    write_run(
        out,
        command=_COMMAND,
        parameters={
            **asdict(settings),
            "deviations": sorted(settings.deviations),
            "tasks": {task.name: len(task.cases.cases) for task in found.tasks},
            "absent": dict(found.absent),
            "failed": sum(len(each.failures) for each in results),
            "workers": workers,
            "cores": os.cpu_count(),
        },
        seconds=time.perf_counter() - begin,
        seeds={
            "splits": f"numpy.random.RandomState, {settings.seed} to {settings.seed + settings.repeats - 1}"
        },
        timings=timings,
    )
    return grids, results


def _write_tables(out: Path, tables: Mapping[str, Sequence[Row]], grids: Mapping[str, Grid]) -> None:
    for name, rows in tables.items():
        if rows:
            write_csv(out / "tables" / f"{name}.csv", rows)
    for name, grid in grids.items():
        write_grid(grid, out / "tables" / name)


def _write_tasks(out: Path, results: Sequence[TaskResult], settings: MedicalSettings) -> None:
    """Write what each number was made of: the evaluation of each task, and the rows of its splits."""
    for result in results:
        folder = out / "tasks" / result.task.name
        write_evaluated(folder, result.sets, result.tables, settings.evaluation)
        if result.tuning:
            write_tuning(folder, result.tuning)


def _write_report(out: Path, grids: Mapping[str, Grid], found: FoundTasks, settings: MedicalSettings) -> None:
    told = [f"- {name} was left out: {why}." for name, why in found.absent.items()]
    told += [f"- As published: {DEVIATIONS[name]}." for name in sorted(settings.deviations)]
    parts = [f"## {grid.title}\n\n{grid.markdown()}" for grid in grids.values()]
    text = "\n\n".join(
        ["# Medical evaluation", "\n".join(told), *parts] if told else ["# Medical evaluation", *parts]
    )
    write_text(out / "report.md", text)
