"""The paper's medical evaluation as a folder: tables, figures, and what every number was made of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from segtrust.errors import PairingError, SegtrustError
from segtrust.paper.medical.figures import figures_of
from segtrust.paper.medical.grids import Grid, write_grid
from segtrust.paper.medical.paper_tables import grids_of
from segtrust.paper.medical.published import DEVIATIONS
from segtrust.paper.medical.sources import FoundTasks
from segtrust.paper.medical.study import MedicalSettings, TaskResult, WorkPlan, study_task
from segtrust.paper.medical.tables import medical_tables
from segtrust.report.evaluation import write_evaluated
from segtrust.report.examples import save_examples
from segtrust.report.figures import save_figure
from segtrust.report.runs import fresh_results, mark_running, open_run, write_run
from segtrust.report.tables import write_csv, write_text
from segtrust.report.tuned_sets import write_tuning

__all__ = ["MedicalRun", "reproduce_medical", "steps_of"]

Row = Mapping[str, Any]
_COMMAND = "reproduce medical"


@dataclass(frozen=True)
class MedicalRun:
    """What came of a run.

    Attributes
    ----------
    grids
        The tables for people.
    results
        Of each task that could be judged.
    absent, unusable
        Why there is nothing of other tasks: there are no maps of them, or such as cannot be judged.
    """

    grids: Mapping[str, Grid]
    results: Sequence[TaskResult]
    absent: Mapping[str, str]
    unusable: Mapping[str, str]


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
) -> MedicalRun:
    """Evaluate all tasks; write tables, figures and ``run.json`` into a folder; give the tables for people.

    A task that cannot be judged does not stop the others.

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
    results, unusable = [], dict(found.unusable)
    for task in found.tasks:
        try:
            work = WorkPlan(out / "tasks" / task.name, workers, advance)
            results.append(study_task(task, settings, work))
        except SegtrustError as error:
            unusable[task.name] = str(error)
            _forget(out / "tasks" / task.name)
    if not results:
        told = " ".join(f"{name}: {why}" for name, why in unusable.items())
        raise PairingError(f"{found.data}: expected at least one task that can be judged, got none. {told}")
    computed = time.perf_counter()
    tables = medical_tables(results, interpolates=settings.interpolates)
    grids = grids_of(tables, [each.task for each in results], settings.repeats)
    _write_tasks(out, results, settings)
    with fresh_results(out):
        _write_tables(out, tables, grids)
        for name, figure in figures_of(results, tables["tuning"]).items():
            save_figure(figure, out / "figures" / name)
        for each in results:
            save_examples(each.sets, each.cases, out / "figures" / f"examples_{each.task.name}")
    run = MedicalRun(grids, results, found.absent, unusable)
    _write_report(out, run, settings)
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
            "tasks": {each.task.name: len(each.task.cases.cases) for each in results},
            "absent": dict(found.absent),
            "unusable": unusable,
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
    return run


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
        with fresh_results(folder):
            write_evaluated(folder, result.sets, result.tables, settings.evaluation)
            if result.tuning:
                write_tuning(folder, result.tuning)


def _forget(folder: Path) -> None:
    """Remove what was written of a task when it could be judged."""
    if folder.is_dir():
        with fresh_results(folder):
            (folder / "report.md").unlink(missing_ok=True)


def _write_report(out: Path, run: MedicalRun, settings: MedicalSettings) -> None:
    left_out = {**run.absent, **run.unusable}
    told = [f"- {name} was left out: {why}" for name, why in left_out.items()]
    told += [f"- As published: {DEVIATIONS[name]}." for name in sorted(settings.deviations)]
    parts = [f"## {grid.title}\n\n{grid.markdown()}" for grid in run.grids.values()]
    text = "\n\n".join(
        ["# Medical evaluation", "\n".join(told), *parts] if told else ["# Medical evaluation", *parts]
    )
    write_text(out / "report.md", text)
