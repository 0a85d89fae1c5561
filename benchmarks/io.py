"""``io``: what reading costs beside scoring, how workers share it, and its memory."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil

from benchmarks.files import make_folder, make_nifti, make_nnunet_case, make_pngs, make_zarr
from benchmarks.process import Reading, memory_of
from benchmarks.timing import Ratio, shortest_times
from segtrust._optional import require
from segtrust.confidence import get_estimators
from segtrust.engine import Executor, Outcome, ScoreJob, log_beside, make_executor
from segtrust.engine.run_log import RunLog, mark_of
from segtrust.io import ArrayRef, ReadOptions, find_cases, open_volume
from segtrust.io.formats import numpy as numpy_format
from segtrust.io.formats._deflate import deflate_library

__all__ = [
    "compare_dask",
    "compare_nifti",
    "compare_reading",
    "compare_workers",
    "io_sections",
    "measure_log",
    "measure_memory",
    "measure_start",
]

_TIMES = 6
_ALL = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla")


def io_sections(*, rounds: int, folder: Path | None = None) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        here = Path(place)
        library = deflate_library().__name__
        yield (
            f"Reading and scoring a case of nnU-Net, in units of numpy.load ({library})",
            compare_reading(here, rounds=rounds),
        )
        if find_spec("nibabel") is not None:
            yield f"Reading a .nii.gz, in units of nibabel ({library})", compare_nifti(here, rounds=rounds)
        yield "Gain of more processes, 200 maps of 512×512", compare_workers(here, rounds=min(rounds, 3))
        if find_spec("distributed") is not None:
            yield "Gain of more Dask workers, the same maps", compare_dask(here)
        yield "Start of worker processes", measure_start(here)
        yield "Log of a run", measure_log(here)
        yield "Whole runs", measure_memory(here)


def compare_reading(
    folder: Path, *, rounds: int = 5, shape: tuple[int, ...] | None = None
) -> Iterator[Ratio]:
    """Time reading and scoring a case, with its mask and geometry, against numpy.load of the archive."""
    place = folder / "nnunet"
    place.mkdir()
    path = make_nnunet_case(place, **({} if shape is None else {"shape": shape}))
    (case,) = find_cases([place]).cases
    jobs = {
        "first region, SDC": ScoreJob(tuple(get_estimators(["sdc"]))),
        "first region, SDC, IDC, aMSP": ScoreJob(tuple(get_estimators(["sdc", "idc", "amsp"]))),
        "all three regions, SDC": ScoreJob(tuple(get_estimators(["sdc"])), ReadOptions(regions=("each",))),
    }
    runs: dict[str, Any] = {name: partial(_scored, job, case) for name, job in jobs.items()}
    unchecked = "first region, SDC, without the checksum of the rest"
    runs[unchecked] = partial(_scored_unchecked, jobs["first region, SDC"], case)
    times = shortest_times({"numpy.load": partial(_loaded, path), **runs}, rounds=rounds)
    for name in runs:
        ratio = times[name] / times["numpy.load"]
        target = "<= 0.5" if name in jobs and "first" in name else ""
        yield Ratio(name, "numpy.load", path.name, times[name], ratio, target)


def compare_nifti(folder: Path, *, rounds: int = 5, shape: tuple[int, ...] | None = None) -> Iterator[Ratio]:
    """Time reading a compressed NIfTI volume against nibabel, of which the pixels are asked for as stored."""
    nibabel = require("nibabel", extra="io")
    path = folder / "map.nii.gz"
    make_nifti(path, **({} if shape is None else {"shape": shape}))
    runs = {
        "nibabel": lambda: np.asarray(nibabel.load(path).dataobj),
        "segtrust": lambda: open_volume(ArrayRef(path)).read(),
    }
    times = shortest_times(runs, rounds=rounds)
    ratio = times["segtrust"] / times["nibabel"]
    yield Ratio("a map of BraTS's size, float32", "nibabel", path.name, times["segtrust"], ratio)


def _loaded(path: Path) -> Any:
    with np.load(path) as archive:
        return archive["probabilities"]


def _scored(job: ScoreJob, case: Any) -> None:
    outcome = job(case)
    if outcome.failure is not None:
        raise RuntimeError(outcome.failure.reason)


def _scored_unchecked(job: ScoreJob, case: Any) -> None:
    """Score a case whose archive is decompressed only as far as its pixels are needed."""

    def read_some(pixels: Any, begin: int, count: int) -> Any:
        out = np.empty(count, np.uint8)
        with numpy_format._opened(pixels._path, pixels._member) as stream:
            stream.skip(begin)
            stream.fill(out.data)
        return out

    with patch.object(numpy_format._Pixels, "_verified", read_some):
        _scored(job, case)


def _rate(engine: Executor, job: ScoreJob, cases: Any) -> tuple[float, float]:
    """Return the seconds that the cases take, and cases per second once all processes are at work.

    The cases are run again and again, because processes take longer to start than to score a few maps.
    """
    begin = time.perf_counter()
    moments = [time.perf_counter() for _ in engine.run(job, [*cases] * _TIMES)]
    settled = moments[len(moments) // 2 :]
    return moments[len(cases) - 1] - begin, (len(settled) - 1) / (settled[-1] - settled[0])


def compare_workers(folder: Path, *, rounds: int = 3, count: int = 200) -> Iterator[Ratio]:
    """Compare the rates of one process and of two; their start, the same for any folder, is told apart."""
    place = folder / "maps"
    place.mkdir(exist_ok=True)
    make_folder(place, count=count, size=512, packed=True)
    cases, job = find_cases([place]).cases, ScoreJob(tuple(get_estimators(_ALL)))
    runs = [(workers, _rate(make_executor(workers), job, cases)) for _ in range(rounds) for workers in (1, 2)]
    rates = {workers: max(rate for each, (_, rate) in runs if each == workers) for workers in (1, 2)}
    whole = {workers: min(seconds for each, (seconds, _) in runs if each == workers) for workers in (1, 2)}
    gain = rates[2] / rates[1]
    yield Ratio("cases per second", "one process", "two processes at work", 1.0 / rates[2], gain, ">= 1.7")
    yield Ratio("whole run", "one process", "two, with their start", whole[2], whole[1] / whole[2])


def compare_dask(folder: Path) -> Iterator[Ratio]:
    """Compare the rates of one, two and four Dask workers."""
    place = folder / "maps"
    cases, job = find_cases([place]).cases, ScoreJob(tuple(get_estimators(_ALL)))
    rates = {workers: _rate(make_executor(workers, "local"), job, cases)[1] for workers in (1, 2, 4)}
    for workers, rate in rates.items():
        yield Ratio("cases per second", "one Dask worker", f"{workers} workers", 1.0 / rate, rate / rates[1])


_FIRST_RESULT = """
import sys, time
from pathlib import Path
from segtrust._processes import preload_workers
if sys.argv[2] == "command":  # starts the process of which workers are forks before it imports
    preload_workers()
from segtrust.cli import score
from segtrust.confidence import get_estimators
from segtrust.engine import ScoreJob, make_executor
from segtrust.workflows import find_cases
cases = find_cases(Path(sys.argv[1])).cases[:2]
begin = time.perf_counter()
moments = [time.perf_counter() for _ in make_executor(1).run(ScoreJob(tuple(get_estimators(["sdc"]))), cases)]
print(moments[0] - begin)
"""


def measure_start(folder: Path, *, rounds: int = 5) -> Iterator[Reading]:
    """Measure the time from the start of an executor to its first result, in new processes.

    The command has begun to start workers while it imports packages and finds cases; Python has not.
    """
    place = folder / "few"
    place.mkdir(exist_ok=True)
    make_pngs(place, count=2, size=64)
    for way, limit in (("command", 0.5), ("Python", math.inf)):
        command = [sys.executable, "-c", _FIRST_RESULT, str(place), way]
        seconds = [
            float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(rounds)
        ]
        yield Reading(f"start of a worker, until its first result, {way}", min(seconds), "s", limit)


def measure_memory(folder: Path, *, count: int = 20_000, side: int = 1024) -> Iterator[Reading]:
    """Measure `segtrust score` on many PNGs and on one large map: first score, time and memory; Linux only.

    The memory is that of all processes together.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return
    many, large = folder / "many", folder / "large.zarr"
    many.mkdir()
    make_pngs(many, count=count, size=128)
    run = _watch_command(many, folder / "many.csv")
    quarter = max(1, len(run.memory) // 4)
    early, late = (
        max(mib for _, mib in run.memory[begin : begin + quarter])
        for begin in (quarter, len(run.memory) - quarter)
    )
    yield Reading(f"{count:,} PNGs of 128×128: first score", run.first_s, "s", 5.0)
    yield Reading("all of them", run.seconds, "s", math.inf)
    yield Reading("peak memory in the second quarter of that time", early, "MiB", 500.0)
    yield Reading("peak memory in the last quarter", late, "MiB", 500.0)
    make_zarr(large, side=side)
    gib = side**3 * 4 / 2**30
    peak = max(mib for _, mib in _watch_command(large, folder / "large.csv").memory)
    yield Reading(f"peak memory, one Zarr map of {gib:g} GiB", peak, "MiB", 500.0)


@dataclass(frozen=True)
class _Run:
    """A command as seen from outside: seconds to the first score and to the end, and memory at moments."""

    first_s: float
    seconds: float
    memory: list[tuple[float, float]]


def _watch_command(path: Path, out: Path) -> _Run:
    command = [sys.executable, "-m", "segtrust", "score", str(path), "-o", str(out)]
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    first, memory = math.nan, []
    while process.poll() is None:
        if math.isnan(first) and _has_row(log_beside(out)):
            first = time.perf_counter() - begin
        memory.append((time.perf_counter() - begin, memory_of(process.pid)))
        time.sleep(0.02 if math.isnan(first) else 0.5)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {process.returncode}")
    return _Run(first, time.perf_counter() - begin, memory)


def _has_row(log: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT 1 FROM cases LIMIT 1").fetchone() is not None
    except sqlite3.OperationalError:  # it is not there yet, or has no table
        return False


def measure_log(folder: Path, *, count: int = 100_000) -> Iterator[Reading]:
    """Measure the time and memory that the log of a run takes for many cases, with the row of a real one."""
    place = folder / "few"
    row = ScoreJob(tuple(get_estimators(_ALL)))(find_cases([place]).cases[0]).rows[0]
    process = psutil.Process()
    with RunLog(folder / ".scores.csv.log", {}) as log:
        before, begin = process.memory_info().rss, time.perf_counter()
        for number in range(count):
            name = f"case_{number}"
            log.add(Outcome(name, ({**row, "case": name},)), mark_of([name, number]))
        log.sync()
        seconds, after = time.perf_counter() - begin, process.memory_info().rss
    yield Reading(f"log of {count:,} cases: time per case", 1e6 * seconds / count, "µs", 200.0)
    yield Reading("memory while it is written", (after - before) / 2**20, "MiB", 20.0)
