"""A threshold with everything that is needed to trust and to audit it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, PolicyError
from segtrust.selective.certificate import Certificate, Operation
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_fraction

__all__ = ["Decision", "Policy", "Scoring", "Standing"]

_FORMAT = "segtrust-policy-1"


class Decision(StrEnum):
    """What happens to a case."""

    ACCEPT = "accept"
    DEFER = "defer"
    NO_FINDING = "no finding"


class Standing(StrEnum):
    """How much a policy may promise."""

    CERTIFIED = "certified"
    ESTIMATED = "estimated"


@dataclass(frozen=True)
class Scoring:
    """How the confidences were made that a policy was calibrated on, and must be made where it is used.

    Attributes
    ----------
    estimator, parameters
        Name of the estimator and what it was fitted or set to, as plain values.
    empty
        The empty-mask policy, ``"paper"`` or ``"agree"``.
    recalibration
        The recalibration of the maps as plain values; ``None`` where maps are scored as they are.
    predictor
        Which model made the maps, in words: a fold and an ensemble of folds are different predictors.

    Examples
    --------
    >>> Scoring("tla", {"tau": 0.3}).estimator
    'tla'
    """

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    empty: str = "paper"
    recalibration: Mapping[str, Any] | None = None
    predictor: str = ""

    @classmethod
    def of(cls, estimator: Any, **about: Any) -> Scoring:
        """Describe scoring by an estimator; ``about`` are the other attributes.

        Examples
        --------
        >>> from segtrust.confidence import PatchLevel
        >>> Scoring.of(PatchLevel(size=20), predictor="fold 0").parameters
        {'size': 20}
        """
        return cls(estimator.name, estimator.parameters, **about)

    def __post_init__(self) -> None:
        """Check the empty-mask policy."""
        if self.empty not in ("paper", "agree"):
            raise ParameterError(f"empty: expected 'paper' or 'agree', got {self.empty!r}.")


@dataclass(frozen=True)
class Policy:
    """Accept or defer, with the evidence for it.

    Attributes
    ----------
    scoring
        How confidences are made.
    operation
        The threshold, the coverage it comes with and the observed risks.
    targets, delta
        What is promised, and the probability with which the promise is broken.
    n, digest
        Number of calibration cases and fingerprint of their table.
    standing, remark
        Whether the promise is certified, and if not, why not.
    structure
        Which structure or class it is for; empty where there is one only.
    made, versions
        Time in UTC and versions of what made it.
    intervals
        Conformal Dice intervals that go with it, as plain values, or ``None``.
    """

    scoring: Scoring
    operation: Operation
    targets: tuple[Target, ...]
    delta: float
    n: int
    digest: str
    standing: Standing = Standing.CERTIFIED
    remark: str = ""
    structure: str = ""
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, Any] | None = None

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, scoring: Scoring, *, structure: str = "", made: datetime | None = None
    ) -> Policy:
        """Make a policy of a certificate that found a threshold.

        Examples
        --------
        >>> from segtrust.selective.certify import certify_threshold
        >>> c = np.linspace(0, 1, 400)
        >>> found = certify_threshold(c, (1 - c) / 2, target_risk=0.2, reference=np.linspace(0, 1, 50))
        >>> policy = Policy.from_certificate(found, Scoring("sdc"))
        >>> str(policy.standing), str(policy.decide(0.9)), str(policy.decide(0.05))
        ('certified', 'accept', 'defer')
        """
        if certificate.operation is None:
            raise PolicyError(f"There is no threshold to make a policy of. {certificate}")
        return cls(
            scoring,
            certificate.operation,
            certificate.targets,
            certificate.delta,
            certificate.n,
            certificate.digest,
            structure=structure,
            made=(made or datetime.now(UTC)).isoformat(timespec="seconds"),
            versions=_versions(),
        )

    @property
    def threshold(self) -> float:
        """Confidence from which on a case is accepted."""
        return self.operation.threshold

    def estimated(self, remark: str) -> Policy:
        """Give the same policy without the promise, and say why."""
        return replace(self, standing=Standing.ESTIMATED, remark=remark)

    def for_predictor(self, predictor: str) -> Policy:
        """Give the policy for use with a predictor: the promise holds only for the one it was made with."""
        if predictor == self.scoring.predictor:
            return self
        made_with = self.scoring.predictor or "an unnamed predictor"
        return self.estimated(f"made with {made_with}, used with {predictor or 'an unnamed one'}")

    def decide(self, confidence: float, *, empty_mask: bool = False) -> Decision:
        """Decide on a case.

        Parameters
        ----------
        confidence
            Made as `scoring` says.
        empty_mask
            Whether the delivered mask is empty. Where empty masks may be right (``"agree"``) one that is
            trusted is no finding; one that is not is deferred, like any other.
        """
        if not np.isfinite(confidence):
            raise ParameterError(f"confidence: expected a finite number, got {confidence!r}.")
        if confidence < self.threshold:
            return Decision.DEFER
        return Decision.NO_FINDING if empty_mask and self.scoring.empty == "agree" else Decision.ACCEPT

    def check_scoring(self, scoring: Scoring) -> None:
        """Refuse confidences that were made otherwise; the predictor is judged by `for_predictor`."""
        ours, theirs = (asdict(replace(each, predictor="")) for each in (self.scoring, scoring))
        differing = [name for name in ours if _plain(ours[name]) != _plain(theirs[name])]
        if differing:
            name = differing[0]
            raise PolicyError(
                f"{name}: this policy was made with {ours[name]!r}, the confidences with {theirs[name]!r}. "
                "Score the cases again as the policy says, or calibrate anew."
            )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as they are saved."""
        values: dict[str, Any] = _plain(asdict(self))
        return {"format": _FORMAT, **values, "checksum": _checksum(values)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "policy") -> Policy:
        """Make a policy of plain values; refuse what is damaged or of another kind."""
        rest = dict(values)
        if rest.pop("format", None) != _FORMAT:
            raise PolicyError(f"{source}: expected format {_FORMAT!r}, got {values.get('format')!r}.")
        if rest.pop("checksum", None) != _checksum(rest):
            raise PolicyError(f"{source}: was changed after it was made. Certify anew instead of editing it.")
        try:
            return cls(**{**rest, **_rebuilt(rest)})
        except (KeyError, TypeError, ValueError) as error:
            raise PolicyError(f"{source}: is no complete policy ({error}).") from error

    def save(self, path: str | Path) -> None:
        """Write JSON."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read what `save` wrote."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise PolicyError(f"{path}: expected a policy as JSON, got something else ({error}).") from error
        if not isinstance(values, dict):
            raise PolicyError(f"{path}: expected a policy, got a {type(values).__name__}.")
        return cls.from_dict(values, source=str(path))


def _rebuilt(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the parts that are more than plain values."""
    operation = dict(values["operation"])
    for name in ("coverage_interval", "risks"):
        operation[name] = tuple(operation[name])
    return {
        "scoring": Scoring(**values["scoring"]),
        "operation": Operation(**operation),
        "targets": tuple(Target(**each) for each in values["targets"]),
        "standing": Standing(values["standing"]),
        "delta": check_fraction(values["delta"], "delta", open_ends=True),
    }


def _plain(values: Any) -> Any:
    """Give what JSON gives back: lists for tuples, numbers for NumPy's."""
    return json.loads(json.dumps(values, default=_number))


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ParameterError(f"A policy holds plain values only, got {value!r} of type {type(value).__name__}.")


def _checksum(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"segtrust": version("segtrust"), "numpy": np.__version__, "python": platform.python_version()}
