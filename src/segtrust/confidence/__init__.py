"""Confidence estimators: one number per segmentation that says how far it can be trusted.

Each estimator reads statistics that the kernels compute and that all estimators of a map share. Its name,
label and colour are defined on its class.
"""

from segtrust.confidence.aggregation import (
    AverageClassProbability,
    AverageMaxProbability,
    AverageNegativeEntropy,
    MedianMinMax,
    PatchLevel,
    average_class_probability,
    average_max_probability,
    average_negative_entropy,
    median_min_max_confidence,
    patch_level_confidence,
)
from segtrust.confidence.base import ConfidenceEstimator, Needs, Observation, Summary, summarise, summary_of
from segtrust.confidence.classes import ClassScores, score_classes
from segtrust.confidence.decoding import DiceOptimal, decoded, dice_optimal_mask
from segtrust.confidence.feature_aggregation import TAUS, FeatureAggregation, SoftDiceFeatureAggregation
from segtrust.confidence.ideal_dice import (
    IdealDice,
    expected_f_beta,
    expected_iou,
    expected_tversky,
    full_posterior_dice,
    ideal_dice_confidence,
)
from segtrust.confidence.learning import LearningEstimator, loss_of, mask_and_truth
from segtrust.confidence.pairwise_dice import PairwiseDice
from segtrust.confidence.registry import (
    ESTIMATORS,
    REFERENCES,
    Estimators,
    colour_of,
    estimator_names,
    get_estimator,
    get_estimators,
    is_free_name,
    label_of,
    learns,
    needs_members,
    packages_of,
    usable_names,
)
from segtrust.confidence.score import USUAL, Assessment, assess, assess_map, score, score_batch
from segtrust.confidence.soft_dice import SoftDice, dice_bounds, soft_dice_confidence
from segtrust.confidence.threshold_level import (
    ThresholdLevel,
    entropy_quantile,
    threshold_level_confidence,
)
from segtrust.confidence.tuned import (
    SIDES,
    WEIGHTS,
    TunedPatchLevel,
    TunedSoftDice,
    rank_correlations,
    ranking_areas,
)

__all__ = [
    "ESTIMATORS",
    "REFERENCES",
    "SIDES",
    "TAUS",
    "USUAL",
    "WEIGHTS",
    "Assessment",
    "AverageClassProbability",
    "AverageMaxProbability",
    "AverageNegativeEntropy",
    "ClassScores",
    "ConfidenceEstimator",
    "DiceOptimal",
    "Estimators",
    "FeatureAggregation",
    "IdealDice",
    "LearningEstimator",
    "MedianMinMax",
    "Needs",
    "Observation",
    "PairwiseDice",
    "PatchLevel",
    "SoftDice",
    "SoftDiceFeatureAggregation",
    "Summary",
    "ThresholdLevel",
    "TunedPatchLevel",
    "TunedSoftDice",
    "assess",
    "assess_map",
    "average_class_probability",
    "average_max_probability",
    "average_negative_entropy",
    "colour_of",
    "decoded",
    "dice_bounds",
    "dice_optimal_mask",
    "entropy_quantile",
    "estimator_names",
    "expected_f_beta",
    "expected_iou",
    "expected_tversky",
    "full_posterior_dice",
    "get_estimator",
    "get_estimators",
    "ideal_dice_confidence",
    "is_free_name",
    "label_of",
    "learns",
    "loss_of",
    "mask_and_truth",
    "median_min_max_confidence",
    "needs_members",
    "packages_of",
    "patch_level_confidence",
    "rank_correlations",
    "ranking_areas",
    "score",
    "score_batch",
    "score_classes",
    "soft_dice_confidence",
    "summarise",
    "summary_of",
    "threshold_level_confidence",
    "usable_names",
]
