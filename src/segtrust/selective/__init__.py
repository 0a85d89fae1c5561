"""Confidences and losses of many cases: curves, areas, intervals, certified thresholds. Vectors only."""

from __future__ import annotations

from segtrust.selective.cases import CalibrationCases
from segtrust.selective.cells import ConformalCell, DiceIntervals
from segtrust.selective.certificate import Certificate, Evidence, Operation, Step
from segtrust.selective.certify import certify, certify_each, certify_threshold
from segtrust.selective.compare import Comparison, compare_estimators
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.coverage import CoverageThreshold, threshold_for_coverage
from segtrust.selective.curve import OperatingPoint, RiskCoverageCurve, risk_coverage_curve
from segtrust.selective.estimate import MeanDice, MeanDiceEstimator
from segtrust.selective.failure import FailureDetection, failure_detection
from segtrust.selective.martingale import ExchangeabilityMartingale, MartingaleState
from segtrust.selective.plan import Need, plan_calibration
from segtrust.selective.policy import Decision, Policy, Standing
from segtrust.selective.procedure import Procedure
from segtrust.selective.recalibration import Recalibration
from segtrust.selective.resample import Bootstrap, BootstrapInterval, bootstrap_interval
from segtrust.selective.scoring import Scoring
from segtrust.selective.seen import HashedIds, refuse_seen
from segtrust.selective.statistic import coverage_at_risk
from segtrust.selective.structures import StructurePolicies, certify_structures
from segtrust.selective.targets import Target
from segtrust.selective.two_sample import DriftTest, drift_test

__all__ = [
    "Bootstrap",
    "BootstrapInterval",
    "CalibrationCases",
    "Certificate",
    "Comparison",
    "ConformalCell",
    "ConformalDice",
    "CoverageThreshold",
    "Decision",
    "DiceIntervals",
    "DriftTest",
    "Evidence",
    "ExchangeabilityMartingale",
    "FailureDetection",
    "HashedIds",
    "MartingaleState",
    "MeanDice",
    "MeanDiceEstimator",
    "Need",
    "OperatingPoint",
    "Operation",
    "Policy",
    "Procedure",
    "Recalibration",
    "RiskCoverageCurve",
    "Scoring",
    "Standing",
    "Step",
    "StructurePolicies",
    "Target",
    "bootstrap_interval",
    "certify",
    "certify_each",
    "certify_structures",
    "certify_threshold",
    "compare_estimators",
    "coverage_at_risk",
    "drift_test",
    "failure_detection",
    "plan_calibration",
    "refuse_seen",
    "risk_coverage_curve",
    "threshold_for_coverage",
]
