"""A threshold for a wished share of accepted cases, with its finite-sample guarantee; no labels needed.

Let c₍ₖ₎ be the k-th smallest of n exchangeable confidences. Whatever their distribution, the share of future
cases at or above c₍ₖ₎ is at least a Beta(n + 1 - k, k) variable (exactly that where no confidence occurs
twice), so the chance that it reaches a target is that of k or more successes in n trials of 1 - target.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from segtrust.selective.vectors import check_delta, check_fraction, confidences_of

__all__ = ["CoverageThreshold", "exact", "reach_probability", "threshold_for_coverage"]

_MOST_CASES = 10**9


@dataclass(frozen=True)
class CoverageThreshold:
    """A threshold and what it promises about the share of accepted cases.

    Attributes
    ----------
    threshold
        Cases at or above it are accepted; ``None`` where no confidence of these cases can promise the target.
    target_coverage, delta
        What was asked for; ``delta`` is ``None`` for the promise on average.
    n
        Confidences that were used.
    rank
        The threshold is the ``rank``-th smallest confidence; 0 where there is none.
    guarantee
        Chance, at least, that the share of future cases reaches the target; for the promise on average the
        chance, at least, that the next case is accepted. 0 where there is no threshold.
    coverage
        Share of the given cases at or above the threshold.
    cases_needed
        Fewest cases with which the target can be promised; ``None`` where no number would do.

    Examples
    --------
    >>> threshold_for_coverage([0.9, 0.5, 0.7], target_coverage=0.8).explain()
    'Not possible with 3 cases: a coverage of 0.8 with probability 0.95 needs at least 14.'
    """

    threshold: float | None
    target_coverage: float
    delta: float | None
    n: int
    rank: int
    guarantee: float
    coverage: float
    cases_needed: int | None

    @property
    def possible(self) -> bool:
        """Whether there is a threshold."""
        return self.threshold is not None

    def explain(self) -> str:
        """Say in one sentence what is promised, or what is missing."""
        sure = "on average" if self.delta is None else f"with probability {float(1 - exact(self.delta)):g}"
        if self.possible:
            share = f"accepts at least {self.target_coverage:g} of future cases {sure}"
            return f"Threshold {self.threshold:g} {share}, from {self.n} cases."
        needs = f"needs at least {self.cases_needed}" if self.cases_needed else "cannot be promised"
        return f"Not possible with {self.n} cases: a coverage of {self.target_coverage:g} {sure} {needs}."

    def to_dict(self) -> dict[str, Any]:
        """Give all values, ready for JSON."""
        return asdict(self)


def exact(number: float) -> Fraction:
    """Give the decimal that a float was written as: 0.1 is a tenth, so that ranks do not depend on rounding.

    Examples
    --------
    >>> exact(0.55) * 100
    Fraction(55, 1)
    """
    return Fraction(repr(float(number)))


def reach_probability(target: float, n: int, rank: int) -> float:
    """Give P(share of future cases at or above the ``rank``-th smallest of n ≥ target), without ties.

    Examples
    --------
    >>> reach_probability(0.5, n=2, rank=1)  # both below the upper half, or not: 1 - 1/4
    0.75
    """
    if rank < 1 or target >= 1.0:
        return 0.0
    from scipy.special import betaincc

    return float(betaincc(n - rank + 1, rank, target))


def _rank_with_confidence(target: float, n: int, sure: float) -> int:
    """Give the largest rank that reaches the target with this probability, by bisection; 0 if none does."""
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach_probability(target, n, middle) >= sure else (low, middle)
    return low


def _cases_needed(target: float, delta: float | None) -> int | None:
    """Give the fewest cases of which the smallest confidence will do."""
    if target >= 1.0:
        return None
    if delta is None:
        return max(1, math.ceil(1 / (1 - exact(target))) - 1)
    n = 1 if target <= 0.0 else max(1, math.ceil(math.log(delta) / math.log(target)) - 1)
    sure = float(1 - exact(delta))
    return next(each for each in range(n, _MOST_CASES) if reach_probability(target, each, 1) >= sure)


def threshold_for_coverage(
    confidence: Any, *, target_coverage: float, delta: float | None = 0.05
) -> CoverageThreshold:
    """Find the largest threshold that accepts at least the target share of future cases.

    Nothing is said about the risk of the accepted cases: that needs labels and a certified threshold.

    Parameters
    ----------
    confidence
        Of cases exchangeable with the future ones; labels are not needed. Ties make the promise hold with
        room to spare, because all cases at the threshold are accepted.
    target_coverage
        Share of future cases to be accepted.
    delta
        The promise may fail with this probability, over the draw of the given cases. ``None`` asks for the
        weaker promise on average over such draws, which is the one of conformal prediction: the next case
        is accepted with at least the target probability.

    Examples
    --------
    >>> confidence = np.arange(100) / 100
    >>> found = threshold_for_coverage(confidence, target_coverage=0.8)
    >>> found.threshold, round(found.guarantee, 3), found.coverage
    (0.13, 0.953, 0.87)
    >>> threshold_for_coverage(confidence, target_coverage=0.8, delta=None).threshold
    0.19
    """
    confidence = confidences_of(confidence)
    target, n = check_fraction(target_coverage, "target_coverage"), confidence.size
    if delta is None:
        rank = min(n, math.floor((n + 1) * (1 - exact(target))))
        guarantee = 1.0 - rank / (n + 1) if rank else 0.0
    else:
        rank = _rank_with_confidence(target, n, float(1 - exact(check_delta(delta))))
        guarantee = reach_probability(target, n, rank)
    threshold = float(np.partition(confidence, rank - 1)[rank - 1]) if rank else None
    coverage = float(np.mean(confidence >= threshold)) if rank else 0.0
    needed = _cases_needed(target, delta)
    return CoverageThreshold(threshold, target, delta, n, rank, guarantee, coverage, needed)
