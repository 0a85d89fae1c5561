"""The mask with the largest exact expected Dice, found in a few passes and without sorting the map.

Among all masks of k pixels, that of the k most probable pixels is best, and a mask with only a part of
several equally probable pixels is never best. So the best mask is the map thresholded at one of its own
values (proofs: docs/explanation, "The Dice-optimal mask"). With Λ the sum of all probabilities and s the sum
of the k largest,

    2s / (k + 1 + Λ - s/k)  <=  expected Dice of the k largest  <=  2s / (k - 1 + Λ)

Let b be the largest of the left sides. A size whose right side is below b is not the best. The others have
2s - b(k - 1 + Λ) >= 0, which is concave in k, so they form one interval of sizes, in which few values lie.
The exact expectation is computed for each size in that interval, and the largest of them is the largest of
all.

To find the interval, pixels are counted by probability from the largest down, tile by tile for maps in
chunks. Maps of integers and half floats have few values, each of which is a *level*. Other floats are counted
in bins of similar values, by the leading bits of their pattern, which is ordered as the floats are and fine
where they are small; only in the bins of the interval are the values then counted one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from segtrust.kernels.integrals import expected_dice_of_growing
from segtrust.kernels.map_source import open_map
from segtrust.kernels.map_view import is_readable_in_place, view_map
from segtrust.kernels.quantiles import group_equal
from segtrust.kernels.tiles import is_chunked, over_tiles, read_tile

EMPTY_THRESHOLD = 1.0
"""Threshold for an empty mask, which is best only where no pixel is certain."""
_EQUAL = 1e-13
"""Relative difference up to which two expectations count as equal; the smaller mask is then preferred."""
_ROUNDING, _ROUNDING_PER_PIXEL = 1e-12, 1e-15
"""Relative rounding error of the bounds on the expected Dice."""


@dataclass(frozen=True)
class BestThreshold:
    """Threshold of the best mask that is not empty, and its expected Dice.

    Attributes
    ----------
    threshold
        Smallest probability in the mask.
    expected_dice
        Exact expected Dice.
    candidates
        Number of masks that were compared by their exact expectations.
    """

    threshold: float
    expected_dice: float
    candidates: int


def best_threshold(p: Any, source: str = "p") -> BestThreshold | None:
    """Find the threshold with the largest exact expected Dice among masks that are not empty.

    Parameters
    ----------
    p
        Probability map with checked values: a NumPy array, or an array in chunks.
    source
        Name of the map in errors.

    Returns
    -------
    BestThreshold or None
        ``None`` for a map of zeros.

    Examples
    --------
    >>> best_threshold(np.array([0.9, 0.45, 0.1])).threshold
    0.45
    """
    p = p if is_chunked(p) else np.atleast_1d(p)
    levels = count_levels(p, source)
    sizes, masses = np.cumsum(levels.counts), np.cumsum(levels.sums)
    total, rounding = float(masses[-1]), _ROUNDING + _ROUNDING_PER_PIXEL * float(sizes[-1])
    if total == 0.0:
        return None
    if levels.values is None:
        first, last = _possible_levels(sizes, masses, total, rounding)
        last = min(last + 1, levels.counts.size - 1)  # the interval may end inside the next bin
        levels = count_in_bins(p, levels.bins[first : last + 1], source)
        size_before, mass_before = (sizes[first - 1], masses[first - 1]) if first else (0, 0.0)
        sizes, masses = np.cumsum(levels.counts) + size_before, np.cumsum(levels.sums) + mass_before
    first, last = _possible_levels(sizes, masses, total, rounding)
    values, counts = levels.values[first : last + 1], levels.counts[first : last + 1]
    statistics = open_map(p, threshold=float(values[0]), source=source).dice_statistics()
    expected = expected_dice_of_growing(statistics, values[1:], counts[1:])
    best = int(np.flatnonzero(is_at_least(expected, expected.max()))[0])
    return BestThreshold(float(values[best]), float(expected[best]), len(expected))


def _possible_levels(sizes: Any, masses: Any, total: float, rounding: float) -> tuple[int, int]:
    """Return the first and the last level at which the best mask may end.

    ``sizes`` and ``masses`` are the number of pixels and the probability in the mask that ends with each
    level.
    """
    lower = 2.0 * masses / (sizes + 1.0 + total - masses / sizes)
    upper = 2.0 * masses / (sizes - 1.0 + total)
    possible = np.flatnonzero(upper >= lower.max() * (1.0 - 4.0 * rounding))
    return int(possible[0]), int(possible[-1])


def is_at_least(value: Any, other: Any) -> Any:
    """Return whether an expectation is larger than another, or equal to it up to rounding."""
    return value >= other * (1.0 - _EQUAL)


# Counting pixels by probability

_DROPPED_BITS = 12
"""Bits dropped from the pattern of a single float to obtain its bin; 11 bits of its mantissa are left."""
_BINS = (int(np.float32(1.0).view(np.uint32)) >> _DROPPED_BITS) + 1
_AT_ONCE = 1 << 20
"""Pixels that are counted at once; each time a quarter of a million bins are gone through."""
_SORTED_UP_TO = 1 << 18
"""Number of pixels up to which a map of floats is sorted instead of binned."""


@dataclass(frozen=True)
class Levels:
    """Pixels by probability, from the largest down; probabilities that do not occur are left out.

    Attributes
    ----------
    counts, sums
        Number of pixels of each level, and the sum of their probabilities.
    values
        Probability of each level; ``None`` if levels are bins of several values.
    bins
        Number of each bin.
    """

    counts: Any
    sums: Any
    values: Any = None
    bins: Any = None


def count_levels(p: Any, source: str = "p") -> Levels:
    """Count the pixels of a map with checked values by probability, in bins if it is a large map of floats.

    Examples
    --------
    >>> levels = count_levels(np.array([[255, 0], [51, 255]], np.uint8))
    >>> levels.values.tolist(), levels.counts.tolist()
    ([1.0, 0.2, 0.0], [2, 1, 1])
    """
    has_codes = p.dtype.kind != "f" or p.dtype.itemsize == 2
    if not has_codes and math.prod(p.shape) <= _SORTED_UP_TO:
        return count_in_bins(p, (_BINS, 0), source)
    tiles = list(_over_tiles(partial(_count_codes_or_bins, source), p))
    counts, codes = reduce(add, (counted for counted, _ in tiles)), tiles[0][1]
    used = np.flatnonzero(counts[0])
    if codes.size:
        return _levels_from(codes[used], counts[0][used].astype(np.int64))
    used = used[::-1]
    return Levels(counts[0][used].astype(np.int64), counts[1][used], bins=used)


def count_in_bins(p: Any, bins: Sequence[int], source: str = "p") -> Levels:
    """Count the values of a map of floats that lie between the first (highest) and the last of these bins."""
    count_tile = partial(_count_values, source, bins[-1], bins[0])
    values, counts = zip(*_over_tiles(count_tile, p), strict=True)
    return _levels_from(np.concatenate(values), np.concatenate(counts))


def _over_tiles(function: Callable[[Any], Any], p: Any) -> Iterable[Any]:
    """Apply a function to a map that can be read in place, or to one tile after the other."""
    if isinstance(p, np.ndarray) and is_readable_in_place(p, None):
        return [function(p)]
    return over_tiles(partial(_apply_to_tile, function, p), p)


def _apply_to_tile(function: Callable[[Any], Any], p: Any, tile: tuple[slice, ...]) -> Any:
    return function(read_tile(p, tile))


def _count_codes_or_bins(source: str, p: Any) -> tuple[Any, Any]:
    """Return the counts of codes, or the counts and sums of bins, in a tile; and the probability of codes."""
    view = view_map(p, source=source)
    flat = view.values.reshape(-1)
    parts = (flat[first : first + _AT_ONCE] for first in range(0, flat.size, _AT_ONCE))
    if view.codes.size:
        return reduce(add, (np.bincount(part, minlength=view.codes.size) for part in parts))[None], view.codes
    counts = np.zeros((2, _BINS))
    for part in parts:
        bins = _bins_of(part)
        counts[0] += np.bincount(bins, minlength=_BINS)
        counts[1] += np.bincount(bins, weights=part, minlength=_BINS)
    return counts, view.codes


def _bins_of(values: Any) -> Any:
    """Return the bin of each value; adding 0 removes the sign of a negative zero."""
    singles = values.astype(np.float32) + np.float32(0.0)
    return singles.view(np.uint32) >> np.uint32(_DROPPED_BITS)


def _count_values(source: str, lowest: int, highest: int, p: Any) -> tuple[Any, Any]:
    """Return the distinct values of a tile between two bins, and their counts."""
    values = view_map(p, source=source).values.reshape(-1)
    if (lowest, highest) != (0, _BINS):
        parts = []
        for first in range(0, values.size, _AT_ONCE):
            part = values[first : first + _AT_ONCE]
            bins = _bins_of(part)
            parts.append(part[(bins >= lowest) & (bins <= highest)])
        values = np.concatenate(parts)
    values = np.sort(values)
    firsts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: values.size])
    return values[firsts].astype(np.float64), np.diff(np.append(firsts, values.size))


def _levels_from(values: Any, counts: Any) -> Levels:
    """Return the levels of values in any order, of which some may be equal: of several tiles, or -0 and 0."""
    values = values + 0.0
    if not np.all(values[1:] > values[:-1]):
        values, counts = group_equal(values, counts)
    return Levels(counts[::-1], (values * counts)[::-1], values[::-1])
