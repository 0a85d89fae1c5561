"""``kernels``: one map, all estimators, in units of ``numpy.sum`` over the same array."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import segtrust as st
from benchmarks.plain import plain_scores
from benchmarks.process import peak_memory, start_up
from benchmarks.timing import Ratio, shortest_times
from segtrust.demo.lesions import mostly_empty_volume

__all__ = [
    "SHAPE",
    "all_estimators",
    "compare_kernels",
    "compare_plain",
    "compare_threads",
    "kernel_maps",
    "kernel_sections",
    "logit_normal_volume",
    "scaling",
]

SHAPE = (155, 240, 240)
TAU = 0.3
SUM = "numpy.sum"
_PIECE = 10**7


def logit_normal_volume(shape: tuple[int, ...] = SHAPE, *, seed: int = 0) -> Any:
    """Independent pixels with logits N(-3.698, 5²), the paper's synthetic field, as float32.

    Examples
    --------
    >>> logit_normal_volume((4, 5)).dtype
    dtype('float32')
    """
    logits = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    logits *= 5.0
    logits -= 3.698
    np.exp(-logits, out=logits)
    logits += 1.0
    return np.reciprocal(logits, out=logits)


def kernel_maps() -> dict[str, Any]:
    """Make the two maps that everything is timed on."""
    return {"logit-normal": logit_normal_volume(), "mostly empty": mostly_empty_volume(SHAPE)}


def all_estimators() -> list[Any]:
    """Return every estimator that needs no training."""
    return ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla", st.ThresholdLevel(tau=TAU)]


def _sdc_idc_bounds(p: Any) -> object:
    return st.assess(p, estimators=["sdc", "idc"])


def _everything(p: Any) -> object:
    return st.assess(p, estimators=all_estimators())


@dataclass(frozen=True)
class _Candidate:
    what: str
    run: Callable[[Any], object]
    targets: dict[str, str]


_CANDIDATES = (
    _Candidate("SDC", st.soft_dice_confidence, {"logit-normal": "<= 1.5", "mostly empty": "<= 1.5"}),
    _Candidate("SDC + bounds + IDC", _sdc_idc_bounds, {"logit-normal": "<= 4.5", "mostly empty": "<= 3"}),
    _Candidate("all estimators + bounds", _everything, {"logit-normal": "<= 25", "mostly empty": "<= 25"}),
)


def compare_kernels(maps: dict[str, Any], *, rounds: int = 9) -> Iterator[Ratio]:
    """Time the kernels on one thread against ``numpy.sum``."""
    for name, p in maps.items():
        runs: dict[str, Callable[[], object]] = {SUM: p.sum}
        runs |= {each.what: _bind(each.run, p) for each in _CANDIDATES}
        times = shortest_times(runs, rounds=rounds)
        for each in _CANDIDATES:
            seconds = times[each.what]
            yield Ratio(each.what, SUM, name, seconds, seconds / times[SUM], each.targets.get(name, ""))


def _bind(run: Callable[[Any], object], p: Any) -> Callable[[], object]:
    return lambda: run(p)


def compare_plain(*, rounds: int = 2) -> Iterator[Ratio]:
    """Time the whole set against the formulas written as in the paper; the ratio is the gain."""
    for name, p in kernel_maps().items():
        times = shortest_times(
            {"ours": _bind(_everything, p), "plain": _bind(plain_scores, p)}, rounds=rounds
        )
        gain = times["plain"] / times["ours"]
        yield Ratio("gain of all estimators", "plain NumPy", name, times["ours"], gain, ">= 20")


def compare_threads(*, rounds: int = 9) -> Iterator[Ratio]:
    """Time two threads against one; the ratio is the gain."""
    p = logit_normal_volume()
    for each in _CANDIDATES:

        def two(run: Callable[[Any], object] = each.run) -> object:
            with st.use_threads(2):
                return run(p)

        times = shortest_times({"one": _bind(each.run, p), "two": two}, rounds=rounds)
        gain = times["one"] / times["two"]
        yield Ratio(
            f"gain of 2 threads, {each.what}", "1 thread", "logit-normal", times["two"], gain, ">= 1.6"
        )


def scaling(sizes: tuple[int, ...], make: Callable[[int], Any]) -> Iterator[Ratio]:
    """Time the kernels on maps of growing size; ``seconds / n`` should stay flat."""
    for n in sizes:
        p = make(n)
        rounds = 9 if n < 10**8 else 2
        runs = {SUM: p.sum, "SDC": _bind(st.soft_dice_confidence, p), "IDC": _bind(_sdc_idc_bounds, p)}
        times = shortest_times(runs, rounds=rounds)
        for what in ("SDC", "IDC"):
            yield Ratio(what, SUM, f"n = {n:.0e}", times[what], times[what] / times[SUM])


def kernel_sections(
    *, own: Any, largest: int, folder: Path | None, rounds: int
) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    maps = kernel_maps() | ({} if own is None else {"own map": own})
    yield (
        "One thread, in units of numpy.sum over the same 155×240×240 float32 map",
        compare_kernels(maps, rounds=rounds),
    )
    yield "Gain over whole-array formulas", compare_plain()
    yield "Gain of a second thread", compare_threads(rounds=rounds)
    sizes = tuple(10**power for power in range(4, 10) if 10**power <= largest)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        yield "Cost by number of pixels (memory-mapped files)", scaling(sizes, _maker(Path(place)))
    yield "Peak memory", peak_memory()
    yield "Start-up", start_up()


def _maker(folder: Path) -> Callable[[int], Any]:
    """Give the function that writes a map of n pixels to a file and opens it as a memory map."""

    def make(n: int) -> Any:
        path = folder / f"{n}.npy"
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n,))
        for first in range(0, n, _PIECE):
            out[first : first + _PIECE] = logit_normal_volume((min(_PIECE, n - first),), seed=first)
        out.flush()
        return np.load(path, mmap_mode="r")

    return make
