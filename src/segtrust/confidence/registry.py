"""Estimators by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.entropy import AverageNegativeEntropy, MedianMinMax, PatchLevel
from segtrust.confidence.feature_aggregation import FeatureAggregation, SoftDiceFeatureAggregation
from segtrust.confidence.ideal_dice import IdealDice
from segtrust.confidence.pairwise_dice import PairwiseDice
from segtrust.confidence.probability import AverageClassProbability, AverageMaxProbability
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.threshold_level import ThresholdLevel
from segtrust.confidence.tuned_patch_level import TunedPatchLevel
from segtrust.confidence.tuned_soft_dice import TunedSoftDice
from segtrust.errors import ParameterError, PluginError, UnknownNameError
from segtrust.kernels.inputs import described
from segtrust.plugins import find_plugin, plugin_names, tell_once

__all__ = [
    "ESTIMATORS",
    "TAKEN",
    "Estimators",
    "estimator_names",
    "get_estimator",
    "get_estimators",
    "is_free_name",
    "learns",
    "needs_members",
    "packages_of",
    "usable_names",
]

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
    "pairwise-dice": PairwiseDice,
}

TAKEN = frozenset(
    {
        *("all", "case", "decision", "dice", "digest", "file", "foreground", "group", "iou", "k", "lam"),
        *(
            "loss",
            "lower",
            "margin",
            "mask",
            "members",
            "mu",
            "oracle",
            "policy",
            "random",
            "s",
            "seconds",
            "set",
        ),
        *("shape", "split", "structure", "upper"),
    }
)
"""Names that mean something else in tables and on the command line; no estimator may have one of them."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_free_name(name: str) -> bool:
    """Tell whether an estimator of another package may have this name.

    Examples
    --------
    >>> [is_free_name(name) for name in ("median-certainty", "Median", "dice", "sdc")]
    [True, False, False, False]
    """
    return _NAME.fullmatch(name) is not None and name not in TAKEN and name not in ESTIMATORS


def estimator_names() -> list[str]:
    """Give all names: segtrust's own first, then those of other packages, which are not loaded for that."""
    return [*ESTIMATORS, *plugin_names("estimators", ESTIMATORS)]


def usable_names() -> list[str]:
    """Give the names of estimators that can be made; of others it is told, once, what is wrong with them."""
    return [name for name in estimator_names() if name in ESTIMATORS or _can_be_made(name)]


def _can_be_made(name: str) -> bool:
    try:
        get_estimator(name)
    except PluginError as error:
        tell_once(str(error))
        return False
    return True


def packages_of(name: str) -> dict[str, str]:
    """Give the package that an estimator comes from and its version; nothing for segtrust's own.

    Examples
    --------
    >>> packages_of("sdc")
    {}
    """
    try:
        found = None if name in ESTIMATORS else find_plugin("estimators", name)
    except PluginError:  # several offer it: which of them made this one cannot be told
        found = None
    return {} if found is None else {found.package: found.version}


def get_estimator(name: str) -> ConfidenceEstimator:
    """Make the estimator of this name with its default settings; other packages may add some.

    Examples
    --------
    >>> get_estimator("pla")
    PatchLevel(size=10)
    >>> get_estimator("sdk")
    Traceback (most recent call last):
    ...
    segtrust.errors.UnknownNameError: Unknown estimator 'sdk'; available: aef, aef-sdc, amsp, ...
    """
    if name in ESTIMATORS:
        return ESTIMATORS[name]()
    plugin = find_plugin("estimators", name)
    if plugin is None:
        known = ", ".join(sorted(estimator_names()))
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {known}.")
    made: ConfidenceEstimator = plugin.load(lambda found: _made_of(found, name))
    return made


def _made_of(found: Any, name: str) -> ConfidenceEstimator:
    """Make the estimator that another package offers, and look whether it is one."""
    made = found() if callable(found) else found
    if not isinstance(made, ConfidenceEstimator):
        raise PluginError(f"expected a class of ConfidenceEstimator, got {described(found)}")
    if getattr(made, "name", None) != name:
        raise PluginError(f"expected an estimator called {name!r}, got {getattr(made, 'name', None)!r}")
    if not is_free_name(name):
        raise PluginError(f"expected small letters, digits and hyphens, and no column's name, got {name!r}")
    if not isinstance(getattr(made, "label", None), str):
        raise PluginError("expected a label for tables, got none")
    return made


def learns(name: str) -> bool:
    """Tell whether the estimator of this name must learn from cases before it can score any.

    Examples
    --------
    >>> learns("sdc"), learns("tla"), learns("aef")
    (False, True, True)
    """
    return type(get_estimator(name)).fit is not ConfidenceEstimator.fit


def needs_members(name: str) -> bool:
    """Tell whether the estimator of this name needs the members of an ensemble.

    Examples
    --------
    >>> needs_members("sdc"), needs_members("pairwise-dice")
    (False, True)
    """
    return get_estimator(name).needs.members


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
        remedy = f"The names are {', '.join(sorted(estimator_names()))}."
    raise ParameterError(f"estimators: expected names or estimators, got {described(item)}. {remedy}")
