"""Several structures in one image: a policy each, and one decision for the case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust.errors import ParameterError, PolicyError, UnknownNameError
from segtrust.saved import check_format, check_keys, checksum, read_json, reading, write_json
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certificate import Certificate
from segtrust.selective.certify import certify
from segtrust.selective.policy import Decision, Policy, Standing
from segtrust.selective.procedure import Procedure
from segtrust.selective.targets import Target, targets_of
from segtrust.selective.vectors import check_delta, check_number

__all__ = ["StructurePolicies", "certify_structures"]

_FORMAT = "segtrust-structures-1"


def certify_structures(
    cases: Mapping[str, CalibrationCases],
    targets: Sequence[Target] | Mapping[str, Sequence[Target]],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] = (),
) -> dict[str, Certificate]:
    """Certify a threshold for each structure; the probability that any promise is broken is at most δ.

    Parameters
    ----------
    cases
        Calibration cases by structure.
    targets
        As for `certify`, the same for all structures; or a list of them by structure.
    procedure, used_ids
        As for `certify`.
    delta
        Of all structures together; each of m is certified at δ/m.

    Examples
    --------
    >>> import numpy as np
    >>> c = np.linspace(0, 1, 400)
    >>> liver = CalibrationCases(c, (1 - c) / 2, reference=np.linspace(0, 0.99, 50))
    >>> found = certify_structures({"liver": liver, "tumour": liver}, [Target(0.2)])
    >>> found["tumour"].delta, found["tumour"].certified
    (0.025, True)
    >>> each = {"liver": [Target(0.15)], "tumour": [Target(0.2), Target(0.1, below_dice=0.5)]}
    >>> [
    ...     str(found.targets[0])
    ...     for found in certify_structures({"liver": liver, "tumour": liver}, each).values()
    ... ]
    ['mean loss at most 0.15', 'mean loss at most 0.2']
    """
    if not isinstance(cases, Mapping) or not cases:
        raise ParameterError(f"cases: expected cases by structure, at least one, got {_said(cases)}.")
    for name in cases:
        _check_name(name, "cases")
    level = check_delta(delta) / len(cases)
    by_name = _targets_by_name(targets, list(cases))
    return {
        name: certify(each, by_name[name], delta=level, procedure=procedure, used_ids=used_ids)
        for name, each in cases.items()
    }


def _said(value: Any) -> str:
    return "none" if isinstance(value, Mapping) else type(value).__name__


def _targets_by_name(targets: Any, names: Sequence[str]) -> dict[str, tuple[Target, ...]]:
    """Give the targets of each structure."""
    if not isinstance(targets, Mapping):
        return dict.fromkeys(names, targets_of(targets))
    _check_known(targets, names, "targets")
    missing = [name for name in names if name not in targets]
    if missing:
        raise ParameterError(f"targets: expected some for each structure, got none for {missing[0]!r}.")
    return {name: targets_of(targets[name], f"targets of {name!r}") for name in names}


def _check_known(given: Iterable[str], names: Iterable[str], what: str) -> None:
    known = list(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UnknownNameError(
            f"{what}: no structure {unknown[0]!r}; there are {', '.join(map(str, known))}."
        )


@dataclass(frozen=True)
class StructurePolicies:
    """Policies by structure, and which structures must be trusted for a case to be accepted.

    The promise of each structure is about all cases in which *it* reaches its threshold. That its risk is
    also that low among the cases in which the others reach theirs too is not promised.

    Attributes
    ----------
    policies
        By name of the structure.
    required
        Names; all of them where nothing is said.
    """

    policies: Mapping[str, Policy]
    required: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check names and policies."""
        if not isinstance(self.policies, Mapping) or not self.policies:
            raise ParameterError(
                f"policies: expected policies by structure, at least one, got {_said(self.policies)}."
            )
        for name, policy in self.policies.items():
            _check_policy(name, policy)
        if isinstance(self.required, str):
            raise ParameterError(f"required: expected names, such as ({self.required!r},), got a text.")
        required = tuple(self.required or ()) or tuple(self.policies)
        _check_known(required, self.policies, "required")
        object.__setattr__(self, "policies", dict(self.policies))
        object.__setattr__(self, "required", required)

    @property
    def delta(self) -> float:
        """Probability that the promise of any structure is broken."""
        return min(1.0, sum(policy.delta for policy in self.policies.values()))

    @property
    def standing(self) -> Standing:
        """Certified only if all policies are."""
        certified = all(policy.standing is Standing.CERTIFIED for policy in self.policies.values())
        return Standing.CERTIFIED if certified else Standing.ESTIMATED

    def __str__(self) -> str:
        """Say what is promised of each structure, and of all together."""
        sure = (
            "Each promise is about the cases in which that structure reaches its threshold; all of them hold "
            f"with probability {1.0 - self.delta:g}."
        )
        if self.standing is Standing.ESTIMATED:
            sure = "Not all of it is certified, so nothing is promised of all together."
        head = f"{self.standing.capitalize()}; a case is deferred if {' or '.join(self.required)} is. {sure}"
        return "\n".join([head, *(f"{name}: {policy}" for name, policy in self.policies.items())])

    def decide(
        self, confidences: Mapping[str, float | None], *, empty: Collection[str] = ()
    ) -> tuple[Decision, dict[str, Decision]]:
        """Decide on a case: deferred if any required structure is.

        Parameters
        ----------
        confidences
            By structure, made as its policy says, also that of an empty mask: its confidence is a number like
            any other, Π(1 - p) under ``"agree"``. ``None`` where there is none; such a structure is deferred.
        empty
            Structures whose delivered mask is empty. Where empty masks may be right (``"agree"``) one that
            reaches its threshold is no finding.

        Returns
        -------
        tuple
            The decision on the case, and that on each structure that was given. The case is no finding if
            every required structure is.

        Examples
        --------
        >>> import numpy as np
        >>> from segtrust.selective.scoring import Scoring
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, reference=np.linspace(0, 0.99, 50))
        >>> found = certify_structures({"liver": cases, "tumour": cases}, [Target(0.2)])
        >>> scoring = Scoring("sdc", empty="agree")
        >>> made = {name: Policy.from_certificate(each, scoring) for name, each in found.items()}
        >>> both = StructurePolicies(made)
        >>> case, each = both.decide({"liver": 0.9, "tumour": 0.97}, empty=["tumour"])
        >>> str(case), str(each["tumour"])
        ('accept', 'no finding')
        >>> str(both.decide({"liver": 0.9, "tumour": 0.01}, empty=["tumour"])[0])  # perhaps not empty
        'defer'
        """
        self._check_given(confidences, empty)
        each = {
            name: self._decide_one(name, confidences[name], name in empty)
            for name in self.policies
            if name in confidences
        }
        required = [each[name] for name in self.required]
        if Decision.DEFER in required:
            return Decision.DEFER, each
        return (Decision.ACCEPT if Decision.ACCEPT in required else Decision.NO_FINDING), each

    def _check_given(self, confidences: Any, empty: Any) -> None:
        if not isinstance(confidences, Mapping):
            raise ParameterError(f"confidences: expected numbers by structure, got {confidences!r}.")
        _check_known(confidences, self.policies, "confidences")
        missing = [name for name in self.required if name not in confidences]
        if missing:
            raise ParameterError(
                f"confidences: {missing[0]!r} is required; give its confidence, or None to defer the case."
            )
        if isinstance(empty, str) or not isinstance(empty, Collection):
            raise ParameterError(f"empty: expected names of structures, such as ['tumour'], got {empty!r}.")
        _check_known(empty, confidences, "empty")
        for name in empty:
            if confidences[name] is None:
                raise ParameterError(
                    f"confidences: {name!r} has an empty mask; give the confidence of that mask, not None."
                )

    def _decide_one(self, name: str, confidence: float | None, is_empty: bool) -> Decision:
        if confidence is None:
            return Decision.DEFER
        return self.policies[name].decide(
            check_number(confidence, f"confidence of {name!r}"), empty_mask=is_empty
        )

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as they are saved; no id is in the clear."""
        values = {
            "policies": {name: policy.to_dict() for name, policy in self.policies.items()},
            "required": list(self.required),
        }
        return {"format": _FORMAT, **values, "checksum": checksum(values)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "policies") -> StructurePolicies:
        """Make policies of plain values; refuse what is damaged, incomplete or of another kind."""
        check_format(values, _FORMAT, source, error=PolicyError)
        names = ["format", "policies", "required", "checksum"]
        rest = check_keys(values, names, source, error=PolicyError)
        del rest["format"]
        if rest.pop("checksum") != checksum(rest):
            raise PolicyError(f"{source}: was changed after it was made. Certify anew instead of editing it.")
        with reading(source, error=PolicyError):
            policies = {
                name: Policy.from_dict(each, source=f"{source}: {name}")
                for name, each in rest["policies"].items()
            }
            return cls(policies, rest["required"])

    def save(self, path: str | Path) -> None:
        """Write JSON; a file that is there is replaced in one step, or left as it was."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> StructurePolicies:
        """Read what `save` wrote."""
        return cls.from_dict(read_json(path, error=PolicyError), source=str(path))


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{what}: expected the name of a structure as text, got {name!r}.")


def _check_policy(name: Any, policy: Any) -> None:
    _check_name(name, "policies")
    if not isinstance(policy, Policy):
        raise ParameterError(f"policies: expected a Policy for {name!r}, got {policy!r}.")
    if policy.structure not in ("", name):
        raise ParameterError(f"policies: the policy given for {name!r} is one for {policy.structure!r}.")
