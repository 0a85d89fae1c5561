"""Policies: an estimator, a threshold and a guarantee in one file, and the decisions they make."""

from __future__ import annotations

from segtrust.policy.policy import OWN_VERSIONS, Decision, Policy, Standing, rank_empty_last
from segtrust.policy.scoring import Scoring
from segtrust.policy.structures import StructurePolicies, certify_structures

__all__ = [
    "OWN_VERSIONS",
    "Decision",
    "Policy",
    "Scoring",
    "Standing",
    "StructurePolicies",
    "certify_structures",
    "rank_empty_last",
]
