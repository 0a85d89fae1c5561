"""Confidences and losses of many cases: curves, intervals, certified thresholds, drift. No images."""

from __future__ import annotations

from segtrust.selective.bootstrap import (
    Bootstrap,
    BootstrapInterval,
    RiskBand,
    bootstrap_interval,
    coverage_at_risk,
    risk_band,
)
from segtrust.selective.certify import (
    CalibrationCases,
    Certificate,
    Evidence,
    Operation,
    Step,
    certify,
    certify_each,
    certify_threshold,
    walk_candidates,
)
from segtrust.selective.compare import Comparison, compare_estimators
from segtrust.selective.conformal import ConformalDice, DiceIntervals
from segtrust.selective.coverage import CoverageThreshold, threshold_for_coverage
from segtrust.selective.curve import (
    CONVENTIONS,
    OperatingPoint,
    RiskCoverageCurve,
    check_target_risk,
    risk_coverage_curve,
)
from segtrust.selective.drift import DriftTest, ExchangeabilityMartingale, MartingaleState, drift_test
from segtrust.selective.estimate import MeanDice, MeanDiceEstimator, Recalibration
from segtrust.selective.failure import FailureDetection, failure_detection
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.plan import Need, plan_calibration
from segtrust.selective.pvalues import TEST_TITLES
from segtrust.selective.seen import HashedIds, ids_as_text, refuse_seen, used_ids_as_text
from segtrust.selective.targets import (
    Observed,
    Procedure,
    Target,
    check_targets,
    describe_confidence,
    describe_coverage,
    describe_limits,
)

__all__ = [
    "CONVENTIONS",
    "TEST_TITLES",
    "Bootstrap",
    "BootstrapInterval",
    "CalibrationCases",
    "Certificate",
    "Comparison",
    "ConformalDice",
    "CoverageThreshold",
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
    "Observed",
    "OperatingPoint",
    "Operation",
    "Procedure",
    "Recalibration",
    "RiskBand",
    "RiskCoverageCurve",
    "Step",
    "Target",
    "bootstrap_interval",
    "certify",
    "certify_each",
    "certify_threshold",
    "check_target_risk",
    "check_targets",
    "chernoff_interval",
    "clopper_pearson",
    "compare_estimators",
    "coverage_at_risk",
    "describe_confidence",
    "describe_coverage",
    "describe_limits",
    "drift_test",
    "failure_detection",
    "ids_as_text",
    "plan_calibration",
    "refuse_seen",
    "risk_band",
    "risk_coverage_curve",
    "threshold_for_coverage",
    "used_ids_as_text",
    "walk_candidates",
]
