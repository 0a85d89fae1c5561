"""Several estimators in one pass: of one map, of a batch, of the classes of one image."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.registry import get_estimator
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.summary import summarise
from segtrust.errors import EmptyArrayError, MaskError, MaskShapeError, NotNormalisedError, ParameterError
from segtrust.kernels.arrays import LEVELS, detached, name_of
from segtrust.kernels.bounds import DiceBounds, dice_bounds_from
from segtrust.kernels.device import is_device_array
from segtrust.kernels.opening import open_map
from segtrust.kernels.statistics import host_number

__all__ = ["Assessment", "ClassScores", "assess", "score", "score_batch", "score_classes"]

Estimators = Sequence[str | ConfidenceEstimator]
_USUAL: Estimators = ("sdc", "amsp")
_SUM_TOLERANCE = 0.02
"""Channels of a softmax saved as float16 miss 1 by up to this much."""


def _resolve(estimators: Estimators) -> list[ConfidenceEstimator]:
    if isinstance(estimators, str):
        raise ParameterError(f"estimators: expected a list of names, got the text {estimators!r}.")
    chosen = [get_estimator(item) if isinstance(item, str) else item for item in estimators]
    names = [each.name for each in chosen]
    if len(set(names)) < len(names):
        raise ParameterError(f"estimators: results go by name, so each is given once; got {names}.")
    return chosen


def score(
    p: Any, mask: Any = None, estimators: Estimators = _USUAL, *, threshold: float = 0.5
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
    chosen = _resolve(estimators)
    summary = summarise(open_map(p, mask, threshold=threshold), [each.needs for each in chosen])
    return {estimator.name: estimator.read(summary) for estimator in chosen}


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


def assess(
    p: Any, mask: Any = None, estimators: Estimators = _USUAL, *, threshold: float = 0.5
) -> Assessment:
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
    chosen = _resolve(estimators)
    source = open_map(p, mask, threshold=threshold)
    summary = summarise(source, [SoftDice().needs, *(each.needs for each in chosen)])
    counts = summary.counts
    return Assessment(
        {each.name: each.read(summary) for each in chosen},
        dice_bounds_from(int(counts.k), host_number(counts.s), host_number(counts.lam)),
        counts.k / counts.n,
    )


def score_batch(
    p: Any, mask: Any = None, estimators: Estimators = _USUAL, *, threshold: float = 0.5
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
    if len(p.shape) < 2 or p.shape[0] == 0:
        raise EmptyArrayError(f"p: expected a batch axis and at least one map, got shape {tuple(p.shape)}.")
    if mask is not None and tuple(mask.shape) != tuple(p.shape):
        raise MaskShapeError(f"mask: expected the batch's shape {tuple(p.shape)}, got {tuple(mask.shape)}.")
    chosen = _resolve(estimators)
    rows = [
        score(p[i], None if mask is None else mask[i], chosen, threshold=threshold) for i in range(p.shape[0])
    ]
    return {estimator.name: _stack([row[estimator.name] for row in rows]) for estimator in chosen}


def _stack(values: list[Any]) -> Any:
    if isinstance(values[0], int | float):
        return np.array(values, dtype=np.float64)
    return array_namespace(values[0]).stack(values)


@dataclass(frozen=True)
class ClassScores:
    """Confidences of the classes of one image.

    Attributes
    ----------
    classes
        By class name the confidences by estimator name; ``None`` for a class that is absent: not one pixel
        of its mask is set and none of its probabilities reaches the threshold.
    predicted
        Names of the classes that the mask contains.
    case
        By estimator name the mean over the predicted classes; ``None`` where the mask contains none.
    """

    classes: Mapping[str, Mapping[str, float] | None]
    predicted: tuple[str, ...]
    case: Mapping[str, float] | None


def score_classes(
    p: Any,
    names: Sequence[str],
    mask: Any = None,
    estimators: Estimators = _USUAL,
    *,
    independent: bool = False,
    threshold: float = 0.5,
) -> ClassScores:
    """Confidence of each class, or region, of one image.

    Parameters
    ----------
    p
        Probabilities, classes first.
    names
        One a channel. A class called ``"background"`` is not scored.
    mask
        The delivered segmentation: for a softmax the label (channel number) of each pixel, for independent
        classes one binary mask a channel. Where none is given: the likeliest class, or ``p >= threshold``.
    estimators
        As for `score`.
    independent
        Whether each channel is a sigmoid of its own (overlapping regions) rather than part of a softmax.
    threshold
        Of independent channels, and below which a class that is not predicted counts as absent.

    Returns
    -------
    ClassScores
        Confidences by class, and for the case their mean over the classes that the mask contains.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.1, 0.8], [0.9, 0.1], [0.0, 0.1]])
    >>> scores = score_classes(p, ["background", "liver", "tumour"], estimators=["sdc"])
    >>> scores.predicted, scores.classes["tumour"], round(scores.case["sdc"], 3)
    (('liver',), None, 0.9)
    """
    if len(names) != p.shape[0] or len(set(names)) != len(names):
        raise ParameterError(f"names: expected {p.shape[0]} different names, got {list(names)}.")
    chosen = _resolve(estimators)
    masks = _class_masks(p, mask, independent=independent)
    classes: dict[str, dict[str, Any] | None] = {}
    predicted = []
    for channel, name in enumerate(names):
        if name == "background":
            open_map(p[channel]).count()  # not scored, but what is no probability is refused there too
            continue
        classes[name], present = _score_class(p[channel], masks(channel), chosen, threshold)
        predicted += [name] if present else []
    if not independent:  # last, because NaN and logits have been refused by now and have better messages
        _check_normalised(p)
    return ClassScores(classes, tuple(predicted), _mean_over(classes, predicted, chosen))


def _score_class(
    p: Any, mask: Any, estimators: list[ConfidenceEstimator], threshold: float
) -> tuple[dict[str, Any] | None, bool]:
    """Confidences of one class, and whether the mask contains it."""
    source = open_map(p, mask, threshold=threshold)
    summary = summarise(source, [SoftDice().needs, *(each.needs for each in estimators)])
    present = bool(summary.counts.k > 0)
    if not present and open_map(p, threshold=threshold).count().k == 0:
        return None, False
    return {each.name: each.read(summary) for each in estimators}, present


def _mean_over(
    classes: Mapping[str, Mapping[str, Any] | None], names: list[str], estimators: list[ConfidenceEstimator]
) -> dict[str, Any] | None:
    rows = [row for row in (classes[name] for name in names) if row is not None]
    if not rows:
        return None
    return {each.name: sum(row[each.name] for row in rows) / len(rows) for each in estimators}


def _class_masks(p: Any, mask: Any, *, independent: bool) -> Callable[[int], Any]:
    """Give the function from a channel to its mask."""
    if independent:
        if mask is not None and tuple(mask.shape) != tuple(p.shape):
            raise MaskShapeError(f"mask: expected one mask a channel, {p.shape}, got {mask.shape}.")
        return lambda channel: None if mask is None else mask[channel]
    labels = _summable(p).argmax(0) if mask is None else mask
    if tuple(labels.shape) != tuple(p.shape[1:]):
        raise MaskShapeError(f"mask: expected labels of shape {tuple(p.shape[1:])}, got {labels.shape}.")
    if mask is not None:
        _check_labels(labels, p.shape[0])
    return lambda channel: labels == channel


def _check_labels(labels: Any, count: int) -> None:
    low, high = float(labels.min()), float(labels.max())
    if not (low >= 0.0 and high <= count - 1.0):
        raise MaskError(
            f"mask: expected labels from 0 to {count - 1}, one a channel, got {low:g} to {high:g}. "
            "Renumber them in the order of the channels first."
        )


def _summable(p: Any) -> Any:
    """Give integers on a device as floats, because torch has no sum or argmax of some of them."""
    if not is_device_array(p):
        return p
    xp = array_namespace(p)
    return detached(p if xp.isdtype(p.dtype, "real floating") else xp.astype(p, xp.float32))


def _check_normalised(p: Any) -> None:
    """Look at the sums of a thousand pixels; a softmax misread as classes last shows at once."""
    stride = max(1, math.prod(p.shape[1:]) // 1000)
    total = _summable(p.reshape(p.shape[0], -1)[:, ::stride]).sum(0)
    scale = LEVELS.get(name_of(p.dtype), 1.0)
    low, high = float(total.min()) / scale, float(total.max()) / scale
    tolerance = _SUM_TOLERANCE + (
        p.shape[0] / (2.0 * scale) if scale > 1.0 else 0.0
    )  # half a level a channel
    if not (low > 1.0 - tolerance and high < 1.0 + tolerance):
        raise NotNormalisedError(
            f"p: expected a softmax over the first axis of {tuple(p.shape)}, but its sums run from "
            f"{low:.3g} to {high:.3g}. Move the class axis to the front; for sigmoids pass independent=True."
        )
