"""Confidence of each class, or region, of one image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from segtrust._arguments import describe
from segtrust.confidence.base import ConfidenceEstimator, read_all, summarise
from segtrust.confidence.registry import Estimators, get_estimators
from segtrust.confidence.score import USUAL
from segtrust.errors import EmptyArrayError, MaskShapeError, ParameterError
from segtrust.kernels import (
    channel_of,
    check_array,
    check_labels,
    check_map_type,
    check_normalised,
    labels_for,
    mask_of_label,
    most_probable_labels,
    open_map,
)


@dataclass(frozen=True)
class ClassScores:
    """Confidences of the classes of one image.

    Attributes
    ----------
    classes
        Confidences by estimator name, for each class name; ``None`` for an absent class, whose mask is empty
        and whose probabilities are all below the threshold.
    predicted
        Names of the classes that the mask contains.
    case
        Mean over the predicted classes, by estimator name; ``None`` if the mask contains no class.
    """

    classes: Mapping[str, Mapping[str, float] | None]
    predicted: tuple[str, ...]
    case: Mapping[str, float] | None


def score_classes(
    p: Any,
    names: Sequence[str],
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    independent: bool = False,
    threshold: float = 0.5,
) -> ClassScores:
    """Return the confidence of each class, or region, of one image.

    Parameters
    ----------
    p
        Probabilities, classes first.
    names
        One name per channel. A class called ``"background"`` is not scored.
    mask
        The delivered segmentation: for a softmax the label (channel number) of each pixel, for independent
        classes one binary mask per channel. If there is none: the most probable class, or
        ``p >= threshold``.
    estimators
        Names, or estimators with their own settings such as ``PatchLevel(size=20)``.
    independent
        Whether each channel is a separate sigmoid (overlapping regions) rather than part of a softmax.
    threshold
        Decision threshold in [0, 1] of independent channels. With a softmax it only decides absence: a class
        that is not predicted is absent if none of its probabilities reaches the threshold.

    Returns
    -------
    ClassScores
        Confidences by class, and for the case their mean over the classes that the mask contains.

    Raises
    ------
    MaskError
        If a label is not a channel number, such as an ignore index of 255.
    NotNormalisedError
        If the channels do not add up to 1 and are not declared independent.

    Notes
    -----
    Dask, Zarr and HDF5 arrays are read tile by tile, one channel at a time. The labels of the most
    probable classes, if no mask is passed, are held in memory, also for NumPy arrays: one byte per pixel for
    up to 256 classes.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.1, 0.8], [0.9, 0.1], [0.0, 0.1]])
    >>> scores = score_classes(p, ["background", "liver", "tumour"], estimators=["sdc"])
    >>> scores.predicted, scores.classes["tumour"], round(scores.case["sdc"], 3)
    (('liver',), None, 0.9)
    """
    listed = _check_names(p, names)
    chosen = get_estimators(estimators)
    mask_of = _channel_masks(p, mask) if independent else _label_masks(p, mask)
    classes: dict[str, Any] = {}
    predicted = []
    for number, name in enumerate(listed):
        channel, source = channel_of(p, number), f"p[{name!r}]"
        if name == "background":
            open_map(channel, source=source).count()  # not scored, but bad values are rejected here too
            continue
        classes[name], is_predicted = _score_class(channel, mask_of(number), chosen, threshold, source)
        if is_predicted:
            predicted.append(name)
    if not independent:  # last, because NaN and logits have been rejected by now, with better messages
        remedy = "Move the class axis to the front; for sigmoids pass independent=True."
        check_normalised(p, remedy=remedy)
    case = None
    if predicted:
        rows = [classes[name] for name in predicted]
        case = {estimator.name: sum(row[estimator.name] for row in rows) / len(rows) for estimator in chosen}
    return ClassScores(classes, tuple(predicted), case)


def _check_names(p: Any, names: Any) -> list[str]:
    """Check that there is one name per channel, and return the names as a list."""
    check_array(p, "p")
    check_map_type(p.dtype, "p")
    if len(p.shape) < 2 or 0 in tuple(p.shape):
        raise EmptyArrayError(
            f"p: expected an axis of classes and at least one pixel, got shape {tuple(p.shape)}. "
            "Stack the maps of the classes along a first axis; pass the map of one class to score()."
        )
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(
            f"names: expected a list of {p.shape[0]} names, got {describe(names)}. "
            "Name every channel, in order."
        )
    listed = [str(name) if isinstance(name, str) else name for name in names]  # np.str_ reads badly in errors
    try:
        are_different = len(set(listed)) == len(listed)
    except TypeError:
        raise ParameterError(
            f"names: expected one text per channel, got {describe(listed)}. Name every channel, in order."
        ) from None
    if len(listed) != p.shape[0] or not are_different:
        raise ParameterError(
            f"names: expected {p.shape[0]} different names, got {listed}. "
            "Name every channel, the background too; channels lie along the first axis of p."
        )
    return listed


def _score_class(
    p: Any, mask: Any, estimators: list[ConfidenceEstimator], threshold: float, source: str
) -> tuple[dict[str, Any] | None, bool]:
    """Return the confidences of one class, and whether the mask contains it."""
    opened = open_map(p, mask, threshold=threshold, source=source)
    summary = summarise(opened, [estimator.needs for estimator in estimators])
    is_predicted = bool(summary.counts.k > 0)
    if not is_predicted and open_map(p, threshold=threshold).count().k == 0:
        return None, False
    return read_all(estimators, summary), is_predicted


def _channel_masks(p: Any, mask: Any) -> Callable[[int], Any]:
    """Return a function from a channel number to its mask, if each channel has its own."""
    if mask is None:
        return lambda number: None
    check_array(mask, "mask")
    if tuple(mask.shape) != tuple(p.shape):
        raise MaskShapeError(
            f"mask: expected one mask per channel, {tuple(p.shape)}, got {tuple(mask.shape)}. "
            "Stack the masks along a first axis; pass labels of a softmax without independent=True."
        )
    return lambda number: channel_of(mask, number)


def _label_masks(p: Any, labels: Any) -> Callable[[int], Any]:
    """Return a function from a channel number to its mask, if every pixel has one label."""
    if labels is None:
        likeliest = most_probable_labels(p)
        return lambda number: mask_of_label(likeliest, number, p)
    check_array(labels, "mask")
    if tuple(labels.shape) != tuple(p.shape[1:]):
        raise MaskShapeError(
            f"mask: expected labels of shape {tuple(p.shape[1:])}, got {tuple(labels.shape)}. "
            "Pass one label per pixel, or one mask per channel with independent=True."
        )
    check_labels(labels, p.shape[0])
    beside = labels_for(labels, p)
    return lambda number: mask_of_label(beside, number, p)
