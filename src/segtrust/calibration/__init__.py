"""Calibration of the maps themselves: temperature and Platt scaling, and how reliable probabilities are."""

from segtrust.calibration.reliability import Reliability, reliability
from segtrust.calibration.scaling import PlattScaling, TemperatureScaling

__all__ = ["PlattScaling", "Reliability", "TemperatureScaling", "reliability"]
