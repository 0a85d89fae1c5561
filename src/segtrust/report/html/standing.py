"""Who decides, how far that is promised, and whether the cases still look like those it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.engine import (
    Policies,
    check_drift,
    check_policies,
    decide_rows,
    is_of_calibration,
    load_policies,
    loss_of_row,
    loss_of_target,
    policies_for_rows,
)
from segtrust.errors import ParameterError
from segtrust.io import Table
from segtrust.policy import Policy, StructurePolicies
from segtrust.selective import DriftTest, Observed

__all__ = [
    "Comparison",
    "Comparisons",
    "compared_with_calibration",
    "decided_by",
    "observed_risks",
    "policies_for",
]

Row = dict[str, Any]
_ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """The cases of a set against those that a policy was made with.

    Attributes
    ----------
    cases
        How many there are.
    others
        Those that the policy was not made with, as far as is known.
    is_known
        Whether it knows its cases.
    has_reference
        Whether the confidences of the calibration are known.
    test
        Whether the others look like those; ``None`` where too few are left, or nothing is known of those.
    """

    cases: int
    others: Sequence[Row]
    is_known: bool
    has_reference: bool
    test: DriftTest | None

    @property
    def new(self) -> int:
        """How many the policy was not made with, as far as is known."""
        return len(self.others)

    @property
    def seen(self) -> int:
        """How many it was made with, as far as is known."""
        return self.cases - self.new

    @property
    def alarm(self) -> bool:
        """Whether the new cases differ."""
        return self.test is not None and self.test.alarm


Comparisons = Mapping[str, Mapping[str, Comparison]]
"""By set, and in it by structure of the policy."""


def policies_for(
    policy: str | Path | Policy | StructurePolicies | None, predictor: str, table: Table
) -> Policies:
    """Read policies as they stand for the cases of a table; none where no file is given.

    They are certified only where maps are of the predictor, and read and cut as those they were made with;
    the same rules as for new cases.
    """
    if policy is None:
        return {}
    found = {name: each.for_predictor(predictor) for name, each in load_policies(policy).items()}
    needed = {each.scoring.estimator for each in found.values()} - set(table.columns)
    if needed:
        raise ParameterError(
            f"{table.source}: expected the confidence that the policy decides by ({sorted(needed)[0]}), got "
            "none. Score the cases with --policy."
        )
    check_policies(found, table)
    return policies_for_rows(found, table.rows)


def decided_by(policies: Policies, rows: Sequence[Row]) -> Sequence[Row]:
    """Give rows with the decisions of policies; as they are where there is none."""
    return decide_rows(policies)(rows) if policies else rows


def observed_risks(accepted: Sequence[Row], policy: Policy, loss: str | None) -> list[Observed]:
    """Return the observed risk of accepted cases for each limit of a policy; nothing without ground truth.

    Parameters
    ----------
    accepted
        Rows of the accepted cases.
    policy
        The policy; each of its limits is compared with losses of its own kind.
    loss
        What the losses of the rows are; ``None`` if unknown.
    """
    found = []
    for target in policy.targets:
        column = loss_of_target(target, loss)
        values = [] if column is None else [loss_of_row(row, column) for row in accepted]
        losses = [value for value in values if value is not None]
        if losses:
            found.append(target.observed(np.array(losses)))
    return found


def compared_with_calibration(policies: Policies, rows: Sequence[Row]) -> Comparisons:
    """Compare the cases of each set with those that policies were made with; these are left out of a test."""
    by_set: dict[str, list[Row]] = {}
    for row in rows:
        by_set.setdefault(row["set"], []).append(row)
    found = {
        name: {
            structure: _compared(chosen, policy, _ALPHA / len(policies))
            for structure, policy in policies.items()
            if (chosen := [row for row in of_set if structure in ("", row["structure"])])
        }
        for name, of_set in by_set.items()
    }
    return {name: each for name, each in found.items() if each}


def _compared(rows: Sequence[Row], policy: Policy, alpha: float) -> Comparison:
    reference = () if policy.reference is None else policy.reference.confidences
    new = [row for row, seen in zip(rows, is_of_calibration(rows, policy), strict=True) if not seen]
    name = policy.structure
    tests = check_drift(new, {name: policy}, alpha=alpha)
    return Comparison(len(rows), new, bool(policy.used_ids), bool(len(reference)), tests.get(name))
