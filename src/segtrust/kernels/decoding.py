"""The mask of a map with the largest exact expected Dice, found with few passes and without sorting the map.

Of all masks of k pixels the k most probable ones are best, and never is a part of pixels that are equally
probable best: so the best mask is the map cut at one of its own values (proofs: docs/explanation,
"The Dice-optimal mask"). With Λ the sum of all probabilities and s that of the k largest,

    2s / (k + 1 + Λ - s/k)  <=  expected Dice of the k largest  <=  2s / (k - 1 + Λ)

Let b be the largest of the left sides. Sizes whose right side is below b are not the best; the others are
those with 2s - b(k - 1 + Λ) >= 0, which is concave in k: one stretch of sizes, in which few values lie. There
the exact expectation is computed for each size, and the largest is the largest of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.kernels.integrals import expected_dice_of_growing
from segtrust.kernels.levels import Levels, binned_levels, levels_in_bins
from segtrust.kernels.opening import open_map
from segtrust.kernels.tiles import is_chunked

__all__ = ["EMPTY_CUT", "BestCut", "best_cut", "is_at_least"]

EMPTY_CUT = 1.0
"""Where a map is cut for an empty mask: one is best only where no pixel is certain."""
_EQUAL = 1e-13
"""Relative difference up to which two expectations count as equal; then the smaller mask is taken."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class BestCut:
    """Where a map is cut for the best mask that is not empty, and what it is worth.

    Attributes
    ----------
    threshold
        Smallest probability in the mask.
    value
        Exact expected Dice.
    candidates
        How many masks were compared by exact values.
    """

    threshold: float
    value: float
    candidates: int


@dataclass(frozen=True)
class _Curve:
    """Sizes of the masks that end with each level, and the probability in them."""

    sizes: Any
    masses: Any
    total: float
    rounding: float

    @classmethod
    def of(cls, levels: Levels, before: _Curve | None = None, at: int = 0) -> _Curve:
        """Add up levels; those of a part begin where ``at`` levels of the whole end."""
        sizes, masses = np.cumsum(levels.counts), np.cumsum(levels.sums)
        if before is None:
            return cls(sizes, masses, float(masses[-1]), _ROUNDING + 1e-15 * float(sizes[-1]))
        begin = (before.sizes[at - 1], before.masses[at - 1]) if at else (0, 0.0)
        return cls(sizes + begin[0], masses + begin[1], before.total, before.rounding)

    def possible(self) -> tuple[int, int]:
        """Give the first and the last level whose end may be the best."""
        lower = 2.0 * self.masses / (self.sizes + 1.0 + self.total - self.masses / self.sizes)
        upper = 2.0 * self.masses / (self.sizes - 1.0 + self.total)
        found = np.flatnonzero(upper >= lower.max() * (1.0 - 4.0 * self.rounding))
        return int(found[0]), int(found[-1])


def best_cut(p: Any, source: str = "p") -> BestCut | None:
    """Find where a map is cut for the largest expected Dice of masks that are not empty.

    Parameters
    ----------
    p
        NumPy array, or one in chunks; values were checked.
    source
        How errors name the map.

    Returns
    -------
    BestCut or None
        ``None`` for a map of zeros.

    Examples
    --------
    >>> best_cut(np.array([0.9, 0.45, 0.1])).threshold
    0.45
    """
    p = p if is_chunked(p) else np.atleast_1d(p)
    levels = binned_levels(p, source)
    curve = _Curve.of(levels)
    if curve.total == 0.0:
        return None
    if levels.values is None:
        first, last = curve.possible()
        last = min(last + 1, levels.counts.size - 1)  # the stretch may end inside the next bin
        levels = levels_in_bins(p, levels.bins[first : last + 1], source)
        curve = _Curve.of(levels, curve, first)
    first, last = curve.possible()
    return _best_of(p, levels.from_to(first, last + 1), source)


def _best_of(p: Any, levels: Levels, source: str) -> BestCut:
    """Compare the masks that end with these levels by their exact values."""
    statistics = open_map(p, threshold=float(levels.values[0]), source=source).dice_statistics()
    found = expected_dice_of_growing(statistics, levels.values[1:], levels.counts[1:])
    best = int(np.flatnonzero(is_at_least(found, found.max()))[0])
    return BestCut(float(levels.values[best]), float(found[best]), len(found))


def is_at_least(value: Any, other: Any) -> Any:
    """Tell whether an expectation is as large as another, or equal to it but for rounding."""
    return value >= other * (1.0 - _EQUAL)
