"""Whether the threshold still holds: confidences against those of the calibration, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.engine.decisions import Policies
from segtrust.engine.triage import check_drift
from segtrust.review.deciding import policy_for
from segtrust.review.rows import Rows
from segtrust.selective.failure import failure_detection
from segtrust.selective.martingale import ExchangeabilityMartingale
from segtrust.selective.policy import Policy

__all__ = ["Agreement", "Bin", "Drift", "MartingaleCourse", "Monitor", "Monitoring", "agreement_of"]

BINS = 10
_ALPHA = 0.05
_FEWEST = 2


@dataclass(frozen=True)
class Drift:
    """What a test of all new cases says."""

    alarm: bool
    text: str
    p_value: float


@dataclass(frozen=True)
class MartingaleCourse:
    """What watching the cases one by one says.

    Attributes
    ----------
    values
        Evidence after each new case, as a logarithm to base 10.
    alarm_at
        The value that is an alarm.
    alarmed_after
        New cases until the first alarm, or ``None``.
    text
        In words.
    """

    values: list[float]
    alarm_at: float
    alarmed_after: int | None
    text: str


@dataclass(frozen=True)
class Bin:
    """Verdicts on the cases of a stretch of confidences."""

    low: float
    high: float
    accepted: int
    not_accepted: int


@dataclass(frozen=True)
class Agreement:
    """How verdicts go with the confidence.

    Attributes
    ----------
    bins
        Of equal width, over the confidences of all cases.
    auroc
        Probability that an accepted case has the higher confidence of two; ``None`` without both kinds.
    """

    bins: list[Bin]
    auroc: float | None


@dataclass(frozen=True)
class Monitoring:
    """Confidences of the calibration and of the new cases, and what is to be said of them.

    Attributes
    ----------
    reference
        Sorted; empty where the policy has no reference beside it.
    new
        In the order of the table, those of the calibration left out.
    drift, martingale
        ``None`` where nothing can be compared.
    """

    reference: list[float]
    new: list[float]
    drift: Drift | None
    martingale: MartingaleCourse | None


@dataclass
class Monitor:
    """Watches the cases of each structure; what it has seen it does not look at again.

    Attributes
    ----------
    policies
        By structure.
    reference
        Confidences that they were made with, by structure.
    """

    policies: Policies
    reference: Mapping[str, Sequence[float]]
    _watches: dict[str, tuple[list[float], ExchangeabilityMartingale]] = field(
        default_factory=dict, init=False
    )
    _drifts: dict[str, tuple[list[float], Drift | None]] = field(default_factory=dict, init=False)

    def look(self, rows: Rows, structure: str | None) -> Monitoring:
        """Compare the cases of a structure with those of its policy; all where there is one structure."""
        known = rows.known("structure")
        named = known[0] if structure is None and len(known) == 1 else structure or ""
        policy = policy_for(self.policies, named)
        name = "" if policy is None else policy.structure
        reference = list(self.reference.get(name, ()))
        new = _new_confidences(rows, policy, named)
        if policy is None or len(reference) < _FEWEST:
            return Monitoring(reference, new, None, None)
        return Monitoring(reference, new, self._drift(name, policy, new), self._course(name, new))

    def _drift(self, name: str, policy: Policy, new: list[float]) -> Drift | None:
        known, found = self._drifts.get(name, (None, None))
        if known != new:
            rows = [{policy.scoring.estimator: each, "structure": name} for each in new]
            test = check_drift(rows, {name: policy}, self.reference, alpha=_ALPHA).get(name)
            found = None if test is None else Drift(test.alarm, test.explain(), test.p_value)
            self._drifts[name] = new, found
        return found

    def _course(self, name: str, new: list[float]) -> MartingaleCourse:
        """Go on with the watch where cases were added at the end; else begin anew."""
        seen, watch = self._watches.get(name, ([], None))
        if watch is None or new[: len(seen)] != seen:
            seen, watch = [], ExchangeabilityMartingale(self.reference[name], alpha=_ALPHA)
        watch.extend(new[len(seen) :])
        self._watches[name] = new, watch
        values = [state.log10_capital for state in watch.history]
        return MartingaleCourse(values, -math.log10(_ALPHA), watch.state.alarmed_at, watch.explain())


def _new_confidences(rows: Rows, policy: Policy | None, structure: str) -> list[float]:
    """Give the confidences of a structure, without those of the cases that the policy was made with."""
    of_it = rows.texts("structure") == structure if structure else np.ones(rows.size, bool)
    places = np.flatnonzero(of_it & np.isfinite(rows.confidence))
    used = () if policy is None else policy.used_ids
    return [float(rows.confidence[place]) for place in places if rows.keys[place][1] not in used]


def agreement_of(confidence: Any, accepted: Any, everything: Any) -> Agreement:
    """Count verdicts by confidence.

    Parameters
    ----------
    confidence, accepted
        Of each case with a verdict, and whether it was accepted.
    everything
        Confidences of all cases, over which the bins are spread.

    Examples
    --------
    >>> found = agreement_of(np.array([0.2, 0.9]), np.array([False, True]), np.array([0.0, 1.0]))
    >>> found.auroc, found.bins[2].not_accepted, found.bins[9].accepted
    (1.0, 1, 1)
    """
    known = everything[np.isfinite(everything)]
    if not known.size:
        return Agreement([], None)
    edges = np.linspace(known.min(), known.max(), BINS + 1)
    inside = np.isfinite(confidence)
    confidence, accepted = confidence[inside], accepted[inside]
    at = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, BINS - 1)
    counts = [np.bincount(at[chosen], minlength=BINS).tolist() for chosen in (accepted, ~accepted)]
    bins = [Bin(*each) for each in zip(edges[:-1].tolist(), edges[1:].tolist(), *counts, strict=True)]
    return Agreement(bins, _auroc(confidence, accepted))


def _auroc(confidence: Any, accepted: Any) -> float | None:
    if accepted.all() or not accepted.any():
        return None
    return failure_detection(confidence, 1.0 - accepted, cutoff=0.5).auroc
