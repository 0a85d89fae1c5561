"""Confidences of one map, or of each map of a batch, by several estimators that share their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from segtrust._display import html_table, short_repr
from segtrust._optional import require
from segtrust._types import AnyArray, DeviceArrayT, EmptyName, MapOnHost
from segtrust.confidence.base import (
    ConfidenceEstimator,
    Needs,
    Summary,
    check_finite,
    read_all,
    summarise,
    summarise_array,
)
from segtrust.confidence.pixels import Pixels
from segtrust.confidence.registry import Estimators, named_estimators
from segtrust.confidence.soft_dice import bounds_of
from segtrust.errors import EmptyArrayError, MaskShapeError
from segtrust.kernels import (
    Agreement,
    DiceBounds,
    MapSource,
    as_array,
    check_levels,
    check_map_type,
    count_batch,
    host_number,
    in_host_memory,
    parts_of,
    warn_of_shape,
    warn_of_surprises,
)
from segtrust.maps import EmptyPolicy

if TYPE_CHECKING:
    from pandas import DataFrame

USUAL: Estimators = ("sdc", "amsp")
"""The estimators that are used unless others are named."""


@overload
def score(
    p: MapOnHost,
    mask: AnyArray | None = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: AnyArray | None = None,
) -> dict[str, float]: ...


@overload
def score(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: AnyArray | None = None,
) -> dict[str, DeviceArrayT]: ...


def score(
    p: Any,
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | str | None = None,
    where: Any = None,
) -> dict[str, Any]:
    """Return the confidences of one map by several estimators, which share the passes over its pixels.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    estimators
        A name, an estimator with its own settings such as ``PatchLevel(size=20)``, a list of them, or a
        mapping from labels to them such as ``{"small": PatchLevel(5), "large": PatchLevel(20)}``.
    threshold
        Decision threshold in [0, 1].
    empty
        Score of an empty mask, ``"paper"`` (0) or ``"agree"`` (see `segtrust.EmptyPolicy`), for estimators
        that are given by name and have this setting. Estimators that are given as objects keep their own
        setting; one that contradicts ``empty`` raises. By default ``"paper"``.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Returns
    -------
    dict
        Confidence by estimator name, or by label if a mapping was passed.

    Examples
    --------
    >>> import numpy as np
    >>> score(np.array([[0.9, 0.8], [0.1, 0.0]]), estimators=["sdc", "apc"])
    {'sdc': 0.8947368421052632, 'apc': 0.9}
    >>> score(np.zeros((4, 4)), estimators="sdc", empty="agree")
    {'sdc': 1.0}
    """
    named = named_estimators(estimators, empty=empty)
    summary = summarise_array(p, mask, named.values(), threshold=threshold, where=where)
    scores = read_all(named, summary)
    warn_of_surprises(p, summary.may_be_below, where)
    return scores


@dataclass(frozen=True, repr=False)
class Assessment:
    """Confidences of one map, with the bounds and counts that the same passes provide.

    Attributes
    ----------
    scores
        Confidence by estimator name, or by label if a mapping was passed.
    bounds
        How far SDC and IDC can be apart, with k, mu, lam and s; see `segtrust.dice_bounds`.
    foreground_ratio
        Share of the pixels that the mask covers.
    """

    scores: Mapping[str, Any]
    bounds: DiceBounds
    foreground_ratio: float

    def _floats(self) -> dict[str, float]:
        """Return the confidences as Python numbers, also those of tensors."""
        return {label: host_number(value) for label, value in self.scores.items()}

    def _row(self) -> dict[str, Any]:
        """Return all numbers by the names of the columns of a score table."""
        bounds = {
            name: getattr(self.bounds, name)
            for name in ("k", "mu", "lam", "s", "lower", "upper", "relative_error")
        }
        return {**self._floats(), **bounds, "foreground_ratio": self.foreground_ratio}

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table with one row: the confidences, the bounds and the foreground ratio."""
        return require("pandas", extra="tables").DataFrame([self._row()])

    def __repr__(self) -> str:
        """Return the confidences in one line."""
        return short_repr(
            self, {**self._floats(), "k": self.bounds.k, "foreground_ratio": self.foreground_ratio}
        )

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        return html_table("", self._row())


def assess(
    p: Any,
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: Any = None,
) -> Assessment:
    """Return the confidences of one map together with its certified bounds and counts.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    estimators
        A name, an estimator with its own settings such as ``PatchLevel(size=20)``, a list of them, or a
        mapping from labels to them such as ``{"small": PatchLevel(5), "large": PatchLevel(20)}``.
    threshold
        Decision threshold in [0, 1].
    empty
        Score of an empty mask, ``"paper"`` (0) or ``"agree"`` (see `segtrust.EmptyPolicy`), for estimators
        that are given by name and have this setting. Estimators that are given as objects keep their own
        setting; one that contradicts ``empty`` raises. By default ``"paper"``.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> assessment = assess(np.array([[0.9, 0.8], [0.1, 0.0]]), estimators=["sdc", "idc"])
    >>> assessment
    Assessment(sdc=0.8947, idc=0.8746, k=2, foreground_ratio=0.5)
    """
    named = named_estimators(estimators, empty=empty)
    summary = summarise_array(p, mask, named.values(), threshold=threshold, where=where)
    assessment = _assess(named, summary)
    warn_of_surprises(p, summary.may_be_below, where)
    return assessment


def assess_map(
    source: MapSource,
    estimators: Sequence[ConfidenceEstimator],
    agreement: Agreement | None = None,
    pixels: Pixels | None = None,
) -> Assessment:
    """Return what `assess` returns for a map that is already open and may be fused from an ensemble.

    Parameters
    ----------
    source
        The open map.
    estimators
        Estimators with different names.
    agreement
        How far the members agree, if the map was fused from an ensemble.
    pixels
        The pixels of the map, if an estimator needs them.
    """
    summary = summarise(source, [estimator.needs for estimator in estimators], agreement, pixels)
    return _assess({estimator.name: estimator for estimator in estimators}, summary)


def _assess(estimators: Mapping[str, ConfidenceEstimator], summary: Summary) -> Assessment:
    counts = summary.counts
    return Assessment(read_all(estimators, summary), bounds_of(counts), counts.k / counts.n)


@overload
def score_batch(
    p: MapOnHost,
    mask: AnyArray | None = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: AnyArray | None = None,
) -> dict[str, npt.NDArray[np.float64]]: ...


@overload
def score_batch(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: AnyArray | None = None,
) -> dict[str, DeviceArrayT]: ...


def score_batch(
    p: Any,
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | str | None = None,
    where: Any = None,
) -> dict[str, Any]:
    """Return the confidences of each map of a batch.

    Parameters
    ----------
    p
        Foreground probabilities: a leading batch axis, then the axes of one map.
    mask
        The delivered masks, of the same shape; ``p >= threshold`` if there are none.
    estimators
        A name, an estimator with its own settings such as ``PatchLevel(size=20)``, a list of them, or a
        mapping from labels to them such as ``{"small": PatchLevel(5), "large": PatchLevel(20)}``.
    threshold
        Decision threshold in [0, 1].
    empty
        Score of an empty mask, ``"paper"`` (0) or ``"agree"`` (see `segtrust.EmptyPolicy`), for estimators
        that are given by name and have this setting. Estimators that are given as objects keep their own
        setting; one that contradicts ``empty`` raises. By default ``"paper"``.
    where
        Boolean array of the batch's shape that selects the pixels that count; all by default. Other pixels
        may hold anything, such as NaN.

    Returns
    -------
    dict
        By estimator name, or by label if a mapping was passed, an array with one confidence per map; for
        device arrays on their device.

    Examples
    --------
    >>> import numpy as np
    >>> score_batch(np.array([[0.9, 0.1], [0.6, 0.4]]), estimators="sdc")["sdc"].round(3).tolist()
    [0.9, 0.6]
    """
    p = as_array(p, "p")
    mask, where = (
        None if values is None else as_array(values, name)
        for values, name in ((mask, "mask"), (where, "where"))
    )
    check_map_type(p.dtype, "p")
    if len(p.shape) < 2 or p.shape[0] == 0:
        raise EmptyArrayError(
            f"p: expected a batch axis and at least one map, got shape {tuple(p.shape)}. "
            "Stack maps along a first axis; pass a single map to score()."
        )
    for values, name in ((mask, "mask"), (where, "where")):
        if values is None:
            continue
        if tuple(values.shape) != tuple(p.shape):
            raise MaskShapeError(
                f"{name}: expected the batch's shape {tuple(p.shape)}, got {tuple(values.shape)}. "
                f"Stack one {'mask' if name == 'mask' else 'selection'} per map, on the same grid."
            )
    named = named_estimators(estimators, empty=empty)
    p, number = in_host_memory(p)
    mask = in_host_memory(mask)[0]
    scores = _score_together(p, mask, named, threshold) if where is None else {}
    others = {label: estimator for label, estimator in named.items() if label not in scores}
    rows = []
    for i in range(p.shape[0] if others else 0):
        mask_i, where_i = (None if values is None else values[i] for values in (mask, where))
        summary = summarise_array(
            p[i], mask_i, others.values(), threshold=threshold, where=where_i, source=f"p[{i}]"
        )
        rows.append(read_all(others, summary))
    scores |= {label: _stack([row[label] for row in rows]) for label in others}
    warn_of_shape(p[0])
    wheres = [None] * p.shape[0] if where is None else where
    check_levels((part for i in range(p.shape[0]) for part in parts_of(p[i], wheres[i])), p.dtype)
    return {label: number(scores[label]) for label in named}


def _score_together(
    p: Any, mask: Any, named: Mapping[str, ConfidenceEstimator], threshold: float
) -> dict[str, Any]:
    """Return the confidences by estimators that read only counts, of all maps of a batch at once."""
    of_counts = {label: each for label, each in named.items() if each.needs == Needs(counts=True)}
    counts = count_batch(p, mask, threshold=threshold) if of_counts else None
    if counts is None:
        return {}
    scores = {label: each.read_counts(counts) for label, each in of_counts.items()}
    scores = {label: values for label, values in scores.items() if values is not NotImplemented}
    for label, values in scores.items():
        check_finite(float(np.sum(values)), named[label].name)  # not finite if one of them is not
    return scores


def _stack(values: list[Any]) -> Any:
    if isinstance(values[0], int | float):
        return np.array(values, dtype=np.float64)
    return array_namespace(values[0]).stack(values)
