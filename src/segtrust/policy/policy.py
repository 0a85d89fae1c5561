"""A policy: accept or defer, with everything needed to check and audit the guarantee behind it.

A policy joins how confidences are computed (`Scoring`), a threshold, and the certificate that was produced
for it (`segtrust.selective.certify`). It is saved as a JSON file with a checksum. The file contains no
readable id of a case, only hashes, by which cases that the policy was calibrated on are still recognised.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import check_fraction, check_number
from segtrust._files import (
    check_format,
    check_keys,
    checksum,
    naming_errors,
    plain_values,
    read_json,
    rebuild,
    write_json,
)
from segtrust.errors import ParameterError, PolicyError
from segtrust.policy.scoring import Scoring
from segtrust.selective import (
    TEST_TITLES,
    Certificate,
    ConformalDice,
    Evidence,
    HashedIds,
    Operation,
    Procedure,
    Target,
    check_targets,
    describe_confidence,
    describe_coverage,
    describe_limits,
    ids_as_text,
    refuse_seen,
)

_FORMAT = "segtrust-policy-2"
OWN_VERSIONS = ("segtrust", "numpy", "python")
"""Versions that every policy keeps; any others are of the packages that its estimator comes from."""


class Decision(StrEnum):
    """Decision for one case: accept, defer or no finding."""

    ACCEPT = "accept"
    DEFER = "defer"
    NO_FINDING = "no finding"


class Standing(StrEnum):
    """Whether the guarantee of a policy is certified, or its risk only estimated."""

    CERTIFIED = "certified"
    ESTIMATED = "estimated"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions(estimator: str = "sdc") -> dict[str, str]:
    from importlib.metadata import version

    from segtrust.confidence import packages_of

    own = (version("segtrust"), np.__version__, platform.python_version())
    return {**dict(zip(OWN_VERSIONS, own, strict=True)), **packages_of(estimator)}


@dataclass(frozen=True)
class Policy:
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
        The cases it was tested on: number of cases and units, whether these are patients, number of
        references and of cases set aside, and the checksum of the table. It contains no ids.
    used_ids
        Ids of the calibration cases, hashed; empty if they had none.
    standing, remark
        Whether the guarantee is certified, and if not, why not.
    structure
        Name of the structure or class it is for; empty if there is only one.
    made, versions
        Time with its zone, and versions of the software that made it, including the package of the estimator
        if that is not segtrust.
    intervals
        Conformal Dice intervals that belong to it (see `with_intervals`), or ``None``.
    """

    scoring: Scoring
    operation: Operation
    targets: tuple[Target, ...]
    delta: float
    procedure: Procedure
    evidence: Evidence
    used_ids: HashedIds = field(default=HashedIds(), repr=False)
    standing: Standing = Standing.CERTIFIED
    remark: str = ""
    structure: str = ""
    made: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=_versions)
    intervals: ConformalDice | None = None

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, scoring: Scoring, *, structure: str = "", made: datetime | None = None
    ) -> Policy:
        """Make a policy from a certificate that has a threshold.

        Parameters
        ----------
        certificate
            The certificate; its cases need ids if `refuse` and `with_intervals` are to recognise them. Under
            the empty-mask policy ``"paper"``, empty masks must have ranked last (`rank_empty_last`), with a
            loss of 1.
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
        >>> str(policy.standing), str(policy.decide(0.9)), str(policy.decide(0.05))
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
        used = certificate.evidence.used_ids
        refuse_seen(sorted(used) if used else None, scoring.seen_ids, len(used))
        return cls(
            replace(scoring, seen_ids=frozenset()),
            certificate.operation,
            certificate.targets,
            certificate.delta,
            certificate.procedure,
            replace(certificate.evidence, used_ids=frozenset()),
            HashedIds.of(used, certificate.digest),
            structure=structure,
            made=_now() if made is None else made.isoformat(timespec="seconds"),
            versions=_versions(scoring.estimator),
        )

    def __post_init__(self) -> None:
        """Check everything, whether it comes from a certificate, a file or a caller."""
        for name, kind in _TYPES.items():
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name}: expected {kind.__name__}, got {getattr(self, name)!r}.")
        if self.standing not in list(Standing):
            raise ParameterError(f"standing: expected {' or '.join(Standing)}, got {self.standing!r}.")
        _check_time(self.made)
        checked = {
            "targets": check_targets(self.targets),
            "delta": check_fraction(self.delta, "delta", open_ends=True),
            "standing": Standing(self.standing),
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
        if (self.standing is Standing.ESTIMATED) != bool(self.remark):
            raise ParameterError(
                "remark: expected a reason if the policy is estimated, and none if certified."
            )

    @property
    def threshold(self) -> float:
        """Lowest confidence of an accepted case."""
        return self.operation.threshold

    @property
    def n(self) -> int:
        """Number of cases that the threshold was tested on."""
        return self.evidence.n

    @property
    def digest(self) -> str:
        """Checksum of the calibration table."""
        return self.evidence.digest

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the policy, whichever model it is used with.

        For a certified policy it is the ``checksum`` in its file, so that a log can name what decided.
        """
        return checksum(_plain_values(replace(self, standing=Standing.CERTIFIED, remark="")))

    def __str__(self) -> str:
        """Return in words what is guaranteed, how certain that is, and what it is based on."""
        evidence, operation = self.evidence, self.operation
        title = f"Policy for {self.structure}" if self.structure else "Policy"
        reason = f", not certified: {self.remark}" if self.remark else ""
        limits = describe_limits(self.targets, patients=evidence.patients)
        if self.standing is Standing.CERTIFIED:
            model = (
                f"Valid for the model {self.scoring.predictor}."
                if self.scoring.predictor
                else "Valid only for the model that made the calibration maps, which has no name."
            )
            guarantee = f"Guarantee ({describe_confidence(self.delta)}): {limits}. {model}"
        else:
            guarantee = f"Expected, but not guaranteed: {limits}."
        patients = f" of {evidence.units} patients" if evidence.patients else ""
        grouped = evidence.units < evidence.n
        names = dict.fromkeys(self.procedure.p_value_for(target, grouped=grouped) for target in self.targets)
        tests = " and ".join(TEST_TITLES[name] for name in names)
        tested = "Certified" if self.standing is Standing.CERTIFIED else "Calibrated"
        coverage = describe_coverage(
            operation.coverage, operation.coverage_interval, "them", patients=evidence.patients
        )
        return (
            f"{title} ({self.standing}{reason}): accept cases with a confidence ({self.scoring.estimator}) "
            f"of at least {self.threshold:.6g}. {guarantee} {tested} on {self.n} cases{patients} ({tests}), "
            f"{self.made[:10]}. {coverage}"
        )

    def estimated(self, remark: str) -> Policy:
        """Return the same policy without its guarantee, with the reason; earlier reasons are kept."""
        if not isinstance(remark, str) or not remark:
            raise ParameterError(f"remark: expected the reason, got {remark!r}.")
        earlier = self.remark.split("; ") if self.remark else []
        reasons = dict.fromkeys([*earlier, remark])  # each once, in their order
        return replace(self, standing=Standing.ESTIMATED, remark="; ".join(reasons))

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
            refuse_seen(sorted(used), self.used_ids, len(used))
            return replace(bounds, used_ids=HashedIds.of(used, self.digest))
        if used.salt != self.digest:
            raise PolicyError("intervals: their ids are hashed for another policy. Fit them again, with ids.")
        if used.hashes & self.used_ids.hashes:
            raise PolicyError(
                "intervals: based on cases that the threshold was chosen with. Fit them on other cases."
            )
        return bounds

    def refuse(self, ids: Sequence[Any]) -> None:
        """Raise `SeenCasesError` if a case is among the calibration cases.

        Evaluating the policy, or fitting intervals for it, takes other cases. The check works on a loaded
        policy too, because hashes of the ids are saved.

        Parameters
        ----------
        ids
            Ids of the cases.

        Examples
        --------
        >>> from segtrust.selective import CalibrationCases, certify
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
        >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        >>> policy.refuse(["399", "400"])
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
        refuse_seen(names, self.used_ids, len(names or ()))

    def decide(self, confidence: float, *, empty_mask: bool = False) -> Decision:
        """Decide on a case.

        Parameters
        ----------
        confidence
            Confidence of the case, computed as `scoring` states.
        empty_mask
            Whether the delivered mask is empty. Under the empty-mask policy ``"paper"``, an empty mask is
            always deferred, whatever its confidence. If empty masks may be correct (``"agree"``), one that
            reaches the threshold is no finding, and any other is deferred.

        Notes
        -----
        The guarantee covers all cases that reach the threshold: accepted cases and, under ``"agree"``, no
        findings together. Under ``"paper"`` it covers the accepted cases only if empty masks ranked below all
        others during calibration (`rank_empty_last`) and had a loss of 1, as their Dice gives it.
        """
        if not isinstance(empty_mask, bool | np.bool_):
            raise ParameterError(f"empty_mask: expected True or False, got {empty_mask!r}.")
        if check_number(confidence, "confidence") < self.threshold:
            return Decision.DEFER
        if empty_mask:
            return Decision.NO_FINDING if self.scoring.empty == "agree" else Decision.DEFER
        return Decision.ACCEPT

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
        return {"format": _FORMAT, **values, "checksum": checksum(values)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "policy") -> Policy:
        """Rebuild a policy from plain values; reject what is corrupt, incomplete or of another kind."""
        names = [attribute.name for attribute in fields(cls)]
        rest = check_saved_policy(values, _FORMAT, names, source)
        with naming_errors(source, error=PolicyError):
            return cls(**{**rest, **_rebuild_parts(rest, source)})

    def save(self, path: str | Path) -> None:
        """Write a JSON file; an existing file is replaced in one step, or left unchanged."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read what `save` wrote."""
        return cls.from_dict(read_json(path, error=PolicyError), source=str(path))


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


_TYPES: dict[str, type] = {
    "scoring": Scoring,
    "operation": Operation,
    "procedure": Procedure,
    "evidence": Evidence,
    "used_ids": HashedIds,
    "remark": str,
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


_DEFAULT_DECODING = "threshold"
"""Saved only if it is different, so that policies of earlier versions keep their checksums."""


def _plain_values(policy: Policy) -> dict[str, Any]:
    """Return all attributes of a policy as plain values; no id is readable."""
    values = {attribute.name: getattr(policy, attribute.name) for attribute in fields(policy)}
    for name in ("scoring", "operation", "procedure", "evidence"):
        values[name] = asdict(values[name])
    del values["evidence"]["used_ids"], values["scoring"]["seen_ids"]
    if values["scoring"]["decode"] == _DEFAULT_DECODING:
        del values["scoring"]["decode"]
    values["targets"] = [asdict(target) for target in policy.targets]
    values["used_ids"] = policy.used_ids.to_dict()
    values["intervals"] = None if policy.intervals is None else policy.intervals.to_dict()
    result: dict[str, Any] = plain_values(values, "policy")
    return result


def _rebuild_parts(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Rebuild the attributes that are more than plain values; each checks itself."""

    def part(name: str, kind: type, saved: Any, without: Collection[str] = ()) -> Any:
        return rebuild(kind, saved, f"{source}: {name}", error=PolicyError, without=without)

    scoring, targets = values["scoring"], values["targets"]
    if isinstance(scoring, Mapping):
        scoring = {"decode": _DEFAULT_DECODING, **scoring}
    if not isinstance(targets, list):
        raise PolicyError(f"{source}: expected a list of targets, got {targets!r}.")
    parts = {
        "scoring": part("scoring", Scoring, scoring, without=("seen_ids",)),
        "operation": part("operation", Operation, values["operation"]),
        "procedure": part("procedure", Procedure, values["procedure"]),
        "evidence": part("evidence", Evidence, values["evidence"], without=("used_ids",)),
        "targets": [part("targets", Target, target) for target in targets],
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
