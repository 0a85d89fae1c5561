"""Calibration of probability maps: temperature and Platt scaling, and how reliable probabilities are."""

from segtrust.calibration.reliability import (
    Reliability,
    check_probabilities,
    largest_logit,
    logits_of,
    probabilities_on_device,
    reliability,
    sigmoid_of,
)
from segtrust.calibration.scaling import (
    MulticlassTemperatureScaling,
    PlattScaling,
    Scaling,
    TemperatureScaling,
)

__all__ = [
    "MulticlassTemperatureScaling",
    "PlattScaling",
    "Reliability",
    "Scaling",
    "TemperatureScaling",
    "check_probabilities",
    "largest_logit",
    "logits_of",
    "probabilities_on_device",
    "reliability",
    "sigmoid_of",
]
