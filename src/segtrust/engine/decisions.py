"""Decisions of a policy on the rows of a score table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from segtrust._files import naming_errors, read_json
from segtrust.calibration import Scaling
from segtrust.confidence import ConfidenceEstimator, get_estimator, packages_of
from segtrust.engine.outcomes import Row
from segtrust.errors import PolicyError, UnknownNameError
from segtrust.io.rows import changed
from segtrust.plugins import warn_once
from segtrust.policy import OWN_VERSIONS, Policy, Scoring, StructurePolicies

__all__ = [
    "DECIDED",
    "Policies",
    "decide_rows",
    "estimator_of",
    "load_policies",
    "parameters_of",
    "policy_estimator",
    "refuse_other_structures",
    "scaling_of",
]

DECIDED = ("decision", "margin", "policy")
"""Columns that `decide_rows` adds."""

Policies = Mapping[str, Policy]
"""By structure; one for all of them has an empty name."""


def load_policies(path: Path) -> Policies:
    """Read a policy, or one of several structures."""
    if not path.is_file():
        raise PolicyError(f"{path}: expected a policy, got no such file.")
    saved = read_json(path, error=PolicyError)
    several = isinstance(saved, Mapping) and "policies" in saved
    if several:
        return StructurePolicies.from_dict(saved, source=str(path)).policies
    policy = Policy.from_dict(saved, source=str(path))
    return {policy.structure: policy}


def estimator_of(scoring: Scoring) -> ConfidenceEstimator:
    """Make the estimator that a policy was calibrated with.

    Examples
    --------
    >>> estimator_of(Scoring("pla", {"size": 20}))
    PatchLevel(size=20)
    """
    kind = type(get_estimator(scoring.estimator))
    names: list[str] = [each.name for each in fields(kind)] if is_dataclass(kind) else []
    empty = {"empty": scoring.empty} if "empty" in names else {}
    with naming_errors(f"policy: {scoring.estimator}", error=PolicyError):
        return kind(**scoring.parameters, **empty)


def policy_estimator(policy: Policy) -> ConfidenceEstimator:
    """Make the estimator that a policy was calibrated with, or say which package it is from.

    Another version of that package than the policy was made with may give other confidences, which is told.
    """
    name = policy.scoring.estimator
    made_with = {key: value for key, value in policy.versions.items() if key not in OWN_VERSIONS}
    told = ", ".join(f"{package} {version}" for package, version in made_with.items())
    try:
        found = estimator_of(policy.scoring)
    except UnknownNameError as error:
        if not made_with:
            raise
        raise PolicyError(
            f"policy: its estimator {name!r} is from {told}, which is not installed here. Install it: pip "
            f"install {' '.join(f'{package}=={version}' for package, version in made_with.items())}."
        ) from error
    here = packages_of(name)
    if made_with and here != made_with:
        warn_once(f"policy: its estimator {name!r} was that of {told}; here it is that of {_listed(here)}.")
    return found


def _listed(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in packages.items()) or "segtrust itself"


def scaling_of(scoring: Scoring) -> Scaling | None:
    """Make the recalibration of the maps that a policy was calibrated with."""
    return None if scoring.recalibration is None else Scaling.from_dict(scoring.recalibration)


def decide_rows(policies: Policies) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Give the function that adds to each row what its policy decides, and by what margin.

    The decision is accept, defer or no finding; the margin the confidence above the threshold, comparable for
    structures with a threshold each. A structure that no policy is for gets no decision; if there is no other
    the policies are not for these cases, which is an error.
    """

    def decided(row: Row) -> Row:
        policy = policies.get(row["structure"], policies.get(""))
        if policy is None:
            return row | {"decision": "", "margin": None, "policy": ""}
        confidence = row[policy.scoring.estimator]
        decision = policy.decide(confidence, empty_mask=row["k"] == 0)
        margin = confidence - policy.threshold
        return row | {"decision": str(decision), "margin": margin, "policy": policy.fingerprint}

    def all_decided(rows: Sequence[Row]) -> Sequence[Row]:
        refuse_other_structures(policies, list(dict.fromkeys(row["structure"] for row in rows)))
        return changed(rows, decided)

    return all_decided


def refuse_other_structures(policies: Policies, structures: Sequence[str]) -> None:
    """Refuse structures that no policy is for."""
    if "" in policies or not structures or any(name in policies for name in structures):
        return
    raise PolicyError(
        f"structure: expected one that the policy is for ({', '.join(policies)}), got "
        f"{', '.join(dict.fromkeys(structures))}. Choose by --region."
    )


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Give what an estimator was set to or has learned, without the ids of cases."""
    return {name: value for name, value in estimator.parameters.items() if name != "used_ids"}
