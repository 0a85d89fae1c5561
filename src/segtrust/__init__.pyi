from segtrust.confidence import (
    Assessment as Assessment,
)
from segtrust.confidence import (
    AverageClassProbability as AverageClassProbability,
)
from segtrust.confidence import (
    AverageMaxProbability as AverageMaxProbability,
)
from segtrust.confidence import (
    AverageNegativeEntropy as AverageNegativeEntropy,
)
from segtrust.confidence import (
    ClassScores as ClassScores,
)
from segtrust.confidence import (
    ConfidenceEstimator as ConfidenceEstimator,
)
from segtrust.confidence import (
    IdealDice as IdealDice,
)
from segtrust.confidence import (
    MedianMinMax as MedianMinMax,
)
from segtrust.confidence import (
    PatchLevel as PatchLevel,
)
from segtrust.confidence import (
    SoftDice as SoftDice,
)
from segtrust.confidence import (
    ThresholdLevel as ThresholdLevel,
)
from segtrust.confidence import (
    assess as assess,
)
from segtrust.confidence import (
    average_class_probability as average_class_probability,
)
from segtrust.confidence import (
    average_max_probability as average_max_probability,
)
from segtrust.confidence import (
    average_negative_entropy as average_negative_entropy,
)
from segtrust.confidence import (
    dice_bounds as dice_bounds,
)
from segtrust.confidence import (
    entropy_quantile as entropy_quantile,
)
from segtrust.confidence import (
    expected_f_beta as expected_f_beta,
)
from segtrust.confidence import (
    expected_iou as expected_iou,
)
from segtrust.confidence import (
    expected_tversky as expected_tversky,
)
from segtrust.confidence import (
    full_posterior_dice as full_posterior_dice,
)
from segtrust.confidence import (
    get_estimator as get_estimator,
)
from segtrust.confidence import (
    ideal_dice_confidence as ideal_dice_confidence,
)
from segtrust.confidence import (
    median_min_max_confidence as median_min_max_confidence,
)
from segtrust.confidence import (
    patch_level_confidence as patch_level_confidence,
)
from segtrust.confidence import (
    score as score,
)
from segtrust.confidence import (
    score_batch as score_batch,
)
from segtrust.confidence import (
    score_classes as score_classes,
)
from segtrust.confidence import (
    soft_dice_confidence as soft_dice_confidence,
)
from segtrust.confidence import (
    threshold_level_confidence as threshold_level_confidence,
)
from segtrust.kernels.bounds import (
    DiceBounds as DiceBounds,
)
from segtrust.kernels.bounds import (
    worst_relative_error as worst_relative_error,
)
from segtrust.maps import (
    Case as Case,
)
from segtrust.maps import (
    EmptyPolicy as EmptyPolicy,
)
from segtrust.maps import (
    Prediction as Prediction,
)
from segtrust.risks import (
    RISKS as RISKS,
)
from segtrust.risks import (
    Risk as Risk,
)
from segtrust.risks import (
    dice as dice,
)
from segtrust.risks import (
    f_beta as f_beta,
)
from segtrust.risks import (
    iou as iou,
)
from segtrust.selective import (
    Bootstrap as Bootstrap,
)
from segtrust.selective import (
    BootstrapInterval as BootstrapInterval,
)
from segtrust.selective import (
    Comparison as Comparison,
)
from segtrust.selective import (
    FailureDetection as FailureDetection,
)
from segtrust.selective import (
    OperatingPoint as OperatingPoint,
)
from segtrust.selective import (
    RiskCoverageCurve as RiskCoverageCurve,
)
from segtrust.selective import (
    bootstrap_interval as bootstrap_interval,
)
from segtrust.selective import (
    compare_estimators as compare_estimators,
)
from segtrust.selective import (
    coverage_at_risk as coverage_at_risk,
)
from segtrust.selective import (
    failure_detection as failure_detection,
)
from segtrust.selective import (
    risk_coverage_curve as risk_coverage_curve,
)
from segtrust.settings import (
    use_threads as use_threads,
)

__version__: str
__all__: list[str]
