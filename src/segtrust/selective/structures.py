"""Several structures in one image: a policy each, and one decision for the case."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from segtrust.errors import ParameterError, UnknownNameError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certificate import Certificate
from segtrust.selective.certify import certify
from segtrust.selective.policy import Decision, Policy
from segtrust.selective.procedure import Procedure
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_fraction

__all__ = ["StructurePolicies", "certify_structures"]


def certify_structures(
    cases: Mapping[str, CalibrationCases],
    targets: Sequence[Target],
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
    targets, procedure, used_ids
        As for `certify`.
    delta
        Of all structures together; each of m is certified at δ/m.

    Examples
    --------
    >>> import numpy as np
    >>> c = np.linspace(0, 1, 400)
    >>> liver = CalibrationCases(c, (1 - c) / 2, reference=c[::8])
    >>> found = certify_structures({"liver": liver, "tumour": liver}, [Target(0.2)])
    >>> found["tumour"].delta, found["tumour"].certified
    (0.025, True)
    """
    if not cases:
        raise ParameterError("cases: expected at least one structure, got none.")
    level = check_fraction(delta, "delta", open_ends=True) / len(cases)
    return {
        name: certify(each, targets, delta=level, procedure=procedure, used_ids=used_ids)
        for name, each in cases.items()
    }


@dataclass(frozen=True)
class StructurePolicies:
    """Policies by structure, and which structures must be trusted for a case to be accepted.

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
        """Check the names."""
        if not self.policies:
            raise ParameterError("policies: expected at least one structure, got none.")
        required = tuple(self.required) or tuple(self.policies)
        unknown = [name for name in required if name not in self.policies]
        if unknown:
            known = ", ".join(self.policies)
            raise UnknownNameError(f"required: no policy for {unknown[0]!r}; there are some for {known}.")
        object.__setattr__(self, "required", required)

    @property
    def delta(self) -> float:
        """Probability that the promise of any structure is broken."""
        return min(1.0, sum(policy.delta for policy in self.policies.values()))

    def decide(self, confidences: Mapping[str, float | None]) -> tuple[Decision, dict[str, Decision]]:
        """Decide on a case: deferred if any required structure is.

        Parameters
        ----------
        confidences
            By structure; ``None`` for one that is absent from the image: no finding where empty masks may be
            right (``"agree"``), else deferred.

        Returns
        -------
        tuple
            The decision on the case, and that on each structure.
        """
        missing = [name for name in self.required if name not in confidences]
        if missing:
            raise ParameterError(
                f"confidences: {missing[0]!r} is required; give its confidence, or None where it is absent."
            )
        each = {name: self._decide_one(name, confidences.get(name)) for name in self.policies}
        required = [each[name] for name in self.required]
        if Decision.DEFER in required:
            return Decision.DEFER, each
        return (Decision.ACCEPT if Decision.ACCEPT in required else Decision.NO_FINDING), each

    def _decide_one(self, name: str, confidence: float | None) -> Decision:
        policy = self.policies[name]
        if confidence is not None:
            return policy.decide(confidence)
        return Decision.NO_FINDING if policy.scoring.empty == "agree" else Decision.DEFER
