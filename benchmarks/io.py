"""``io``: what reading costs beside scoring, how workers share it, and its memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.files import make_folder, make_nifti, make_nnunet_case, make_zarr
from benchmarks.process import Reading
from benchmarks.timing import Ratio, shortest_times
from segtrust._optional import require
from segtrust.confidence import get_estimators
from segtrust.engine import Executor, ScoreJob, make_executor
from segtrust.io import ArrayRef, ReadOptions, find_cases, open_volume
from segtrust.io.formats._deflate import deflate_library

__all__ = [
    "compare_dask",
    "compare_nifti",
    "compare_reading",
    "compare_workers",
    "io_sections",
    "measure_memory",
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
        yield "Peak memory of a whole run", measure_memory(here)


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
    times = shortest_times({"numpy.load": partial(_loaded, path), **runs}, rounds=rounds)
    for name in jobs:
        ratio = times[name] / times["numpy.load"]
        yield Ratio(name, "numpy.load", path.name, times[name], ratio, "<= 1.1" if "first" in name else "")


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


def _rate(engine: Executor, job: ScoreJob, cases: Any) -> tuple[float, float]:
    """Give the seconds that the cases take, and cases a second once all processes are at work.

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
    yield Ratio("cases a second", "one process", "two processes at work", 1.0 / rates[2], gain, ">= 1.7")
    yield Ratio("whole run", "one process", "two, with their start", whole[2], whole[1] / whole[2])


def compare_dask(folder: Path) -> Iterator[Ratio]:
    """Compare the rates of one, two and four Dask workers."""
    place = folder / "maps"
    cases, job = find_cases([place]).cases, ScoreJob(tuple(get_estimators(_ALL)))
    rates = {workers: _rate(make_executor(workers, "local"), job, cases)[1] for workers in (1, 2, 4)}
    for workers, rate in rates.items():
        yield Ratio("cases a second", "one Dask worker", f"{workers} workers", 1.0 / rate, rate / rates[1])


_PEAK = """
import sys
from segtrust.cli import app
try:
    app(sys.argv[1:], standalone_mode=False)
finally:
    with open("/proc/self/status") as status:
        sys.stderr.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measure_memory(folder: Path, *, count: int = 10_000, side: int = 1024) -> Iterator[Reading]:
    """Measure the peak memory of `segtrust score` on many small cases, and on one large map; Linux only."""
    if not Path("/proc/self/status").exists():
        return
    small, large = folder / "small", folder / "large.zarr"
    small.mkdir()
    make_folder(small, count=count, size=64, packed=False)
    make_zarr(large, side=side)
    yield Reading(f"{count:,} cases of 64×64", _peak_mib(small, folder / "small.csv"), "MiB", 500.0)
    gib = side**3 * 4 / 2**30
    yield Reading(f"one Zarr map of {gib:g} GiB", _peak_mib(large, folder / "large.csv"), "MiB", 500.0)


def _peak_mib(path: Path, out: Path) -> float:
    command = [sys.executable, "-c", _PEAK, "score", str(path), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stderr.splitlines()[-1]) / 1024
