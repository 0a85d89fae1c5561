"""Confidences and losses of many cases: curves, areas, intervals, certified thresholds. Vectors only."""

from __future__ import annotations

from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certificate import Certificate, Operation, Step
from segtrust.selective.certify import certify, certify_each, certify_threshold
from segtrust.selective.plan import Need, plan_calibration
from segtrust.selective.policy import Decision, Policy, Scoring, Standing
from segtrust.selective.procedure import Procedure
from segtrust.selective.structures import StructurePolicies, certify_structures
from segtrust.selective.targets import Target

__all__ = [
    "CalibrationCases",
    "Certificate",
    "Decision",
    "Need",
    "Operation",
    "Policy",
    "Procedure",
    "Scoring",
    "Standing",
    "Step",
    "StructurePolicies",
    "Target",
    "certify",
    "certify_each",
    "certify_structures",
    "certify_threshold",
    "plan_calibration",
]
