"""Confidences and losses of many cases: curves, intervals, certified thresholds, drift. No images."""

from __future__ import annotations

from segtrust.selective.audit import AuditBound, AuditPlan, AuditState, audit_plan, draw_audit
from segtrust.selective.bootstrap import (
    Bootstrap,
    BootstrapInterval,
    RiskBand,
    bootstrap_interval,
    coverage_at_risk,
    resampled_interval,
    risk_band,
)
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certify import (
    CalibrationEvidence,
    CandidateTest,
    Certificate,
    SelectedThreshold,
    certify,
    certify_best,
    certify_each,
    certify_planned,
    certify_threshold,
    find_threshold,
)
from segtrust.selective.compare import Comparison, compare_estimators, compare_rankings
from segtrust.selective.conformal import ConformalDice, DiceIntervals
from segtrust.selective.coverage import CoverageThreshold, threshold_for_coverage
from segtrust.selective.curve import (
    CONVENTIONS,
    OperatingPoint,
    RiskCoverageCurve,
    check_target_risk,
    risk_coverage_curve,
    trace_curve,
)
from segtrust.selective.drift import DriftTest, ExchangeabilityMartingale, MartingaleState, drift_test
from segtrust.selective.estimate import MeanDice, MeanDiceEstimator, Recalibration
from segtrust.selective.failure import FailureDetection, detect_failures, failure_detection
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.looks import Look, LookLog, case_keys, describe_look
from segtrust.selective.plan import CalibrationPlan, plan_calibration
from segtrust.selective.pvalues import TEST_TITLES
from segtrust.selective.seen import HashedIds, checksum_names, ids_as_text, reject_seen, used_ids_as_text
from segtrust.selective.targets import (
    Observed,
    Procedure,
    Target,
    check_targets,
    describe_confidence,
    describe_coverage,
    describe_limits,
)
from segtrust.selective.vectors import check_same_index, check_vector, without_tensors
from segtrust.selective.volume import ConformalVolume, VolumeIntervals

__all__ = [
    "CONVENTIONS",
    "TEST_TITLES",
    "AuditBound",
    "AuditPlan",
    "AuditState",
    "Bootstrap",
    "BootstrapInterval",
    "CalibrationCases",
    "CalibrationEvidence",
    "CalibrationPlan",
    "CandidateTest",
    "Certificate",
    "Comparison",
    "ConformalDice",
    "ConformalVolume",
    "CoverageThreshold",
    "DiceIntervals",
    "DriftTest",
    "ExchangeabilityMartingale",
    "FailureDetection",
    "HashedIds",
    "Look",
    "LookLog",
    "MartingaleState",
    "MeanDice",
    "MeanDiceEstimator",
    "Observed",
    "OperatingPoint",
    "Procedure",
    "Recalibration",
    "RiskBand",
    "RiskCoverageCurve",
    "SelectedThreshold",
    "Target",
    "VolumeIntervals",
    "audit_plan",
    "bootstrap_interval",
    "case_keys",
    "certify",
    "certify_best",
    "certify_each",
    "certify_planned",
    "certify_threshold",
    "check_same_index",
    "check_target_risk",
    "check_targets",
    "check_vector",
    "checksum_names",
    "chernoff_interval",
    "clopper_pearson",
    "compare_estimators",
    "compare_rankings",
    "coverage_at_risk",
    "describe_confidence",
    "describe_coverage",
    "describe_limits",
    "describe_look",
    "detect_failures",
    "draw_audit",
    "drift_test",
    "failure_detection",
    "find_threshold",
    "ids_as_text",
    "plan_calibration",
    "reject_seen",
    "resampled_interval",
    "risk_band",
    "risk_coverage_curve",
    "threshold_for_coverage",
    "trace_curve",
    "used_ids_as_text",
    "without_tensors",
]
