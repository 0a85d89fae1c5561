from segtrust.calibration import (
    PlattScaling as PlattScaling,
)
from segtrust.calibration import (
    Reliability as Reliability,
)
from segtrust.calibration import (
    TemperatureScaling as TemperatureScaling,
)
from segtrust.calibration import (
    reliability as reliability,
)
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
    ConformalDice as ConformalDice,
)
from segtrust.selective import (
    CoverageThreshold as CoverageThreshold,
)
from segtrust.selective import (
    DiceIntervals as DiceIntervals,
)
from segtrust.selective import (
    DriftTest as DriftTest,
)
from segtrust.selective import (
    ExchangeabilityMartingale as ExchangeabilityMartingale,
)
from segtrust.selective import (
    MartingaleState as MartingaleState,
)
from segtrust.selective import (
    MeanDice as MeanDice,
)
from segtrust.selective import (
    MeanDiceEstimator as MeanDiceEstimator,
)
from segtrust.selective import (
    Recalibration as Recalibration,
)
from segtrust.selective import (
    drift_test as drift_test,
)
from segtrust.selective import (
    threshold_for_coverage as threshold_for_coverage,
)
from segtrust.settings import (
    use_threads as use_threads,
)

__version__: str
__all__: list[str]
