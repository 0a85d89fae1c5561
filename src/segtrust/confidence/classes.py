"""Confidence of the classes, or regions, of one image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator, as_number
from segtrust.confidence.registry import Estimators, get_estimators
from segtrust.confidence.score import USUAL
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.summary import summarise
from segtrust.errors import EmptyArrayError, MaskShapeError, ParameterError
from segtrust.kernels.classes import (
    channel_of,
    check_labels,
    check_normalised,
    labels_beside,
    likeliest_labels,
    mask_of_label,
)
from segtrust.kernels.inputs import check_array, described
from segtrust.kernels.opening import open_map
from segtrust.kernels.refusals import check_type

__all__ = ["ClassScores", "score_classes"]


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
    estimators: Estimators = USUAL,
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

    Raises
    ------
    MaskError
        If a label is no channel number, such as an ignore index of 255.
    NotNormalisedError
        If the channels do not add up to 1, and are not said to be independent.

    Notes
    -----
    Dask, Zarr and HDF5 arrays are read chunk by chunk, a channel at a time. The labels of the likeliest
    classes, where none are given, are held in memory, of NumPy arrays too: one byte a pixel for up to 256
    classes.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.1, 0.8], [0.9, 0.1], [0.0, 0.1]])
    >>> scores = score_classes(p, ["background", "liver", "tumour"], estimators=["sdc"])
    >>> scores.predicted, scores.classes["tumour"], round(scores.case["sdc"], 3)
    (('liver',), None, 0.9)
    """
    listed = _checked_names(p, names)
    chosen = get_estimators(estimators)
    masks = _masks(p, mask) if independent else _masks_of_labels(p, mask)
    classes: dict[str, dict[str, Any] | None] = {}
    predicted = []
    for number, name in enumerate(listed):
        channel, source = channel_of(p, number), f"p[{name!r}]"
        if name == "background":
            open_map(channel, source=source).count()  # not scored, but what is no probability is refused too
            continue
        classes[name], present = _score_class(channel, masks(number), chosen, threshold, source)
        predicted += [name] if present else []
    if not independent:  # last, because NaN and logits have been refused by now and have better messages
        remedy = "Move the class axis to the front; for sigmoids pass independent=True."
        check_normalised(p, remedy=remedy)
    return ClassScores(classes, tuple(predicted), _mean_over(classes, predicted, chosen))


def _checked_names(p: Any, names: Any) -> list[str]:
    """Check that there is a channel for each name, and give the names as a list."""
    check_array(p, "p")
    check_type(p.dtype, "p")
    if len(p.shape) < 2 or 0 in tuple(p.shape):
        raise EmptyArrayError(
            f"p: expected an axis of classes and at least one pixel, got shape {tuple(p.shape)}. "
            "Stack the maps of the classes along a first axis; a map of one class goes to score()."
        )
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(
            f"names: expected a list of {p.shape[0]} names, got {described(names)}. "
            "Name every channel, in order."
        )
    listed = [str(name) if isinstance(name, str) else name for name in names]  # np.str_ reads badly in errors
    try:
        different = len(set(listed)) == len(listed)
    except TypeError:
        raise ParameterError(
            f"names: expected one text a channel, got {described(listed)}. Name every channel, in order."
        ) from None
    if len(listed) != p.shape[0] or not different:
        raise ParameterError(
            f"names: expected {p.shape[0]} different names, got {listed}. "
            "Name every channel, the background too; channels lie along the first axis of p."
        )
    return listed


def _score_class(
    p: Any, mask: Any, estimators: list[ConfidenceEstimator], threshold: float, source: str
) -> tuple[dict[str, Any] | None, bool]:
    """Confidences of one class, and whether the mask contains it."""
    opened = open_map(p, mask, threshold=threshold, source=source)
    summary = summarise(opened, [SoftDice().needs, *(each.needs for each in estimators)])
    present = bool(summary.counts.k > 0)
    if not present and open_map(p, threshold=threshold).count().k == 0:
        return None, False
    return {each.name: as_number(each.read(summary)) for each in estimators}, present


def _mean_over(
    classes: Mapping[str, Mapping[str, Any] | None], names: list[str], estimators: list[ConfidenceEstimator]
) -> dict[str, Any] | None:
    rows = [row for row in (classes[name] for name in names) if row is not None]
    if not rows:
        return None
    return {each.name: sum(row[each.name] for row in rows) / len(rows) for each in estimators}


def _masks(p: Any, mask: Any) -> Callable[[int], Any]:
    """Give the function from a channel to its mask where each has its own."""
    if mask is None:
        return lambda number: None
    check_array(mask, "mask")
    if tuple(mask.shape) != tuple(p.shape):
        raise MaskShapeError(
            f"mask: expected one mask a channel, {tuple(p.shape)}, got {tuple(mask.shape)}. "
            "Stack the masks along a first axis; labels of a softmax go without independent=True."
        )
    return lambda number: channel_of(mask, number)


def _masks_of_labels(p: Any, labels: Any) -> Callable[[int], Any]:
    """Give the function from a channel to its mask where every pixel has one label."""
    if labels is None:
        labels = likeliest_labels(p)
        return lambda number: mask_of_label(labels, number, p)
    check_array(labels, "mask")
    if tuple(labels.shape) != tuple(p.shape[1:]):
        raise MaskShapeError(
            f"mask: expected labels of shape {tuple(p.shape[1:])}, got {tuple(labels.shape)}. "
            "Give one label a pixel; one mask a channel goes with independent=True."
        )
    check_labels(labels, p.shape[0])
    beside = labels_beside(labels, p)
    return lambda number: mask_of_label(beside, number, p)
