"""Selective prediction from vectors with one value per case: curves, intervals, certified thresholds."""

from __future__ import annotations

from segtrust.selective.bootstrap import (
    Bootstrap,
    BootstrapInterval,
    RiskBand,
    Statistic,
    bootstrap_interval,
    coverage_at_risk,
    risk_band,
)
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.cells import ConformalCell, DiceIntervals
from segtrust.selective.certificate import Certificate, Evidence, Operation, Step
from segtrust.selective.certify import certify, certify_each, certify_threshold
from segtrust.selective.compare import Comparison, compare_estimators
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.coverage import CoverageThreshold, threshold_for_coverage
from segtrust.selective.curve import (
    CONVENTIONS,
    OperatingPoint,
    RiskCoverageCurve,
    check_target,
    risk_coverage_curve,
)
from segtrust.selective.estimate import MeanDice, MeanDiceEstimator
from segtrust.selective.failure import FailureDetection, failure_detection
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.martingale import ExchangeabilityMartingale, MartingaleState
from segtrust.selective.plan import Need, plan_calibration
from segtrust.selective.policy import Decision, Policy, Standing
from segtrust.selective.procedure import Procedure
from segtrust.selective.recalibration import Recalibration
from segtrust.selective.scoring import Scoring
from segtrust.selective.seen import HashedIds, refuse_seen
from segtrust.selective.structures import StructurePolicies, certify_structures
from segtrust.selective.targets import Target
from segtrust.selective.two_sample import DriftTest, drift_test

__all__ = [
    "CONVENTIONS",
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
    "RiskBand",
    "RiskCoverageCurve",
    "Scoring",
    "Standing",
    "Statistic",
    "Step",
    "StructurePolicies",
    "Target",
    "bootstrap_interval",
    "certify",
    "certify_each",
    "certify_structures",
    "certify_threshold",
    "check_target",
    "chernoff_interval",
    "clopper_pearson",
    "compare_estimators",
    "coverage_at_risk",
    "drift_test",
    "failure_detection",
    "plan_calibration",
    "refuse_seen",
    "risk_band",
    "risk_coverage_curve",
    "threshold_for_coverage",
]
