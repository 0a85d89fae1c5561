"""The sections of ``segtrust bench kernels``, in the order in which they are printed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.bench.kernels import (
    compare_kernels,
    compare_plain,
    compare_threads,
    kernel_maps,
    logit_normal_volume,
    scaling,
)
from segtrust.bench.process import peak_memory, start_up

__all__ = ["kernel_sections"]

_PIECE = 10**7


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
