from segtrust.calibration import (
    PlattScaling as PlattScaling,
    Reliability as Reliability,
    TemperatureScaling as TemperatureScaling,
    reliability as reliability,
)
from segtrust.confidence import (
    Assessment as Assessment,
    AverageClassProbability as AverageClassProbability,
    AverageMaxProbability as AverageMaxProbability,
    AverageNegativeEntropy as AverageNegativeEntropy,
    ClassScores as ClassScores,
    ConfidenceEstimator as ConfidenceEstimator,
    IdealDice as IdealDice,
    MedianMinMax as MedianMinMax,
    PatchLevel as PatchLevel,
    SoftDice as SoftDice,
    ThresholdLevel as ThresholdLevel,
    assess as assess,
    average_class_probability as average_class_probability,
    average_max_probability as average_max_probability,
    average_negative_entropy as average_negative_entropy,
    dice_bounds as dice_bounds,
    entropy_quantile as entropy_quantile,
    expected_f_beta as expected_f_beta,
    expected_iou as expected_iou,
    expected_tversky as expected_tversky,
    full_posterior_dice as full_posterior_dice,
    get_estimator as get_estimator,
    ideal_dice_confidence as ideal_dice_confidence,
    median_min_max_confidence as median_min_max_confidence,
    patch_level_confidence as patch_level_confidence,
    score as score,
    score_batch as score_batch,
    score_classes as score_classes,
    soft_dice_confidence as soft_dice_confidence,
    threshold_level_confidence as threshold_level_confidence,
)
from segtrust.kernels.bounds import (
    DiceBounds as DiceBounds,
    worst_relative_error as worst_relative_error,
)
from segtrust.maps import (
    Case as Case,
    EmptyPolicy as EmptyPolicy,
    Prediction as Prediction,
)
from segtrust.risks import (
    RISKS as RISKS,
    Risk as Risk,
    dice as dice,
    f_beta as f_beta,
    iou as iou,
)
from segtrust.selective import (
    ConformalDice as ConformalDice,
    CoverageThreshold as CoverageThreshold,
    DiceIntervals as DiceIntervals,
    DriftTest as DriftTest,
    ExchangeabilityMartingale as ExchangeabilityMartingale,
    MartingaleState as MartingaleState,
    MeanDice as MeanDice,
    MeanDiceEstimator as MeanDiceEstimator,
    Recalibration as Recalibration,
    drift_test as drift_test,
    threshold_for_coverage as threshold_for_coverage,
)
from segtrust.settings import (
    use_threads as use_threads,
)

__version__: str
__all__: list[str]
from segtrust.selective import (
    CalibrationCases as CalibrationCases,
    Certificate as Certificate,
    Decision as Decision,
    Need as Need,
    Operation as Operation,
    Policy as Policy,
    Procedure as Procedure,
    Scoring as Scoring,
    Standing as Standing,
    Step as Step,
    StructurePolicies as StructurePolicies,
    Target as Target,
    certify as certify,
    certify_each as certify_each,
    certify_structures as certify_structures,
    certify_threshold as certify_threshold,
    plan_calibration as plan_calibration,
)
