"""Confidences of one map, or of each map of a batch, by several estimators that share their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from segtrust.confidence.base import ConfidenceEstimator, read_all, summarise
from segtrust.confidence.registry import Estimators, get_estimators
from segtrust.confidence.soft_dice import bounds_of
from segtrust.errors import EmptyArrayError, MaskShapeError
from segtrust.kernels import Agreement, DiceBounds, MapSource, check_array, check_map_type, open_map

USUAL: Estimators = ("sdc", "amsp")
"""The estimators that are used unless others are named."""


def score(
    p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5
) -> dict[str, Any]:
    """Return the confidences of one map by several estimators, which share the passes over its pixels.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    estimators
        Names, or estimators with their own settings such as ``PatchLevel(size=20)``.
    threshold
        Decision threshold in [0, 1].

    Returns
    -------
    dict
        Confidence by estimator name.

    Examples
    --------
    >>> import numpy as np
    >>> score(np.array([[0.9, 0.8], [0.1, 0.0]]), estimators=["sdc", "apc"])
    {'sdc': 0.8947368421052632, 'apc': 0.9}
    """
    return _scores(open_map(p, mask, threshold=threshold), get_estimators(estimators))


def _scores(source: MapSource, estimators: Sequence[ConfidenceEstimator]) -> dict[str, Any]:
    return read_all(estimators, summarise(source, [estimator.needs for estimator in estimators]))


@dataclass(frozen=True)
class Assessment:
    """Confidences of one map, with the bounds and counts that the same passes provide.

    Attributes
    ----------
    scores
        Confidence by estimator name.
    bounds
        How far SDC and IDC can be apart, with k, mu, lam and s; see `segtrust.dice_bounds`.
    foreground_ratio
        Share of the pixels that the mask covers.
    """

    scores: Mapping[str, Any]
    bounds: DiceBounds
    foreground_ratio: float


def assess(p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5) -> Assessment:
    """Return the confidences of one map together with its certified bounds and counts.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    estimators
        Names, or estimators with their own settings such as ``PatchLevel(size=20)``.
    threshold
        Decision threshold in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> assessment = assess(np.array([[0.9, 0.8], [0.1, 0.0]]), estimators=["sdc", "idc"])
    >>> round(assessment.scores["idc"], 4), assessment.bounds.k, assessment.foreground_ratio
    (0.8746, 2, 0.5)
    """
    return assess_map(open_map(p, mask, threshold=threshold), get_estimators(estimators))


def assess_map(
    source: MapSource, estimators: Sequence[ConfidenceEstimator], agreement: Agreement | None = None
) -> Assessment:
    """Return what `assess` returns for a map that is already open and may be fused from an ensemble."""
    summary = summarise(source, [estimator.needs for estimator in estimators], agreement)
    counts = summary.counts
    return Assessment(read_all(estimators, summary), bounds_of(counts), counts.k / counts.n)


def score_batch(
    p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5
) -> dict[str, Any]:
    """Return the confidences of each map of a batch.

    Parameters
    ----------
    p
        Foreground probabilities: a leading batch axis, then the axes of one map.
    mask
        The delivered masks, of the same shape; ``p >= threshold`` if there are none.
    estimators
        Names, or estimators with their own settings such as ``PatchLevel(size=20)``.
    threshold
        Decision threshold in [0, 1].

    Returns
    -------
    dict
        By estimator name an array with one confidence per map; for device arrays on their device.

    Examples
    --------
    >>> import numpy as np
    >>> score_batch(np.array([[0.9, 0.1], [0.6, 0.4]]), estimators=["sdc"])["sdc"].round(3).tolist()
    [0.9, 0.6]
    """
    check_array(p, "p")
    check_map_type(p.dtype, "p")
    if len(p.shape) < 2 or p.shape[0] == 0:
        raise EmptyArrayError(
            f"p: expected a batch axis and at least one map, got shape {tuple(p.shape)}. "
            "Stack maps along a first axis; pass a single map to score()."
        )
    if mask is not None:
        check_array(mask, "mask")
        if tuple(mask.shape) != tuple(p.shape):
            raise MaskShapeError(
                f"mask: expected the batch's shape {tuple(p.shape)}, got {tuple(mask.shape)}. "
                "Stack one mask per map, on the same grid."
            )
    chosen = get_estimators(estimators)
    rows = []
    for i in range(p.shape[0]):
        mask_i = None if mask is None else mask[i]
        rows.append(_scores(open_map(p[i], mask_i, threshold=threshold, source=f"p[{i}]"), chosen))
    return {estimator.name: _stack([row[estimator.name] for row in rows]) for estimator in chosen}


def _stack(values: list[Any]) -> Any:
    if isinstance(values[0], int | float):
        return np.array(values, dtype=np.float64)
    return array_namespace(values[0]).stack(values)
