"""Confidences and losses of many cases: curves, areas, intervals, certified thresholds. Vectors only."""

from segtrust.selective.compare import Comparison, compare_estimators
from segtrust.selective.curve import OperatingPoint, RiskCoverageCurve, risk_coverage_curve
from segtrust.selective.failure import FailureDetection, failure_detection
from segtrust.selective.resample import Bootstrap, BootstrapInterval, bootstrap_interval
from segtrust.selective.statistic import coverage_at_risk

__all__ = [
    "Bootstrap",
    "BootstrapInterval",
    "Comparison",
    "FailureDetection",
    "OperatingPoint",
    "RiskCoverageCurve",
    "bootstrap_interval",
    "compare_estimators",
    "coverage_at_risk",
    "failure_detection",
    "risk_coverage_curve",
]
