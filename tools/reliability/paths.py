"""Score the same maps on every way there is, and compare: libraries, chunks, threads, workers, compilers.

    python -m tools.reliability.paths --out paths

Other libraries (torch, JAX, NumPy by the array API) and chunks (Zarr, Dask) agree with the compiled loops
within the tolerances of `tools.reliability.limits`; numbers of threads and workers change no bit; with the
vectoriser off, for a generic processor, and without any compiler the numbers stay within 1e-13.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import segtrust as st
from benchmarks.files import make_folder
from segtrust.confidence import Assessment, assess_map
from segtrust.io import read_table
from segtrust.kernels import MapSource, open_map, tiles_mapped_by
from tools.reliability.compared import as_device_map, estimators_of, off
from tools.reliability.limits import TOLERANCES
from tools.reliability.random_cases import DrawnMap, InChunks, draw_map, draw_table, rng_of
from tools.reliability.without_times import TIMES

__all__ = [
    "Compared",
    "compare_alone",
    "compare_compilers",
    "compare_libraries",
    "compare_threads",
    "compare_workers",
]

THREADS = (2, 4, 7)
UNVECTORISED = 1e-13
SHAPES = {"line": (2_500_000,), "image": (1500, 1301), "volume": (60, 210, 211), "film": (3, 4, 260, 270)}
COMPILERS: dict[str, dict[str, str]] = {
    "vectoriser off": {"NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0"},
    "generic processor": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "not compiled": {"NUMBA_DISABLE_JIT": "1"},
}
SIZES = ("one", "small", "large")
"""Maps for which loops are compiled anew: one, or of three types and shapes, and larger ones too."""
_TIMEOUT = 3000
_FEW_DIGITS = 1e-290
_CANCELLED = 1e-6
"""The relative error of the SDC is made of k - s, which has few digits where a mask is almost certain."""
_NUMBERS = ("s", "lam", "mu", "lower", "upper", "relative_error")

Values = dict[str, float]


@dataclass(frozen=True)
class Compared:
    """What one way gave beside the usual one.

    Attributes
    ----------
    way
        Which.
    values
        How many were compared.
    error, at
        The largest relative difference, and of which value.
    equal
        How many are equal to the last bit.
    faults
        Values that differ by more than they may.
    """

    way: str
    values: int
    error: float
    at: str
    equal: int
    faults: tuple[str, ...] = ()

    @classmethod
    def of(cls, way: str, usual: Values, found: Values, allowed: Callable[[str], float]) -> Compared:
        """Compare two sets of values."""
        errors = {name: off(found[name], value) for name, value in usual.items()}
        at = max(errors, key=errors.__getitem__)
        faults = tuple(f"{name}: {error:.2e}" for name, error in errors.items() if not error <= allowed(name))
        equal = sum(error == 0.0 for error in errors.values())
        return cls(way, len(errors), errors[at], at, equal, faults)

    def row(self) -> str:
        """Give a row of the table."""
        where = self.at if self.error else "-"
        counts = f"{self.values:,} | {self.equal:,}"
        return f"| {self.way} | {counts} | {self.error:.1e} | {where} | {len(self.faults)} |"


def _values(found: Assessment, name: str) -> Values:
    """Give all numbers of an assessment by name."""
    bounds = {each: float(getattr(found.bounds, each)) for each in _NUMBERS}
    every = {**{each: float(value) for each, value in found.scores.items()}, **bounds, "k": found.bounds.k}
    return {f"{each} of {name}": value for each, value in every.items()}


def _tolerance(name: str) -> float:
    """Give what a way may be off: as much as it may be from the reference, and as much for the usual way."""
    quantity = name.partition(" of ")[0]
    if quantity == "relative_error":
        return _CANCELLED
    return 2.0 * TOLERANCES.get(quantity, TOLERANCES["apc (absolute)"])


def _exactly(name: str) -> float:
    return 0.0


def _logit_normal(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    p = 1.0 / (1.0 + np.exp(-np.random.default_rng(seed).normal(-2.0, 3.0, shape)))
    kind = np.dtype(dtype)
    return np.rint(p * np.iinfo(kind).max).astype(kind) if kind.kind == "u" else p.astype(kind)


def _drawn_maps(count: int, seed: int) -> Iterator[tuple[str, DrawnMap]]:
    """Draw maps that torch and JAX know too: of a dimension or more, and of the byte order of the machine."""
    for number in range(count):
        drawn = draw_map(rng_of(seed, number))
        p = drawn.p.values if isinstance(drawn.p, InChunks) else drawn.p
        if p.shape and _has_digits(p):
            yield f"map {number}", replace(drawn, p=np.array(p, p.dtype.newbyteorder("=")), path="memory")


def _has_digits(p: Any) -> bool:
    """Tell whether entropies are such that doubles have all their digits: MMMC is a quotient of them."""
    if p.dtype != np.float64:
        return True
    largest = np.minimum(p, 1.0 - p).max()
    return bool(largest == 0.0 or largest > _FEW_DIGITS)


def _large_map(shape: tuple[int, ...], dtype: str) -> DrawnMap:
    """Make a map of several blocks, with a mask that is not its cut where it is an image."""
    drawn = draw_map(rng_of(0, 0))
    p = _logit_normal(shape, dtype, len(shape))
    mask = p > 0.3 * float(p.max()) if len(shape) == 2 else None
    return replace(drawn, p=p, mask=mask, threshold=0.5, tau=0.3, sides=(10, 25), weight=0.5)


def _as_torch(drawn: DrawnMap, folder: Path) -> MapSource:
    import torch

    return open_map(torch.from_numpy(drawn.p.copy()), drawn.mask, threshold=drawn.threshold)


def _as_jax(drawn: DrawnMap, folder: Path) -> MapSource:
    import jax

    jax.config.update("jax_enable_x64", True)
    return open_map(jax.numpy.asarray(drawn.p), drawn.mask, threshold=drawn.threshold)


def _as_arrays(drawn: DrawnMap, folder: Path) -> MapSource:
    return as_device_map(drawn)


def _odd_chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, length // 3 + 1) for length in shape)


def _as_dask(drawn: DrawnMap, folder: Path) -> MapSource:
    import dask.array

    p = dask.array.from_array(drawn.p, chunks=_odd_chunks(drawn.p.shape))
    return open_map(p, drawn.mask, threshold=drawn.threshold)


def _as_zarr(drawn: DrawnMap, folder: Path) -> MapSource:
    import zarr

    place = Path(tempfile.mkdtemp(dir=folder)) / "p.zarr"
    with zarr.config.set({"array.write_empty_chunks": True}):  # an array of zeros has chunks, too
        p = zarr.create_array(place, data=drawn.p, chunks=_odd_chunks(drawn.p.shape))
    return open_map(p, drawn.mask, threshold=drawn.threshold)


LIBRARIES: dict[str, Callable[[DrawnMap, Path], MapSource]] = {
    "NumPy by the array API": _as_arrays,
    "torch": _as_torch,
    "JAX": _as_jax,
    "Dask": _as_dask,
    "Zarr": _as_zarr,
}


def compare_libraries(name: str, folder: Path, count: int, seed: int = 1) -> Compared:
    """Compare another library or store with the compiled loops on maps in memory, drawn and larger ones."""
    usual: Values = {}
    found: Values = {}
    larger = {f"{dtype} image": _large_map((301, 299), dtype) for dtype in ("float32", "float64", "uint8")}
    for what, drawn in [*_drawn_maps(count, seed), *larger.items()]:
        estimators = estimators_of(drawn)
        usual |= _values(st.assess(drawn.p, drawn.mask, estimators, threshold=drawn.threshold), what)
        found |= _values(assess_map(LIBRARIES[name](drawn, folder), estimators), what)
    return Compared.of(name, usual, found, _tolerance)


def _assessed(drawn: DrawnMap, name: str, threads: int) -> Values:
    with st.use_threads(threads):
        found = st.assess(drawn.p, drawn.mask, estimators_of(drawn), threshold=drawn.threshold)
    return _values(found, name)


def compare_threads(threads: int, shapes: dict[str, tuple[int, ...]]) -> Compared:
    """Compare several threads with one, on maps of several blocks."""
    usual: Values = {}
    found: Values = {}
    for what, shape in shapes.items():
        for dtype in ("float32", "float64", "uint8"):
            drawn = _large_map(shape, dtype)
            usual |= _assessed(drawn, f"{dtype} {what}", 1)
            found |= _assessed(drawn, f"{dtype} {what}", threads)
    return Compared.of(f"{threads} threads", usual, found, _exactly)


def compare_alone(shapes: dict[str, tuple[int, ...]]) -> Compared:
    """Compare each estimator alone with the same beside all others, on maps of several blocks."""
    usual: Values = {}
    found: Values = {}
    for what, shape in shapes.items():
        for dtype in ("float32", "float64", "uint8"):
            drawn = _large_map(shape, dtype)
            estimators = estimators_of(drawn)
            name = f"{dtype} {what}"
            usual |= _values(st.assess(drawn.p, drawn.mask, estimators, threshold=drawn.threshold), name)
            for each in estimators:
                alone = st.score(drawn.p, drawn.mask, [each], threshold=drawn.threshold)
                found[f"{each.name} of {name}"] = alone[each.name]
    return Compared.of("alone", {name: usual[name] for name in found}, found, _alone)


def _alone(name: str) -> float:
    """Give what may differ: sums of doubts and entropies, which PLA takes in the order of its boxes."""
    return TOLERANCES["alone: ane"] if name.startswith(("amsp ", "ane ", "tla ")) else 0.0


def compare_workers(folder: Path, shape: tuple[int, ...]) -> Iterator[Compared]:
    """Compare processes and a Dask cluster, which share out the pieces of one map, with one process."""
    import zarr
    from dask.distributed import Client, LocalCluster

    from segtrust.engine.executors import map_on_dask, spread_over_processes

    large = _large_map(shape, "float32")
    chunks = tuple(max(1, length // 5 + 1) for length in shape)
    p = zarr.create_array(folder / "large.zarr", data=large.p, chunks=chunks)

    def values() -> Values:
        return _values(assess_map(open_map(p), estimators_of(large)), "Zarr volume")

    usual = values()
    for workers in (1, 2):
        with spread_over_processes(workers) as spread, tiles_mapped_by(spread):
            yield Compared.of(f"one map, processes: {workers}", usual, values(), _exactly)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        tiles_mapped_by(partial(map_on_dask, client)),
    ):
        yield Compared.of("one map, Dask", usual, values(), _exactly)


def compare_tables(folder: Path, cases: int) -> Compared:
    """Compare the tables that ``segtrust score`` writes with one worker and with two: equal but for times."""
    maps = folder / "maps"
    maps.mkdir()
    make_folder(maps, packed=True, count=cases, size=128)
    one, two = (_scored(maps, folder / f"{workers}.csv", workers) for workers in (1, 2))
    return Compared.of("2 workers, table of `score`", one, two, _exactly)


def _scored(maps: Path, table: Path, workers: int) -> Values:
    command = [sys.executable, "-m", "segtrust", "score", str(maps), "-o", str(table)]
    subprocess.run([*command, "--workers", str(workers)], check=True, capture_output=True)
    return {
        f"{column} of case {number}": float(value)
        for number, row in enumerate(read_table(table).rows)
        for column, value in row.items()
        if column not in TIMES and isinstance(value, int | float)
    }


def _compiled_maps(size: str) -> Iterator[tuple[str, DrawnMap]]:
    shapes = {"image": (41, 53)}
    if size != "one":
        shapes |= {"line": (5000,), "volume": (7, 11, 13)}
    if size == "large":
        shapes |= {"larger image": (301, 299), "larger volume": (40, 61, 59), "larger line": (700_001,)}
    for what, shape in shapes.items():
        for dtype in ("float64", "float32", "uint8") if size != "one" else ("float32",):
            yield f"{dtype} {what}", _large_map(shape, dtype)


def compiled_values(size: str) -> Values:
    """Give the values of maps and tables that depend on how loops are compiled; of `SIZES`."""
    found: Values = {}
    for what, drawn in _compiled_maps(size):
        found |= _assessed(drawn, what, 1)
    for number in range(20):
        drawn = draw_table(rng_of(2, number))
        curve = st.risk_coverage_curve(drawn.confidence, drawn.loss, weights=drawn.weights)
        found |= {f"aurc of table {number}": curve.aurc, f"augrc of table {number}": curve.augrc}
    return found


def _values_elsewhere(settings: dict[str, str], cache: Path, size: str) -> Values:
    """Compute in a process of its own, whose compiled loops are kept apart."""
    environment = {**os.environ, **settings, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tools.reliability.paths", "--values", size]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=_TIMEOUT
    )
    if done.returncode:
        raise RuntimeError(f"{settings}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    values: Values = json.loads(done.stdout.splitlines()[-1])
    return values


def compare_compilers(name: str, folder: Path, size: str) -> Compared:
    """Compare loops that are compiled otherwise, or not at all (no large maps: that takes long)."""
    if "NUMBA_DISABLE_JIT" in COMPILERS[name] and size == "large":
        size = "small"
    found = _values_elsewhere(COMPILERS[name], folder / name.replace(" ", "-"), size)
    return Compared.of(name, compiled_values(size), found, lambda _: UNVECTORISED)


def _compare_all(folder: Path, *, small: bool) -> Iterator[Compared]:
    for name in LIBRARIES:
        yield compare_libraries(
            name, folder, count={"JAX": 4 if small else 20}.get(name, 30 if small else 300)
        )
    shapes = {"image": SHAPES["image"]} if small else SHAPES
    yield from (compare_threads(threads, shapes) for threads in THREADS)
    yield compare_alone(shapes)
    yield from compare_workers(folder, (30, 61, 59) if small else SHAPES["volume"])
    yield compare_tables(folder, 6 if small else 40)
    yield from (compare_compilers(name, folder, "small" if small else "large") for name in COMPILERS)


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> int:
    """Compare all ways, and print a table; the exit code tells whether any differs by too much."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, help="folder for stores and compiled loops; a temporary one if none"
    )
    parser.add_argument("--small", action="store_true", help="small maps, to see that it runs")
    parser.add_argument("--values", choices=SIZES, help="print the values of this process, and no more")
    asked = parser.parse_args()
    if asked.values:
        _say(json.dumps(compiled_values(asked.values)))
        return 0
    _say(
        "| way | values | equal to the bit | largest difference | of | too large |\n|---|---|---|---|---|---|"
    )
    faults = 0
    with tempfile.TemporaryDirectory(dir=asked.out) as folder:
        for found in _compare_all(Path(folder), small=asked.small):
            _say(found.row())
            faults += len(found.faults)
            for fault in found.faults[:10]:
                _say(f"    {found.way}: {fault}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
