"""Who decides, how far that is promised, and whether the cases still look like those it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.engine.calibration import check_reading, other_masks, read_reference, reference_beside
from segtrust.engine.decisions import Policies, decide_rows, load_policies
from segtrust.engine.triage import check_drift
from segtrust.errors import ParameterError
from segtrust.io.tables import Table
from segtrust.selective.policy import Policy
from segtrust.selective.targets import Target
from segtrust.selective.two_sample import DriftTest

__all__ = ["Drift", "decided_by", "drift_of", "loss_of_row", "observed_risks", "policies_for"]

Row = dict[str, Any]
Drift = Mapping[str, Mapping[str, DriftTest]]
"""Tests by set, and in it by structure."""


def policies_for(path: Path | None, predictor: str, table: Table) -> Policies:
    """Read policies as they stand for the cases of a table; none where no file is given.

    They are certified only where maps are of the predictor, and read and cut as those they were made with;
    the same rules as for new cases.
    """
    if path is None:
        return {}
    found = {name: policy.for_predictor(predictor) for name, policy in load_policies(path).items()}
    needed = {policy.scoring.estimator for policy in found.values()} - set(table.columns)
    if needed:
        raise ParameterError(
            f"{table.source}: expected the confidence that the policy decides by ({sorted(needed)[0]}), got "
            "none. Score the cases with --policy."
        )
    reference = reference_beside(path)
    if table.about.get("read"):
        check_reading(reference, table.about["read"])
    others = other_masks(reference, table.rows)
    if others == set():
        return found
    why = "how the cases it was made with were read is not known"
    if others:
        why = f"made with masks of another kind than used ({', '.join(sorted(others))})"
    return {name: policy.estimated(why) for name, policy in found.items()}


def decided_by(policies: Policies, rows: Sequence[Row]) -> Sequence[Row]:
    """Give rows with the decisions of policies; as they are where there is none."""
    return decide_rows(policies)(rows) if policies else rows


def loss_of_row(row: Mapping[str, Any]) -> float | None:
    """Give the loss of a row, or one minus its Dice; ``None`` where it has neither.

    Examples
    --------
    >>> loss_of_row({"dice": 0.75}), loss_of_row({"case": "without a truth"})
    (0.25, None)
    """
    if row.get("loss") is not None:
        return float(row["loss"])
    return None if row.get("dice") is None else 1.0 - float(row["dice"])


def observed_risks(accepted: Sequence[Row], policy: Policy) -> list[tuple[Target, float]]:
    """Give what accepted cases have of each quantity that a policy limits; nothing without truths."""
    losses = np.array([loss for row in accepted if (loss := loss_of_row(row)) is not None])
    return [(each, float(np.mean(each.losses(losses)))) for each in policy.targets] if losses.size else []


def drift_of(path: Path | None, policies: Policies, rows: Sequence[Row]) -> Drift:
    """Compare the confidences of each set with those that policies were made with, where these are known."""
    if path is None:
        return {}
    reference = read_reference(reference_beside(path), policies)
    sets = dict.fromkeys(row["set"] for row in rows)
    found = {
        name: check_drift([row for row in rows if row["set"] == name], policies, reference) for name in sets
    }
    return {name: tests for name, tests in found.items() if tests}
