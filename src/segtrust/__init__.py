"""segtrust: know which segmentations to trust.

From the probability map of any segmentation model: one confidence per image, exactly and at memory speed.
The types of the public names are in ``__init__.pyi``; a test keeps both files in step.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from segtrust import errors as errors

__version__ = "0.1.0"

_HOMES = {
    "segtrust.calibration": "PlattScaling Reliability TemperatureScaling reliability",
    "segtrust.confidence": (
        "Assessment AverageClassProbability AverageMaxProbability AverageNegativeEntropy ClassScores "
        "ConfidenceEstimator DiceOptimal FeatureAggregation IdealDice LearningEstimator MedianMinMax "
        "PairwiseDice PatchLevel SoftDice SoftDiceFeatureAggregation ThresholdLevel TunedPatchLevel "
        "TunedSoftDice assess average_class_probability average_max_probability average_negative_entropy "
        "dice_bounds dice_optimal_mask entropy_quantile expected_f_beta expected_iou expected_tversky "
        "full_posterior_dice get_estimator ideal_dice_confidence median_min_max_confidence "
        "patch_level_confidence score score_batch score_classes soft_dice_confidence "
        "threshold_level_confidence"
    ),
    "segtrust.ensembles": "Fusion fuse pairwise_dice",
    "segtrust.kernels": "DiceBounds worst_relative_error",
    "segtrust.maps": "Case EmptyPolicy Prediction",
    "segtrust.policy": "Decision Policy Scoring Standing StructurePolicies certify_structures",
    "segtrust.risks": "RISKS Risk dice f_beta iou",
    "segtrust.selective": (
        "CalibrationCases Certificate Evidence HashedIds Need Operation Procedure Step Target certify "
        "certify_each certify_threshold plan_calibration ConformalDice CoverageThreshold DiceIntervals "
        "DriftTest ExchangeabilityMartingale MartingaleState MeanDice MeanDiceEstimator Recalibration "
        "drift_test threshold_for_coverage Bootstrap BootstrapInterval Comparison FailureDetection "
        "OperatingPoint RiskCoverageCurve bootstrap_interval compare_estimators coverage_at_risk "
        "failure_detection refuse_seen risk_coverage_curve"
    ),
    "segtrust._compile": "use_threads",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import segtrust`` costs next to nothing."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'segtrust' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)  # found at once from now on
    return value


def __dir__() -> list[str]:
    return __all__
