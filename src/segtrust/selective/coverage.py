"""A threshold for a desired share of accepted cases, with a finite-sample guarantee; no labels are needed.

Let c₍ₖ₎ be the k-th smallest of n exchangeable confidences. Whatever their distribution, the share of
future cases at or above c₍ₖ₎ is at least a Beta(n + 1 - k, k) variable (exactly that if no confidence
occurs twice), so it reaches a target with the probability of at least k successes in n trials with success
probability 1 − target.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from segtrust._arguments import check_delta, check_fraction
from segtrust._display import Displayed
from segtrust._types import VectorLike
from segtrust.selective.vectors import check_confidences

_MOST_CASES = 10**9


@dataclass(frozen=True, repr=False)
class CoverageThreshold(Displayed):
    """A threshold with a guarantee on the share of accepted cases, or the reason why there is none.

    Attributes
    ----------
    threshold
        Cases at or above it are accepted; ``None`` if these cases are too few to guarantee the target.
    target_coverage, delta
        The share that was requested, and the probability that it is not reached; ``delta`` is ``None`` for a
        guarantee on average.
    n
        Number of confidences that were used.
    rank
        The threshold is the ``rank``-th smallest confidence; 0 if there is none.
    guarantee
        Lower bound on the probability that the share of future cases reaches the target; for a guarantee on
        average, on the probability that the next case is accepted. 0 if there is no threshold.
    coverage
        Share of the given cases at or above the threshold.
    cases_needed
        Smallest number of cases with which the target can be guaranteed; ``None`` if no number up to 10⁹ is
        enough.

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
        """Return the result in one sentence: what is guaranteed, or what is missing."""
        certainty = (
            "on average" if self.delta is None else f"with probability {float(1 - as_decimal(self.delta)):g}"
        )
        if self.possible:
            share = f"accepts at least {self.target_coverage:g} of future cases {certainty}"
            return f"Threshold {self.threshold:g} {share}, from {self.n} cases."
        needs = f"needs at least {self.cases_needed}" if self.cases_needed else "cannot be guaranteed"
        return (
            f"Not possible with {self.n} cases: a coverage of {self.target_coverage:g} {certainty} {needs}."
        )

    def _shown(self) -> dict[str, Any]:
        shown = {"threshold": self.threshold, "target_coverage": self.target_coverage, "delta": self.delta}
        return shown | {"coverage": self.coverage, "n": self.n, "cases_needed": self.cases_needed}

    def _caption(self) -> str:
        return self.explain()

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON."""
        return asdict(self)


def as_decimal(number: float) -> Fraction:
    """Return the decimal that a float was written as, so that ranks do not depend on rounding.

    Examples
    --------
    >>> as_decimal(0.55) * 100
    Fraction(55, 1)
    """
    return Fraction(repr(float(number)))


def reach_probability(target: float, n: int, rank: int) -> float:
    """Return P(share of future cases at or above the ``rank``-th smallest of n ≥ target), without ties.

    Examples
    --------
    >>> reach_probability(0.5, n=2, rank=1)  # unless both are in the upper half: 1 - 1/4
    0.75
    """
    if rank < 1 or target >= 1.0:
        return 0.0
    from scipy.special import betaincc

    return float(betaincc(n - rank + 1, rank, target))


def threshold_for_coverage(
    confidence: VectorLike, *, target_coverage: float, delta: float | None = 0.05
) -> CoverageThreshold:
    """Find the highest threshold that accepts at least the target share of future cases.

    It implies nothing about the risk of the accepted cases: that takes labels and a certified threshold.

    Parameters
    ----------
    confidence
        Confidences of cases exchangeable with the future ones; labels are not needed. With ties the guarantee
        is conservative, because all cases at the threshold are accepted.
    target_coverage
        Share of future cases to be accepted.
    delta
        Probability, over the draw of the given cases, that the target is not reached. ``None`` asks for the
        weaker guarantee on average over such draws, as in conformal prediction: the next case is accepted
        with at least the target probability.

    Examples
    --------
    >>> confidence = np.arange(100) / 100
    >>> result = threshold_for_coverage(confidence, target_coverage=0.8)
    >>> result.threshold, round(result.guarantee, 3), result.coverage
    (0.13, 0.953, 0.87)
    >>> threshold_for_coverage(confidence, target_coverage=0.8, delta=None).threshold
    0.19
    """
    confidence = check_confidences(confidence)
    target, n = check_fraction(target_coverage, "target_coverage"), confidence.size
    if delta is None:
        rank = min(n, math.floor((n + 1) * (1 - as_decimal(target))))
        guarantee = 1.0 - rank / (n + 1) if rank else 0.0
    else:
        rank = _largest_rank(target, n, float(1 - as_decimal(check_delta(delta))))
        guarantee = reach_probability(target, n, rank)
    threshold = float(np.partition(confidence, rank - 1)[rank - 1]) if rank else None
    coverage = 0.0 if threshold is None else float(np.mean(confidence >= threshold))
    needed = _cases_needed(target, delta)
    return CoverageThreshold(threshold, target, delta, n, rank, guarantee, coverage, needed)


def _largest_rank(target: float, n: int, probability: float) -> int:
    """Return the largest rank that reaches the target with this probability, by bisection; 0 if none does."""
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach_probability(target, n, middle) >= probability else (low, middle)
    return low


def _cases_needed(target: float, delta: float | None) -> int | None:
    """Return the smallest number of cases with which the smallest confidence is a valid threshold.

    ``None`` if no number up to 10⁹ is enough.
    """
    if target >= 1.0:
        return None
    if delta is None:
        return max(1, math.ceil(1 / (1 - as_decimal(target))) - 1)
    start = 1 if target <= 0.0 else max(1, math.ceil(math.log(delta) / math.log(target)) - 1)
    probability = float(1 - as_decimal(delta))
    sizes = range(start, _MOST_CASES + 1)
    return next((n for n in sizes if reach_probability(target, n, 1) >= probability), None)
