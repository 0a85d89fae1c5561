"""Policies: an estimator, a threshold and a guarantee in one file, and the decisions they make."""

from __future__ import annotations

from segtrust.policy.policy import OWN_VERSIONS, Decision, MapDecision, Policy, PolicyStatus, rank_empty_last
from segtrust.policy.reference import Reference, reference_path
from segtrust.policy.scoring import Scoring, prepare_prediction
from segtrust.policy.structures import StructurePolicies, certify_structures

__all__ = [
    "OWN_VERSIONS",
    "Decision",
    "MapDecision",
    "Policy",
    "PolicyStatus",
    "Reference",
    "Scoring",
    "StructurePolicies",
    "certify_structures",
    "prepare_prediction",
    "rank_empty_last",
    "reference_path",
]
