"""A threshold with everything that is needed to trust and to audit it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, PolicyError
from segtrust.saved import check_format, check_keys, checksum, plain, read_json, reading, write_json
from segtrust.selective.certificate import Certificate, Evidence, Operation
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.policy_file import plain_parts, rebuilt_parts
from segtrust.selective.procedure import Procedure
from segtrust.selective.scoring import Scoring
from segtrust.selective.seen import HashedIds, ids_of, refuse_seen
from segtrust.selective.targets import Target, targets_of
from segtrust.selective.vectors import check_fraction, check_number

__all__ = ["OWN_VERSIONS", "Decision", "Policy", "Standing"]

_FORMAT = "segtrust-policy-2"
OWN_VERSIONS = ("segtrust", "numpy", "python")
"""Versions that every policy keeps; others are of the packages that its estimator comes from."""


class Decision(StrEnum):
    """What happens to a case."""

    ACCEPT = "accept"
    DEFER = "defer"
    NO_FINDING = "no finding"


class Standing(StrEnum):
    """How much a policy may promise."""

    CERTIFIED = "certified"
    ESTIMATED = "estimated"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions(estimator: str = "sdc") -> dict[str, str]:
    from importlib.metadata import version

    from segtrust.confidence.registry import packages_of

    own = (version("segtrust"), np.__version__, platform.python_version())
    return {**dict(zip(OWN_VERSIONS, own, strict=True)), **packages_of(estimator)}


@dataclass(frozen=True)
class Policy:
    """Accept or defer, with the evidence for it. Made by `from_certificate`; checked however it is made.

    Attributes
    ----------
    scoring
        How confidences are made.
    operation
        The threshold, the coverage it comes with and the observed risks.
    targets, delta
        What is promised, and the probability with which the promise is broken.
    procedure
        How the threshold was sought: p-value, start coverages, step, share set aside, seed.
    evidence
        What it was tested on: cases, units, whether these are patients, references, cases set aside, and the
        fingerprint of the table. Ids are not in it.
    used_ids
        Ids of the calibration cases, hashed; empty where they had none.
    standing, remark
        Whether the promise is certified, and if not, why not.
    structure
        Which structure or class it is for; empty where there is one only.
    made, versions
        Time, with its zone, and versions of what made it; that of the package of the estimator too, where it
        is not segtrust's own.
    intervals
        Conformal Dice intervals that go with it (see `with_intervals`), or ``None``.
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
        """Make a policy of a certificate that found a threshold.

        Parameters
        ----------
        certificate
            Of cases with ids, if `refuse` and `with_intervals` shall be able to tell who was used.
        scoring
            How their confidences were made.
        structure
            Which one it is for, where there are several.
        made
            Time, with its zone; now where not given.

        Examples
        --------
        >>> from segtrust.selective.certify import certify_threshold
        >>> c = np.linspace(0, 1, 400)
        >>> found = certify_threshold(c, (1 - c) / 2, target_risk=0.2, reference=np.linspace(0, 0.99, 50))
        >>> policy = Policy.from_certificate(found, Scoring("sdc"))
        >>> str(policy.standing), str(policy.decide(0.9)), str(policy.decide(0.05))
        ('certified', 'accept', 'defer')
        """
        if not isinstance(certificate, Certificate):
            raise ParameterError(f"certificate: expected what certify gives, got {certificate!r}.")
        if not isinstance(made, datetime | None):
            raise ParameterError(f"made: expected a datetime with its zone, got {made!r}.")
        if certificate.operation is None:
            raise PolicyError(f"There is no threshold to make a policy of. {certificate}")
        _refuse_own_cases(certificate, scoring)
        return cls(
            replace(scoring, seen_ids=frozenset()) if isinstance(scoring, Scoring) else scoring,
            certificate.operation,
            certificate.targets,
            certificate.delta,
            certificate.procedure,
            replace(certificate.evidence, used_ids=frozenset()),
            HashedIds.of(certificate.evidence.used_ids, certificate.digest),
            structure=structure,
            made=_now() if made is None else made.isoformat(timespec="seconds"),
            versions=_versions(getattr(scoring, "estimator", "sdc")),
        )

    def __post_init__(self) -> None:
        """Check everything, whoever made it."""
        for name, kind in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name}: expected {kind.__name__}, got {getattr(self, name)!r}.")
        checked = {
            "targets": targets_of(self.targets),
            "delta": check_fraction(self.delta, "delta", open_ends=True),
            "standing": _standing_of(self.standing),
            "made": _time_of(self.made),
            "versions": plain(dict(self.versions), "versions"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_together()
        if self.intervals is not None:
            object.__setattr__(self, "intervals", self._fitting(self.intervals))

    def _check_together(self) -> None:
        n, given = len(self.targets), len(self.operation.risks)
        if n != given:
            raise ParameterError(f"risks: expected {n} numbers, one a target, got {given}.")
        if self.evidence.used_ids:
            raise ParameterError(
                "evidence: holds ids in the clear. Use Policy.from_certificate, which hashes them."
            )
        if self.used_ids and self.used_ids.salt != self.evidence.digest:
            raise ParameterError("used_ids: expected hashes salted with the digest of the calibration table.")
        if (self.standing is Standing.ESTIMATED) != bool(self.remark):
            raise ParameterError(
                "remark: expected a reason if the policy is estimated, and none if certified."
            )

    @property
    def threshold(self) -> float:
        """Confidence from which on a case is accepted."""
        return self.operation.threshold

    @property
    def n(self) -> int:
        """Cases that the threshold was tested on."""
        return self.evidence.n

    @property
    def digest(self) -> str:
        """Fingerprint of the calibration table."""
        return self.evidence.digest

    @cached_property
    def fingerprint(self) -> str:
        """Of all that the policy says, whichever predictor it is used with.

        Of a certified policy it is the ``checksum`` of its file, so that a log can name what decided.
        """
        return checksum(plain_parts(replace(self, standing=Standing.CERTIFIED, remark="")))

    def __str__(self) -> str:
        """Say what is promised, how sure that is, and on what it rests."""
        low, high = self.operation.coverage_interval
        what = f"Policy for {self.structure}" if self.structure else "Policy"
        why = f", not certified ({self.remark})" if self.remark else ""
        return (
            f"{what}, {self.standing}{why}: accept cases whose {self.scoring.estimator} confidence is at "
            f"least {self.threshold:.6g}. Then {self._promise()}. {self._basis()} "
            f"{self.operation.coverage:.1%} of them are accepted ({low:.1%} to {high:.1%}{self._once()})."
        )

    def _once(self) -> str:
        return ", each patient counting once" if self.evidence.patients else ""

    def _promise(self) -> str:
        targets, once = " and ".join(map(str, self.targets)), self._once()
        if self.standing is Standing.ESTIMATED:
            return f"{targets}{once} is expected, and not promised"
        predictor = self.scoring.predictor or "the predictor it was made with, which has no name"
        return f"{targets}{once}, with probability {1.0 - self.delta:g}, for maps of {predictor}"

    def _basis(self) -> str:
        units = f" of {self.evidence.units} patients" if self.evidence.patients else ""
        several = self.evidence.units < self.n
        tests = [self.procedure.p_value_for(each, patients=several) for each in self.targets]
        how = " and ".join(dict.fromkeys(tests))
        return f"Tested on {self.n} cases{units} by {how}, {self.made[:10]}."

    def estimated(self, remark: str) -> Policy:
        """Give the same policy without the promise, and say why; earlier reasons are kept."""
        if not isinstance(remark, str) or not remark:
            raise ParameterError(f"remark: expected the reason, got {remark!r}.")
        earlier = self.remark.split("; ") if self.remark else []
        reasons = dict.fromkeys([*earlier, remark])  # each once, in their order
        return replace(self, standing=Standing.ESTIMATED, remark="; ".join(reasons))

    def for_predictor(self, predictor: str) -> Policy:
        """Give the policy for use with a predictor: the promise holds only for the one it was made with.

        It stays as it is only where both have a name and it is the same. Otherwise the policy is `estimated`,
        also where one of them has none: what is not said cannot be known to be the same. A policy that is
        `estimated` already stays so, with all its reasons.
        """
        if not isinstance(predictor, str):
            raise ParameterError(f"predictor: expected a name, got {predictor!r}.")
        if predictor and predictor == self.scoring.predictor:
            return self
        made_with = self.scoring.predictor or "an unnamed predictor"
        return self.estimated(f"made with {made_with}, used with {predictor or 'an unnamed one'}")

    def with_intervals(self, bounds: ConformalDice) -> Policy:
        """Give the policy with conformal Dice intervals, to be kept and saved together.

        Parameters
        ----------
        bounds
            Fitted, with this policy's threshold, on cases that the threshold was not chosen with. Where the
            calibration cases have ids these must have some too, and none in common; they are hashed.

        Examples
        --------
        >>> from segtrust.selective.cases import CalibrationCases
        >>> from segtrust.selective.certify import certify
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
        >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        >>> bounds = ConformalDice(threshold=policy.threshold)
        >>> bounds = bounds.fit(c, (1 + c) / 2, ids=range(400, 800), used_ids=policy.used_ids)
        >>> policy.with_intervals(bounds).intervals.interval([0.9]).trivial.tolist()
        [False]
        """
        return replace(self, intervals=bounds)

    def _fitting(self, bounds: Any) -> ConformalDice:
        """Refuse intervals of another threshold, or that rest on its cases; give them without clear ids."""
        if not isinstance(bounds, ConformalDice) or not bounds.cells:
            raise PolicyError(f"intervals: expected a fitted ConformalDice, got {bounds!r}.")
        if bounds.threshold != self.threshold:
            raise PolicyError(
                f"intervals: found for the threshold {bounds.threshold}, not for {self.threshold}. Fit "
                f"ConformalDice(threshold=policy.threshold)."
            )
        if self.used_ids and not bounds.used_ids:
            raise PolicyError(
                "intervals: have no ids, so nobody can tell whether they rest on cases that the threshold "
                "was chosen with. Give ids to fit()."
            )
        if isinstance(bounds.used_ids, HashedIds):
            return self._fitting_hashed(bounds, bounds.used_ids)
        refuse_seen(sorted(bounds.used_ids), self.used_ids, len(bounds.used_ids))
        return replace(bounds, used_ids=HashedIds.of(bounds.used_ids, self.digest))

    def _fitting_hashed(self, bounds: ConformalDice, hashed: HashedIds) -> ConformalDice:
        if hashed.salt != self.digest:
            raise PolicyError("intervals: their ids are hashed for another policy. Fit them anew, with ids.")
        if hashed.hashes & self.used_ids.hashes:
            raise PolicyError(
                "intervals: rest on cases that the threshold was chosen with. Fit them on others."
            )
        return bounds

    def refuse(self, ids: Sequence[Any]) -> None:
        """Raise `SeenCasesError` if a case is among the calibration cases.

        Whoever evaluates the policy, or fits intervals for it, must use other cases. Works after a load, by
        hashes of the ids.

        Examples
        --------
        >>> from segtrust.selective.cases import CalibrationCases
        >>> from segtrust.selective.certify import certify
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
                "The calibration cases of this policy had no ids, so nobody can tell whether a case is among "
                "them. Certify cases with ids."
            )
        names = ids_of(ids)
        refuse_seen(names, self.used_ids, len(names or ()))

    def decide(self, confidence: float, *, empty_mask: bool = False) -> Decision:
        """Decide on a case.

        Parameters
        ----------
        confidence
            Made as `scoring` says.
        empty_mask
            Whether the delivered mask is empty. Under the empty-mask policy ``"paper"`` an empty mask is
            always deferred, whatever its confidence. Where empty masks may be right (``"agree"``), a
            confident one is no finding, and any other is deferred.
        """
        if not isinstance(empty_mask, bool | np.bool_):
            raise ParameterError(f"empty_mask: expected True or False, got {empty_mask!r}.")
        if check_number(confidence, "confidence") < self.threshold:
            return Decision.DEFER
        if empty_mask:
            return Decision.NO_FINDING if self.scoring.empty == "agree" else Decision.DEFER
        return Decision.ACCEPT

    def check_scoring(self, scoring: Scoring) -> None:
        """Refuse confidences that were made otherwise; the predictor is judged by `for_predictor`."""
        if not isinstance(scoring, Scoring):
            raise ParameterError(f"scoring: expected Scoring(...), got {scoring!r}.")
        differing = self.scoring.difference(scoring)
        if differing:
            name, ours, theirs = differing
            raise PolicyError(
                f"{name}: this policy was made with {ours!r}, the confidences with {theirs!r}. "
                "Score the cases again as the policy says, or calibrate anew."
            )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as they are saved; no id is in the clear."""
        values = plain_parts(self)
        return {"format": _FORMAT, **values, "checksum": checksum(values)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "policy") -> Policy:
        """Make a policy of plain values; refuse what is damaged, incomplete or of another kind."""
        check_format(values, _FORMAT, source, error=PolicyError)
        names = [each.name for each in fields(cls)]
        rest = check_keys(values, ["format", *names, "checksum"], source, error=PolicyError)
        del rest["format"]
        if rest.pop("checksum") != checksum(rest):
            raise PolicyError(f"{source}: was changed after it was made. Certify anew instead of editing it.")
        with reading(source, error=PolicyError):
            return cls(**{**rest, **rebuilt_parts(rest, source)})

    def save(self, path: str | Path) -> None:
        """Write JSON; a file that is there is replaced in one step, or left as it was."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read what `save` wrote."""
        return cls.from_dict(read_json(path, error=PolicyError), source=str(path))


_KINDS: dict[str, type] = {
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


def _refuse_own_cases(certificate: Certificate, scoring: Any) -> None:
    """Refuse a promise on cases that the estimator or the recalibration has learned from."""
    if isinstance(scoring, Scoring):
        used = certificate.evidence.used_ids
        refuse_seen(sorted(used) if used else None, scoring.seen_ids, len(used))


def _standing_of(value: Any) -> Standing:
    if value not in list(Standing):
        raise ParameterError(f"standing: expected {' or '.join(Standing)}, got {value!r}.")
    return Standing(value)


def _time_of(value: str) -> str:
    try:
        has_zone = datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        raise ParameterError(f"made: expected a time with its zone, such as {_now()}, got {value!r}.")
    return value
