"""Statistics of the pixels of a map. Those of tiles add up to those of the map.

`Counts` and `DiceStatistics` are for the Dice family of estimators (see `segtrust.kernels.dice_sums`), the
others for estimators of uncertainty (see `segtrust.kernels.uncertainty`). The *doubt* of a pixel is
min(p, 1 - p); its entropy u depends on the doubt alone and increases with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

ORDER = 6
"""Highest power summed."""

MASS_LIMIT = 700.0
"""A map with this much probability needs no value apart: the first term left out is 6!/700⁶ < 1e-14."""

APART_ABOVE = 1.0 / 256.0
"""Values above it are kept apart while the map's mass is below `MASS_LIMIT`; 256⁻⁶ < 4e-15."""

COLLECT = 1 << 17
"""Doubts inside a bracket that one segment has room for at least; of more, only their number is known."""


def host_number(value: Any) -> float:
    """Return one number as a Python float, copied from its device and detached from its derivatives.

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
        Number of pixels of the map and of its mask.
    s, lam
        Sum of the probabilities inside and outside the mask.

    For a batch, k, s and lam are arrays with one entry per map.
    """

    n: int
    k: Any
    s: Any
    lam: Any

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of two tiles together."""
        return Counts(self.n + other.n, self.k + other.k, self.s + other.s, self.lam + other.lam)

    def may_be_below(self, level: float) -> bool:
        """Return whether all probabilities may be at most ``level``: whether the means on both sides are."""
        low = level * (1.0 + 1e-9)  # sums are rounded
        return bool(self.s <= low * self.k and self.lam <= low * (self.n - self.k))


@dataclass(frozen=True)
class DiceStatistics:
    """`Counts`, and the sums of powers for each side of the mask (0 background, 1 foreground).

    Attributes
    ----------
    counts
        Pixels and probability on both sides.
    powers
        Σp², … Σp⁶ per side, over the pixels that are not in ``apart``, as far as they matter: in a map with
        much mass the higher powers do not, and neither do those of tiny values.
    apart
        The larger probabilities of each side, one by one, if the mass is below `MASS_LIMIT`.

    The mass is that of the whole map, which is enough for Tversky indices with 1 - alpha <= beta <= 1 (Dice,
    IoU, F-beta), or that of the side itself; see `segtrust.kernels.dice_sums`.
    """

    counts: Counts
    powers: Any
    apart: tuple[Any, Any]

    namespace = np
    """The array library that the numbers belong to."""

    @property
    def k(self) -> int:
        """Number of pixels of the mask."""
        return int(self.counts.k)

    @property
    def s(self) -> Any:
        """Sum of the probabilities inside the mask."""
        return self.counts.s

    @property
    def lam(self) -> Any:
        """Sum of the probabilities outside the mask."""
        return self.counts.lam

    @property
    def has_doubles(self) -> bool:
        """Whether the numbers are doubles, which some devices lack."""
        return True

    @property
    def keeps_all_apart(self) -> bool:
        """Whether the map has so little mass that all larger probabilities are in ``apart``."""
        return host_number(self.s) + host_number(self.lam) < MASS_LIMIT

    def powers_of_rest(self, side: int) -> Sequence[Any]:
        """Return Σp, Σp², … Σp⁶ over the pixels of a side that are not in ``apart``."""
        mass = self.s if side else self.lam
        apart = self.apart[side]
        rest = mass - self.namespace.sum(apart) if apart.shape[0] else mass
        return [rest, *self.powers[side]]

    def generating_sums(self, values: Any, t: Any, u: Any) -> tuple[Any, Any]:
        """Return Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values``, for each ``t``; ``u`` is 1 - t."""
        from segtrust.kernels.dice_sums import generating_sums  # loads Numba

        return generating_sums(values, t, u)

    def constants(self, values: Any) -> Any:
        """Return plain numbers in the array library of the statistics."""
        return values

    def __add__(self, other: DiceStatistics) -> DiceStatistics:
        """Return the statistics of two tiles together; a side with enough mass keeps none apart."""
        counts = self.counts + other.counts
        powers = self.powers + other.powers
        apart = [np.concatenate(pair) for pair in zip(self.apart, other.apart, strict=True)]
        for side, mass in enumerate((counts.lam, counts.s)):
            if mass >= MASS_LIMIT and apart[side].size:
                powers[side] += [np.sum(apart[side] ** order) for order in range(2, ORDER + 1)]
                apart[side] = apart[side][:0]
        return DiceStatistics(counts, powers, (apart[0], apart[1]))


@dataclass(frozen=True)
class UncertaintyNeeds:
    """The statistics of a map's uncertainty that an estimator reads.

    Attributes
    ----------
    entropies
        Whether Σ u is needed.
    doubt_limit
        Σ u and number of the pixels with more doubt than this are needed; infinite for neither.
    side
        The largest Σ u over a box of this side is needed; ``None`` for none.
    median
        Whether the middle doubts are needed.
    """

    entropies: bool = False
    doubt_limit: float = math.inf
    side: int | None = None
    median: bool = False

    @property
    def any_entropies(self) -> bool:
        """Whether the entropy of any pixel has to be computed."""
        return self.entropies or self.side is not None or self.doubt_limit < math.inf


@dataclass(frozen=True)
class UncertaintyStatistics:
    """What the doubts and the entropies of a map add up to.

    Attributes
    ----------
    n
        Number of pixels.
    doubt, entropy
        Σ min(p, 1 - p) and Σ u (bits).
    above, above_count
        Σ u and number of the pixels with more doubt than the limit requested.
    lowest, highest
        Smallest and largest doubt.
    patch
        Largest sum of u over a box of the side requested.
    middle
        The two middle doubts, equal if the number of pixels is odd; NaN if not requested.
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
        """Return the entropy in bits of a pixel with this doubt."""
        return binary_entropy(doubt)

    def __add__(self, other: UncertaintyStatistics) -> UncertaintyStatistics:
        """Return the statistics of two tiles together; the middle doubts do not add up and are dropped."""
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


class Bracket(NamedTuple):
    """Two doubts between which an order statistic is sought; ``low > high`` seeks nothing."""

    low: float
    high: float


NOWHERE = Bracket(1.0, 0.0)


@dataclass(frozen=True)
class Ranks:
    """Where a bracket of doubts lies among the pixels.

    Attributes
    ----------
    below_low, upto_low, below_high, upto_high
        Number of pixels with doubt < low, <= low, < high and <= high.
    inside
        The doubts strictly between low and high, or fewer if there was no room for all.
    """

    below_low: int
    upto_low: int
    below_high: int
    upto_high: int
    inside: Any

    @property
    def complete(self) -> bool:
        """Whether ``inside`` holds all doubts of the bracket."""
        return int(self.inside.size) == max(self.below_high - self.upto_low, 0)

    @classmethod
    def together(cls, parts: Iterable[Ranks]) -> Ranks:
        """Return the ranks of several tiles together, at once, so that their doubts are copied only once."""
        tiles = list(parts)
        return cls(
            sum(tile.below_low for tile in tiles),
            sum(tile.upto_low for tile in tiles),
            sum(tile.below_high for tile in tiles),
            sum(tile.upto_high for tile in tiles),
            np.concatenate([tile.inside for tile in tiles]),
        )


_EPS = float(np.finfo(float).eps)


def binary_entropy(doubt: float) -> float:
    """Return the entropy in bits of one pixel with this doubt min(p, 1 - p).

    Examples
    --------
    >>> binary_entropy(0.5), binary_entropy(0.0)
    (1.0, 0.0)
    """
    if doubt <= 0.0:
        return 0.0
    return -(doubt * math.log2(doubt) + (1.0 - doubt) * math.log1p(-doubt) / math.log(2.0))


def doubt_at_entropy(tau: float) -> float:
    """Return the largest doubt whose entropy is at most ``tau``, so that u > tau if and only if m > doubt.

    If ``tau`` was computed as the entropy of a pixel p, that pixel is included, and so is 1 - p, whose doubt
    differs by a rounding of p: by no more than 2⁻⁵³, and not at all where doubts are as small as that.
    """
    low, high = 0, bits_of_float(0.5)
    limit = tau * (1.0 + 4.0 * _EPS)
    while low < high:
        middle = (low + high + 1) // 2
        if binary_entropy(float_of_bits(middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    doubt = float_of_bits(low)
    return min(doubt + min(_EPS / 2.0, 1e-9 * doubt), 0.5)


def bits_of_float(value: float) -> int:
    """Return the bit pattern of a double; patterns of floats in [0, 1] are ordered like the floats."""
    return int(np.float64(value).view(np.int64))


def float_of_bits(bits: int) -> float:
    """Return the double that has this bit pattern."""
    return float(np.int64(bits).view(np.float64))
