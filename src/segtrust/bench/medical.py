"""``segtrust bench medical``: where the time of the paper's medical evaluation goes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from segtrust.bench.process import Reading
from segtrust.experiments.medical.sources import FoundTasks, find_tasks
from segtrust.experiments.medical.study import MedicalSettings
from segtrust.report.medical import reproduce_medical
from segtrust.saved import read_json

__all__ = ["medical_sections"]

_LIMIT = 15 * 60.0
"""Seconds for the polyp data, all estimators and 50 splits, on two cores."""


def medical_sections(data: Path, *, tasks: Iterable[str] = ()) -> Iterator[tuple[str, Iterable[Any]]]:
    """Run all of it once, in a folder that is removed again; a title and its lines."""
    found = find_tasks(data, tuple(tasks))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield _title(found, cores), _readings(found, cores)


def _title(found: FoundTasks, cores: int) -> str:
    cases = ", ".join(f"{task.title} ({len(task.cases.cases)} cases)" for task in found.tasks)
    return f"Medical evaluation of {cases}, 50 splits for each size, {cores} processes"


def _readings(found: FoundTasks, cores: int) -> Iterator[Reading]:
    with TemporaryDirectory() as folder:
        begin = time.perf_counter()
        reproduce_medical(Path(folder), found, MedicalSettings(), workers=cores)
        total = time.perf_counter() - begin
        timings = read_json(Path(folder) / "run.json")["timings"]
    for step, seconds in timings.items():
        yield Reading(step, seconds, "s", _LIMIT)
    yield Reading("all of it", total, "s", _LIMIT)
