"""Certify an acceptance threshold: the risk of the accepted cases is within a limit, with probability 1 - δ.

How a certificate is produced:

1. **Order.** The calibration cases are sorted by confidence, the most confident first. Ties are broken by
   random numbers, whose seed the certificate keeps.
2. **Tests.** The first half of the cases (`Procedure.start_coverages`) is tested first: a p-value tests the
   hypothesis "the risk of the cases with at least this confidence is above the limit" on their losses
   (`segtrust.selective.pvalues`). Then one case more is included at a time, down to the last. With several
   targets the largest p-value counts, because all targets have to hold. The start is tested twice, with and
   without the case that marks it.
3. **Stop.** Each test is made at the full level δ (divided by the number of sequences if there are several),
   up to the first that fails. The certificate holds the lowest confidence at which all cases of equal
   confidence had passed, which accepts the most cases; if there is none, it holds the number of cases that
   would be needed.

Why this is valid: the selective risk need not be monotone in the threshold, so the threshold cannot be
searched for freely. But testing at every rank is testing at every threshold on the real line below the
start, and the first of these whose risk really is above the limit is a property of the population. Any
wrong certificate requires that this one passes its test, which happens with probability at most δ. The page
``docs/explanation/certified-thresholds.md`` has the proof, with the conditions on the p-values and the part
that the random start plays.

If patients have several cases, the argument about the start does not hold. Candidate thresholds then come
from reference cases, or from patients that are set aside for it (`Procedure.candidates`), and are fixed
before any loss is seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, check_delta, check_fraction, check_number
from segtrust._display import Displayed
from segtrust._files import check_keys, checksum, naming_errors, plain_values, rebuild
from segtrust._optional import require
from segtrust._storage import Storable, without_format
from segtrust._types import VectorLike
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.looks import Look, describe_look, now, spent
from segtrust.selective.plan import POWER, Accepted, CalibrationPlan, compute_need
from segtrust.selective.pvalues import P_VALUES, p_values_by_rank
from segtrust.selective.seen import HashedIds, used_ids_as_text
from segtrust.selective.shuffling import choose_seed, prefer_low_losses
from segtrust.selective.targets import (
    Procedure,
    Target,
    check_procedure,
    check_targets,
    describe_confidence,
    describe_coverage,
    describe_limits,
)
from segtrust.selective.vectors import FEWEST_REFERENCES

if TYPE_CHECKING:
    from pandas import DataFrame

_BET_ORDER = 1
"""Stream of the random order in which adaptive stakes bet on cases, independent of that of ties."""


@dataclass(frozen=True)
class CandidateTest:
    """Test of one candidate threshold, or of one rank.

    Attributes
    ----------
    threshold
        Cases with at least this confidence are accepted.
    accepted
        Number of calibration cases that were tested. At a rank, of several cases with this confidence not all
        may be included yet; only a threshold with all of them can be certified.
    p_value
        Largest p-value over the targets; the test is passed if it is at most ``level``.
    level
        Level of the test.
    """

    threshold: float
    accepted: int
    p_value: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the test was passed."""
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
        set aside; 0 if every rank was tested.
    digest
        Checksum of the calibration table.
    used_ids
        Ids and checksums of all cases that took part, if they have any; no other guarantee may be based on
        them.
    search
        Which thresholds were tested: ``"ranks"`` or ``"candidates"``.
    tests
        Name of the test for each target; empty in files of release 0.1.0.
    copies
        Number of cases that were left out because they are copies of others.
    earlier_looks, earlier_delta
        Number of other questions that were asked of the same cases before, and the probability spent on them.
    planned
        Number of alternatives that were planned together and share δ.
    """

    n: int
    units: int
    patients: bool
    references: int
    set_aside: int
    digest: str
    used_ids: frozenset[str] = field(default=frozenset(), repr=False)
    search: str = "candidates"
    tests: tuple[str, ...] = ()
    copies: int = 0
    earlier_looks: int = 0
    earlier_delta: float = 0.0
    planned: int = 1

    def __post_init__(self) -> None:
        """Check that the numbers are consistent."""
        n, units = check_count(self.n, "n"), check_count(self.units, "units")
        if not isinstance(self.patients, bool):
            raise ParameterError(f"patients: expected True or False, got {self.patients!r}.")
        if units > n or not (self.patients or units == n):
            raise ParameterError(f"units: expected the number of units of {n} cases, got {units}.")
        if self.search not in ("ranks", "candidates"):
            raise ParameterError(f"search: expected 'ranks' or 'candidates', got {self.search!r}.")
        references = check_count(self.references, "references", least=int(self.search == "candidates"))
        if check_count(self.set_aside, "set_aside", least=0) > references:
            raise ParameterError(f"set_aside: expected at most {references}, got {self.set_aside}.")
        if not isinstance(self.digest, str) or not re.fullmatch("[0-9a-f]{64}", self.digest):
            raise ParameterError(f"digest: expected 64 hexadecimal digits, got {self.digest!r}.")
        tests = self.tests
        if isinstance(tests, str) or not all(isinstance(name, str) and name in P_VALUES for name in tests):
            raise ParameterError(f"tests: expected names among {', '.join(P_VALUES)}, got {tests!r}.")
        object.__setattr__(self, "tests", tuple(tests))
        for name in ("copies", "earlier_looks"):
            check_count(getattr(self, name), name, least=0)
        check_fraction(self.earlier_delta, "earlier_delta")
        check_count(self.planned, "planned")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what release 0.1.0 did not know is left out if it says nothing."""
        defaults = {each.name: each.default for each in fields(self) if each.default is not MISSING}
        values = asdict(self) | {"used_ids": sorted(self.used_ids), "tests": list(self.tests)}
        saved: dict[str, Any] = plain_values(values, "evidence")
        return {
            name: value
            for name, value in saved.items()
            if name == "used_ids" or name not in defaults or value != plain_values(defaults[name], name)
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "evidence") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        required = [each.name for each in fields(cls) if each.default is MISSING]
        later = [each.name for each in fields(cls) if each.default is not MISSING]
        known = [name for name in later if isinstance(saved, Mapping) and name in saved]
        values = check_keys(saved, [*required, *known], source)
        if "used_ids" in values:
            values["used_ids"] = used_ids_as_text(values["used_ids"])
        with naming_errors(source):
            return cls(**values)

    def total_delta(self, delta: float) -> float:
        """Return the probability that this guarantee or one from an earlier look does not hold."""
        return min(1.0, delta + self.earlier_delta)

    def describe_confidence(self, delta: float) -> str:
        """Return how certain a guarantee is: 1 - δ, after what earlier looks at the cases have spent.

        Parameters
        ----------
        delta
            Probability spent on this look.
        """
        total = self.total_delta(delta)
        confidence = describe_confidence(total) if total < 1.0 else "no confidence left"
        if not self.earlier_looks:
            return confidence
        return f"{confidence}, {describe_look(self.earlier_looks + 1)}"

    def describe_tests(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Return the names of the tests, each once; for release 0.1.0 those that it used by default."""
        if self.tests:
            return tuple(dict.fromkeys(self.tests))
        grouped = self.units < self.n
        names = ["betting" if target.below_dice is None or grouped else "binomial" for target in targets]
        return tuple(dict.fromkeys(names))


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
        the draw of the calibration cases; see ``total_delta`` if the cases were asked before.
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

    _format = "segtrust-certificate-2"
    _older_formats = ("segtrust-certificate-1",)

    @property
    def n(self) -> int:
        """Number of cases that the threshold was tested on."""
        return self.evidence.n

    @property
    def digest(self) -> str:
        """Checksum of the calibration table."""
        return self.evidence.digest

    @property
    def total_delta(self) -> float:
        """Probability that this guarantee, or one from an earlier look at the same cases, does not hold."""
        return self.evidence.total_delta(self.delta)

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
        values = asdict(replace(self, evidence=None)) | {"evidence": self.evidence.to_dict()}  # type: ignore[arg-type]
        saved: dict[str, Any] = plain_values(values, "certificate")
        return saved

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "certificate") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        names = [attribute.name for attribute in fields(cls)]
        values = check_keys(without_format(saved), names, source)
        with naming_errors(source):
            operation, need = values["operation"], values["need"]
            procedure = values["procedure"]
            if isinstance(procedure, Mapping):  # release 0.1.0 had one search only
                procedure = {"search": "suited", **procedure}
            return cls(
                operation=operation and rebuild(SelectedThreshold, operation, source),
                need=need and rebuild(CalibrationPlan, need, source),
                targets=tuple(rebuild(Target, target, source) for target in values["targets"]),
                delta=check_fraction(values["delta"], "delta", open_ends=True),
                evidence=CalibrationEvidence.from_dict(values["evidence"], source=source),
                procedure=rebuild(Procedure, procedure, source),
                steps=tuple(rebuild(CandidateTest, step, source) for step in values["steps"]),
            )

    def _shown(self) -> dict[str, Any]:
        shown = {"certified": self.certified, "threshold": self.threshold, "coverage": self.coverage}
        targets = ", ".join(map(str, self.targets))
        shown |= {"looks": self.evidence.earlier_looks + 1} if self.evidence.earlier_looks else {}
        return shown | {
            "delta": self.total_delta,
            "cases": self.n,
            "tests": len(self.steps),
            "targets": targets,
        }

    def _caption(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """Return the result in words."""
        evidence = self.evidence
        confidence = evidence.describe_confidence(self.delta)
        limits = describe_limits(self.targets, patients=evidence.patients)
        copies = f" ({evidence.copies} copies counted once)" if evidence.copies else ""
        if self.operation is None:
            spent_next = f": at most {describe_confidence(min(1.0, self.total_delta + self.delta))}"
            if evidence.planned > 1:  # what was planned together has spent more than this part of it
                spent_next = ", with less confidence"
            return (
                f"Not certifiable with these {self.n} cases{copies} at {confidence}: {limits}. {self.need} "
                "Asking these cases again (another target, start or estimator, or a few more cases) would be "
                f"the {describe_look(evidence.earlier_looks + 2)}{spent_next}."
            )
        accepted, interval = self.operation.coverage, self.operation.coverage_interval
        coverage = describe_coverage(
            accepted, interval, f"{self.n} calibration cases{copies}", patients=evidence.patients
        )
        certainty = (
            f"Guarantee ({confidence})" if self.total_delta < 1.0 else f"Not guaranteed ({confidence})"
        )
        planned = f" Planned as one of {evidence.planned} that share δ." if evidence.planned > 1 else ""
        return (
            f"Accept cases with a confidence of at least {self.operation.threshold:.6g}. "
            f"{certainty}: {limits}.{planned} {coverage}"
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
        Confidences of other, unlabelled cases, for candidate thresholds. Without them, every rank of the
        calibration cases is tested.
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
    >>> certificate = certify_threshold(confidence, loss, target_risk=0.2)
    >>> certificate.certified, round(certificate.coverage, 2)
    (True, 0.78)
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
    (certificate,) = certify_planned([(cases, targets)], delta, procedure, used_ids)
    return certificate


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
    listed = check_targets(targets)
    return certify_planned([(cases, [target]) for target in listed], delta, procedure, used_ids)


def certify_best(
    cases: Mapping[str, CalibrationCases],
    targets: Target | Sequence[Target],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] | HashedIds = (),
) -> tuple[str, Certificate]:
    """Certify a threshold by each of several estimators, and return the one that accepts the most cases.

    Parameters
    ----------
    cases
        The same calibration cases by the name of the estimator, with its confidences. Each of m estimators is
        certified at level δ/m, so that the choice among them costs nothing more.
    targets
        One limit or several that hold together.
    delta
        Probability, over the draw of the calibration cases, that the guarantee of the chosen one does not
        hold.
    procedure
        What is fixed beforehand: p-value, start coverages, search; `Procedure` states the defaults.
    used_ids
        Ids of cases that an estimator, or a recalibration of the maps, has learned from; these are rejected.

    Returns
    -------
    tuple
        Name of the estimator and its certificate; if nothing is certified, those of the first one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.random(400)
    >>> loss = (1 - quality) * rng.random(400)
    >>> noisy = quality + rng.normal(0, 0.5, 400)
    >>> name, certificate = certify_best(
    ...     {"noisy": CalibrationCases(noisy, loss), "good": CalibrationCases(quality, loss)}, Target(0.2)
    ... )
    >>> name, certificate.evidence.planned
    ('good', 2)
    """
    if not isinstance(cases, Mapping) or not cases:
        raise ParameterError(f"cases: expected cases by name of the estimator, got {cases!r}.")
    certificates = certify_planned([(each, targets) for each in cases.values()], delta, procedure, used_ids)
    best = max(range(len(certificates)), key=lambda number: certificates[number].coverage or 0.0)
    return list(cases)[best], replace(certificates[best], delta=check_delta(delta))


def certify_planned(
    questions: Sequence[tuple[CalibrationCases, Any]],
    delta: float,
    procedure: Procedure | None,
    used_ids: Collection[str] | HashedIds,
    *,
    same_losses: bool = True,
) -> list[Certificate]:
    """Certify several questions that were planned together: they share δ equally, and are one look.

    Parameters
    ----------
    questions
        Pairs of cases and targets.
    delta
        Probability that any of the guarantees does not hold.
    procedure
        What is fixed beforehand; `Procedure` states the defaults.
    used_ids
        Ids of cases that something has learned from; these are rejected.
    same_losses
        Whether all questions are about the same losses, so that each spends all of δ on its cases; otherwise,
        as for different structures, each spends its share.
    """
    delta = check_delta(delta)
    procedure = check_procedure(procedure)
    asked = []
    for cases, targets in questions:
        if not isinstance(cases, CalibrationCases):
            raise ParameterError(
                f"cases: expected CalibrationCases(confidence, loss), got {type(cases).__name__}."
            )
        cases.reject_seen(used_ids)
        asked.append((cases, check_targets(targets)))
    everything = [_question(cases, targets) for cases, targets in asked]
    options = {**asdict(procedure), "seed": None}
    question = checksum(plain_values([*sorted(everything, key=repr), delta, options], "question"))
    before = next((look for cases, _ in asked if (look := cases.looks.find(question))), None)
    if procedure.seed is None:
        # One seed for all, recorded with the look: asking again must not draw other random numbers.
        seeds = [choose_seed(cases.confidence, None) for cases, _ in asked]
        procedure = replace(procedure, seed=max(seeds) if before is None else before.seed)
    elif before is not None and before.seed != procedure.seed:
        question = f"{question} with seed {procedure.seed}"  # drawn again: another question
    earlier = [cases.looks.earlier(cases.keys, question) for cases, _ in asked]
    searches = [find_threshold(cases, targets, delta / len(asked), procedure) for cases, targets in asked]
    words = "; ".join(describe_limits(targets, patients=False) for _, targets in asked)
    made, seed = now(), procedure.seed
    for cases, _ in asked:
        sharing = sum(other.looks is cases.looks for other, _ in asked)
        part = delta if same_losses else delta * sharing / len(asked)
        cases.looks.record(cases.keys, Look(words, question, part, seed, made))
    return [
        _certificate(cases, search, delta / len(asked), looks, planned=len(asked))
        for (cases, _), search, looks in zip(asked, searches, earlier, strict=True)
    ]


def _question(cases: CalibrationCases, targets: Sequence[Target]) -> list[Any]:
    """Return all that an answer depends on, except the procedure and δ."""
    reference = None if cases.reference is None else np.sort(cases.reference).tolist()
    limits = sorted((target.risk, target.below_dice or 0.0, target.loss) for target in targets)
    return [cases.digest, reference, limits]


def _certificate(
    cases: CalibrationCases, search: ThresholdSearch, delta: float, earlier: Sequence[Look], *, planned: int
) -> Certificate:
    tests, set_aside = search.tests, cases.n - search.tests.n
    return Certificate(
        operation=None if search.threshold is None else tests.operation_at(search.threshold, delta),
        need=_compute_need(search) if search.threshold is None else None,
        targets=tests.targets,
        delta=delta,
        evidence=CalibrationEvidence(
            n=tests.n,
            units=int(tests.units.max()) + 1,
            patients=cases.patients is not None,
            references=set_aside if cases.reference is None else int(cases.reference.size),
            set_aside=set_aside,
            digest=cases.digest,
            used_ids=cases.used_ids,
            search=search.search,
            tests=tests.test_names,
            copies=cases.copies,
            earlier_looks=len(earlier),
            earlier_delta=spent(earlier),
            planned=planned,
        ),
        procedure=tests.procedure,
        steps=tuple(search.steps),
    )


@dataclass(frozen=True, eq=False)
class ThresholdSearch:
    """All tests of a search, and the threshold that was found.

    Attributes
    ----------
    tests
        The cases, prepared for testing.
    steps
        All tests, in their order.
    threshold
        The lowest threshold that passed, or ``None``.
    search
        Which thresholds were tested: ``"ranks"`` or ``"candidates"``.
    """

    tests: ThresholdTests
    steps: list[CandidateTest]
    threshold: float | None
    search: str


def find_threshold(
    cases: CalibrationCases, targets: Target | Sequence[Target], delta: float, procedure: Procedure
) -> ThresholdSearch:
    """Test the thresholds of each sequence up to the first that fails; this records no look.

    Parameters
    ----------
    cases
        Calibration cases.
    targets
        One limit or several that hold together.
    delta
        Level of the tests, shared by the sequences.
    procedure
        P-value, start coverages, search and seed.
    """
    delta, targets = check_delta(delta), check_targets(targets)
    has_reference = cases.reference is not None
    search = procedure.search_for(targets, grouped=cases.has_groups, has_reference=has_reference)
    procedure = replace(procedure, seed=choose_seed(cases.confidence, procedure.seed))
    level = delta / len(procedure.start_coverages)
    if search == "ranks":
        tests = ThresholdTests(cases, targets, procedure, by_rank=True)
        walks = [tests.test_ranks(start, level) for start in procedure.start_coverages]
        passed = [threshold for _, threshold in walks if threshold is not None]
        steps = [step for walk, _ in walks for step in walk]
        return ThresholdSearch(tests, steps, min(passed, default=None), search)
    reference = cases.reference
    if reference is None:
        cases, reference = _set_aside(cases, procedure.set_aside, procedure.seed)
    tests = ThresholdTests(cases, targets, procedure, by_rank=False)
    steps = []
    for start in procedure.start_coverages:
        for threshold in procedure.candidates(reference, start):
            steps.append(tests.test(threshold, level))
            if not steps[-1].passed:
                break
    lowest = min((step.threshold for step in steps if step.passed), default=None)
    return ThresholdSearch(tests, steps, lowest, search)


def _set_aside(cases: CalibrationCases, share: float, seed: Any) -> tuple[CalibrationCases, Any]:
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

    def __init__(
        self, cases: CalibrationCases, targets: tuple[Target, ...], procedure: Procedure, *, by_rank: bool
    ) -> None:
        # Sorted, so that the order of a table's rows does not change the last digit of a sum.
        cases = cases.part(np.lexsort((cases.loss, cases.confidence)))
        self.cases = cases
        self.n = cases.n
        self.targets = targets
        self.procedure = procedure
        self.confidence = cases.confidence
        self.units = cases.units
        self.single_cases = bool(self.units.max() == self.n - 1)  # every unit is one case
        self.test_names = procedure.tests_for(targets, self.n, grouped=not self.single_cases, by_rank=by_rank)
        self.losses = [target.losses(cases.loss) for target in targets]
        self.bet_order = cases.random_order(procedure.seed or 0, stream=_BET_ORDER)

    def test(self, threshold: float, level: float) -> CandidateTest:
        """Test one candidate: the largest p-value over the targets decides."""
        accepted = self.confidence >= threshold
        losses = self.unit_losses(accepted)
        largest = max(
            target.p_value(unit_losses, name, level)
            for target, unit_losses, name in zip(self.targets, losses, self.test_names, strict=True)
        )
        return CandidateTest(threshold, int(accepted.sum()), largest, level)

    def test_ranks(self, start: float, level: float) -> tuple[list[CandidateTest], float | None]:
        """Test every rank from a start coverage to the first that fails; every unit is one case.

        Returns
        -------
        tuple
            The tests, and the lowest threshold that was passed with all cases of its confidence, or ``None``.
        """
        random_ties = self.cases.random_order(self.procedure.seed or 0)
        ranked = random_ties[np.argsort(-self.confidence[random_ties], kind="stable")]
        rank = np.empty(self.n, np.int64)
        rank[ranked] = np.arange(self.n)
        first = math.ceil(round(start * self.n, 9))
        p_values = np.zeros(self.n - first + 2)  # of the first - 1, first, … most confident cases
        for target, losses, name in zip(self.targets, self.losses, self.test_names, strict=True):
            if 0.0 < target.risk < 1.0:
                found = p_values_by_rank(
                    losses[ranked],
                    name,
                    target.risk,
                    level,
                    first=first - 1,
                    bet_order=rank[self.bet_order],
                )
            else:
                found = np.full(p_values.size, target.p_value(losses, name, level))
            p_values = np.maximum(p_values[: found.size], found[: p_values.size])
        # The start is tested without the case that marks it, and with it.
        p_values = np.append(p_values[:2].max(), p_values[2:])
        tested = min(p_values.size, int(np.argmax(np.append(p_values > level, True))) + 1)
        descending = self.confidence[ranked]
        steps = [
            CandidateTest(threshold, first + number, p_value, level)
            for number, (threshold, p_value) in enumerate(
                zip(
                    descending[first - 1 : first - 1 + tested].tolist(),
                    p_values[:tested].tolist(),
                    strict=True,
                )
            )
        ]
        following = np.append(descending[1:], -np.inf)
        complete = [
            step.threshold for step in steps if step.passed and following[step.accepted - 1] < step.threshold
        ]
        return steps, min(complete, default=None)

    def unit_losses(self, accepted: Any) -> list[Any]:
        """Return, for each target, the number tested for each unit with an accepted case: limit + Z.

        The units are in a random order.

        Z is the mean over the unit's cases of (loss − limit)·accepted, so limit + Z lies in [0, 1]. The
        selective risk, in which each unit counts once, is above the limit exactly if the mean of Z is above
        0. Units without an accepted case have Z = 0 and are left out. For a unit with one case, limit + Z
        is its loss.
        """
        if self.single_cases:
            order = self.bet_order[accepted[self.bet_order]]
            return [losses[order] for losses in self.losses]
        has_accepted = np.bincount(self.units, accepted) > 0
        units = self.units[self.bet_order]
        order = units[np.sort(np.unique(units, return_index=True)[1])]
        order = order[has_accepted[order]]
        return [
            (target.risk + self._unit_means(np.where(accepted, losses - target.risk, 0.0)))[order]
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


def _compute_need(search: ThresholdSearch) -> CalibrationPlan:
    """Return how many cases would be needed to certify the start.

    With several starts, the one with the smallest coverage counts: its risk is usually the lowest.
    """
    tests, procedure = search.tests, search.tests.procedure
    highest = max(search.steps, key=lambda step: step.threshold)
    accepted = tests.confidence >= highest.threshold
    unit = "cases" if tests.single_cases else "patients"
    if not accepted.any():
        reason = (
            "No calibration case reaches the highest candidate threshold. Check that calibration and "
            "reference cases come from the same model and population."
        )
        return CalibrationPlan(None, None, POWER, reason, unit)
    if tests.single_cases:
        observed = Accepted.by_confidence(
            tests.confidence, tests.losses, tests.risks(accepted), float(np.mean(accepted))
        )
    else:
        share_of_units = float(np.mean(np.bincount(tests.units, accepted) > 0))
        observed = Accepted.like(tests.unit_losses(accepted), tests.risks(accepted), share_of_units, unit)
    return compute_need(tests.targets, observed, procedure, highest.level)
