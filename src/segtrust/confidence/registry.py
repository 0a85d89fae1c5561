"""Estimators by name, with the label and the colour that tables and figures show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from segtrust._arguments import describe
from segtrust.confidence.aggregation import (
    AverageClassProbability,
    AverageMaxProbability,
    AverageNegativeEntropy,
    MedianMinMax,
    PatchLevel,
)
from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.feature_aggregation import FeatureAggregation, SoftDiceFeatureAggregation
from segtrust.confidence.ideal_dice import IdealDice
from segtrust.confidence.pairwise_dice import PairwiseDice
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.threshold_level import ThresholdLevel
from segtrust.confidence.tuned import TunedPatchLevel, TunedSoftDice
from segtrust.errors import ParameterError, PluginError, UnknownNameError
from segtrust.plugins import find_plugin, plugin_names, warn_once

Estimators = Sequence[str | ConfidenceEstimator]
"""Names, or estimators with their own settings."""

_CLASSES: tuple[type[ConfidenceEstimator], ...] = (
    SoftDice,
    IdealDice,
    AverageMaxProbability,
    AverageClassProbability,
    AverageNegativeEntropy,
    MedianMinMax,
    ThresholdLevel,
    PatchLevel,
    TunedPatchLevel,
    FeatureAggregation,
    SoftDiceFeatureAggregation,
    TunedSoftDice,
    PairwiseDice,
)

ESTIMATORS = {estimator.name: estimator for estimator in _CLASSES}
"""segtrust's own estimators by name."""


class Reference(NamedTuple):
    """A ranking that estimators are compared with."""

    label: str
    colour: str


REFERENCES = {"oracle": Reference("oracle", "#000000"), "random": Reference("random", "#7f7f7f")}
"""The best possible ranking and a random one, by name."""

RESERVED_NAMES = frozenset(
    {
        *("all", "case", "decision", "dice", "digest", "file", "foreground", "group", "iou", "k", "lam"),
        *("loss", "lower", "margin", "mask", "members", "mu", "oracle", "policy", "random", "s", "seconds"),
        *("set", "shape", "split", "structure", "upper"),
    }
)
"""Names of columns and options, which no estimator may have.

Columns with an underscore need no entry: estimator names cannot contain one.
"""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_PLUGIN_COLOURS = ("#8a7d00", "#882255", "#0072b2")


def get_estimator(name: str) -> ConfidenceEstimator:
    """Return the estimator with this name and its default settings; other packages may add estimators.

    Parameters
    ----------
    name
        Name of an estimator, such as ``"sdc"``.

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
    estimator: ConfidenceEstimator = plugin.load(lambda offered: _check_offered(offered, name))
    return estimator


def _check_offered(offered: Any, name: str) -> ConfidenceEstimator:
    """Return the estimator that another package offers, if it is one."""
    estimator = offered() if callable(offered) else offered
    if not isinstance(estimator, ConfidenceEstimator):
        raise PluginError(f"expected a class of ConfidenceEstimator, got {describe(offered)}")
    own_name = getattr(estimator, "name", None)
    if own_name != name:
        raise PluginError(f"expected an estimator called {name!r}, got {own_name!r}")
    if not is_free_name(name):
        raise PluginError(
            f"expected lower-case letters, digits and hyphens, and no column's name, got {name!r}"
        )
    if not isinstance(getattr(estimator, "label", None), str):
        raise PluginError("expected a label for tables, got none")
    if estimator.colour and not _COLOUR.fullmatch(estimator.colour):
        raise PluginError(f"expected a colour such as '#0072b2', got {estimator.colour!r}")
    return estimator


def get_estimators(estimators: Estimators) -> list[ConfidenceEstimator]:
    """Return an estimator for each name of a list; estimators in it are returned as they are.

    Examples
    --------
    >>> get_estimators(["sdc", PatchLevel(size=20)])
    [SoftDice(empty=<EmptyPolicy.PAPER: 'paper'>), PatchLevel(size=20)]
    """
    if isinstance(estimators, str) or not isinstance(estimators, Iterable):
        raise ParameterError(
            f"estimators: expected a list of names or estimators, got {describe(estimators)}. "
            "Put a single one into a list too."
        )
    chosen = []
    for item in estimators:
        if isinstance(item, str):
            chosen.append(get_estimator(item))
        elif isinstance(item, ConfidenceEstimator):
            chosen.append(item)
        else:
            names = f"The names are {', '.join(sorted(estimator_names()))}."
            remedy = f"Create an estimator first: {item.__name__}()." if isinstance(item, type) else names
            raise ParameterError(f"estimators: expected names or estimators, got {describe(item)}. {remedy}")
    names = [estimator.name for estimator in chosen]
    if len(set(names)) < len(names):
        raise ParameterError(f"estimators: expected each name once, because results go by name; got {names}.")
    return chosen


def label_of(name: str) -> str:
    """Return the label of an estimator or a reference in tables and figures.

    The label of an estimator from a package that is not installed here is its name.

    Examples
    --------
    >>> label_of("aef-sdc"), label_of("oracle"), label_of("not-installed")
    ('AEF+SDC', 'oracle', 'not-installed')
    """
    styled = _styled_object(name)
    return name if styled is None else styled.label


def colour_of(name: str) -> str:
    """Return the colour of an estimator or a reference in figures, as a hex string.

    An estimator without a colour, or from a package that is not installed, gets one derived from its name.

    Examples
    --------
    >>> colour_of("sdc"), colour_of("random"), colour_of("not-installed")
    ('#d55e00', '#7f7f7f', '#882255')
    """
    styled = _styled_object(name)
    own = "" if styled is None else styled.colour
    return own or _PLUGIN_COLOURS[crc32(name.encode()) % len(_PLUGIN_COLOURS)]


def _styled_object(name: str) -> Reference | type[ConfidenceEstimator] | ConfidenceEstimator | None:
    """Return the object with the label and colour of this name; ``None`` if its package is not installed."""
    if name in REFERENCES:
        return REFERENCES[name]
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    try:
        return get_estimator(name)
    except (UnknownNameError, PluginError):
        return None


def is_free_name(name: str) -> bool:
    """Return whether an estimator of another package may have this name.

    Examples
    --------
    >>> [is_free_name(name) for name in ("median-certainty", "Median", "dice", "sdc")]
    [True, False, False, False]
    """
    return _NAME.fullmatch(name) is not None and name not in RESERVED_NAMES and name not in ESTIMATORS


def estimator_names() -> list[str]:
    """Return all names: segtrust's own first, then those of other packages.

    These packages are not imported.
    """
    return [*ESTIMATORS, *plugin_names("estimators", ESTIMATORS)]


def usable_names() -> list[str]:
    """Return the names of the estimators that can be used; problems with plug-ins are logged once."""
    names = list(ESTIMATORS)
    for name in plugin_names("estimators", ESTIMATORS):
        try:
            get_estimator(name)
        except PluginError as error:
            warn_once(str(error))
        else:
            names.append(name)
    return names


def packages_of(name: str) -> dict[str, str]:
    """Return the package that an estimator comes from and its version; nothing for segtrust's own.

    Examples
    --------
    >>> packages_of("sdc")
    {}
    """
    try:
        plugin = None if name in ESTIMATORS else find_plugin("estimators", name)
    except PluginError:  # several packages offer it: which one it came from is unknown
        plugin = None
    return {} if plugin is None else {plugin.package: plugin.version}


def learns(name: str) -> bool:
    """Return whether the estimator with this name must learn from cases before it can score any.

    Examples
    --------
    >>> learns("sdc"), learns("tla"), learns("aef")
    (False, True, True)
    """
    return type(get_estimator(name)).fit is not ConfidenceEstimator.fit


def needs_members(name: str) -> bool:
    """Return whether the estimator with this name needs the members of an ensemble.

    Examples
    --------
    >>> needs_members("sdc"), needs_members("pairwise-dice")
    (False, True)
    """
    return get_estimator(name).needs.members
