"""A policy: accept or defer, with everything needed to check and audit the guarantee behind it.

A policy joins how confidences are computed (`Scoring`), a threshold, and the certificate that was produced
for it (`segtrust.selective.certify`). It is saved as a JSON file with a checksum. The file contains no
readable id of a case, only hashes, by which cases that the policy was calibrated on are still recognised.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from segtrust._arguments import check_fraction, check_number, describe, is_number, renamed_attribute
from segtrust._display import Displayed
from segtrust._files import (
    check_format,
    check_keys,
    checksum,
    naming_errors,
    plain_values,
    rebuild,
)
from segtrust._storage import Storable
from segtrust.errors import ParameterError, PolicyError, UnknownNameError
from segtrust.kernels import on_host
from segtrust.plugins import warn_once
from segtrust.policy.reference import Reference, read_references, write_with_references
from segtrust.policy.scoring import Scoring
from segtrust.selective import (
    TEST_TITLES,
    CalibrationEvidence,
    Certificate,
    ConformalDice,
    HashedIds,
    Procedure,
    SelectedThreshold,
    Target,
    check_same_index,
    check_targets,
    check_vector,
    describe_coverage,
    describe_limits,
    ids_as_text,
    reject_seen,
    without_tensors,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from segtrust._types import ColumnT
    from segtrust.confidence import ConfidenceEstimator

_FORMAT = "segtrust-policy-3"
_FORMAT_0_1 = "segtrust-policy-2"
"""Format of release 0.1.0; policies that say nothing new are still written in it."""
_LARGEST_CONFIDENCE = 1.0 + 1e-6
"""Largest confidence of segtrust's own estimators, and what rounding to single precision may add."""
OWN_VERSIONS = ("segtrust", "numpy", "python")
"""Versions that every policy keeps; any others are of the packages that its estimator comes from."""


class Decision(StrEnum):
    """Decision for one case: accept, defer or no finding."""

    ACCEPT = "accept"
    DEFER = "defer"
    NO_FINDING = "no finding"


class PolicyStatus(StrEnum):
    """Whether the guarantee of a policy is certified, or its risk only estimated."""

    CERTIFIED = "certified"
    ESTIMATED = "estimated"


@dataclass(frozen=True, eq=False, repr=False)
class MapDecision(Displayed):
    """Decision on one probability map, with the confidence that it rests on; made by `Policy.decide_map`.

    It equals its decision: ``result == "accept"`` and ``result == Decision.ACCEPT`` are the same.

    Attributes
    ----------
    decision
        Accept, defer or no finding.
    confidence
        Confidence of the map, scored as the policy states.
    threshold
        Lowest confidence of an accepted case.
    estimator
        Name of the estimator.
    empty_mask
        Whether the mask that was scored is empty.
    """

    decision: Decision
    confidence: float
    threshold: float
    estimator: str
    empty_mask: bool

    @property
    def margin(self) -> float:
        """Confidence above the threshold; negative if it is below."""
        return self.confidence - self.threshold

    def __eq__(self, other: object) -> bool:
        """Whether the decision is the same, as text, `Decision` or the result for another map."""
        if isinstance(other, MapDecision):
            return self.decision == other.decision and self.confidence == other.confidence
        return self.decision == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the decision."""
        return hash(self.decision)

    def __str__(self) -> str:
        """Return the decision."""
        return str(self.decision)

    def _shown(self) -> dict[str, Any]:
        shown = {
            "decision": self.decision,
            "estimator": self.estimator,
            "confidence": self.confidence,
            "threshold": self.threshold,
        }
        return shown | ({"empty_mask": True} if self.empty_mask else {})

    def _caption(self) -> str:
        return f"Decision: {self.decision}"


_SEARCH_TITLES = {"ranks": " at every rank", "candidates": " at candidate thresholds"}
"""Which thresholds were tested, in words."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions(estimator: str = "sdc") -> dict[str, str]:
    from importlib.metadata import version

    from segtrust.confidence import packages_of

    own = (version("segtrust"), np.__version__, platform.python_version())
    return {**dict(zip(OWN_VERSIONS, own, strict=True)), **packages_of(estimator)}


@dataclass(frozen=True, repr=False)
class Policy(Displayed, Storable):
    """Rule that accepts or defers cases, with the evidence for it; made by `from_certificate`.

    Attributes
    ----------
    scoring
        How confidences are computed.
    operation
        The threshold with its coverage and observed risks.
    targets, delta
        What is guaranteed, and the probability that the guarantee does not hold.
    procedure
        How the threshold was searched for: p-value, start coverages, step, share set aside, seed.
    evidence
        The cases it was tested on: number of cases and units, whether these are patients, which thresholds
        were tested by which tests, earlier looks at the same cases, and the checksum of the table. It
        contains no ids.
    used_ids
        Ids of the calibration cases, hashed; empty if they had none.
    status, reason
        Whether the guarantee is certified, and if not, why not.
    structure
        Name of the structure or class it is for; empty if there is only one.
    made, versions
        Time with its zone, and versions of the software that made it, including the package of the estimator
        if that is not segtrust.
    intervals
        Conformal Dice intervals that belong to it (see `with_intervals`), or ``None``.
    reference
        What is known about the calibration cases besides: confidences, for drift tests, and how their files
        were read. It is kept in a file beside the policy (``policy.reference.json``); ``None`` if unknown.
    """

    scoring: Scoring
    operation: SelectedThreshold
    targets: tuple[Target, ...]
    delta: float
    procedure: Procedure
    evidence: CalibrationEvidence
    used_ids: HashedIds = field(default=HashedIds(), repr=False)
    status: PolicyStatus = PolicyStatus.CERTIFIED
    reason: str = ""
    structure: str = ""
    made: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=_versions)
    intervals: ConformalDice | None = None
    reference: Reference | None = field(default=None, repr=False, compare=False)

    _format = _FORMAT
    _older_formats = (_FORMAT_0_1,)
    _load_error = PolicyError
    standing = renamed_attribute("standing", "status")
    remark = renamed_attribute("remark", "reason")
    refuse = renamed_attribute("refuse", "reject_seen")

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, scoring: Scoring, *, structure: str = "", made: datetime | None = None
    ) -> Policy:
        """Make a policy from a certificate that has a threshold.

        Parameters
        ----------
        certificate
            The certificate; its cases need ids if `reject_seen` and `with_intervals` are to recognise them.
            Under the empty-mask policy ``"paper"``, empty masks must have ranked last (`rank_empty_last`),
            with a loss of 1.
        scoring
            How the confidences of these cases were computed.
        structure
            Name of the structure it is for, if there are several.
        made
            Time with its zone; the current time by default.

        Examples
        --------
        >>> from segtrust.selective import certify_threshold
        >>> c = np.linspace(0, 1, 400)
        >>> reference = np.linspace(0, 0.99, 50)
        >>> certificate = certify_threshold(c, (1 - c) / 2, target_risk=0.2, reference=reference)
        >>> policy = Policy.from_certificate(certificate, Scoring("sdc"))
        >>> str(policy.status), str(policy.decide(0.9)), str(policy.decide(0.05))
        ('certified', 'accept', 'defer')
        """
        if not isinstance(certificate, Certificate):
            raise ParameterError(f"certificate: expected the result of certify, got {certificate!r}.")
        if not isinstance(scoring, Scoring):
            raise ParameterError(f"scoring: expected Scoring(...), got {scoring!r}.")
        if not isinstance(made, datetime | None):
            raise ParameterError(f"made: expected a datetime with its zone, got {made!r}.")
        if certificate.operation is None:
            raise PolicyError(f"There is no threshold to make a policy of. {certificate}")
        scoring.check()
        used = certificate.evidence.used_ids
        if scoring.seen_ids and not used:
            raise ParameterError(
                "certificate: its cases have no ids, so it is unknown whether the estimator or the "
                "recalibration has learned from them. Use certify(CalibrationCases(…, ids=…), …)."
            )
        reject_seen(sorted(used), scoring.seen_ids, len(used))
        reason = ""
        if certificate.total_delta >= 1.0:
            reason = f"after {certificate.evidence.earlier_looks} earlier looks at the same cases"
        return cls(
            replace(scoring, seen_ids=frozenset()),
            certificate.operation,
            certificate.targets,
            certificate.delta,
            certificate.procedure,
            replace(certificate.evidence, used_ids=frozenset()),
            HashedIds.of(used, certificate.digest),
            status=PolicyStatus.ESTIMATED if reason else PolicyStatus.CERTIFIED,
            reason=reason,
            structure=structure,
            made=_now() if made is None else made.isoformat(timespec="seconds"),
            versions=_versions(scoring.estimator),
        )

    def __post_init__(self) -> None:
        """Check everything, whether it comes from a certificate, a file or a caller."""
        for name, kind in _TYPES.items():
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name}: expected {kind.__name__}, got {getattr(self, name)!r}.")
        if self.status not in list(PolicyStatus):
            raise ParameterError(f"status: expected {' or '.join(PolicyStatus)}, got {self.status!r}.")
        _check_time(self.made)
        checked = {
            "targets": check_targets(self.targets),
            "delta": check_fraction(self.delta, "delta", open_ends=True),
            "status": PolicyStatus(self.status),
            "versions": plain_values(dict(self.versions), "versions"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_consistency()
        if self.intervals is not None:
            object.__setattr__(self, "intervals", self._check_intervals(self.intervals))

    def _check_consistency(self) -> None:
        targets, risks = len(self.targets), len(self.operation.risks)
        if targets != risks:
            raise ParameterError(f"risks: expected {targets} numbers, one per target, got {risks}.")
        if self.evidence.used_ids:
            raise ParameterError(
                "evidence: contains readable ids. Use Policy.from_certificate, which hashes them."
            )
        if self.used_ids and self.used_ids.salt != self.evidence.digest:
            raise ParameterError("used_ids: expected hashes salted with the digest of the calibration table.")
        if (self.status is PolicyStatus.ESTIMATED) != bool(self.reason):
            raise ParameterError("reason: expected one if the policy is estimated, and none if certified.")

    @property
    def threshold(self) -> float:
        """Lowest confidence of an accepted case."""
        return self.operation.threshold

    @property
    def n(self) -> int:
        """Number of cases that the threshold was tested on."""
        return self.evidence.n

    @property
    def total_delta(self) -> float:
        """Probability that this guarantee, or one from an earlier look at the same cases, does not hold."""
        return self.evidence.total_delta(self.delta)

    @property
    def digest(self) -> str:
        """Checksum of the calibration table."""
        return self.evidence.digest

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the policy, whichever model it is used with.

        For a certified policy it is the ``checksum`` in its file, so that a log can name what decided.
        """
        return checksum(_plain_values(replace(self, status=PolicyStatus.CERTIFIED, reason="")))

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"status": self.status, "estimator": self.scoring.estimator}
        shown |= {"structure": self.structure} if self.structure else {}
        limits = ", ".join(f"{target.quantity} <= {target.risk:g}" for target in self.targets)
        shown |= {"threshold": self.threshold, "targets": limits}
        shown |= {"looks": self.evidence.earlier_looks + 1} if self.evidence.earlier_looks else {}
        shown |= {"delta": self.total_delta, "coverage": self.operation.coverage, "cases": self.n}
        return shown | ({"model": self.scoring.predictor} if self.scoring.predictor else {})

    def _caption(self) -> str:
        return str(self)

    @property
    def limits(self) -> str:
        """What holds for the accepted cases, in words."""
        return describe_limits(self.targets, patients=self.evidence.patients)

    @property
    def guarantee(self) -> str:
        """One sentence: what is guaranteed, and how certain that is; or what is expected only."""
        if self.status is not PolicyStatus.CERTIFIED:
            return f"Expected, but not guaranteed: {self.limits}."
        return f"Guarantee ({self.evidence.describe_confidence(self.delta)}): {self.limits}."

    def __str__(self) -> str:
        """Return in words what is guaranteed, how certain that is, and what it is based on."""
        evidence, operation = self.evidence, self.operation
        title = f"Policy for {self.structure}" if self.structure else "Policy"
        reason = f", not certified: {self.reason}" if self.reason else ""
        guarantee = self.guarantee
        if self.status is PolicyStatus.CERTIFIED:
            guarantee += (
                f" Valid for the model {self.scoring.predictor}."
                if self.scoring.predictor
                else " Valid only for the model that made the calibration maps, which has no name."
            )
        patients = f" of {evidence.units} patients" if evidence.patients else ""
        tests = " and ".join(TEST_TITLES[name] for name in self.evidence.describe_tests(self.targets))
        tests += _SEARCH_TITLES[evidence.search] + ("" if evidence.tests else ", as in release 0.1.0")
        copies = f"; {evidence.copies} copies counted once" if evidence.copies else ""
        tested = "Certified" if self.status is PolicyStatus.CERTIFIED else "Calibrated"
        coverage = describe_coverage(
            operation.coverage, operation.coverage_interval, "them", patients=evidence.patients
        )
        return (
            f"{title} ({self.status}{reason}): accept cases with a confidence ({self.scoring.estimator}) "
            f"of at least {self.threshold:.6g}. {guarantee} {tested} on {self.n} cases{patients} "
            f"({tests}{copies}), {self.made[:10]}. {coverage}"
        )

    def estimated(self, reason: str) -> Policy:
        """Return the same policy without its guarantee, with the reason; earlier reasons are kept."""
        if not isinstance(reason, str) or not reason:
            raise ParameterError(f"reason: expected a text, got {reason!r}.")
        earlier = self.reason.split("; ") if self.reason else []
        reasons = dict.fromkeys([*earlier, reason])  # each once, in their order
        return replace(self, status=PolicyStatus.ESTIMATED, reason="; ".join(reasons))

    def for_predictor(self, predictor: str) -> Policy:
        """Return the policy for use with a model: the guarantee holds only for the model it was made with.

        It stays certified only if both models have a name and the names are equal. Otherwise the policy is
        `estimated`, also if one of them has no name: it cannot be known to be the same model. A policy that
        is `estimated` already stays so, with all its reasons.

        Parameters
        ----------
        predictor
            Name of the model; empty if it has none.
        """
        if not isinstance(predictor, str):
            raise ParameterError(f"predictor: expected a name, got {predictor!r}.")
        if predictor and predictor == self.scoring.predictor:
            return self
        made_with, used_with = (name or "an unnamed model" for name in (self.scoring.predictor, predictor))
        return self.estimated(f"made with {made_with}, used with {used_with}")

    def with_intervals(self, bounds: ConformalDice) -> Policy:
        """Return the policy with conformal Dice intervals, which are then saved with it.

        Parameters
        ----------
        bounds
            Intervals fitted, with this policy's threshold, on cases that the threshold was not chosen with.
            If the calibration cases have ids, these cases need ids too, and none in common; they are
            hashed.

        Examples
        --------
        >>> from segtrust.selective import CalibrationCases, certify
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
        >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        >>> bounds = ConformalDice(threshold=policy.threshold)
        >>> bounds = bounds.fit(c, (1 + c) / 2, ids=range(400, 800), used_ids=policy.used_ids)
        >>> policy.with_intervals(bounds).intervals.interval([0.9]).trivial.tolist()
        [False]
        """
        return replace(self, intervals=bounds)

    def _check_intervals(self, bounds: Any) -> ConformalDice:
        """Reject intervals of another threshold or of the calibration cases; return them with hashed ids."""
        if not isinstance(bounds, ConformalDice) or not bounds.cells:
            raise PolicyError(f"intervals: expected a fitted ConformalDice, got {bounds!r}.")
        if bounds.threshold != self.threshold:
            raise PolicyError(
                f"intervals: fitted for the threshold {bounds.threshold}, not for {self.threshold}. Fit "
                f"ConformalDice(threshold=policy.threshold)."
            )
        used = bounds.used_ids
        if self.used_ids and not used:
            raise PolicyError(
                "intervals: have no ids, so they may be based on cases that the threshold was chosen with. "
                "Pass ids to fit()."
            )
        if not isinstance(used, HashedIds):
            reject_seen(sorted(used), self.used_ids, len(used))
            return replace(bounds, used_ids=HashedIds.of(used, self.digest))
        if used.salt != self.digest:
            raise PolicyError("intervals: their ids are hashed for another policy. Fit them again, with ids.")
        if used.hashes & self.used_ids.hashes:
            raise PolicyError(
                "intervals: based on cases that the threshold was chosen with. Fit them on other cases."
            )
        return bounds

    def reject_seen(self, ids: Sequence[Any], *, checksums: Sequence[str] | None = None) -> None:
        """Raise `SeenCasesError` if a case is among the calibration cases.

        Evaluating the policy, or fitting intervals for it, takes other cases. The check works on a loaded
        policy too, because hashes of the ids are saved.

        Parameters
        ----------
        ids
            Ids of the cases.
        checksums
            Checksums of their maps, by which a calibration case is recognised under another name; ``None``
            if they are unknown.

        Examples
        --------
        >>> from segtrust.selective import CalibrationCases, certify
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
        >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        >>> policy.reject_seen(["399", "400"])
        Traceback (most recent call last):
            ...
        segtrust.errors.SeenCasesError: 1 of 2 cases have been used already ('399'). ...
        """
        if not self.used_ids:
            raise PolicyError(
                "The calibration cases of this policy had no ids, so it is unknown whether a case is among "
                "them. Certify cases with ids."
            )
        names = ids_as_text(ids)
        reject_seen(names, self.used_ids, len(names or ()), checksums=checksums)

    def estimator(self) -> ConfidenceEstimator:
        """Return the estimator that the policy was calibrated with, its parameters and empty rule set.

        `PolicyError` names the package to install if the estimator comes from one that is missing here. If
        another version of that package is installed, which may compute other confidences, this is logged.

        Examples
        --------
        >>> from segtrust.selective import certify_threshold
        >>> c, reference = np.linspace(0, 1, 400), np.linspace(0, 0.99, 50)
        >>> certificate = certify_threshold(c, dice=(1 + c) / 2, target_risk=0.2, reference=reference)
        >>> Policy.from_certificate(certificate, Scoring("pla", {"size": 20})).estimator()
        PatchLevel(size=20)
        """
        from segtrust.confidence import packages_of

        name = self.scoring.estimator
        made_with = {package: at for package, at in self.versions.items() if package not in OWN_VERSIONS}
        try:
            estimator = self.scoring.make_estimator()
        except UnknownNameError as error:
            if not made_with:
                raise
            pins = " ".join(f"{package}=={version}" for package, version in made_with.items())
            raise PolicyError(
                f"policy: its estimator {name!r} is from {_listed(made_with)}, which is not installed here. "
                f"Install it: pip install {pins}."
            ) from error
        here = packages_of(name)
        if made_with and here != made_with:
            warn_once(
                f"policy: its estimator {name!r} was that of {_listed(made_with)}; here it is that of "
                f"{_listed(here)}."
            )
        return estimator

    @overload
    def decide(
        self, confidence: float | np.floating[Any] | np.integer[Any], *, empty_mask: bool | np.bool_ = False
    ) -> Decision: ...

    @overload
    def decide(
        self, confidence: Sequence[float] | npt.NDArray[Any], *, empty_mask: Any = False
    ) -> npt.NDArray[np.str_]: ...

    @overload
    def decide(self, confidence: ColumnT, *, empty_mask: Any = False) -> ColumnT: ...

    @overload
    def decide(self, confidence: Any, *, empty_mask: Any = False) -> Any: ...

    def decide(self, confidence: Any, *, empty_mask: Any = False) -> Any:
        """Decide on one case, or on each case of a vector.

        Parameters
        ----------
        confidence
            Confidence of one case (a number, or an array or tensor without dimensions), or of several cases:
            a list, array, tensor or pandas column. It must have been computed as `scoring` states;
            `decide_map` computes it.
        empty_mask
            Whether the delivered mask is empty, for all cases or one per case. Under the empty-mask policy
            ``"paper"``, an empty mask is always deferred, whatever its confidence. If empty masks may be
            correct (``"agree"``), one that reaches the threshold is no finding, and any other is deferred.

        Returns
        -------
        Decision, numpy.ndarray or pandas.Series
            The decision on one case. For several cases an array of text, ``"accept"``, ``"defer"`` or
            ``"no finding"``, which can be compared with members of `Decision`; for a pandas column a column
            with the same index.

        Notes
        -----
        The guarantee covers all cases that reach the threshold: accepted cases and, under ``"agree"``, no
        findings together. Under ``"paper"`` it covers the accepted cases only if empty masks ranked below all
        others during calibration (`rank_empty_last`) and had a loss of 1, as their Dice gives it.

        Examples
        --------
        >>> from segtrust.selective import certify_threshold
        >>> c, reference = np.linspace(0, 1, 400), np.linspace(0, 0.99, 50)
        >>> certificate = certify_threshold(c, dice=(1 + c) / 2, target_risk=0.2, reference=reference)
        >>> policy = Policy.from_certificate(certificate, Scoring("sdc"))
        >>> str(policy.decide(0.9))
        'accept'
        >>> policy.decide([0.9, 0.05]).tolist()
        ['accept', 'defer']
        >>> int((policy.decide([0.9, 0.05]) == Decision.ACCEPT).sum())
        1
        """
        if is_number(confidence) and isinstance(empty_mask, bool | np.bool_):
            return self._decide_one(check_number(confidence, "confidence"), bool(empty_mask))
        check_same_index(confidence=confidence, empty_mask=empty_mask)
        numbers = _as_numbers(confidence)
        if numbers.ndim == 0:
            is_empty = without_tensors(on_host(empty_mask))
            if np.ndim(is_empty) != 0 or np.asarray(is_empty).dtype != bool:
                raise ParameterError(f"empty_mask: expected True or False, got {describe(empty_mask)}.")
            return self._decide_one(check_number(numbers[()], "confidence"), bool(is_empty))
        numbers = check_vector(numbers, "confidence", fewest=0)
        self._check_scale(numbers.max(initial=-np.inf))
        is_empty = _as_flags(empty_mask, numbers.size)
        empty_decision = Decision.NO_FINDING if self.scoring.empty == "agree" else Decision.DEFER
        reached = np.where(is_empty, empty_decision.value, Decision.ACCEPT.value)
        decisions = np.where(numbers >= self.threshold, reached, Decision.DEFER.value)
        if hasattr(confidence, "index") and hasattr(confidence, "to_numpy"):  # a pandas column
            return type(confidence)(decisions, index=confidence.index, name="decision")
        return decisions

    def _check_scale(self, largest: float) -> None:
        """Raise if the largest confidence cannot come from the estimator; those of segtrust are at most 1."""
        if largest <= _LARGEST_CONFIDENCE:
            return
        from segtrust.confidence import ESTIMATORS

        if self.scoring.estimator in ESTIMATORS:
            raise ParameterError(
                f"confidence: expected at most 1, as {self.scoring.estimator} gives it, got {largest:g}. "
                "Divide a percentage by 100."
            )

    def _decide_one(self, confidence: float, empty_mask: bool) -> Decision:
        self._check_scale(confidence)
        if confidence < self.threshold:
            return Decision.DEFER
        if empty_mask:
            return Decision.NO_FINDING if self.scoring.empty == "agree" else Decision.DEFER
        return Decision.ACCEPT

    def decide_map(
        self,
        p: Any,
        mask: Any = None,
        *,
        threshold: float | None = None,
        where: Any = None,
        structure: str | None = None,
    ) -> MapDecision:
        """Score one probability map exactly as the policy states, and decide on it.

        The estimator with its parameters, the empty-mask policy, the recalibration of the maps and the way in
        which masks are made are those of the calibration cases.

        Parameters
        ----------
        p
            Foreground probabilities of one image, in any number of dimensions; or a `Prediction`, which has
            its own mask and threshold. For an estimator that compares the members of an ensemble, use
            `decide` with `segtrust.pairwise_dice`.
        mask
            The delivered mask; ``p >= threshold`` of the original map if there is none. A policy that was
            calibrated with Dice-optimal masks makes the mask itself and takes none.
        threshold
            Decision threshold of the mask, in [0, 1]; by default that of the calibration cases
            (``scoring.threshold``). Another one raises `PolicyError`; it is not used if a mask is passed.
        where
            Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels
            may hold anything, such as NaN.
        structure
            Name of the structure that the map shows, if known; `PolicyError` if the policy is for another.

        Returns
        -------
        MapDecision
            The decision with the confidence that it rests on; it equals its decision, such as ``"accept"``.

        Examples
        --------
        >>> from segtrust.selective import certify_threshold
        >>> c, reference = np.linspace(0, 1, 400), np.linspace(0, 0.99, 50)
        >>> certificate = certify_threshold(c, dice=(1 + c) / 2, target_risk=0.2, reference=reference)
        >>> policy = Policy.from_certificate(certificate, Scoring("sdc"))
        >>> result = policy.decide_map(np.array([[0.9, 0.8], [0.1, 0.0]]))
        >>> str(result), round(result.confidence, 4), result == "accept"
        ('accept', 0.8947, True)
        """
        from segtrust.confidence import Pixels, assess_map, warn_of_surprises
        from segtrust.kernels import Counts, as_array, check_where, open_map
        from segtrust.maps import Case, Prediction

        if structure is not None and self.structure and structure != self.structure:
            raise PolicyError(
                f"structure: this policy is for {self.structure!r}, got a map of {structure!r}. Use the "
                "policy for that structure."
            )
        if isinstance(p, Case):
            p = p.prediction
        if isinstance(p, Prediction):
            if mask is not None or threshold is not None:
                raise ParameterError("p: a Prediction has its own mask and threshold; pass neither.")
            prediction = p
        else:
            at = self.scoring.threshold if threshold is None else threshold
            mask = None if mask is None else as_array(mask, "mask")
            prediction = Prediction(as_array(p, "p"), mask, at, id="p")
        _check_one_map(prediction.probabilities)
        if self.scoring.decode == "dice-optimal":
            if prediction.mask is not None or threshold is not None:
                raise PolicyError(
                    "mask: this policy was calibrated with Dice-optimal masks, which it makes itself. Pass "
                    "the map alone, or calibrate with the masks that are delivered."
                )
        elif prediction.mask is None and prediction.threshold != self.scoring.threshold:
            raise PolicyError(
                "threshold: this policy was calibrated with masks at the threshold "
                f"{self.scoring.threshold:g}, got {prediction.threshold:g}. Use the same one, or calibrate "
                f"again with masks at {prediction.threshold:g}."
            )
        estimator = self.estimator()
        if estimator.needs.members and prediction.agreement is None:
            raise PolicyError(
                f"p: the estimator {self.scoring.estimator!r} of this policy compares the members of an "
                "ensemble, got a single map. Use policy.decide(st.pairwise_dice(maps)), or the command "
                "segtrust triage with one --member per model."
            )
        where = None if where is None else check_where(where, prediction.probabilities)
        scored = self.scoring.prepare(prediction, where)
        source = open_map(
            scored.probabilities,
            scored.mask,
            threshold=scored.threshold,
            source=prediction.source,
            where=where,
        )
        assessment = assess_map(source, [estimator], scored.agreement, Pixels(scored, where))
        found = assessment.bounds
        counts = Counts(source.n, found.k, found.s, found.lam)
        warn_of_surprises(prediction.probabilities, counts.may_be_below, where)
        confidence = float(on_host(assessment.scores[estimator.name]))
        is_empty = found.k == 0
        decision = self.decide(confidence, empty_mask=is_empty)
        return MapDecision(decision, confidence, self.threshold, self.scoring.estimator, is_empty)

    def check_scoring(self, scoring: Scoring) -> None:
        """Raise `PolicyError` if confidences were computed differently from those of the policy.

        The model may be another one: see `for_predictor`.

        Parameters
        ----------
        scoring
            How the confidences were computed.
        """
        if not isinstance(scoring, Scoring):
            raise ParameterError(f"scoring: expected Scoring(...), got {scoring!r}.")
        difference = self.scoring.difference(scoring)
        if difference:
            name, ours, theirs = difference
            raise PolicyError(
                f"{name}: this policy was made with {ours!r}, the confidences with {theirs!r}. "
                "Score the cases again as the policy states, or calibrate again."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as they are saved; no id is readable."""
        values = _plain_values(self)
        is_new = self.evidence.tests or {"scale", "correction"} & set(values["intervals"] or ())
        return {"format": _FORMAT if is_new else _FORMAT_0_1, **values, "checksum": checksum(values)}

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON, and its reference, if it has one, into a file beside it.

        Parameters
        ----------
        path
            Path of the policy; the reference of ``policy.json`` is ``policy.reference.json``.
        """
        if self.reference is None:
            super().save(path)
        else:
            write_with_references(Path(path), self.to_dict(), {self.structure: (self.digest, self.reference)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy, and the reference beside it if there is one.

        Parameters
        ----------
        path
            Path of the policy.
        """
        policy = super().load(path)
        references = read_references(Path(path), {policy.structure: policy.digest})
        return replace(policy, reference=references.get(policy.structure))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "policy") -> Self:
        """Rebuild a policy from plain values; reject what is corrupt, incomplete or of another kind."""
        names = {_SAVED_AS.get(each.name, each.name): each.name for each in _saved_fields()}
        version = saved.get("format") if isinstance(saved, Mapping) else None
        expected = _FORMAT_0_1 if version == _FORMAT_0_1 else _FORMAT
        checked = check_saved_policy(saved, expected, list(names), source)
        rest = {names[key]: value for key, value in checked.items()}
        with naming_errors(source, error=PolicyError):
            return cls(**{**rest, **_rebuild_parts(rest, source)})


def rank_empty_last(confidence: Any, is_empty: Any) -> Any:
    """Return confidences in which empty masks rank below all other cases, as the policy ``paper`` requires.

    An empty mask is never accepted there, whatever its confidence: aMSP rates an empty map as most
    confident. Confidences that rank last already (the SDC of an empty mask is 0) stay as they are.

    Examples
    --------
    >>> rank_empty_last([0.9, 0.99, 0.7], [False, True, False]).round(6).tolist()
    [0.9, 0.7, 0.7]
    """
    ranked, empty = np.array(confidence, np.float64), np.asarray(is_empty, bool)
    others = ranked[~empty & np.isfinite(ranked)]
    if others.size:
        below = np.nextafter(others.min(), -np.inf)
        ranked[empty] = np.minimum(ranked[empty], below)
    return ranked


def _check_one_map(p: Any) -> None:
    """Raise if an array is a single number, or looks like a batch or a softmax, not like one map."""
    from segtrust.confidence import suspect_shape

    if not tuple(p.shape):
        raise ParameterError(
            "p: expected the map of one image, got one number. Pass a confidence to decide() instead."
        )
    suspicion = suspect_shape(p)
    if suspicion is not None:
        raise ParameterError(
            f"p: expected the map of one image, but {suspicion[0]}. Decide on one map at a time, such as "
            "policy.decide_map(p[0])."
        )


def _listed(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in packages.items()) or "segtrust itself"


def _as_numbers(confidence: Any) -> Any:
    """Return confidences as an array of any number of dimensions; masked ones, text and bool are rejected."""
    if np.ma.is_masked(confidence):
        raise ParameterError(
            "confidence: expected a number for every case, got masked values. Drop them first."
        )
    numbers = np.asarray(without_tensors(on_host(confidence)))
    is_text = numbers.dtype.kind == "O" and any(isinstance(value, str) for value in numbers.flat)
    if numbers.dtype.kind in "bUS" or is_text:
        raise ParameterError(
            f"confidence: expected a number, or one number per case, got {describe(confidence)}."
        )
    return numbers


def _as_flags(empty_mask: Any, n: int) -> Any:
    flags = np.asarray(without_tensors(on_host(empty_mask)))
    if flags.dtype != bool or flags.shape not in ((), (n,)):
        raise ParameterError(
            f"empty_mask: expected True or False, or one of them for each of {n} cases, got "
            f"{describe(empty_mask)}. A count of pixels becomes one by k == 0."
        )
    return flags


_TYPES: dict[str, type] = {
    "scoring": Scoring,
    "operation": SelectedThreshold,
    "procedure": Procedure,
    "evidence": CalibrationEvidence,
    "used_ids": HashedIds,
    "reason": str,
    "structure": str,
    "made": str,
    "versions": Mapping,
}


def _check_time(value: str) -> None:
    try:
        has_zone = datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        raise ParameterError(f"made: expected a time with its zone, such as {_now()}, got {value!r}.")


_SAVED_AS = {"status": "standing", "reason": "remark"}
"""Keys in files of attributes that have other names there, since release 0.1.0."""

_USUAL_MASKS = {"decode": "threshold", "threshold": 0.5}
"""How masks are made unless a policy states it; saved only if different, so that earlier checksums hold."""


def _saved_fields() -> list[Field[Any]]:
    return [attribute for attribute in fields(Policy) if attribute.name != "reference"]


def _plain_values(policy: Policy) -> dict[str, Any]:
    """Return all attributes of a policy as plain values; no id is readable."""
    values = {
        _SAVED_AS.get(attribute.name, attribute.name): getattr(policy, attribute.name)
        for attribute in _saved_fields()
    }
    for name in ("scoring", "operation", "procedure"):
        values[name] = asdict(values[name])
    values["evidence"] = policy.evidence.to_dict()
    del values["evidence"]["used_ids"], values["scoring"]["seen_ids"]
    if values["procedure"]["search"] == "suited":
        del values["procedure"]["search"]
    for name, usual in _USUAL_MASKS.items():
        if values["scoring"][name] == usual:
            del values["scoring"][name]
    values["targets"] = [_target_values(target) for target in policy.targets]
    values["used_ids"] = policy.used_ids.to_dict()
    values["intervals"] = None if policy.intervals is None else policy.intervals.to_dict()
    result: dict[str, Any] = plain_values(values, "policy")
    return result


def _target_values(target: Target) -> dict[str, Any]:
    """Return a target as plain values; without the loss if it has no name, as in earlier versions."""
    values = asdict(target)
    return values if values["loss"] else {name: values[name] for name in ("risk", "below_dice")}


def _rebuild_parts(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Rebuild the attributes that are more than plain values; each checks itself."""

    def part(name: str, kind: type, saved: Any, without: Collection[str] = ()) -> Any:
        return rebuild(kind, saved, f"{source}: {name}", error=PolicyError, without=without)

    scoring, targets = values["scoring"], values["targets"]
    if isinstance(scoring, Mapping):
        scoring = {**_USUAL_MASKS, **scoring}
    procedure = values["procedure"]
    if isinstance(procedure, Mapping):
        procedure = {"search": "suited", **procedure}
    if not isinstance(targets, list):
        raise PolicyError(f"{source}: expected a list of targets, got {targets!r}.")
    parts = {
        "scoring": part("scoring", Scoring, scoring, without=("seen_ids",)),
        "operation": part("operation", SelectedThreshold, values["operation"]),
        "procedure": part("procedure", Procedure, procedure),
        "evidence": CalibrationEvidence.from_dict(values["evidence"], source=f"{source}: evidence"),
        "targets": [
            part("targets", Target, {"loss": "", **target} if isinstance(target, Mapping) else target)
            for target in targets
        ],
        "used_ids": HashedIds.from_dict(values["used_ids"], source=f"{source}: used_ids"),
    }
    if values["intervals"] is not None:
        parts["intervals"] = ConformalDice.from_dict(values["intervals"], source=f"{source}: intervals")
    return parts


def check_saved_policy(values: Any, expected: str, names: Sequence[str], source: str) -> dict[str, Any]:
    """Check format, keys and checksum of a saved policy, and return its values."""
    check_format(values, expected, source, error=PolicyError)
    rest = check_keys(values, ["format", *names, "checksum"], source, error=PolicyError)
    del rest["format"]
    if rest.pop("checksum") != checksum(rest):
        raise PolicyError(
            f"{source}: was changed after it was made (wrong checksum). Certify again instead of editing it."
        )
    return rest
