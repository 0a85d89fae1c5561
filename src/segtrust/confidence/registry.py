"""Estimators by name."""

from __future__ import annotations

from collections.abc import Callable

from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.entropy import AverageNegativeEntropy, MedianMinMax, PatchLevel
from segtrust.confidence.ideal_dice import IdealDice
from segtrust.confidence.probability import AverageClassProbability, AverageMaxProbability
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.threshold_level import ThresholdLevel
from segtrust.errors import UnknownNameError

__all__ = ["ESTIMATORS", "get_estimator"]

ESTIMATORS: dict[str, Callable[[], ConfidenceEstimator]] = {
    "sdc": SoftDice,
    "idc": IdealDice,
    "amsp": AverageMaxProbability,
    "apc": AverageClassProbability,
    "ane": AverageNegativeEntropy,
    "mmmc": MedianMinMax,
    "tla": ThresholdLevel,
    "pla": PatchLevel,
}


def get_estimator(name: str) -> ConfidenceEstimator:
    """Make the estimator of this name with its default settings.

    Examples
    --------
    >>> get_estimator("pla")
    PatchLevel(size=10)
    >>> get_estimator("sdk")
    Traceback (most recent call last):
    ...
    segtrust.errors.UnknownNameError: Unknown estimator 'sdk'; available: amsp, ane, apc, ...
    """
    try:
        return ESTIMATORS[name]()
    except KeyError:
        known = ", ".join(sorted(ESTIMATORS))
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {known}.") from None
