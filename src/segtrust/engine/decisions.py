"""Decisions of a policy on the rows of a score table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.engine.outcomes import Row
from segtrust.errors import PolicyError
from segtrust.io.rows import changed
from segtrust.policy import Policy, StructurePolicies

__all__ = [
    "DECIDED",
    "Policies",
    "decide_rows",
    "load_policies",
    "parameters_of",
    "refuse_other_structures",
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
