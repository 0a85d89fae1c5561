"""Calibration of probability maps: temperature and Platt scaling, and how reliable probabilities are."""

from segtrust.calibration.reliability import (
    Reliability,
    check_probabilities,
    largest_logit,
    logits_of,
    near_boundary,
    reliability,
)
from segtrust.calibration.scaling import PlattScaling, Scaling, TemperatureScaling

__all__ = [
    "PlattScaling",
    "Reliability",
    "Scaling",
    "TemperatureScaling",
    "check_probabilities",
    "largest_logit",
    "logits_of",
    "near_boundary",
    "reliability",
]
