"""What policies, or a threshold that somebody tries, decide on all rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.engine import Policies
from segtrust.policy import Decision, Policy
from segtrust.review.rows import Rows

__all__ = ["Decisions", "decide", "policy_for"]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Of each row.

    Attributes
    ----------
    names
        ``"accept"``, ``"defer"``, ``"no finding"``, or ``""`` where nothing decides.
    margins
        Confidence above the threshold; NaN where there is none.
    """

    names: Any
    margins: Any


def policy_for(policies: Policies, structure: str) -> Policy | None:
    """Give the policy of a structure, or the one of all."""
    return policies.get(structure, policies.get(""))


def decide(rows: Rows, policies: Policies, threshold: float | None = None) -> Decisions:
    """Decide on all rows: by a threshold where one is given, else by the policies, else as the table says.

    A row without a confidence is deferred, and so is one of a structure that no policy is for, as in triage.
    """
    if threshold is None and not policies:
        return Decisions(*rows.decided)
    agrees, limits = np.zeros(rows.size, bool), np.full(rows.size, np.nan)
    for structure in rows.known("structure"):
        policy, of_it = policy_for(policies, structure), rows.texts("structure") == structure
        agrees[of_it] = empty_masks_agree(rows, policy)
        if threshold is not None or policy is not None:
            limits[of_it] = threshold if threshold is not None else policy.threshold if policy else np.nan
    return _decided(rows, limits, agrees)


def empty_masks_agree(rows: Rows, policy: Policy | None) -> bool:
    """Whether an empty mask may be right, so that one that is trusted is no finding."""
    told = rows.table.about.get("empty") if policy is None else policy.scoring.empty
    return bool(told == "agree")


def _decided(rows: Rows, limits: Any, agrees: Any) -> Decisions:
    margins = rows.confidence - limits
    trusted = rows.confidence >= limits  # not where one of them is NaN
    names = np.full(rows.size, str(Decision.DEFER), object)
    names[trusted & ~rows.is_empty] = str(Decision.ACCEPT)
    names[trusted & agrees & rows.is_empty] = str(Decision.NO_FINDING)
    return Decisions(names, margins)
