"""Several structures in one image: one policy per structure, and one decision for the case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_number, describe, renamed_attribute
from segtrust._display import Displayed, html_table
from segtrust._files import checksum, naming_errors
from segtrust._optional import require
from segtrust._storage import Storable
from segtrust.errors import ParameterError, PolicyError, UnknownNameError
from segtrust.kernels import on_host
from segtrust.policy.policy import Decision, Policy, PolicyStatus, check_saved_policy
from segtrust.policy.reference import read_references, write_with_references
from segtrust.selective import (
    CalibrationCases,
    Certificate,
    HashedIds,
    Procedure,
    Target,
    certify_planned,
    check_targets,
    describe_confidence,
    without_tensors,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_FORMAT = "segtrust-structures-1"


def certify_structures(
    cases: Mapping[str, CalibrationCases],
    targets: Target | Sequence[Target] | Mapping[str, Target | Sequence[Target]],
    *,
    delta: float = 0.05,
    procedure: Procedure | None = None,
    used_ids: Collection[str] | HashedIds = (),
) -> dict[str, Certificate]:
    """Certify a threshold for each structure; all guarantees hold with probability at least 1 - δ.

    Parameters
    ----------
    cases
        Calibration cases by structure.
    targets
        One limit or several, the same for all structures; or a mapping with those of each structure.
    delta
        Probability that any of the guarantees does not hold; each of m structures is certified at δ/m.
    procedure
        What is fixed beforehand: p-value, start coverages, step; `Procedure` states the defaults.
    used_ids
        Ids of cases that the estimator, or a recalibration of the maps, has learned from; these are rejected.

    Examples
    --------
    >>> import numpy as np
    >>> c = np.linspace(0, 1, 400)
    >>> liver = CalibrationCases(c, (1 - c) / 2, reference=np.linspace(0, 0.99, 50))
    >>> certificates = certify_structures({"liver": liver, "tumour": liver}, Target(0.2))
    >>> certificates["tumour"].delta, certificates["tumour"].certified
    (0.025, True)
    >>> own = {"liver": Target(0.15), "tumour": [Target(0.2), Target(0.1, below_dice=0.5)]}
    >>> certificates = certify_structures({"liver": liver, "tumour": liver}, own)
    >>> [str(certificate.targets[0]) for certificate in certificates.values()]
    ['the mean loss of accepted cases is at most 0.15', 'the mean loss of accepted cases is at most 0.2']
    """
    if not isinstance(cases, Mapping) or not cases:
        raise ParameterError(f"cases: expected cases by structure, at least one, got {describe(cases)}.")
    for name in cases:
        _check_name(name, "cases")
    if isinstance(targets, Mapping):
        _check_known(targets, cases, "targets")
        missing = [name for name in cases if name not in targets]
        if missing:
            raise ParameterError(f"targets: expected some for each structure, got none for {missing[0]!r}.")
        by_name = {name: check_targets(targets[name], f"targets of {name!r}") for name in cases}
    else:
        by_name = dict.fromkeys(cases, check_targets(targets))
    questions = [(calibration, by_name[name]) for name, calibration in cases.items()]
    certificates = certify_planned(questions, delta, procedure, used_ids, same_losses=False)
    return dict(zip(cases, certificates, strict=True))


@dataclass(frozen=True, repr=False)
class StructurePolicies(Displayed, Storable):
    """Policies by structure, and the structures that must be accepted for a case to be accepted.

    The guarantee of each structure is about all cases in which *this* structure reaches its threshold. It
    does not cover the cases in which the other structures reach theirs too: among those its risk may be
    higher.

    Attributes
    ----------
    policies
        Policies by name of the structure.
    required
        Names of the structures that decide on the case; all of them by default.
    """

    policies: Mapping[str, Policy]
    required: tuple[str, ...] = ()

    _format = _FORMAT
    _load_error = PolicyError
    standing = renamed_attribute("standing", "status")

    def __post_init__(self) -> None:
        """Check names and policies."""
        if not isinstance(self.policies, Mapping) or not self.policies:
            raise ParameterError(
                f"policies: expected policies by structure, at least one, got {describe(self.policies)}."
            )
        for name, policy in self.policies.items():
            _check_name(name, "policies")
            if not isinstance(policy, Policy):
                raise ParameterError(f"policies: expected a Policy for {name!r}, got {policy!r}.")
            if policy.structure not in ("", name):
                raise ParameterError(f"policies: the policy for {name!r} was made for {policy.structure!r}.")
        if isinstance(self.required, str):
            raise ParameterError(f"required: expected names, such as ({self.required!r},), got a text.")
        required = tuple(self.required or ()) or tuple(self.policies)
        _check_known(required, self.policies, "required")
        object.__setattr__(self, "policies", dict(self.policies))
        object.__setattr__(self, "required", required)

    @property
    def delta(self) -> float:
        """Probability that the guarantee of any structure does not hold, earlier looks included."""
        return min(1.0, sum(policy.total_delta for policy in self.policies.values()))

    @property
    def status(self) -> PolicyStatus:
        """Certified only if all policies are."""
        certified = all(policy.status is PolicyStatus.CERTIFIED for policy in self.policies.values())
        return PolicyStatus.CERTIFIED if certified else PolicyStatus.ESTIMATED

    def _shown(self) -> dict[str, Any]:
        thresholds = {name: policy.threshold for name, policy in self.policies.items()}
        return {"status": self.status, "delta": self.delta, **thresholds}

    def _rows(self) -> list[dict[str, Any]]:
        """Return one row per structure."""
        return [
            {
                "structure": name,
                "status": str(policy.status),
                "estimator": policy.scoring.estimator,
                "threshold": policy.threshold,
                "coverage": policy.operation.coverage,
                "cases": policy.n,
                "required": name in self.required,
            }
            for name, policy in self.policies.items()
        ]

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table, one row per structure: status, estimator, threshold, coverage, cases."""
        return require("pandas", extra="tables").DataFrame(self._rows())

    def _repr_html_(self) -> str:
        """Return a table for a notebook: one row per structure."""
        rows = self._rows()
        cells = [list(row.values()) for row in rows]
        return html_table(str(self).partition("\n")[0], cells, header=list(rows[0]))

    def __str__(self) -> str:
        """Return in words what is guaranteed for each structure, and for all together."""
        if self.status is PolicyStatus.CERTIFIED:
            scope = (
                "Each guarantee covers the cases in which its own structure reaches its threshold; all of "
                f"them hold together with {describe_confidence(self.delta)}."
            )
        else:
            scope = "Not every structure is certified, so there is no joint guarantee."
        several = "any of " if len(self.required) > 1 else ""
        rule = f"A case is deferred if {several}{', '.join(self.required)} is deferred."
        head = f"{self.status.capitalize()}. {rule} {scope}"
        return "\n".join([head, *(f"{name}: {policy}" for name, policy in self.policies.items())])

    def decide(
        self, confidences: Mapping[str, float | None], *, empty: Collection[str] = ()
    ) -> tuple[Decision, dict[str, Decision]]:
        """Decide on a case: it is deferred if any required structure is.

        Parameters
        ----------
        confidences
            Confidences by structure, computed as each policy states. An empty mask has a confidence like any
            other, Π(1 - p) under ``"agree"``. A structure whose confidence is ``None`` is deferred.
        empty
            Structures whose delivered mask is empty. Under the empty-mask policy ``"paper"``, they are always
            deferred. If empty masks may be correct (``"agree"``), those that reach their threshold are no
            finding.

        Returns
        -------
        tuple
            The decision on the case, and the decision on each structure that was given. The case is no
            finding if every required structure is.

        Examples
        --------
        >>> import numpy as np
        >>> from segtrust.policy import Scoring
        >>> c = np.linspace(0, 1, 400)
        >>> cases = CalibrationCases(c, (1 - c) / 2, reference=np.linspace(0, 0.99, 50))
        >>> certificates = certify_structures({"liver": cases, "tumour": cases}, [Target(0.2)])
        >>> scoring = Scoring("sdc", empty="agree")
        >>> policies = {
        ...     name: Policy.from_certificate(certificate, scoring)
        ...     for name, certificate in certificates.items()
        ... }
        >>> both = StructurePolicies(policies)
        >>> case, structures = both.decide({"liver": 0.9, "tumour": 0.97}, empty=["tumour"])
        >>> str(case), str(structures["tumour"])
        ('accept', 'no finding')
        >>> str(both.decide({"liver": 0.9, "tumour": 0.01}, empty=["tumour"])[0])  # perhaps not empty
        'defer'
        """
        self._check_confidences(confidences, empty)
        decisions = {}
        for name, policy in self.policies.items():
            if name in confidences:
                confidence = confidences[name]
                decisions[name] = Decision.DEFER
                if confidence is not None:
                    number = without_tensors(on_host(confidence))
                    number = number[()] if isinstance(number, np.ndarray) else number
                    checked = check_number(number, f"confidence of {name!r}")
                    decisions[name] = policy.decide(checked, empty_mask=name in empty)
        required = [decisions[name] for name in self.required]
        if Decision.DEFER in required:
            return Decision.DEFER, decisions
        return (Decision.ACCEPT if Decision.ACCEPT in required else Decision.NO_FINDING), decisions

    def _check_confidences(self, confidences: Any, empty: Any) -> None:
        if not isinstance(confidences, Mapping):
            raise ParameterError(f"confidences: expected numbers by structure, got {confidences!r}.")
        _check_known(confidences, self.policies, "confidences")
        missing = [name for name in self.required if name not in confidences]
        if missing:
            raise ParameterError(
                f"confidences: {missing[0]!r} is required; pass its confidence, or None to defer the case."
            )
        if isinstance(empty, str) or not isinstance(empty, Collection):
            raise ParameterError(f"empty: expected names of structures, such as ['tumour'], got {empty!r}.")
        _check_known(empty, confidences, "empty")
        for name in empty:
            if confidences[name] is None:
                raise ParameterError(
                    f"confidences: {name!r} has an empty mask; pass the confidence of that mask, not None."
                )

    def save(self, path: str | Path) -> None:
        """Write the policies as one JSON file, and their references, if they have any, beside it.

        Parameters
        ----------
        path
            Path of the policies; the references of ``policy.json`` are in ``policy.reference.json``.
        """
        references = {
            name: (policy.digest, policy.reference)
            for name, policy in self.policies.items()
            if policy.reference is not None
        }
        if len(references) < len(self.policies):
            super().save(path)
        else:
            write_with_references(Path(path), self.to_dict(), references)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read policies, and the references beside them if there are any.

        Parameters
        ----------
        path
            Path of the policies.
        """
        saved = super().load(path)
        digests = {name: policy.digest for name, policy in saved.policies.items()}
        references = read_references(Path(path), digests)
        policies = {
            name: replace(policy, reference=references.get(name)) for name, policy in saved.policies.items()
        }
        return replace(saved, policies=policies)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as they are saved; no id is readable."""
        values = {
            "policies": {name: policy.to_dict() for name, policy in self.policies.items()},
            "required": list(self.required),
        }
        return {"format": _FORMAT, **values, "checksum": checksum(values)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "policies") -> Self:
        """Rebuild policies from plain values; reject what is corrupt, incomplete or of another kind."""
        rest = check_saved_policy(saved, _FORMAT, ["policies", "required"], source)
        with naming_errors(source, error=PolicyError):
            policies = {
                name: Policy.from_dict(policy, source=f"{source}: {name}")
                for name, policy in rest["policies"].items()
            }
            return cls(policies, rest["required"])


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{what}: expected the name of a structure as text, got {name!r}.")


def _check_known(names: Iterable[str], structures: Iterable[str], what: str) -> None:
    known = list(structures)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownNameError(
            f"{what}: no structure {unknown[0]!r}; there are {', '.join(map(str, known))}."
        )
