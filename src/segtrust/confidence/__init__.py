"""Estimators of confidence: thin over the kernels, one idea a file."""

from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.classes import ClassScores, score_classes
from segtrust.confidence.decoding import DiceOptimal, dice_optimal_mask
from segtrust.confidence.entropy import (
    AverageNegativeEntropy,
    MedianMinMax,
    PatchLevel,
    average_negative_entropy,
    median_min_max_confidence,
    patch_level_confidence,
)
from segtrust.confidence.feature_aggregation import FeatureAggregation, SoftDiceFeatureAggregation
from segtrust.confidence.ideal_dice import (
    IdealDice,
    expected_f_beta,
    expected_iou,
    expected_tversky,
    full_posterior_dice,
    ideal_dice_confidence,
)
from segtrust.confidence.learning import LearningEstimator
from segtrust.confidence.pairwise_dice import PairwiseDice
from segtrust.confidence.probability import (
    AverageClassProbability,
    AverageMaxProbability,
    average_class_probability,
    average_max_probability,
)
from segtrust.confidence.registry import get_estimator
from segtrust.confidence.score import Assessment, assess, score, score_batch
from segtrust.confidence.soft_dice import SoftDice, dice_bounds, soft_dice_confidence
from segtrust.confidence.summary import Needs, Summary
from segtrust.confidence.threshold_level import (
    ThresholdLevel,
    entropy_quantile,
    threshold_level_confidence,
)
from segtrust.confidence.tuned_patch_level import TunedPatchLevel
from segtrust.confidence.tuned_soft_dice import TunedSoftDice

__all__ = [
    "Assessment",
    "AverageClassProbability",
    "AverageMaxProbability",
    "AverageNegativeEntropy",
    "ClassScores",
    "ConfidenceEstimator",
    "DiceOptimal",
    "FeatureAggregation",
    "IdealDice",
    "LearningEstimator",
    "MedianMinMax",
    "Needs",
    "PairwiseDice",
    "PatchLevel",
    "SoftDice",
    "SoftDiceFeatureAggregation",
    "Summary",
    "ThresholdLevel",
    "TunedPatchLevel",
    "TunedSoftDice",
    "assess",
    "average_class_probability",
    "average_max_probability",
    "average_negative_entropy",
    "dice_bounds",
    "dice_optimal_mask",
    "entropy_quantile",
    "expected_f_beta",
    "expected_iou",
    "expected_tversky",
    "full_posterior_dice",
    "get_estimator",
    "ideal_dice_confidence",
    "median_min_max_confidence",
    "patch_level_confidence",
    "score",
    "score_batch",
    "score_classes",
    "soft_dice_confidence",
    "threshold_level_confidence",
]
