"""What a threshold or a budget of reviews does to the cases: counts here, risks from `segtrust.selective`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segtrust.engine import Policies, loss_of_target
from segtrust.policy import Policy, PolicyStatus, rank_empty_last
from segtrust.review.deciding import empty_masks_agree, policy_for
from segtrust.review.rows import Rows
from segtrust.selective import RiskCoverageCurve, Target, chernoff_interval, trace_curve

__all__ = ["Budget", "Certified", "Curve", "Limit", "Numbers", "ThresholdNumbers"]

MOST_POINTS = 1000
"""Of a curve that is drawn."""
_LEVEL = 0.95
_FEWEST = 2
"""Cases of which there is a curve."""


@dataclass(frozen=True)
class Limit:
    """One limit of a policy, and what these cases have of it.

    Attributes
    ----------
    risk, below_dice
        The limit, on the mean loss or on the share of cases with a lower Dice.
    text
        It in words.
    observed
        The same of the cases that the threshold lets pass; ``None`` where no loss is known.
    broken
        Whether that is above the limit by more than chance explains: its 95 % interval lies above.
    """

    risk: float
    below_dice: float | None
    text: str
    observed: float | None
    broken: bool


@dataclass(frozen=True)
class Certified:
    """What a policy promises, and whether it does so for a threshold.

    Attributes
    ----------
    limits
        All that is promised.
    probability
        With which all of them are kept.
    standing
        Whether the policy is certified.
    holds
        Whether it is, and the threshold is at least the policy's.
    tested
        Whether the threshold is the policy's own. Of a higher one the promise holds if the risk does not rise
        with the confidence, which nobody has tested.
    """

    limits: list[Limit]
    probability: float
    standing: str
    holds: bool
    tested: bool


@dataclass(frozen=True)
class ThresholdNumbers:
    """What a threshold does.

    Attributes
    ----------
    value
        The threshold.
    accepted, deferred, no_finding
        Cases.
    coverage
        Share of the cases that are not deferred; ``None`` where there are none.
    risk, low, high
        Mean loss of those that are not deferred, and its 95 % interval as if the threshold had been chosen
        before they were seen; ``None`` where nothing is known.
    certified
        What is promised; ``None`` where nothing is calibrated.
    hours
        That the deferred ones take.
    """

    value: float
    accepted: int
    deferred: int
    no_finding: int
    coverage: float | None
    risk: float | None
    low: float | None
    high: float | None
    certified: Certified | None
    hours: float


@dataclass(frozen=True)
class Curve:
    """What the slider draws: coverage and risk at each threshold, from the highest threshold down."""

    thresholds: list[float]
    coverages: list[float]
    risks: list[float | None] | None


@dataclass(frozen=True)
class Budget:
    """What so many reviews catch.

    Attributes
    ----------
    total
        Cases that there are.
    reviewed, hours
        Of them those that are reviewed, the least confident ones, and the time that they take.
    threshold
        Below which they are; ``None`` where all are reviewed.
    coverage
        Share of the others; ``None`` where there are no cases.
    caught
        Share of all loss that is in what is reviewed; ``None`` where no loss is known.
    risk
        Mean loss of the others; ``None`` where that is not known.
    """

    total: int
    reviewed: int
    hours: float
    threshold: float | None
    coverage: float | None
    caught: float | None
    risk: float | None


@dataclass(frozen=True, eq=False)
class Numbers:
    """The cases of a structure, or of all of them, as vectors.

    Attributes
    ----------
    confidence, loss, is_empty
        Of each case; NaN where there is none.
    agrees
        Whether an empty mask may be right.
    policy
        Of the structure; ``None`` where there is none.
    target_losses
        For each limit of the policy, losses of the kind that it is about; those in ``loss`` if not given.
    """

    confidence: Any
    loss: Any
    is_empty: Any
    agrees: bool
    policy: Policy | None
    target_losses: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, rows: Rows, policies: Policies, structure: str | None) -> Numbers:
        """Take the rows of a structure; of all where none is given, and then the policy of all."""
        known = rows.known("structure")
        named = known[0] if structure is None and len(known) == 1 else structure
        policy = policy_for(policies, named or "")
        chosen = slice(None) if named is None else rows.texts("structure") == named
        confidence, is_empty = rows.confidence[chosen], rows.is_empty[chosen]
        agrees = empty_masks_agree(rows, policy)
        ranked = confidence if agrees else rank_empty_last(confidence, is_empty)
        columns = [loss_of_target(target, rows.loss_name) for target in (policy.targets if policy else ())]
        unknown = np.full(rows.loss.shape, np.nan)
        target_losses = tuple(
            (unknown if column is None else rows.losses_by(column))[chosen] for column in columns
        )
        return cls(ranked, rows.loss[chosen], is_empty, agrees, policy, target_losses)

    @cached_property
    def curve(self) -> RiskCoverageCurve | None:
        """Of the cases whose loss is known; ``None`` where they are too few."""
        return self._curve_of(self.loss, self.loss)

    @cached_property
    def _target_curves(self) -> list[tuple[Target, RiskCoverageCurve | None]]:
        """Each limit of the policy with the curve of the losses that it is about."""
        targets = () if self.policy is None else self.policy.targets
        losses = self.target_losses or (self.loss,) * len(targets)
        return [
            (target, self._curve_of(each, target.losses(each)))
            for target, each in zip(targets, losses, strict=True)
        ]

    def _curve_of(self, known: Any, losses: Any) -> RiskCoverageCurve | None:
        """Return the curve of losses, for the cases with a known one; ``None`` if they are too few."""
        judged = np.isfinite(self.confidence) & np.isfinite(known)
        if np.count_nonzero(judged) < _FEWEST:
            return None
        return trace_curve(self.confidence[judged], losses[judged])

    @cached_property
    def coverages(self) -> RiskCoverageCurve | None:
        """Coverage at each threshold, of all cases that have a confidence; its risks mean nothing."""
        known = self.confidence[np.isfinite(self.confidence)]
        return trace_curve(known, np.zeros(known.size)) if known.size >= _FEWEST else None

    @property
    def _can_be_accepted(self) -> Any:
        """Whether each case has a confidence, and, where empty masks cannot be right, a mask with pixels."""
        return np.isfinite(self.confidence) & (self.agrees | ~self.is_empty)

    def at_threshold(self, value: float, minutes: float) -> ThresholdNumbers:
        """Say what a threshold does."""
        trusted = self._can_be_accepted & (self.confidence >= value)
        no_finding = int(np.count_nonzero(trusted & self.is_empty)) if self.agrees else 0
        passed, total = int(np.count_nonzero(trusted)), int(self.confidence.size)
        return ThresholdNumbers(
            value,
            passed - no_finding,
            total - passed,
            no_finding,
            passed / total if total else None,
            *_risk_on(self.curve, value),
            self._certified(value),
            (total - passed) * minutes / 60.0,
        )

    def _certified(self, value: float) -> Certified | None:
        if self.policy is None:
            return None
        standing = self.policy.status
        return Certified(
            [self._limit(target, curve, value) for target, curve in self._target_curves],
            1.0 - self.policy.total_delta,
            str(standing),
            standing is PolicyStatus.CERTIFIED and value >= self.policy.threshold,
            value == self.policy.threshold,
        )

    @staticmethod
    def _limit(target: Target, curve: RiskCoverageCurve | None, value: float) -> Limit:
        observed, low, _ = _risk_on(curve, value)
        broken = low is not None and low > target.risk
        return Limit(target.risk, target.below_dice, str(target), observed, broken)

    def drawn(self) -> Curve:
        """Give the curve that the slider draws; of many points every so many."""
        if self.coverages is None:
            return Curve([], [], None)
        last = self.coverages.thresholds.size - 1
        at = np.unique(np.linspace(1, last, min(MOST_POINTS, last)).round().astype(int))
        thresholds = self.coverages.thresholds[at].tolist()
        return Curve(thresholds, self.coverages.coverages[at].tolist(), self._risks(thresholds))

    def _risks(self, thresholds: list[float]) -> list[float | None] | None:
        if self.curve is None:
            return None
        found = [self.curve.at_threshold(each).risk for each in thresholds]
        return [None if math.isnan(each) else each for each in found]

    def with_budget(self, reviews: int, minutes: float) -> Budget:
        """Say what so many reviews catch, if the least confident cases are reviewed.

        Cases of one confidence are reviewed together or not at all, so a few reviews may be left.
        """
        total = int(self.confidence.size)
        threshold = self._threshold_for(reviews)
        trusted = self._can_be_accepted & (self.confidence >= (math.inf if threshold is None else threshold))
        passed = int(np.count_nonzero(trusted))
        caught, risk = self._caught(math.inf if threshold is None else threshold)
        reviewed = total - passed
        coverage = passed / total if total else None
        return Budget(total, reviewed, reviewed * minutes / 60.0, threshold, coverage, caught, risk)

    def _threshold_for(self, reviews: int) -> float | None:
        """Give the highest threshold that defers at most so many; ``None`` where all can be reviewed."""
        if reviews >= self.confidence.size:
            return None
        known = np.sort(self.confidence[self._can_be_accepted])
        left = max(reviews - (self.confidence.size - known.size), 0)
        return float(known[min(left, known.size - 1)]) if known.size else None

    def _caught(self, threshold: float) -> tuple[float | None, float | None]:
        """Give the share of the loss below a threshold, and the risk of what is left."""
        if self.curve is None:
            return None, None
        point, everything = self.curve.at_threshold(threshold), self.curve.full_risk
        left = 0.0 if math.isnan(point.risk) else point.risk * point.coverage
        caught = 1.0 - left / everything if everything > 0.0 else None
        return caught, None if math.isnan(point.risk) else point.risk


def _risk_on(
    curve: RiskCoverageCurve | None, value: float
) -> tuple[float | None, float | None, float | None]:
    """Give the risk of the accepted cases, with an interval where losses are at most 1."""
    point = None if curve is None else curve.at_threshold(value)
    if curve is None or point is None or math.isnan(point.risk):
        return None, None, None
    if curve.loss.max() > 1.0:
        return point.risk, None, None
    n = round(point.coverage * curve.loss.size)
    return point.risk, *chernoff_interval(min(point.risk, 1.0), n, _LEVEL)
