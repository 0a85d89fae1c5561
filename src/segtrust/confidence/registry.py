"""Estimators by name, with the label and the colour that tables and figures show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, NamedTuple
from zlib import crc32

from segtrust._arguments import describe, suggestion
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
from segtrust.maps import EmptyPolicy
from segtrust.plugins import find_plugin, plugin_names, warn_once
from segtrust.risks import RISKS

Estimators = (
    str
    | ConfidenceEstimator
    | Sequence[str | ConfidenceEstimator]
    | Mapping[str, str | ConfidenceEstimator]
    | Mapping[str, str]
    | Mapping[str, ConfidenceEstimator]
)
"""One name or estimator, several of them, or a mapping from labels to names or estimators."""

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
        *(risk.column for risk in RISKS.values()),
        *("all", "case", "checksum", "decision", "digest", "file", "foreground", "group", "k", "lam"),
        *("loss", "lower", "margin", "mask", "members", "mu", "oracle", "policy", "random", "s", "seconds"),
        *("set", "shape", "split", "structure", "upper"),
    }
)
"""Names of columns and options, which no estimator may have.

Columns with an underscore need no entry: estimator names cannot contain one.
"""

_RESULT_COLUMNS = frozenset(
    {
        *("class", "foreground_ratio", "image", "k", "lam", "lower", "mu", "predicted", "relative_error"),
        *("s", "upper"),
    }
)
"""Other columns of the results in memory (`Assessment`, `ClassScores`), which no label may have."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_POINTER = re.compile(r", see `[^`]*`\.?$")
"""Reference at the end of a docstring's first line, which a list of estimators leaves out."""
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
        known = sorted(estimator_names())
        close = suggestion(name.lower() if isinstance(name, str) else name, known)
        raise UnknownNameError(f"Unknown estimator {name!r}; available: {', '.join(known)}.{close}")
    estimator: ConfidenceEstimator = plugin.load(lambda offered: _check_offered(offered, name))
    return estimator


def _check_offered(offered: Any, name: str) -> ConfidenceEstimator:
    """Return the estimator that another package offers, if it is one."""
    estimator = offered
    if callable(offered) and not isinstance(offered, ConfidenceEstimator):
        estimator = offered()
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


def named_estimators(
    estimators: Estimators, *, empty: EmptyPolicy | str | None = None
) -> dict[str, ConfidenceEstimator]:
    """Return estimators by the label under which their results are listed.

    Parameters
    ----------
    estimators
        A name, an estimator, a list of them, or a mapping from labels to names or estimators. Without a
        mapping the label is the name of the estimator, and each name may occur once.
    empty
        Score of an empty mask, for the estimators that have this setting and are given by name; ``None`` for
        their default, ``"paper"``. An estimator that is given as an object keeps its own setting, and must
        not contradict this one.

    Examples
    --------
    >>> named_estimators({"small": PatchLevel(size=5), "large": PatchLevel(size=20)})
    {'small': PatchLevel(size=5), 'large': PatchLevel(size=20)}
    >>> named_estimators("sdc", empty="agree")
    {'sdc': SoftDice(empty=<EmptyPolicy.AGREE: 'agree'>)}
    """
    policy = None if empty is None else EmptyPolicy(empty)
    if isinstance(estimators, EstimatorList):
        estimators = list(estimators)  # its values are descriptions
    if isinstance(estimators, Sized) and not isinstance(estimators, str) and not len(estimators):
        raise ParameterError("estimators: expected at least one name or estimator, got none.")
    if isinstance(estimators, Mapping):
        named = {}
        for label, item in estimators.items():
            if not isinstance(label, str) or not label:
                raise ParameterError(f"estimators: expected texts as labels, got {describe(label)}.")
            if label in _RESULT_COLUMNS:
                raise ParameterError(
                    f"estimators: the label {label!r} is the name of another column of the results. Choose "
                    f"another one, such as '{label}-a'."
                )
            named[label] = _make_estimator(item, policy)
        return named
    if isinstance(estimators, str | ConfidenceEstimator | type):
        estimators = [estimators]
    if not isinstance(estimators, Iterable):
        raise ParameterError(
            "estimators: expected names or estimators, a list of them, or a mapping from labels to them, got "
            f"{describe(estimators)}."
        )
    chosen = [_make_estimator(item, policy) for item in estimators]
    names = [estimator.name for estimator in chosen]
    if len(set(names)) < len(names):
        raise ParameterError(
            f"estimators: expected each name once, because results go by name; got {names}. Pass a mapping "
            f"that gives each a label, such as {{'{names[0]}-a': …, '{names[0]}-b': …}}."
        )
    return dict(zip(names, chosen, strict=True))


def _make_estimator(item: Any, empty: EmptyPolicy | None) -> ConfidenceEstimator:
    """Return the estimator of a name with the empty policy, or an estimator that does not contradict it."""
    if isinstance(item, str):
        estimator = get_estimator(item)
        return (
            estimator.set_params(empty=empty)
            if empty is not None and has_empty_setting(estimator)
            else estimator
        )
    if not isinstance(item, ConfidenceEstimator):
        names = f"The names are {', '.join(sorted(estimator_names()))}."
        remedy = f"Create an estimator first: {item.__name__}()." if isinstance(item, type) else names
        raise ParameterError(f"estimators: expected names or estimators, got {describe(item)}. {remedy}")
    own = getattr(item, "empty", None) if has_empty_setting(item) else None
    if empty is not None and own is not None and EmptyPolicy(own) is not empty:
        raise ParameterError(
            f"empty: {empty.value!r} contradicts {type(item).__name__}(empty={EmptyPolicy(own).value!r}) in "
            "estimators. Leave out empty=, or pass the estimator with the same setting."
        )
    return item


def has_empty_setting(estimator: ConfidenceEstimator | type[ConfidenceEstimator]) -> bool:
    """Return whether an estimator, or a class of estimators, has a setting for empty masks.

    Examples
    --------
    >>> has_empty_setting(SoftDice()), has_empty_setting(PatchLevel)
    (True, False)
    """
    return is_dataclass(estimator) and any(field.name == "empty" for field in fields(estimator))


def get_estimators(
    estimators: Estimators, *, empty: EmptyPolicy | str | None = None
) -> list[ConfidenceEstimator]:
    """Return estimators as a list, where results go by their own names.

    Parameters
    ----------
    estimators
        A name, an estimator, a list of them, which may be empty, or a mapping from labels to them whose
        labels are their names.
    empty
        Score of an empty mask, as for `named_estimators`.

    Examples
    --------
    >>> get_estimators(["sdc", PatchLevel(size=20)])
    [SoftDice(empty=<EmptyPolicy.PAPER: 'paper'>), PatchLevel(size=20)]
    """
    if isinstance(estimators, Sequence) and not estimators:
        return []
    named = named_estimators(estimators, empty=empty)
    labels = [label for label, estimator in named.items() if label != estimator.name]
    if labels:
        raise ParameterError(
            f"estimators: results go by the names of estimators here; the labels {labels} cannot be used. "
            "Pass a list; st.score, st.assess, st.score_batch and st.score_classes accept labels."
        )
    return list(named.values())


class EstimatorList(dict[str, str]):
    """The estimators that can be used: one line of description by name.

    Examples
    --------
    >>> listed = estimators()
    >>> listed["pla"]
    'Minus the largest sum of entropies over a box.'
    """

    def __repr__(self) -> str:
        """Return one line per estimator."""
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {text}" for name, text in self.items())

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        rows = ((name, label_of(name), text) for name, text in self.items())
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><tr><th>name</th><th>label</th><th>confidence</th></tr>{body}</table>"


def estimators() -> EstimatorList:
    """List all estimators by name, with one line of description each; plug-ins too.

    The description of an estimator is the first line of the docstring of its class.

    Examples
    --------
    >>> print(estimators())  # doctest: +ELLIPSIS
    sdc            SDC = 2s / (k + s + λ).
    idc            Exact expected Dice under the map.
    ...
    """
    descriptions = {}
    for name in estimator_names():
        try:
            kind = type(get_estimator(name))
        except PluginError as error:
            descriptions[name] = f"Cannot be used: {error}"
            continue
        first_line = (kind.__doc__ or "").strip().partition("\n")[0]
        text = _POINTER.sub("", first_line).rstrip(".") + "."
        notes = [] if kind.fit is ConfidenceEstimator.fit else ["fit it first"]
        notes += ["needs the members of an ensemble"] if needs_members(name) else []
        descriptions[name] = f"{text} ({', '.join(notes).capitalize()}.)" if notes else text
    return EstimatorList(descriptions)


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
