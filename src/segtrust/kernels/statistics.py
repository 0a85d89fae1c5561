"""What the pixels of a map add up to; the statistics of tiles add up to those of the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.kernels.bits import binary_entropy

__all__ = [
    "APART_ABOVE",
    "MASS_LIMIT",
    "ORDER",
    "Counts",
    "DiceStatistics",
    "UncertaintyStatistics",
    "host_number",
]

ORDER = 6
"""Highest power summed."""

MASS_LIMIT = 700.0
"""A side with this much probability needs no value apart: the first term left out is 6!/700⁶ < 1e-14."""

APART_ABOVE = 1.0 / 256.0
"""Values above it are set apart while their side's mass is below `MASS_LIMIT`; 256⁻⁶ < 4e-15."""


def host_number(value: Any) -> float:
    """Bring one number to the host, and out of a graph of derivatives, to steer by it.

    Examples
    --------
    >>> host_number(np.float32(0.5))
    0.5
    """
    return float(value.detach() if hasattr(value, "detach") else value)


@dataclass(frozen=True)
class Counts:
    """The sums that the soft Dice confidence is made of.

    Attributes
    ----------
    n, k
        Pixels of the map and of its mask.
    s, lam
        Probability inside and outside the mask.
    """

    n: int
    k: int
    s: Any
    lam: Any

    def __add__(self, other: Counts) -> Counts:
        """Add the counts of another tile."""
        return Counts(self.n + other.n, self.k + other.k, self.s + other.s, self.lam + other.lam)


@dataclass(frozen=True)
class DiceStatistics:
    """`Counts`, and for each side of the mask (0 background, 1 foreground) the sums of powers.

    Attributes
    ----------
    counts
        See `Counts`.
    powers
        Σp², … Σp⁶ a side, over the pixels that are not in ``apart``.
    apart
        Larger probabilities of a side one by one, while the side's mass is below `MASS_LIMIT`.
    """

    counts: Counts
    powers: Any
    apart: tuple[Any, Any]

    namespace = np
    """The array library that the numbers belong to."""

    @property
    def k(self) -> int:
        """Pixels of the mask."""
        return self.counts.k

    @property
    def s(self) -> Any:
        """Probability inside the mask."""
        return self.counts.s

    @property
    def lam(self) -> Any:
        """Probability outside the mask."""
        return self.counts.lam

    @property
    def has_doubles(self) -> bool:
        """Whether the numbers are doubles, which some devices do not have."""
        return True

    @property
    def keeps_all_apart(self) -> bool:
        """Whether neither side has mass enough to have been folded into power sums."""
        return host_number(self.s) < MASS_LIMIT and host_number(self.lam) < MASS_LIMIT

    def powers_of_rest(self, side: int) -> Sequence[Any]:
        """Σp, Σp², … Σp⁶ over the pixels of a side that are not in ``apart``."""
        mass = self.s if side else self.lam
        apart = self.apart[side]
        rest = mass - self.namespace.sum(apart) if apart.shape[0] else mass
        return [rest, *self.powers[side]]

    def generating_sums(self, values: Any, t: Any, u: Any) -> tuple[Any, Any]:
        """See `segtrust.kernels.generating.generating_sums`."""
        from segtrust.kernels.generating import generating_sums

        return generating_sums(values, t, u)

    def constants(self, values: Any) -> Any:
        """Put plain numbers where the statistics are."""
        return values

    def __add__(self, other: DiceStatistics) -> DiceStatistics:
        """Statistics of two tiles together; a side that has gained mass enough is folded."""
        counts = self.counts + other.counts
        powers = self.powers + other.powers
        apart = [np.concatenate(pair) for pair in zip(self.apart, other.apart, strict=True)]
        for side, mass in enumerate((counts.lam, counts.s)):
            if mass >= MASS_LIMIT and apart[side].size:
                powers[side] += _powers_above_one(apart[side])
                apart[side] = apart[side][:0]
        return DiceStatistics(counts, powers, (apart[0], apart[1]))


def _powers_above_one(values: Any) -> Any:
    return np.array([np.sum(values**order) for order in range(2, ORDER + 1)])


@dataclass(frozen=True)
class UncertaintyStatistics:
    """What the doubts min(p, 1 - p) and the entropies u of a map add up to.

    Attributes
    ----------
    n
        Pixels.
    doubt, entropy
        Σ min(p, 1 - p) and Σ u (bits).
    above, above_count
        Σ u and number of the pixels whose entropy exceeds the threshold asked for.
    lowest, highest
        Smallest and largest doubt.
    patch
        Largest sum of u over a box of the side asked for.
    middle
        The two middle doubts, equal where the number of pixels is odd; NaN where not asked for.
    """

    n: int
    doubt: float
    entropy: float = 0.0
    above: float = 0.0
    above_count: int = 0
    lowest: float = 0.5
    highest: float = 0.0
    patch: float = -math.inf
    middle: tuple[float, float] = (math.nan, math.nan)

    def entropy_of(self, doubt: Any) -> Any:
        """Entropy in bits of a pixel with this doubt."""
        return binary_entropy(doubt)

    def __add__(self, other: UncertaintyStatistics) -> UncertaintyStatistics:
        """Statistics of two tiles together; middles do not add up and are lost."""
        return UncertaintyStatistics(
            self.n + other.n,
            self.doubt + other.doubt,
            self.entropy + other.entropy,
            self.above + other.above,
            self.above_count + other.above_count,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            max(self.patch, other.patch),
        )
