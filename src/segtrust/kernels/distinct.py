"""The doubts of a map, each value once: few for maps of 8 bits, and sorted for all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DistinctDoubts", "distinct_codes", "distinct_doubts", "merge_distinct", "pair_of_ranks"]


class DistinctDoubts(NamedTuple):
    """Doubts min(p, 1 - p) that occur in a map.

    Attributes
    ----------
    values
        Rising.
    counts
        Pixels that have each of them.
    """

    values: Any
    counts: Any


def distinct_doubts(blocks: Iterable[Any]) -> DistinctDoubts:
    """Count the doubts of a map that comes in blocks.

    Examples
    --------
    >>> found = distinct_doubts([np.array([0.5, 0.0, 0.5]), np.array([0.0, 0.1])])
    >>> found.values.tolist(), found.counts.tolist()
    ([0.0, 0.1, 0.5], [2, 1, 2])
    """
    unsigned = (block + 0.0 for block in blocks)  # a zero that has a sign loses it
    return reduce(merge_distinct, (DistinctDoubts(*np.unique(each, return_counts=True)) for each in unsigned))


def merge_distinct(one: DistinctDoubts, other: DistinctDoubts) -> DistinctDoubts:
    """Bring the doubts of two maps, or of two tiles of one, together."""
    return _grouped(np.concatenate([one.values, other.values]), np.concatenate([one.counts, other.counts]))


def _grouped(values: Any, counts: Any) -> DistinctDoubts:
    found, place = np.unique(values, return_inverse=True)
    return DistinctDoubts(found, np.bincount(place, counts, found.size).astype(np.int64))


def distinct_codes(values: Any, codes: Any) -> DistinctDoubts:
    """Count the doubts of a map of codes by counting the codes.

    Examples
    --------
    >>> distinct_codes(np.array([0, 2, 1], np.uint8), np.array([0.0, 0.5, 1.0])).counts.tolist()
    [2, 1]
    """
    counts = np.bincount(values.reshape(-1), minlength=codes.size)
    some = np.flatnonzero(counts)
    p = codes[some]
    return _grouped(np.minimum(p, 1.0 - p), counts[some])


def pair_of_ranks(values: list[Any], ranks: list[Any], rank: int) -> tuple[float, float]:
    """Give the doubt of a rank, counted from 0, and the next one, among the pixels of several maps.

    Parameters
    ----------
    values
        The doubts of each map, rising.
    ranks
        For each of them the number of the map's pixels that have at most this doubt.
    rank
        Below the number of all pixels.

    Examples
    --------
    >>> pair_of_ranks([np.array([0.0, 0.5]), np.array([0.25])], [np.array([3, 4]), np.array([1])], 3)
    (0.25, 0.5)
    """
    low, high = 0, int(np.float64(0.5).view(np.int64))  # patterns of floats are ordered as the floats are
    while low < high:
        middle = (low + high) // 2
        if _up_to(values, ranks, np.int64(middle).view(np.float64)) > rank:
            high = middle
        else:
            low = middle + 1
    doubt = np.int64(low).view(np.float64)
    if _up_to(values, ranks, doubt) > rank + 1:
        return float(doubt), float(doubt)
    above = [each[at] for each in values if (at := each.searchsorted(doubt, "right")) < each.size]
    return float(doubt), float(min(above, default=doubt))


def _up_to(values: list[Any], ranks: list[Any], doubt: Any) -> int:
    """Count the pixels with at most this doubt."""
    places = (each.searchsorted(doubt, "right") for each in values)
    return sum(int(upto[at - 1]) for upto, at in zip(ranks, places, strict=True) if at)
