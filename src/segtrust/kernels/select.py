"""Exact order statistics of the doubt, without sorting and without holding the map.

A seeded sample of the pixels brackets the rank that is sought; one pass counts the pixels below, at and
between the ends of the bracket and keeps those inside; the answer is an end or among them. Where the sample
was unlucky or too many pixels lie inside, the bracket is moved or halved and the pass repeated, so the answer
is always exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segtrust.kernels.bits import bits_of_float, float_of_bits
from segtrust.kernels.sweep import Ranks
from segtrust.kernels.uncertainty import COLLECT, Bracket
from segtrust.kernels.view import MapView

__all__ = ["SAMPLE", "Selector", "bracket_from_sample", "order_statistic", "sample_doubts"]

SAMPLE = 65536
"""Sampled pixels; three standard deviations of a rank either way then span 1.2 % of the pixels."""

_GUIDES = 1024
"""Values, about, that bracket an order statistic in an array."""

Count = Callable[[Bracket], Ranks]


def sample_doubts(view: MapView, size: int = SAMPLE) -> Any:
    """Doubts of ``size`` pixels drawn with a fixed seed; all of them where the map has no more."""
    flat = view.values.reshape(-1)
    if flat.size > size:
        flat = flat[np.random.default_rng(flat.size).integers(0, flat.size, size)]
    p = np.abs(np.asarray(view.probabilities(flat), np.float64))
    return np.minimum(p, 1.0 - p)


def bracket_from_sample(sample: Any, fraction: float) -> Bracket:
    """Doubts that enclose the quantile of the whole map with near certainty."""
    n = sample.size
    spread = 3.0 * math.sqrt(max(fraction * (1.0 - fraction), 1.0 / n) * n) + 2.0
    middle = fraction * (n - 1)
    low, high = max(0, math.floor(middle - spread)), min(n - 1, math.ceil(middle + spread))
    return Bracket(
        0.0 if low == 0 else order_statistic(sample, low),
        0.5 if high == n - 1 else order_statistic(sample, high),
    )


def order_statistic(values: Any, rank: int) -> float:
    """Value of a rank, counted from 0, in an array; mostly several times faster than `numpy.partition`.

    Some of the values bracket the one that is sought, which is then found among those inside.

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


@dataclass(frozen=True)
class _Search:
    """Bit patterns ``low`` to ``high`` hold the doubt of ``rank``; ``before`` pixels lie below them."""

    rank: int
    low: int
    high: int
    before: int
    upto: int

    def after(self, bracket: Bracket, ranks: Ranks) -> _Search:
        """Narrow the search by the counts of a bracket that has not given the answer."""
        low, high = bits_of_float(bracket.low), bits_of_float(bracket.high)
        if self.rank < ranks.below_low:
            return replace(self, high=low - 1, upto=ranks.below_low)
        if self.rank >= ranks.upto_high:
            return replace(self, low=high + 1, before=ranks.upto_high)
        return _Search(self.rank, low + 1, high - 1, ranks.upto_low, ranks.below_high)

    def next_bracket(self, sample: Any) -> Bracket:
        """Keep all that is left where there is room, else split it at a sampled or at the middle value."""
        low, high = float_of_bits(self.low), float_of_bits(self.high)
        if self.upto - self.before <= COLLECT // 2:
            return Bracket(low, high)
        left = sample[(sample >= low) & (sample <= high)]
        pivot = np.sort(left)[left.size // 2] if left.size else float_of_bits((self.low + self.high) // 2)
        return Bracket(float(pivot), float(pivot))


@dataclass(frozen=True)
class Selector:
    """Finds doubts by rank.

    Attributes
    ----------
    count
        Makes a pass over all pixels.
    n
        Number of pixels.
    sample
        Doubts of some of them.
    bracket, ranks
        What a first pass has told.
    """

    count: Count
    n: int
    sample: Any
    bracket: Bracket
    ranks: Ranks

    def pair(self, rank: int) -> tuple[float, float]:
        """Doubts of rank ``rank`` and ``rank + 1``, counted from 0; the last again where there is no next."""
        return self.one(rank), self.one(min(rank + 1, self.n - 1))

    def one(self, rank: int) -> float:
        """Doubt of one rank."""
        search = _Search(rank, 0, bits_of_float(0.5), 0, self.n)
        bracket, ranks = self.bracket, self.ranks
        while (found := _look_up(rank, bracket, ranks)) is None:
            search = search.after(bracket, ranks)
            bracket = search.next_bracket(self.sample)
            ranks = self.count(bracket)
        return found


def _look_up(rank: int, bracket: Bracket, ranks: Ranks) -> float | None:
    """Give the doubt of a rank, where the counts around a bracket tell it."""
    if ranks.below_low <= rank < ranks.upto_low:
        return bracket.low
    if ranks.below_high <= rank < ranks.upto_high:
        return bracket.high
    if not (ranks.upto_low <= rank < ranks.below_high and ranks.complete):
        return None
    return order_statistic(ranks.inside, rank - ranks.upto_low)
