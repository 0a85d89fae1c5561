"""``medical``: where the time of the paper's medical evaluation goes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.process import Reading
from segtrust._compile import available_cores
from segtrust._files import read_json
from segtrust.paper.medical.report import reproduce_medical
from segtrust.paper.medical.sources import FoundTasks, find_tasks
from segtrust.paper.medical.study import MedicalSettings

__all__ = ["medical_sections"]

_LIMIT = 15 * 60.0
"""Seconds for the polyp data, all estimators and 50 splits, on two cores."""


def medical_sections(
    data: Path, *, tasks: Iterable[str] = (), repeats: int = 50
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Run all of it once, in a folder that is removed again; a title and its lines."""
    found = find_tasks(data, tuple(tasks))
    cases = ", ".join(f"{task.title} ({len(task.cases.cases)} cases)" for task in found.tasks)
    title = f"Medical evaluation of {cases}, {repeats} splits for each size, {available_cores()} processes"
    yield title, _readings(found, MedicalSettings(repeats=repeats))


def _readings(found: FoundTasks, settings: MedicalSettings) -> Iterator[Reading]:
    with TemporaryDirectory() as folder:
        begin = time.perf_counter()
        reproduce_medical(Path(folder), found, settings, workers=available_cores())
        total = time.perf_counter() - begin
        timings = read_json(Path(folder) / "run.json")["timings"]
    for step, seconds in timings.items():
        yield Reading(step, seconds, "s", _LIMIT)
    yield Reading("all of it", total, "s", _LIMIT)
