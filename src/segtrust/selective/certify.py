"""Certify an acceptance threshold: the risk of the accepted cases is within a limit, with probability 1 - δ.

How a certificate is produced:

1. **Candidates.** Thresholds are taken from the confidences of reference cases, which are not the cases to be
   tested: unlabelled cases if there are any, else a share of the labelled ones that is set aside for it. The
   first candidate accepts half of the reference cases, each further one a little more. So the candidates and
   their order are fixed before any loss is seen (`Procedure.candidates`).
2. **Tests.** For each candidate, a p-value tests the hypothesis "the risk of the accepted cases is above the
   limit" on the losses of the calibration cases that it accepts (`segtrust.selective.pvalues`). With several
   targets the largest p-value counts, because all targets have to hold. A p-value of at most δ certifies the
   candidate.
3. **Stop.** Candidates are tested in their order, each at the full level δ (δ divided by the number of
   sequences if there are several), up to the first that fails. The certificate holds the lowest threshold
   that passed, which accepts the most cases; if none passed, it holds the number of cases that would be
   needed.

Why this is valid: the selective risk need not be monotone in the threshold, so the threshold cannot be
searched for freely. But consider the first candidate in the sequence whose risk really is above the limit.
Certifying any wrong candidate requires that this one passes its test, which happens with probability at
most δ. So the probability of any wrong certificate is at most δ, however many candidates there are
(fixed-sequence testing). With m sequences (`Procedure.start_coverages`), each is tested at δ/m.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, check_delta, check_fraction, check_number, renamed_attribute
from segtrust._display import Displayed
from segtrust._files import check_keys, naming_errors, plain_values, rebuild
from segtrust._optional import require
from segtrust._storage import Storable, without_format
from segtrust._types import FloatArray, VectorLike
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.plan import POWER, Accepted, CalibrationPlan, compute_need
from segtrust.selective.seen import HashedIds, check_ids, ids_as_text, reject_seen, used_ids_as_text
from segtrust.selective.shuffling import choose_seed, number_by_appearance, prefer_low_losses, shuffled_order
from segtrust.selective.targets import (
    Procedure,
    Target,
    check_procedure,
    check_targets,
    describe_confidence,
    describe_coverage,
    describe_limits,
)
from segtrust.selective.vectors import (
    FEWEST_REFERENCES,
    check_confidences,
    check_labels,
    check_outcomes,
    check_reference,
    check_same_index,
    frozen_copy,
    number_labels,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_COLUMNS = ("confidence", "loss", "patients", "ids", "reference")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CalibrationCases(Displayed, Storable):
    """Confidences and losses of cases that nothing has learned from, checked and copied.

    Parameters
    ----------
    confidence
        Confidence of each case.
    loss
        Loss of each case, in [0, 1]: for example, one minus its Dice.
    patients
        Label of each case's patient, if patients have several cases: text or numbers, compared as text
        (1, 1.0 and "1" are the same patient). Every case needs one.
    ids
        Different texts, one per case; needed to reject cases that an estimator was fitted on.
    reference
        Confidences of at least 10 unlabelled cases that are unrelated to these, from which candidate
        thresholds are taken; the confidences of the cases themselves are rejected. Without a reference, some
        of the cases here are set aside for it.
    dice
        Dice of each case, in [0, 1], instead of the loss.

    Examples
    --------
    >>> CalibrationCases([0.9, 0.4], dice=[0.95, 0.4], ids=["a", "b"]).n
    2
    """

    confidence: FloatArray
    loss: FloatArray
    patients: Any
    ids: tuple[str, ...] | None
    reference: FloatArray | None

    _format = "segtrust-calibration-cases-1"

    def __init__(
        self,
        confidence: VectorLike,
        loss: VectorLike | None = None,
        patients: VectorLike | None = None,
        ids: Sequence[Any] | None = None,
        reference: VectorLike | None = None,
        *,
        dice: VectorLike | None = None,
    ) -> None:
        check_same_index(confidence=confidence, loss=loss, dice=dice, patients=patients, ids=ids)
        names = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=names, fewest=2)
        check_ids(names, confidence.size)
        columns = {
            "confidence": frozen_copy(confidence),
            "loss": frozen_copy(check_outcomes(confidence, loss, dice, ids=names, unit=True)),
            "patients": None,
            "ids": names,
            "reference": None,
        }
        if patients is not None:
            columns["patients"] = frozen_copy(check_labels(patients, confidence.size, "patients", ids=names))
        if reference is not None:
            columns["reference"] = frozen_copy(check_reference(reference, confidence))
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.confidence.size)

    @property
    def units(self) -> Any:
        """Number of each case's independent unit (its patient, or the case itself), counted from 0."""
        return np.arange(self.n) if self.patients is None else number_by_appearance(self.patients)

    @property
    def digest(self) -> str:
        """Checksum of the table; it does not depend on the order of the rows or on the containers."""
        nothing = [None] * self.n
        names = nothing if self.ids is None else list(self.ids)
        patients = nothing if self.patients is None else self.patients.tolist()
        numbers = ((column + 0.0).tolist() for column in (self.confidence, self.loss))  # 0.0 for -0.0
        rows = sorted(map(json.dumps, zip(names, patients, *numbers, strict=True)))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def part(self, chosen: Any) -> CalibrationCases:
        """Return some of the cases, by position or by a boolean array, with the same reference."""
        positions = np.arange(self.n)[chosen]
        part = copy(self)  # everything has been checked already
        for name in ("confidence", "loss", "patients"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(part, name, frozen_copy(column[positions]))
        if self.ids is not None:
            object.__setattr__(part, "ids", tuple(self.ids[position] for position in positions))
        return part

    def shuffled(self, seed: int) -> CalibrationCases:
        """Return the cases in a random order that does not depend on their losses; units stay together."""
        patients = None if self.patients is None else number_labels(self.patients, self.n, "patients")
        return self.part(shuffled_order(seed, self.confidence, units=patients, ids=self.ids))

    def reject_seen(self, used_ids: Collection[str] | HashedIds) -> None:
        """Raise `SeenCasesError` if a case is among ``used_ids``, or an error if the cases have no ids."""
        reject_seen(self.ids, used_ids, self.n)

    refuse = renamed_attribute("refuse", "reject_seen")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the cases; ids are readable."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {
            name: None if column is None else [*column] if name == "ids" else column.tolist()
            for name, column in columns.items()
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "cases") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(without_format(saved), _COLUMNS, source)
        with naming_errors(source):
            return cls(**values)

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table, one row per case: its id and patient, if known, confidence and loss."""
        columns: dict[str, Any] = {} if self.ids is None else {"id": list(self.ids)}
        columns |= {} if self.patients is None else {"patient": self.patients}
        columns |= {"confidence": self.confidence, "loss": self.loss}
        return require("pandas", extra="tables").DataFrame(columns)

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"cases": self.n, "mean_loss": float(self.loss.mean())}
        if self.patients is not None:
            shown["patients"] = int(self.units.max()) + 1
        if self.reference is not None:
            shown["references"] = int(self.reference.size)
        return shown


@dataclass(frozen=True)
class CandidateTest:
    """Test of one candidate threshold.

    Attributes
    ----------
    threshold
        Cases with at least this confidence are accepted.
    accepted
        Number of calibration cases that it accepts.
    p_value
        Largest p-value over the targets; the candidate is certified if it is at most ``level``.
    level
        Level of the test.
    """

    threshold: float
    accepted: int
    p_value: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the candidate is certified."""
        return self.p_value <= self.level


@dataclass(frozen=True)
class CalibrationEvidence:
    """The cases that a threshold was tested on.

    Attributes
    ----------
    n, units
        Number of cases, not counting those set aside, and of independent units: patients, or the cases
        themselves.
    patients
        Whether patients are the units: the guarantee is then about the mean in which each patient counts
        once.
    references, set_aside
        Number of confidences that candidates were taken from, and how many of them belong to labelled cases
        set aside.
    digest
        Checksum of the calibration table.
    used_ids
        Ids of all cases that took part, if they have any; no other guarantee may be based on them.
    """

    n: int
    units: int
    patients: bool
    references: int
    set_aside: int
    digest: str
    used_ids: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        """Check that the numbers are consistent."""
        n, units = check_count(self.n, "n"), check_count(self.units, "units")
        if not isinstance(self.patients, bool):
            raise ParameterError(f"patients: expected True or False, got {self.patients!r}.")
        if units > n or not (self.patients or units == n):
            raise ParameterError(f"units: expected the number of units of {n} cases, got {units}.")
        references = check_count(self.references, "references")
        if check_count(self.set_aside, "set_aside", least=0) > references:
            raise ParameterError(f"set_aside: expected at most {references}, got {self.set_aside}.")
        if not isinstance(self.digest, str) or not re.fullmatch("[0-9a-f]{64}", self.digest):
            raise ParameterError(f"digest: expected 64 hexadecimal digits, got {self.digest!r}.")


@dataclass(frozen=True)
class SelectedThreshold:
    """A threshold in use.

    Attributes
    ----------
    threshold
        Cases with at least this confidence are accepted.
    coverage, coverage_interval
        Share of the calibration cases that it accepts, and the confidence interval of this share
        (Clopper-Pearson; Chernoff if patients are the units, each of whom then counts once), as if the
        threshold had been chosen before the cases were seen.
    risks
        Observed selective risk, one per target; ``None`` if no calibration case is accepted, which is only
        possible for a target of 1, which any threshold meets.
    """

    threshold: float
    coverage: float
    coverage_interval: tuple[float, float]
    risks: tuple[float | None, ...]

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("coverage_interval", "risks"):
            values = getattr(self, name)
            if not isinstance(values, Iterable) or isinstance(values, str):
                raise ParameterError(f"{name}: expected a sequence of numbers, got {values!r}.")
        coverage = check_fraction(self.coverage, "coverage")
        interval = tuple(check_fraction(end, "coverage_interval") for end in self.coverage_interval)
        if len(interval) != 2:
            raise ParameterError(f"coverage_interval: expected 2 numbers, got {len(interval)}.")
        low, high = interval
        if not low <= coverage <= high:
            raise ParameterError(
                f"coverage_interval: expected ends on both sides of the coverage {coverage:g}, got "
                f"({low:g}, {high:g})."
            )
        risks = tuple(None if risk is None else check_fraction(risk, "risks") for risk in self.risks)
        object.__setattr__(self, "threshold", check_number(self.threshold, "threshold"))
        object.__setattr__(self, "coverage", coverage)
        object.__setattr__(self, "coverage_interval", interval)
        object.__setattr__(self, "risks", risks)


@dataclass(frozen=True, repr=False)
class Certificate(Displayed, Storable):
    """Result of a certification: a threshold, or the reason why there is none.

    Attributes
    ----------
    operation
        The threshold with its coverage and observed risks; ``None`` if nothing can be guaranteed.
    need
        If nothing is certified: how many cases would be needed.
    targets, delta
        What holds for the accepted cases, all targets together, with probability at least ``1 - delta`` over
        the draw of the calibration cases.
    evidence
        The cases that the threshold was tested on.
    procedure
        What was fixed beforehand.
    steps
        All tests, in their order.
    """

    operation: SelectedThreshold | None
    need: CalibrationPlan | None
    targets: tuple[Target, ...]
    delta: float
    evidence: CalibrationEvidence
    procedure: Procedure
    steps: tuple[CandidateTest, ...]

    _format = "segtrust-certificate-1"

    @property
    def n(self) -> int:
        """Number of cases that the threshold was tested on."""
        return self.evidence.n

    @property
    def digest(self) -> str:
        """Checksum of the calibration table."""
        return self.evidence.digest

    @property
    def certified(self) -> bool:
        """Whether there is a threshold."""
        return self.operation is not None

    @property
    def threshold(self) -> float | None:
        """Lowest confidence of an accepted case; ``None`` if nothing can be guaranteed."""
        return None if self.operation is None else self.operation.threshold

    @property
    def coverage(self) -> float | None:
        """Share of the calibration cases that are accepted; ``None`` if nothing can be guaranteed."""
        return None if self.operation is None else self.operation.coverage

    def to_dataframe(self) -> DataFrame:
        """Return the tests as a pandas table, one row per candidate threshold, in their order."""
        rows = [{**asdict(step), "passed": step.passed} for step in self.steps]
        columns = ["threshold", "accepted", "p_value", "level", "passed"]
        return require("pandas", extra="tables").DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the certificate; ids are readable."""
        values = asdict(self)
        values["evidence"]["used_ids"] = sorted(self.evidence.used_ids)
        saved: dict[str, Any] = plain_values(values, "certificate")
        return saved

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "certificate") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        names = [attribute.name for attribute in fields(cls)]
        values = check_keys(without_format(saved), names, source)
        with naming_errors(source):
            operation, need = values["operation"], values["need"]
            used_ids = used_ids_as_text(values["evidence"]["used_ids"])
            return cls(
                operation=operation and rebuild(SelectedThreshold, operation, source),
                need=need and rebuild(CalibrationPlan, need, source),
                targets=tuple(rebuild(Target, target, source) for target in values["targets"]),
                delta=check_fraction(values["delta"], "delta", open_ends=True),
                evidence=rebuild(CalibrationEvidence, {**values["evidence"], "used_ids": used_ids}, source),
                procedure=rebuild(Procedure, values["procedure"], source),
                steps=tuple(rebuild(CandidateTest, step, source) for step in values["steps"]),
            )

    def _shown(self) -> dict[str, Any]:
        shown = {"certified": self.certified, "threshold": self.threshold, "coverage": self.coverage}
        targets = ", ".join(map(str, self.targets))
        return shown | {"delta": self.delta, "cases": self.n, "tests": len(self.steps), "targets": targets}

    def _caption(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the result in words."""
        patients, confidence = self.evidence.patients, describe_confidence(self.delta)
        limits = describe_limits(self.targets, patients=patients)
        if self.operation is None:
            return f"Not certifiable with these {self.n} cases at {confidence}: {limits}. {self.need}"
        accepted, interval = self.operation.coverage, self.operation.coverage_interval
        coverage = describe_coverage(accepted, interval, f"{self.n} calibration cases", patients=patients)
        return (
            f"Accept cases with a confidence of at least {self.operation.threshold:.6g}. "
            f"Guarantee ({confidence}): {limits}. {coverage}"
        )


def certify_threshold(
    confidence: VectorLike,
    loss: VectorLike | None = None,
    *,
    dice: VectorLike | None = None,
    target_risk: float,
    delta: float = 0.05,
    reference: VectorLike | None = None,
    patients: VectorLike | None = None,
) -> Certificate:
    """Find the lowest threshold whose selective risk is at most the target, with probability at least 1 - δ.

    Parameters
    ----------
    confidence
        Confidence of each calibration case; nothing may have learned from these cases.
    loss
        Loss of each case, in [0, 1]: for example, one minus its Dice.
    dice
        Dice of each case, in [0, 1], instead of the loss.
    target_risk
        Limit on the mean loss of the accepted cases.
    delta
        Probability, over the draw of the calibration cases, that the guarantee does not hold.
    reference
        Confidences of other, unlabelled cases, for candidate thresholds. Without them, a fifth of the cases
        is set aside to provide the candidates.
    patients
        Label of each case's patient. Patients are then the independent units, and the guarantee is about the
        mean in which each patient counts once.

    Returns
    -------
    Certificate
        Its ``threshold`` is ``None`` if nothing can be guaranteed.

    See Also
    --------
    certify : Several targets, failure rates, other procedures, cases with ids.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(300)
    >>> loss = (1 - confidence) * rng.random(300)
    >>> certificate = certify_threshold(confidence, loss, target_risk=0.2, reference=rng.random(500))
    >>> certificate.certified, round(certificate.coverage, 2)
    (True, 0.72)
    """
    cases = CalibrationCases(confidence, loss, patients=patients, reference=reference, dice=dice)
    return certify(cases, Target(target_risk), delta=delta)


def certify(
    cases: CalibrationCases,
    targets: Target | Sequence[Target],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] | HashedIds = (),
) -> Certificate:
    """Find the lowest threshold at which all targets hold simultaneously, with probability at least 1 - δ.

    Parameters
    ----------
    cases
        Calibration cases, which nothing may have learned from.
    targets
        One limit or several; a candidate passes if it passes the test of each, which needs no correction for
        multiple testing.
    delta
        Probability, over the draw of the calibration cases, that any of the targets does not hold.
    procedure
        What is fixed beforehand: p-value, start coverages, step; `Procedure` states the defaults.
    used_ids
        Ids of cases that the estimator, or a recalibration of the maps, has learned from; these are rejected.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(400)
    >>> cases = CalibrationCases(confidence, (1 - confidence) * rng.random(400), reference=rng.random(500))
    >>> both = certify(cases, [Target(0.2), Target(0.1, below_dice=0.5)])
    >>> both.certified, both.threshold >= certify(cases, Target(0.2)).threshold
    (True, True)
    """
    if not isinstance(cases, CalibrationCases):
        raise ParameterError(
            f"cases: expected CalibrationCases(confidence, loss), got {type(cases).__name__}."
        )
    cases.reject_seen(used_ids)
    tests, steps = walk_candidates(cases, targets, delta, check_procedure(procedure))
    delta = float(delta)  # checked there
    passed = [step.threshold for step in steps if step.passed]
    set_aside = cases.n - tests.n
    return Certificate(
        operation=tests.operation_at(min(passed), delta) if passed else None,
        need=None if passed else _need_at_highest(tests, steps),
        targets=tests.targets,
        delta=delta,
        evidence=CalibrationEvidence(
            n=tests.n,
            units=int(tests.units.max()) + 1,
            patients=cases.patients is not None,
            references=set_aside if cases.reference is None else int(cases.reference.size),
            set_aside=set_aside,
            digest=cases.digest,
            used_ids=frozenset(cases.ids or ()),
        ),
        procedure=tests.procedure,
        steps=tuple(steps),
    )


def certify_each(
    cases: CalibrationCases,
    targets: Target | Sequence[Target],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] | HashedIds = (),
) -> list[Certificate]:
    """Find a separate threshold for each target; all guarantees hold with probability at least 1 - δ.

    Parameters
    ----------
    cases
        Calibration cases, which nothing may have learned from.
    targets
        One limit or several; each of m is certified at level δ/m.
    delta
        Probability, over the draw of the calibration cases, that any of the guarantees does not hold.
    procedure
        What is fixed beforehand: p-value, start coverages, step; `Procedure` states the defaults.
    used_ids
        Ids of cases that the estimator, or a recalibration of the maps, has learned from; these are rejected.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(400)
    >>> cases = CalibrationCases(confidence, (1 - confidence) * rng.random(400), reference=rng.random(500))
    >>> low, high = certify_each(cases, [Target(0.15), Target(0.22)])
    >>> low.threshold > high.threshold, low.delta
    (True, 0.025)
    """
    targets = check_targets(targets)
    level = check_delta(delta) / len(targets)
    return [
        certify(cases, [target], delta=level, procedure=procedure, used_ids=used_ids) for target in targets
    ]


def walk_candidates(
    cases: CalibrationCases, targets: Target | Sequence[Target], delta: float, procedure: Procedure
) -> tuple[ThresholdTests, list[CandidateTest]]:
    """Test the candidates of each sequence up to the first that fails; return the cases and all tests."""
    delta = check_delta(delta)
    targets = check_targets(targets)
    reference = cases.reference
    if reference is None:
        seed = choose_seed(cases.confidence, procedure.seed)
        procedure = replace(procedure, seed=seed)  # kept, so that the certification can be repeated
        cases, reference = _set_aside(cases, procedure.set_aside, seed)
    tests = ThresholdTests(cases, targets, procedure)
    level = delta / len(procedure.start_coverages)
    steps = []
    for start in procedure.start_coverages:
        for threshold in procedure.candidates(reference, start):
            steps.append(tests.test(threshold, level))
            if not steps[-1].passed:
                break
    return tests, steps


def _set_aside(cases: CalibrationCases, share: float, seed: int) -> tuple[CalibrationCases, Any]:
    """Return the cases to test on, and the confidences of the others, from which candidates are taken."""
    shuffled = cases.shuffled(seed)
    units = shuffled.units
    aside = units < round(share * (units.max() + 1))
    if aside.sum() < FEWEST_REFERENCES or (~aside).sum() < 2:
        patients = "" if cases.patients is None else f" of {units.max() + 1} patients"
        raise TooFewCasesError(
            f"cases: {cases.n} cases{patients} are too few without reference cases: {aside.sum()} would be "
            f"set aside for candidate thresholds (at least {FEWEST_REFERENCES} are needed), leaving "
            f"{(~aside).sum()} to test on (at least 2). Pass more cases, or confidences of unlabelled "
            "cases as reference."
        )
    if units.max() == shuffled.n - 1:
        # Rows of equal confidence may come sorted by loss. Setting aside the best of them leaves the worse
        # ones to be tested, which never favours the guarantee.
        aside = prefer_low_losses(shuffled.confidence, shuffled.loss, aside)
    return shuffled.part(~aside), shuffled.confidence[aside]


class ThresholdTests:
    """Calibration cases prepared for testing thresholds."""

    def __init__(self, cases: CalibrationCases, targets: tuple[Target, ...], procedure: Procedure) -> None:
        # Sorted, so that the order of a table's rows does not change the last digit of a sum.
        cases = cases.part(np.lexsort((cases.loss, cases.confidence)))
        self.n = cases.n
        self.targets = targets
        self.procedure = procedure
        self.confidence = cases.confidence
        self.units = cases.units
        self.single_cases = bool(self.units.max() == self.n - 1)  # every unit is one case
        self.test_names = [procedure.p_value_for(target, grouped=not self.single_cases) for target in targets]
        self.losses = [target.losses(cases.loss) for target in targets]

    def test(self, threshold: float, level: float) -> CandidateTest:
        """Test one candidate: the largest p-value over the targets decides."""
        accepted = self.confidence >= threshold
        losses = self.unit_losses(accepted)
        largest = max(
            target.p_value(unit_losses, name, level)
            for target, unit_losses, name in zip(self.targets, losses, self.test_names, strict=True)
        )
        return CandidateTest(threshold, int(accepted.sum()), largest, level)

    def unit_losses(self, accepted: Any) -> list[Any]:
        """Return, for each target, the number tested for each unit with an accepted case: limit + Z.

        Z is the mean over the unit's cases of (loss − limit)·accepted, so limit + Z lies in [0, 1]. The
        selective risk, in which each unit counts once, is above the limit exactly if the mean of Z is above
        0. Units without an accepted case have Z = 0 and are left out. For a unit with one case, limit + Z
        is its loss.
        """
        if self.single_cases:
            return [losses[accepted] for losses in self.losses]
        has_accepted = np.bincount(self.units, accepted) > 0
        return [
            (target.risk + self._unit_means(np.where(accepted, losses - target.risk, 0.0)))[has_accepted]
            for target, losses in zip(self.targets, self.losses, strict=True)
        ]

    def risks(self, accepted: Any) -> tuple[float, ...]:
        """Return the observed selective risk for each target; each unit counts once."""
        weight = self._unit_means(accepted * 1.0).sum()
        return tuple(float(self._unit_means(accepted * losses).sum() / weight) for losses in self.losses)

    def operation_at(self, threshold: float, delta: float) -> SelectedThreshold:
        """Return a threshold with its coverage and observed risks; each unit counts once."""
        accepted = self.confidence >= threshold
        if self.single_cases:
            hits = int(accepted.sum())
            coverage, interval = hits / self.n, clopper_pearson(hits, self.n, 1.0 - delta)
        else:
            shares = self._unit_means(accepted * 1.0)
            coverage = float(shares.mean())
            interval = chernoff_interval(coverage, shares.size, 1.0 - delta)
        risks = self.risks(accepted) if accepted.any() else (None,) * len(self.targets)
        return SelectedThreshold(threshold, coverage, interval, risks)

    def _unit_means(self, values: Any) -> Any:
        return np.bincount(self.units, values) / np.bincount(self.units)


def _need_at_highest(tests: ThresholdTests, steps: list[CandidateTest]) -> CalibrationPlan:
    """Return how many cases would be needed to certify the highest candidate.

    That is the one with the smallest start coverage: its risk is usually the lowest.
    """
    highest = max(steps, key=lambda step: step.threshold)
    accepted = tests.confidence >= highest.threshold
    unit = "cases" if tests.single_cases else "patients"
    if not accepted.any():
        reason = (
            "No calibration case reaches the highest candidate threshold. Check that calibration and "
            "reference cases come from the same model and population."
        )
        return CalibrationPlan(None, None, POWER, reason, unit)
    share_of_units = float(np.mean(np.bincount(tests.units, accepted) > 0))
    observed = Accepted.like(tests.unit_losses(accepted), tests.risks(accepted), share_of_units, unit)
    return compute_need(tests.targets, observed, tests.procedure, highest.level)
