"""Several estimators in one pass: of one map, or of a batch of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from segtrust.confidence.base import ConfidenceEstimator, as_number
from segtrust.confidence.registry import Estimators, get_estimators
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.summary import summarise
from segtrust.errors import EmptyArrayError, MaskShapeError
from segtrust.kernels.agreement import Agreement
from segtrust.kernels.bounds import DiceBounds, dice_bounds_from
from segtrust.kernels.inputs import check_array
from segtrust.kernels.opening import MapSource, open_map
from segtrust.kernels.refusals import check_type
from segtrust.kernels.statistics import host_number

__all__ = ["USUAL", "Assessment", "assess", "assess_map", "score", "score_batch"]

USUAL: Estimators = ("sdc", "amsp")
"""What is scored where nothing is said."""


def score(
    p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5
) -> dict[str, Any]:
    """Confidence of one map by several estimators, in one pass over its pixels.

    Parameters
    ----------
    p, mask, threshold
        As for `segtrust.soft_dice_confidence`.
    estimators
        Names, or estimators with settings of their own such as ``PatchLevel(size=20)``.

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


def _scores(source: MapSource, chosen: list[ConfidenceEstimator]) -> dict[str, Any]:
    summary = summarise(source, [each.needs for each in chosen])
    return {each.name: as_number(each.read(summary)) for each in chosen}


@dataclass(frozen=True)
class Assessment:
    """All that one pass over a map tells.

    Attributes
    ----------
    scores
        Confidence by estimator name.
    bounds
        How far SDC and IDC can be apart, with k, mu, lam and s.
    foreground_ratio
        Share of the pixels that the mask covers.
    """

    scores: Mapping[str, Any]
    bounds: DiceBounds
    foreground_ratio: float


def assess(p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5) -> Assessment:
    """Confidences of one map together with the certified bounds and its counts, in one pass.

    Parameters
    ----------
    p, mask, estimators, threshold
        As for `score`.

    Examples
    --------
    >>> import numpy as np
    >>> found = assess(np.array([[0.9, 0.8], [0.1, 0.0]]), estimators=["sdc", "idc"])
    >>> round(found.scores["idc"], 4), found.bounds.k, found.foreground_ratio
    (0.8746, 2, 0.5)
    """
    return assess_map(open_map(p, mask, threshold=threshold), get_estimators(estimators))


def assess_map(
    source: MapSource, chosen: Sequence[ConfidenceEstimator], agreement: Agreement | None = None
) -> Assessment:
    """Do as `assess` does with a map that is open already, and perhaps fused of several."""
    summary = summarise(source, [SoftDice().needs, *(each.needs for each in chosen)], agreement)
    counts = summary.counts
    return Assessment(
        {each.name: as_number(each.read(summary)) for each in chosen},
        dice_bounds_from(int(counts.k), host_number(counts.s), host_number(counts.lam)),
        counts.k / counts.n,
    )


def score_batch(
    p: Any, mask: Any = None, estimators: Estimators = USUAL, *, threshold: float = 0.5
) -> dict[str, Any]:
    """Confidence of each map of a batch.

    Parameters
    ----------
    p, mask
        A leading batch axis, then the axes of one map.
    estimators, threshold
        As for `score`.

    Returns
    -------
    dict
        By estimator name an array of one confidence a map; for device arrays on their device.

    Examples
    --------
    >>> import numpy as np
    >>> score_batch(np.array([[0.9, 0.1], [0.6, 0.4]]), estimators=["sdc"])["sdc"].round(3).tolist()
    [0.9, 0.6]
    """
    check_array(p, "p")
    check_type(p.dtype, "p")
    if len(p.shape) < 2 or p.shape[0] == 0:
        raise EmptyArrayError(
            f"p: expected a batch axis and at least one map, got shape {tuple(p.shape)}. "
            "Stack maps along a first axis; a single map goes to score()."
        )
    if mask is not None:
        check_array(mask, "mask")
    if mask is not None and tuple(mask.shape) != tuple(p.shape):
        raise MaskShapeError(
            f"mask: expected the batch's shape {tuple(p.shape)}, got {tuple(mask.shape)}. "
            "Stack one mask a map, on the same grid."
        )
    chosen = get_estimators(estimators)
    masks = (None if mask is None else mask[i] for i in range(p.shape[0]))
    rows = [
        _scores(open_map(p[i], each, threshold=threshold, source=f"p[{i}]"), chosen)
        for i, each in enumerate(masks)
    ]
    return {estimator.name: _stack([row[estimator.name] for row in rows]) for estimator in chosen}


def _stack(values: list[Any]) -> Any:
    if isinstance(values[0], int | float):
        return np.array(values, dtype=np.float64)
    return array_namespace(values[0]).stack(values)
