"""segtrust: know which segmentations to trust.

From the probability map of any segmentation model: one confidence per image, exactly and at memory speed.
The types of the public names are in ``__init__.pyi``; a test keeps both files in step.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any
from warnings import warn

from segtrust import errors as errors

__version__ = "0.1.0"

_HOMES = {
    "segtrust.calibration": (
        "MulticlassTemperatureScaling PlattScaling Reliability TemperatureScaling reliability"
    ),
    "segtrust.confidence": (
        "Assessment AverageClassProbability AverageMaxProbability AverageNegativeEntropy BatchClassScores "
        "ClassScores ConfidenceEstimator DiceOptimal FeatureAggregation IdealDice LearningEstimator "
        "MedianMinMax PairwiseDice PatchLevel SoftDice SoftDiceFeatureAggregation ThresholdLevel "
        "TunedPatchLevel TunedSoftDice assess average_class_probability average_max_probability "
        "average_negative_entropy dice_bounds dice_optimal_mask entropy_quantile estimators "
        "expected_f_beta expected_iou expected_tversky full_posterior_dice get_estimator "
        "ideal_dice_confidence median_min_max_confidence "
        "patch_level_confidence score score_batch score_classes soft_dice_confidence "
        "threshold_level_confidence warm_up"
    ),
    "segtrust.engine": "ScoreTable Triage",
    "segtrust.ensembles": "Fusion fuse pairwise_dice",
    "segtrust.io": "Dataset find_cases",
    "segtrust.kernels": "DiceBounds worst_relative_error",
    "segtrust.maps": "Case EmptyPolicy Prediction volume_ml",
    "segtrust.policy": (
        "Decision MapDecision Policy PolicyStatus Scoring StructurePolicies certify_structures"
    ),
    "segtrust.risks": "RISKS Risk dice f_beta f_beta_risk hamming_loss iou soft_dice_loss",
    "segtrust.selective": (
        "AuditBound AuditPlan AuditState audit_plan draw_audit "
        "CalibrationCases CalibrationPlan Certificate LookLog Procedure Target certify "
        "certify_best certify_each certify_threshold plan_calibration ConformalDice ConformalVolume "
        "CoverageThreshold DiceIntervals DriftTest ExchangeabilityMartingale MartingaleState MeanDice "
        "MeanDiceEstimator Recalibration "
        "drift_test threshold_for_coverage Bootstrap BootstrapInterval Comparison FailureDetection "
        "OperatingPoint RiskCoverageCurve bootstrap_interval compare_estimators coverage_at_risk "
        "failure_detection reject_seen risk_coverage_curve VolumeIntervals"
    ),
    "segtrust.workflows": "Evaluation calibrate evaluate score_cases triage write_report",
    "segtrust._compile": "use_threads",
    "segtrust._storage": "load",
}
_RENAMED = {
    "Evidence": "segtrust.selective.CalibrationEvidence",
    "HashedIds": "segtrust.selective.HashedIds",
    "Need": "segtrust.selective.CalibrationPlan",
    "Operation": "segtrust.selective.SelectedThreshold",
    "Standing": "segtrust.policy.PolicyStatus",
    "Step": "segtrust.selective.CandidateTest",
    "refuse_seen": "segtrust.selective.reject_seen",
}
"""Names of release 0.1 and where their new names are; each use of an old one warns."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_SUBMODULES = {
    *("calibration", "confidence", "demo", "engine", "ensembles", "evaluation", "features", "integrations"),
    *("io", "kernels", "maps", "paper", "plugins", "policy", "report", "review", "risks", "selective"),
    "testing",
}

__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name or a submodule on first use, so that ``import segtrust`` costs next to nothing."""
    if name in _RENAMED:
        module, _, new = _RENAMED[name].rpartition(".")
        verb = "moved" if new == name else "was renamed"
        warn(f"segtrust.{name} {verb}: use {_RENAMED[name]}.", DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), new)
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"segtrust.{name}")
    else:
        message = f"module 'segtrust' has no attribute {name!r}"
        if name.startswith("__"):  # asked for by Python itself
            raise AttributeError(message)
        from segtrust._arguments import suggestion

        close = suggestion(name, __dir__())
        raise AttributeError(f"{message}.{close}" if close else message)
    globals()[name] = value  # found at once from now on
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "errors", *_SUBMODULES])
