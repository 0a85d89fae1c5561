"""``decoding``: the Dice-optimal mask, in units of ``numpy.sort`` of the same array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import segtrust as st
from benchmarks.kernels import logit_normal_volume
from benchmarks.timing import Ratio, shortest_times

__all__ = ["compare_decoding_times", "decoding_sections"]

_SORT = "numpy.sort"
_SIZES = (10**5, 10**6, 10**7)


def decoding_sections(*, rounds: int) -> Iterator[tuple[str, Iterable[Any]]]:
    """Measure section by section; a title and its lines each."""
    title = "Dice-optimal mask and its exact expected Dice, in units of numpy.sort of the same array"
    yield title, compare_decoding_times(_SIZES, rounds=rounds)


def compare_decoding_times(sizes: Iterable[int], *, rounds: int = 5) -> Iterator[Ratio]:
    """Time masks of single floats and of 8 bits against sorting them."""
    for n in sizes:
        p = logit_normal_volume((n,))
        for name, values in (("float32", p), ("uint8", np.rint(255.0 * p).astype(np.uint8))):
            runs: dict[str, Callable[[], object]] = {
                "sort": partial(np.sort, values),
                "mask": partial(_mask, values),
            }
            times = shortest_times(runs, rounds=rounds)
            ratio = times["mask"] / times["sort"]
            yield Ratio("dice_optimal_mask", _SORT, f"n = {n:,}, {name}", times["mask"], ratio)


def _mask(p: Any) -> Any:
    return st.dice_optimal_mask(p).mask
