"""The patch sums of PLA* against filters of SciPy, and the time of a whole tuning curve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import Reading
from benchmarks.timing import Ratio, shortest_times
from segtrust._compile import available_cores
from segtrust.confidence import SIDES
from segtrust.demo.lesions import LESIONS, lesion_map
from segtrust.evaluation import TuningOptions, tuning_curve
from segtrust.kernels import largest_box_sums, open_map
from segtrust.paper.pairs import labelled_pairs
from segtrust.paper.tuning import TUNED

__all__ = ["compare_sides", "convolved", "filtered", "patch_maps", "time_tuning"]

_REPEATS = 50
_SECONDS = 300.0
_GAIN = ">= 30"


def patch_maps(size: int = 512) -> dict[str, Any]:
    """Make entropy maps: of a lesion whose edge is blurred, and of noise, where no box can be passed over.

    Examples
    --------
    >>> [(name, each.shape) for name, each in patch_maps(32).items()]
    [('lesion, 32×32', (32, 32)), ('noise, 32×32', (32, 32))]
    """
    lesion = lesion_map(LESIONS[2], size=size).prediction.probabilities
    noise = np.random.default_rng(0).random((size, size))
    named = {"lesion": lesion, "noise": noise}
    return {f"{name}, {size}×{size}": open_map(p).entropy_map() for name, p in named.items()}


def convolved(entropies: Any, sides: Sequence[int] = SIDES) -> list[float]:
    """Give the largest sums by a convolution for each side; SciPy chooses the method."""
    from scipy.signal import convolve

    boxes = [tuple(min(side, length) for length in entropies.shape) for side in sides]
    return [float(convolve(entropies, np.ones(box), "valid").max()) for box in boxes]


def filtered(entropies: Any, sides: Sequence[int] = SIDES) -> list[float]:
    """Give the largest sums by SciPy's running means, whose time does not depend on the side."""
    from scipy.ndimage import uniform_filter

    found = []
    for side in sides:
        box = tuple(min(side, length) for length in entropies.shape)
        means = uniform_filter(entropies, box, mode="constant")
        inside = [
            slice(each // 2, length - each + each // 2 + 1)
            for each, length in zip(box, entropies.shape, strict=True)
        ]
        found.append(float(means[tuple(inside)].max()) * float(np.prod(box)))
    return found


def compare_sides(size: int = 512, *, rounds: int = 3) -> Iterator[Ratio]:
    """Time all sides from one table against a filter for each side, on the same entropies."""
    for name, entropies in patch_maps(size).items():
        runs: dict[str, Callable[[], object]] = {
            "ours": partial(largest_box_sums, entropies, SIDES),
            "scipy.signal.convolve": partial(convolved, entropies),
            "scipy.ndimage.uniform_filter": partial(filtered, entropies),
        }
        times = shortest_times(runs, rounds=rounds)
        for peer in list(runs)[1:]:
            gain = times[peer] / times["ours"]
            target = _GAIN if peer.endswith("convolve") else ""
            yield Ratio(f"{len(SIDES)} sides", peer, name, times["ours"], gain, target)


def time_tuning(folders: Sequence[Path], *, repeats: int = _REPEATS) -> Iterator[Reading]:
    """Time a whole tuning curve on cases from folders, from the files to the rows."""
    pairs = labelled_pairs(folders)
    processes = available_cores()
    begin = time.perf_counter()
    tuning_curve(pairs, TUNED, repeats=repeats, options=TuningOptions(workers=processes, target_risk=0.1))
    seconds = time.perf_counter() - begin
    yield Reading(f"{repeats} repeats, {len(pairs)} cases, {processes} processes", seconds, "s", _SECONDS)
