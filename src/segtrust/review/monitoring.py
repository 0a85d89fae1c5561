"""Whether the threshold still holds: confidences against those of the calibration, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.engine import Policies, are_calibration_cases, check_drift, checksum_of_row
from segtrust.policy import Policy
from segtrust.review.audit import AUDIT_SHARE, Audit, audit_accepted
from segtrust.review.deciding import decide, policy_for
from segtrust.review.rows import Rows
from segtrust.selective import ExchangeabilityMartingale, detect_failures, drift_test

__all__ = ["Agreement", "Alarm", "Bin", "Drift", "MartingaleCourse", "Monitor", "Monitoring", "agreement_of"]

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
    left_out
        How many these are.
    drift, martingale
        ``None`` where nothing can be compared.
    """

    reference: list[float]
    new: list[float]
    left_out: int
    drift: Drift | None
    martingale: MartingaleCourse | None

    @property
    def alarm(self) -> bool:
        """Whether one of the two rings: the policy then promises nothing of the new cases."""
        watched = self.martingale is not None and self.martingale.alarmed_after is not None
        return watched or (self.drift is not None and self.drift.alarm)


@dataclass(frozen=True)
class Alarm:
    """A policy whose new cases are not like those that it was made with.

    Attributes
    ----------
    structure
        That the policy is for; empty where it is for all.
    sets
        Those whose new cases differ by themselves; empty where the run has one set, or none does.
    """

    structure: str
    sets: list[str]


@dataclass
class Monitor:
    """Watches the cases of each structure; what it has seen it does not look at again.

    Attributes
    ----------
    policies
        By structure.
    """

    policies: Policies
    _watches: dict[str, tuple[list[float], ExchangeabilityMartingale]] = field(
        default_factory=dict, init=False
    )
    _drifts: dict[str, tuple[list[float], Drift | None]] = field(default_factory=dict, init=False)

    @property
    def reference(self) -> dict[str, tuple[float, ...]]:
        """Confidences of the calibration cases by structure; empty if they are not known."""
        return {
            name: () if policy.reference is None else policy.reference.confidences
            for name, policy in self.policies.items()
        }

    def audit(
        self, rows: Rows, structure: str | None, verdicts: Any, *, finished: bool, share: float = AUDIT_SHARE
    ) -> Audit | None:
        """Audit the accepted cases of a structure, without the calibration cases; ``None`` without a policy.

        Parameters
        ----------
        rows
            The table.
        structure
            The structure; ``None`` for all cases.
        verdicts
            Last verdict of each row; an empty text where there is none.
        finished
            Whether all cases are scored.
        share
            Share of the accepted cases that is audited.
        """
        named = _name_of(rows, structure)
        policy = policy_for(self.policies, named)
        if policy is None:
            return None
        places = _places_of(rows, named)
        new = places[~_seen(rows, places, policy, self.reference.get(policy.structure, ()))]
        decisions = decide(rows, self.policies).names
        return audit_accepted(
            rows, new, decisions, verdicts, policy, finished=finished, alpha=self._alpha, share=share
        )

    def look(self, rows: Rows, structure: str | None) -> Monitoring:
        """Compare the cases of a structure with those of its policy; all where there is one structure."""
        named = _name_of(rows, structure)
        policy = policy_for(self.policies, named)
        name = "" if policy is None else policy.structure
        reference = list(self.reference.get(name, ()))
        places = _places_of(rows, named)
        seen = _seen(rows, places, policy, reference)
        new = rows.confidence[places[~seen]].tolist()
        left_out = int(seen.sum())
        if policy is None or len(reference) < _FEWEST:
            return Monitoring(reference, new, left_out, None, None)
        return Monitoring(reference, new, left_out, self._drift(name, policy, new), self._course(name, new))

    def alarms(self, rows: Rows) -> list[Alarm]:
        """Tell for which policies an alarm rings, and which sets it is about."""
        ringing = [name for name in self.policies if self.look(rows, name or None).alarm]
        return [Alarm(name, self._drifted_sets(rows, name)) for name in ringing]

    def _drifted_sets(self, rows: Rows, name: str) -> list[str]:
        """Test the new cases of each set; a false alarm is as rare as for all of them together."""
        places = _places_of(rows, name)
        new = places[~_seen(rows, places, self.policies[name], self.reference[name])]
        sets, known = rows.texts("set")[new], rows.known("set")
        if len(known) < _FEWEST:
            return []
        alpha = self._alpha / len(known)
        by_set = {each: rows.confidence[new[sets == each]] for each in known}
        return [
            each
            for each, found in by_set.items()
            if found.size >= _FEWEST
            and drift_test(reference=self.reference[name], new=found, alpha=alpha).alarm
        ]

    @property
    def _alpha(self) -> float:
        """Probability of a false alarm for each structure, so that it is the usual one for all together."""
        return _ALPHA / max(1, len(self.policies))

    def _drift(self, name: str, policy: Policy, new: list[float]) -> Drift | None:
        known, found = self._drifts.get(name, (None, None))
        if known != new:
            rows = [{policy.scoring.estimator: each, "structure": name} for each in new]
            test = check_drift(rows, {name: policy}, alpha=self._alpha).get(name)
            found = None if test is None else Drift(test.alarm, test.explain(), test.p_value)
            self._drifts[name] = new, found
        return found

    def _course(self, name: str, new: list[float]) -> MartingaleCourse:
        """Go on with the watch where cases were added at the end; else begin anew."""
        seen, watch = self._watches.get(name, ([], None))
        if watch is None or new[: len(seen)] != seen:
            seen, watch = [], ExchangeabilityMartingale(self.reference[name], alpha=self._alpha)
        watch.extend(new[len(seen) :])
        self._watches[name] = new, watch
        values = [state.log10_capital for state in watch.history]
        return MartingaleCourse(values, -math.log10(self._alpha), watch.state.alarmed_at, watch.explain())


def _name_of(rows: Rows, structure: str | None) -> str:
    """Return the name of a structure, or of the only one if none is requested; empty for all of several."""
    known = rows.known("structure")
    return known[0] if structure is None and len(known) == 1 else structure or ""


def _places_of(rows: Rows, structure: str) -> Any:
    """Give the places of the rows of a structure, or of all, that have a confidence."""
    of_it = rows.texts("structure") == structure if structure else np.ones(rows.size, bool)
    return np.flatnonzero(of_it & np.isfinite(rows.confidence))


def _seen(rows: Rows, places: Any, policy: Policy | None, reference: Sequence[float]) -> Any:
    """Tell which of these rows are of the cases that the policy was made with."""
    if policy is None:
        return np.zeros(places.size, bool)
    names = rows.texts("case")[places]
    checksums = [checksum_of_row(rows.table.rows[int(place)]) for place in places]
    return are_calibration_cases(names, rows.confidence[places], policy, reference, checksums=checksums)


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
    return detect_failures(confidence, 1.0 - accepted, 0.5).auroc
