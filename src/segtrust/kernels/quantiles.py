"""Exact order statistics of the doubts min(p, 1 - p) of one map or of many, without sorting the pixels.

Maps on the host are searched by `Selector`. It looks for the doubt of a rank between the ends of a *bracket*,
and all it asks of the maps is to *count*: how many doubts lie below, at and between the ends, and which they
are if they are not too many. Counts of tiles and maps add up, so maps that are read in chunks and whole data
sets need no more than one pass per question and little memory. A seeded sample chooses the first
bracket; then the answer is an end of it or among the doubts inside, except where the sample was unlucky or
many pixels are inside: the bracket is then moved or split and counted again, so the result is always exact.

The counts come from one of two places:

* a pass over the pixels of maps (`segtrust.kernels.statistics.Ranks`);
* the sorted table of the doubts that occur in a map (`DistinctDoubts`), for data sets whose quantiles are
  needed many times (`pair_of_ranks`).

`order_statistic` picks one of the few doubts that are then in memory. `DeviceMap` finds its median itself,
because the result must stay on the device and keep its derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from segtrust.kernels.map_view import MapView
from segtrust.kernels.statistics import COLLECT, Bracket, Ranks, bits_of_float, float_of_bits

SAMPLE = 65536
"""Number of sampled pixels; three standard deviations of a rank to both sides are 1.2 % of the pixels."""

_SAMPLE_OF_TABLES = 16384
"""Number of pixels sampled from tables of distinct doubts, in which counting is fast."""

_GUIDES = 1024
"""Approximate number of values that bracket an order statistic in an array."""


@dataclass(frozen=True)
class Selector:
    """Search for doubts by rank.

    Attributes
    ----------
    count
        Counts all pixels around a bracket.
    n
        Number of pixels.
    sample
        Doubts of some of the pixels.
    bracket, ranks
        The first bracket and the counts around it.
    """

    count: Callable[[Bracket], Ranks]
    n: int
    sample: Any
    bracket: Bracket
    ranks: Ranks

    def pair(self, rank: int) -> tuple[float, float]:
        """Return the doubts of ``rank``, counted from 0, and of the next rank; the last doubt has no next."""
        doubt, bracket, ranks = self._find(rank)
        following = min(rank + 1, self.n - 1)
        next_doubt = _look_up(following, bracket, ranks)
        return doubt, self.one(following) if next_doubt is None else next_doubt

    def one(self, rank: int) -> float:
        """Return the doubt of a rank, counted from 0."""
        return self._find(rank)[0]

    def _find(self, rank: int) -> tuple[float, Bracket, Ranks]:
        """Return the doubt of a rank, and the bracket and counts from which it followed."""
        search = _Search(rank, 0, bits_of_float(0.5), 0, self.n)
        bracket, ranks = self.bracket, self.ranks
        while (doubt := _look_up(rank, bracket, ranks)) is None:
            search = search.narrowed(bracket, ranks)
            bracket = search.next_bracket(self.sample)
            ranks = self.count(bracket)
        return doubt, bracket, ranks


def _look_up(rank: int, bracket: Bracket, ranks: Ranks) -> float | None:
    """Return the doubt of a rank if it follows from the counts around a bracket."""
    if ranks.below_low <= rank < ranks.upto_low:
        return bracket.low
    if ranks.below_high <= rank < ranks.upto_high:
        return bracket.high
    if not (ranks.upto_low <= rank < ranks.below_high and ranks.complete):
        return None
    return order_statistic(ranks.inside, rank - ranks.upto_low)


@dataclass(frozen=True)
class _Search:
    """Range of bit patterns, ``low`` to ``high``, that contains the doubt of a rank.

    Patterns of doubts are ordered like the doubts. ``before`` pixels lie below the range, ``upto`` below its
    end.
    """

    rank: int
    low: int
    high: int
    before: int
    upto: int

    def narrowed(self, bracket: Bracket, ranks: Ranks) -> _Search:
        """Return the range that remains after the counts around a bracket."""
        low, high = bits_of_float(bracket.low), bits_of_float(bracket.high)
        if self.rank < ranks.below_low:
            return replace(self, high=low - 1, upto=ranks.below_low)
        if self.rank >= ranks.upto_high:
            return replace(self, low=high + 1, before=ranks.upto_high)
        return _Search(self.rank, low + 1, high - 1, ranks.upto_low, ranks.below_high)

    def next_bracket(self, sample: Any) -> Bracket:
        """Return the whole range if its doubts can be listed, else a sampled or middle value to split it."""
        low, high = float_of_bits(self.low), float_of_bits(self.high)
        if self.upto - self.before <= COLLECT // 2:
            return Bracket(low, high)
        inside = sample[(sample >= low) & (sample <= high)]
        if inside.size:
            pivot = float(np.sort(inside)[inside.size // 2])
        else:
            pivot = float_of_bits((self.low + self.high) // 2)
        return Bracket(pivot, pivot)


def sample_doubts(view: MapView, size: int = SAMPLE) -> Any:
    """Return the doubts of ``size`` pixels drawn with a fixed seed; all of them if the map has no more."""
    flat = view.values.reshape(-1)
    if flat.size > size:
        flat = flat[np.random.default_rng(flat.size).integers(0, flat.size, size)]
    p = np.abs(np.asarray(view.probabilities(flat), np.float64))
    return np.minimum(p, 1.0 - p)


def bracket_from_sample(sample: Any, fraction: float) -> Bracket:
    """Return doubts that almost certainly enclose a quantile of the whole map."""
    n = sample.size
    spread = 3.0 * math.sqrt(max(fraction * (1.0 - fraction), 1.0 / n) * n) + 2.0
    middle = fraction * (n - 1)
    low, high = max(0, math.floor(middle - spread)), min(n - 1, math.ceil(middle + spread))
    return Bracket(
        0.0 if low == 0 else order_statistic(sample, low),
        0.5 if high == n - 1 else order_statistic(sample, high),
    )


def order_statistic(values: Any, rank: int) -> float:
    """Return the value of a rank, counted from 0, in an array; several times faster than `numpy.partition`.

    Some of the values bracket the value of the rank, which is then found among the values inside.

    Examples
    --------
    >>> order_statistic(np.array([0.3, 0.1, 0.2]), 1)
    0.2
    """
    if values.size <= 4 * _GUIDES:
        return float(np.partition(values, rank)[rank])
    guides = np.sort(values[:: values.size // _GUIDES])
    middle, spread = rank / values.size * guides.size, 1.5 * math.sqrt(guides.size) + 2.0
    low = guides[max(0, math.floor(middle - spread))]
    high = guides[min(guides.size - 1, math.ceil(middle + spread))]
    inside, below = values[(values >= low) & (values <= high)], int(np.count_nonzero(values < low))
    if not below <= rank < below + inside.size:  # the guides were misleading
        inside, below = values, 0
    return float(np.partition(inside, rank - below)[rank - below])


class DistinctDoubts(NamedTuple):
    """The doubts that occur in a map: few for maps of 8 bits, up to one per pixel for floats.

    Attributes
    ----------
    values
        Distinct doubts in ascending order.
    counts
        Number of pixels with each of them.
    """

    values: Any
    counts: Any


def distinct_doubts(blocks: Iterable[Any]) -> DistinctDoubts:
    """Count the doubts of a map that comes in blocks.

    Examples
    --------
    >>> doubts = distinct_doubts([np.array([0.5, 0.0, 0.5]), np.array([0.0, 0.1])])
    >>> doubts.values.tolist(), doubts.counts.tolist()
    ([0.0, 0.1, 0.5], [2, 1, 2])
    """
    unsigned = (block + 0.0 for block in blocks)  # removes the sign of a negative zero
    return reduce(
        merge_distinct, (DistinctDoubts(*np.unique(block, return_counts=True)) for block in unsigned)
    )


def merge_distinct(first: DistinctDoubts, second: DistinctDoubts) -> DistinctDoubts:
    """Return the doubts of two maps, or of two tiles of a map, together."""
    values = np.concatenate([first.values, second.values])
    return DistinctDoubts(*group_equal(values, np.concatenate([first.counts, second.counts])))


def distinct_codes(values: Any, codes: Any) -> DistinctDoubts:
    """Count the doubts of a map of integer codes by counting the codes.

    Examples
    --------
    >>> distinct_codes(np.array([0, 2, 1], np.uint8), np.array([0.0, 0.5, 1.0])).counts.tolist()
    [2, 1]
    """
    counts = np.bincount(values.reshape(-1), minlength=codes.size)
    used = np.flatnonzero(counts)
    p = codes[used]
    return DistinctDoubts(*group_equal(np.minimum(p, 1.0 - p), counts[used]))


def group_equal(values: Any, counts: Any) -> tuple[Any, Any]:
    """Return the distinct values in ascending order, and the sum of the counts of each.

    Examples
    --------
    >>> values, counts = group_equal(np.array([0.5, 0.1, 0.5]), np.array([1, 2, 3]))
    >>> values.tolist(), counts.tolist()
    ([0.1, 0.5], [2, 4])
    """
    distinct, position = np.unique(values, return_inverse=True)
    return distinct, np.bincount(position, counts, distinct.size).astype(np.int64)


def pair_of_ranks(values: Sequence[Any], ranks: Sequence[Any], rank: int) -> tuple[float, float]:
    """Return the doubts of a rank, counted from 0, and of the next rank, among the pixels of several maps.

    Parameters
    ----------
    values
        The distinct doubts of each map in ascending order.
    ranks
        For each map and doubt, the number of pixels of the map with at most this doubt.
    rank
        Below the total number of pixels.

    Examples
    --------
    >>> pair_of_ranks([np.array([0.0, 0.5]), np.array([0.25])], [np.array([3, 4]), np.array([1])], 3)
    (0.25, 0.5)
    """
    total = sum(int(upto[-1]) for upto in ranks)
    # Evenly spaced pixels of each map, in the order of their doubts.
    places = np.linspace(0.0, 1.0, max(2, _SAMPLE_OF_TABLES // len(values)), endpoint=False)
    samples = [
        doubts[upto.searchsorted((places * upto[-1]).astype(upto.dtype), "right")]
        for doubts, upto in zip(values, ranks, strict=True)
    ]
    sample = np.concatenate(samples)
    count = partial(_count_in_tables, values, ranks, max(COLLECT, total // 20))
    bracket = bracket_from_sample(sample, rank / total)
    return Selector(count, total, sample, bracket, count(bracket)).pair(rank)


def _count_in_tables(values: Sequence[Any], ranks: Sequence[Any], room: int, bracket: Bracket) -> Ranks:
    """Count the pixels of several maps around a bracket; list those inside if there is room for them."""
    ends, counts, inside = np.array(bracket), [0, 0, 0, 0], []
    for doubts, upto in zip(values, ranks, strict=True):
        (below_low, below_high), (upto_low, upto_high) = (
            doubts.searchsorted(ends, side).tolist() for side in ("left", "right")
        )
        for i, end in enumerate((below_low, upto_low, below_high, upto_high)):
            if end:
                counts[i] += int(upto[end - 1])
        if below_high > upto_low:
            inside.append((doubts, upto, upto_low, below_high))
    listed = [np.empty(0)]
    if counts[2] - counts[1] <= room:
        for doubts, upto, first, last in inside:
            pixels = np.diff(upto[first - 1 : last]) if first else np.diff(upto[:last], prepend=0)
            listed.append(np.repeat(doubts[first:last], pixels))
    return Ranks(counts[0], counts[1], counts[2], counts[3], np.concatenate(listed))
