"""An acceptance threshold whose promise holds with a stated probability: fixed-sequence testing.

The selective risk is not monotone in the threshold, so candidates are tested one by one, each at the full
level, in an order fixed before any loss is seen: from the threshold that accepts half of the reference cases
to laxer ones, until one cannot be rejected. The probability that any rejected candidate breaks the promise is
at most the level, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certificate import Certificate, Evidence, Operation, Step
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.plan import Accepted, Need, need, nobody_accepted
from segtrust.selective.procedure import FEWEST_REFERENCES, Procedure, procedure_of
from segtrust.selective.shuffling import least_lost_of_ties, seed_for
from segtrust.selective.targets import Target, targets_of
from segtrust.selective.vectors import check_delta

__all__ = ["Bench", "certify", "certify_each", "certify_threshold", "walk_candidates"]


def certify_threshold(
    confidence: Any,
    loss: Any,
    *,
    target_risk: float,
    delta: float = 0.05,
    reference: Any = None,
    patients: Any = None,
) -> Certificate:
    """Find the laxest threshold whose selective risk is at most the target, with probability 1 - δ.

    Parameters
    ----------
    confidence, loss
        Of calibration cases that nothing has learned from; losses in [0, 1].
    target_risk
        Limit on the mean loss of the accepted cases.
    delta
        Probability, over the draw of the calibration cases, that the promise is broken.
    reference
        Confidences of other, unlabelled cases, for candidate thresholds. Without them a fifth of the cases is
        set aside for it.
    patients
        Label of each case's patient. Patients are then the independent units, and the promise is about the
        mean in which each patient counts once.

    Returns
    -------
    Certificate
        With ``threshold`` ``None`` where nothing can be promised.

    See Also
    --------
    certify : Several targets, failure rates, other procedures, cases with ids.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(300)
    >>> loss = (1 - confidence) * rng.random(300)
    >>> found = certify_threshold(confidence, loss, target_risk=0.2, reference=rng.random(500))
    >>> found.certified, round(found.coverage, 2)
    (True, 0.72)
    """
    cases = CalibrationCases(confidence, loss, patients=patients, reference=reference)
    return certify(cases, [Target(target_risk)], delta=delta)


def certify(
    cases: CalibrationCases,
    targets: Sequence[Target],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] = (),
) -> Certificate:
    """Find the laxest threshold at which all targets hold together, with probability 1 - δ.

    Parameters
    ----------
    cases
        Calibration cases.
    targets
        One or several; a candidate passes where every one of them does, which needs no correction.
    delta
        Probability that any of the targets is broken.
    procedure
        What is fixed beforehand; `Procedure` says what is usual.
    used_ids
        Cases that the estimator, or a recalibration of the maps, has learned from. They are refused.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(400)
    >>> cases = CalibrationCases(confidence, (1 - confidence) * rng.random(400), reference=rng.random(500))
    >>> both = certify(cases, [Target(0.2), Target(0.1, below_dice=0.5)])
    >>> both.certified, both.threshold >= certify(cases, [Target(0.2)]).threshold
    (True, True)
    """
    _check_cases(cases)
    procedure = _seeded(procedure_of(procedure), cases)
    cases.refuse(used_ids)
    bench, steps = walk_candidates(cases, targets, delta, procedure)
    operation = _operation(bench, steps, delta)
    return Certificate(
        operation,
        _need(bench, steps) if operation is None else None,
        bench.targets,
        delta,
        _evidence(cases, bench),
        procedure,
        tuple(steps),
    )


def walk_candidates(
    cases: CalibrationCases, targets: Sequence[Target], delta: float, procedure: Procedure
) -> tuple[Bench, list[Step]]:
    """Walk the sequences; give the cases as they were tested, and all tests."""
    delta = check_delta(delta)
    targets = targets_of(targets)
    tested, reference = _split(cases, _seeded(procedure, cases))
    bench = Bench(tested, targets, procedure)
    level = delta / len(procedure.start_coverages)
    sequences = (procedure.candidates(reference, start) for start in procedure.start_coverages)
    return bench, [step for candidates in sequences for step in bench.walk(candidates, level)]


def certify_each(
    cases: CalibrationCases,
    targets: Sequence[Target],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] = (),
) -> list[Certificate]:
    """Find a threshold for each target of its own; the probability that any promise is broken is at most δ.

    Parameters are those of `certify`; each of m targets is certified at level δ/m.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(400)
    >>> cases = CalibrationCases(confidence, (1 - confidence) * rng.random(400), reference=rng.random(500))
    >>> strict, lax = certify_each(cases, [Target(0.15), Target(0.22)])
    >>> strict.threshold > lax.threshold, strict.delta
    (True, 0.025)
    """
    targets = targets_of(targets)
    level = check_delta(delta) / len(targets)
    return [
        certify(cases, [target], delta=level, procedure=procedure, used_ids=used_ids) for target in targets
    ]


def _check_cases(cases: Any) -> None:
    if not isinstance(cases, CalibrationCases):
        raise ParameterError(
            f"cases: expected CalibrationCases(confidence, loss), got {type(cases).__name__}."
        )


def _seeded(procedure: Procedure, cases: CalibrationCases) -> Procedure:
    """Give the procedure with the seed that decides which cases are set aside, if any are."""
    if cases.reference is not None:
        return procedure
    return replace(procedure, seed=seed_for(cases.confidence, procedure.seed))


def _split(cases: CalibrationCases, procedure: Procedure) -> tuple[CalibrationCases, Any]:
    """Give the cases to test on, and the confidences from which candidates are taken."""
    if cases.reference is not None:
        return cases, cases.reference
    shuffled = cases.shuffled(procedure.seed or 0)
    units = shuffled.units
    aside = units < round(procedure.set_aside * (units.max() + 1))
    if aside.sum() < FEWEST_REFERENCES or (~aside).sum() < 2:
        counted = f"{cases.n}" if cases.patients is None else f"{cases.n} of {units.max() + 1} patients"
        raise TooFewCasesError(
            f"cases: of {counted}, {aside.sum()} would be set aside for candidates, which takes at least "
            f"{FEWEST_REFERENCES}, and {(~aside).sum()} be left to test on, which takes at least 2. Give "
            "confidences of unlabelled cases as reference."
        )
    if units.max() == shuffled.n - 1:
        aside = least_lost_of_ties(shuffled.confidence, shuffled.loss, aside)
    return shuffled.part(~aside), shuffled.confidence[aside]


class Bench:
    """Cases, ready to be tested at any threshold."""

    def __init__(self, cases: CalibrationCases, targets: tuple[Target, ...], procedure: Procedure) -> None:
        # in one order, so that the order of a table's rows does not show in the last digit of a sum
        cases = cases.part(np.lexsort((cases.loss, cases.confidence)))
        self.targets = targets
        self.procedure = procedure
        self.confidence = cases.confidence
        self.units = cases.units
        self.p_values = [procedure.p_value_for(target, patients=not self.singles) for target in targets]
        self.losses = [target.losses(cases.loss) for target in targets]

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.confidence.size)

    def walk(self, thresholds: Sequence[float], level: float) -> list[Step]:
        """Test one candidate after the other, up to the first that cannot be rejected."""
        steps = []
        for threshold in thresholds:
            accepted = self.confidence >= threshold
            tests = zip(self.targets, self.unit_losses(accepted), self.p_values, strict=True)
            largest = max(target.p_value(losses, name, level) for target, losses, name in tests)
            steps.append(Step(threshold, int(accepted.sum()), largest, level))
            if not steps[-1].passed:
                break
        return steps

    def unit_losses(self, accepted: Any) -> list[Any]:
        """Give, for each target, risk + Z of each unit with an accepted case.

        Z is the mean over the unit's cases of (loss - risk)·accepted. A unit without an accepted case has
        Z = 0 and tells nothing. Of a unit with one case risk + Z is its loss.
        """
        if self.singles:
            return [losses[accepted] for losses in self.losses]
        some = np.bincount(self.units, accepted) > 0
        return [
            (target.risk + self._unit_means(np.where(accepted, losses - target.risk, 0.0)))[some]
            for target, losses in zip(self.targets, self.losses, strict=True)
        ]

    def risks(self, accepted: Any) -> tuple[float, ...]:
        """Observed selective risk of each target, in which each unit counts once."""
        weight = self._unit_means(accepted * 1.0).sum()
        return tuple(
            float(self._unit_means(accepted * losses).sum() / weight) if weight else math.nan
            for losses in self.losses
        )

    def coverage(self, accepted: Any, level: float) -> tuple[float, tuple[float, float]]:
        """Share of the accepted cases, in which each unit counts once, and its interval."""
        if self.singles:
            hits = int(accepted.sum())
            return hits / self.n, clopper_pearson(hits, self.n, level)
        shares = self._unit_means(accepted * 1.0)
        return float(shares.mean()), chernoff_interval(float(shares.mean()), shares.size, level)

    def share_of_units(self, accepted: Any) -> float:
        """Share of the units that have an accepted case."""
        return float(np.mean(np.bincount(self.units, accepted) > 0))

    @property
    def singles(self) -> bool:
        """Whether every unit is one case."""
        return bool(self.units.max() == self.n - 1)

    def _unit_means(self, values: Any) -> Any:
        return np.bincount(self.units, values) / np.bincount(self.units)


def _evidence(cases: CalibrationCases, bench: Bench) -> Evidence:
    aside = cases.n - bench.n
    return Evidence(
        n=bench.n,
        units=int(bench.units.max()) + 1,
        patients=cases.patients is not None,
        references=aside if cases.reference is None else int(cases.reference.size),
        set_aside=aside,
        digest=cases.digest,
        used_ids=frozenset(cases.ids or ()),
    )


def _operation(bench: Bench, steps: list[Step], delta: float) -> Operation | None:
    """Give the laxest candidate that has passed."""
    passed = [step.threshold for step in steps if step.passed]
    if not passed:
        return None
    accepted = bench.confidence >= min(passed)
    risks = bench.risks(accepted) if accepted.any() else (None,) * len(bench.targets)
    return Operation(min(passed), *bench.coverage(accepted, 1.0 - delta), risks)


def _need(bench: Bench, steps: list[Step]) -> Need:
    """How many cases would do at the strictest candidate."""
    strictest = max(steps, key=lambda step: step.threshold)
    accepted = bench.confidence >= strictest.threshold
    unit = "cases" if bench.singles else "patients"
    if not accepted.any():
        return nobody_accepted(unit)
    seen = Accepted.like(
        bench.unit_losses(accepted), bench.risks(accepted), bench.share_of_units(accepted), unit
    )
    return need(bench.targets, seen, bench.procedure, strictest.level)
