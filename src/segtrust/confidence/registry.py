"""Estimators by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.entropy import AverageNegativeEntropy, MedianMinMax, PatchLevel
from segtrust.confidence.feature_aggregation import FeatureAggregation, SoftDiceFeatureAggregation
from segtrust.confidence.ideal_dice import IdealDice
from segtrust.confidence.probability import AverageClassProbability, AverageMaxProbability
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.threshold_level import ThresholdLevel
from segtrust.confidence.tuned_patch_level import TunedPatchLevel
from segtrust.confidence.tuned_soft_dice import TunedSoftDice
from segtrust.errors import ParameterError, UnknownNameError
from segtrust.kernels.inputs import described

__all__ = ["ESTIMATORS", "Estimators", "get_estimator", "get_estimators", "learns"]

Estimators = Sequence[str | ConfidenceEstimator]
"""Names, or estimators with settings of their own."""

ESTIMATORS: dict[str, Callable[[], ConfidenceEstimator]] = {
    "sdc": SoftDice,
    "idc": IdealDice,
    "amsp": AverageMaxProbability,
    "apc": AverageClassProbability,
    "ane": AverageNegativeEntropy,
    "mmmc": MedianMinMax,
    "tla": ThresholdLevel,
    "pla": PatchLevel,
    "pla-tuned": TunedPatchLevel,
    "aef": FeatureAggregation,
    "aef-sdc": SoftDiceFeatureAggregation,
    "sdc-tuned": TunedSoftDice,
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
    segtrust.errors.UnknownNameError: Unknown estimator 'sdk'; available: aef, aef-sdc, amsp, ...
    """
    try:
        return ESTIMATORS[name]()
    except KeyError:
        known = ", ".join(sorted(ESTIMATORS))
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {known}.") from None


def learns(name: str) -> bool:
    """Tell whether the estimator of this name must learn from cases before it can score any.

    Examples
    --------
    >>> learns("sdc"), learns("tla"), learns("aef")
    (False, True, True)
    """
    return type(get_estimator(name)).fit is not ConfidenceEstimator.fit


def get_estimators(estimators: Estimators) -> list[ConfidenceEstimator]:
    """Make the estimators of a list of names; those in it that are made already stay as they are.

    Examples
    --------
    >>> get_estimators(["sdc", PatchLevel(size=20)])
    [SoftDice(empty=<EmptyPolicy.PAPER: 'paper'>), PatchLevel(size=20)]
    """
    if isinstance(estimators, str) or not isinstance(estimators, Iterable):
        raise ParameterError(
            f"estimators: expected a list of names or estimators, got {described(estimators)}. "
            "Put a single one into a list too."
        )
    chosen = [_estimator_of(item) for item in estimators]
    names = [each.name for each in chosen]
    if len(set(names)) < len(names):
        raise ParameterError(f"estimators: results go by name, so each is given once; got {names}.")
    return chosen


def _estimator_of(item: Any) -> ConfidenceEstimator:
    if isinstance(item, str):
        return get_estimator(item)
    if isinstance(item, ConfidenceEstimator):
        return item
    if isinstance(item, type):
        remedy = f"Make an estimator of it first: {item.__name__}()."
    else:
        remedy = f"The names are {', '.join(sorted(ESTIMATORS))}."
    raise ParameterError(f"estimators: expected names or estimators, got {described(item)}. {remedy}")
