"""Confidence of each class, or region, of one image or of each image of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from segtrust._arguments import check_whole, describe
from segtrust._display import html_table, short_repr
from segtrust._optional import require
from segtrust._types import EmptyName
from segtrust.confidence.base import ConfidenceEstimator, read_all, summarise_array
from segtrust.confidence.registry import Estimators, named_estimators
from segtrust.confidence.score import USUAL
from segtrust.errors import EmptyArrayError, MaskShapeError, ParameterError
from segtrust.kernels import (
    as_array,
    channel_of,
    check_array,
    check_labels,
    check_levels,
    check_map_type,
    check_normalised,
    check_where,
    fill_unselected,
    host_number,
    in_host_memory,
    is_chunked,
    labels_for,
    mask_of_label,
    most_probable_labels,
    on_host,
    open_map,
    parts_of,
    read_tile,
    tiles_of,
)
from segtrust.maps import EmptyPolicy

if TYPE_CHECKING:
    from pandas import DataFrame

_CHECKED_PIXELS = 1000
"""Selected pixels whose classes are added up to see whether they are a softmax."""


@dataclass(frozen=True, repr=False)
class ClassScores:
    """Confidences of the classes of one image.

    Attributes
    ----------
    classes
        Confidences by estimator name (or label), for each class name; ``None`` for an absent class, whose
        mask is empty and whose probabilities are all below the threshold.
    predicted
        Names of the classes that the mask contains.
    case
        Mean over the predicted classes, by estimator name (or label); ``None`` if the mask contains no class.
    """

    classes: Mapping[str, Mapping[str, float] | None]
    predicted: tuple[str, ...]
    case: Mapping[str, float] | None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per class: its name, whether the mask contains it, and its confidences.

        An absent class has no confidences; those of tensors are Python numbers here.
        """
        return [
            {"class": name, "predicted": name in self.predicted, **_floats(scores)}
            for name, scores in self.classes.items()
        ]

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table with one row per class; the confidences of an absent class are NaN."""
        return require("pandas", extra="tables").DataFrame(self.rows())

    def __repr__(self) -> str:
        """Return the confidences of the case in one line."""
        return short_repr(
            self, {"predicted": self.predicted, "classes": len(self.classes), **_floats(self.case)}
        )

    def _repr_html_(self) -> str:
        """Return a table for a notebook: one row per class."""
        return _html(self.rows())


@dataclass(frozen=True, repr=False)
class BatchClassScores(Sequence[ClassScores]):
    """Confidences of the classes of each image of a batch: a sequence of `ClassScores`.

    Attributes
    ----------
    images
        The results in the order of the batch.
    """

    images: tuple[ClassScores, ...]

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    @overload
    def __getitem__(self, index: int) -> ClassScores: ...

    @overload
    def __getitem__(self, index: slice) -> BatchClassScores: ...

    def __getitem__(self, index: Any) -> Any:
        """Return the result of one image, or of several as a batch."""
        found = self.images[index]
        return BatchClassScores(found) if isinstance(index, slice) else found

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per image and class."""
        return [{"image": i, **row} for i, scores in enumerate(self.images) for row in scores.rows()]

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table with one row per image and class; an absent class has NaN."""
        return require("pandas", extra="tables").DataFrame(self.rows())

    def __repr__(self) -> str:
        """Return the size of the batch in one line."""
        return short_repr(
            self, {"images": len(self), "classes": list(self.images[0].classes) if self else []}
        )

    def _repr_html_(self) -> str:
        """Return a table for a notebook: one row per image and class."""
        return _html(self.rows())


def _floats(scores: Mapping[str, Any] | None) -> dict[str, float]:
    return {label: host_number(value) for label, value in (scores or {}).items()}


def _html(rows: list[dict[str, Any]]) -> str:
    header = list(dict.fromkeys(name for row in rows for name in row))
    return html_table("", [[row.get(name, "") for name in header] for row in rows], header=header)


@overload
def score_classes(
    p: Any,
    names: Sequence[str] | Mapping[int, str],
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    independent: bool = False,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: Any = None,
    background: int | str | None = "background",
    batch: Literal[False] = False,
) -> ClassScores: ...


@overload
def score_classes(
    p: Any,
    names: Sequence[str] | Mapping[int, str],
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    independent: bool = False,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: Any = None,
    background: int | str | None = "background",
    batch: Literal[True],
) -> BatchClassScores: ...


def score_classes(
    p: Any,
    names: Sequence[str] | Mapping[int, str],
    mask: Any = None,
    estimators: Estimators = USUAL,
    *,
    independent: bool = False,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName | None = None,
    where: Any = None,
    background: int | str | None = "background",
    batch: bool = False,
) -> ClassScores | BatchClassScores:
    """Return the confidence of each class, or region, of one image or of each image of a batch.

    Parameters
    ----------
    p
        Probabilities, classes first; with ``batch=True`` a batch axis, then the classes.
    names
        One name per channel, in order, or a mapping from the channel numbers 0, 1, … to their names.
    mask
        The delivered segmentation: for a softmax the label (channel number) of each pixel, for independent
        classes one binary mask per channel. If there is none: the most probable class, or
        ``p >= threshold``.
    estimators
        A name, an estimator with its own settings such as ``PatchLevel(size=20)``, a list of them, or a
        mapping from labels to them such as ``{"small": PatchLevel(5), "large": PatchLevel(20)}``.
    independent
        Whether each channel is a separate sigmoid (overlapping regions) rather than part of a softmax.
    threshold
        Decision threshold in [0, 1] of independent channels. With a softmax it only decides absence: a class
        that is not predicted is absent if none of its probabilities reaches the threshold.
    empty
        Score of an empty mask, ``"paper"`` (0) or ``"agree"`` (see `segtrust.EmptyPolicy`), for estimators
        that are given by name and have this setting. Estimators that are given as objects keep their own
        setting; one that contradicts ``empty`` raises. By default ``"paper"``.
    where
        Boolean array of the shape of one channel (with ``batch=True`` after a batch axis) that selects the
        pixels that count; all by default. Other pixels may hold anything, such as NaN, and their labels too,
        such as an ignore index of 255.
    background
        Channel that is not scored: its number, or its name in any capitalisation; ``None`` to score all. By
        default a class called ``"background"``, if there is one.
    batch
        Whether the first axis of ``p`` (and of ``mask`` and ``where``) is a batch. It has to be stated:
        (3, 4, 256, 256) may be three images of four classes or three classes of a volume.

    Returns
    -------
    ClassScores or BatchClassScores
        Confidences by class, and for the case their mean over the classes that the mask contains; for a
        batch a sequence of such results. Both have ``to_dataframe()``.

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
    >>> scores = score_classes(p, ["background", "liver", "tumour"], estimators="sdc")
    >>> scores.predicted, scores.classes["tumour"], round(scores.case["sdc"], 3)
    (('liver',), None, 0.9)
    >>> score_classes(p[None], ["Background", "liver", "tumour"], estimators="sdc", batch=True)
    BatchClassScores(images=1, classes=[liver, tumour])
    """
    named = named_estimators(estimators, empty=empty)
    p = as_array(p, "p")
    mask, where = (
        None if values is None else as_array(values, name)
        for values, name in ((mask, "mask"), (where, "where"))
    )
    if not batch:
        scores = _score_image(p, names, mask, named, independent, threshold, where, background)
        if independent:
            check_levels(_parts(p, where), p.dtype)
        return scores
    if len(p.shape) < 3 or p.shape[0] == 0:
        raise EmptyArrayError(
            f"p: expected a batch axis, an axis of classes and pixels, got shape {tuple(p.shape)}. "
            "Leave out batch=True for a single image."
        )
    for values, name in ((mask, "mask"), (where, "where")):
        if values is not None and tuple(values.shape)[:1] != (p.shape[0],):
            raise MaskShapeError(
                f"{name}: expected {p.shape[0]} images along the first axis, as in p, got the shape "
                f"{tuple(values.shape)}."
            )
    if isinstance(names, Iterable) and not isinstance(names, str | Mapping):
        names = list(names)
    images = []
    for i in range(p.shape[0]):
        mask_i, where_i = (None if values is None else channel_of(values, i) for values in (mask, where))
        image = channel_of(p, i)
        images.append(_score_image(image, names, mask_i, named, independent, threshold, where_i, background))
    if independent:
        wheres = [None] * p.shape[0] if where is None else where
        parts = (_parts(channel_of(p, i), wheres[i]) for i in range(p.shape[0]))
        check_levels(chain.from_iterable(parts), p.dtype)
    return BatchClassScores(tuple(images))


def _parts(p: Any, where: Any) -> Iterator[Any]:
    """Yield the pixels that count of one channel after the other."""
    for number in range(p.shape[0]):
        yield from parts_of(channel_of(p, number), where)


def _score_image(
    p: Any,
    names: Any,
    mask: Any,
    estimators: dict[str, ConfidenceEstimator],
    independent: bool,
    threshold: float,
    where: Any,
    background: int | str | None,
) -> ClassScores:
    listed = _check_names(p, names)
    p, number_of = in_host_memory(p)
    mask = in_host_memory(mask)[0]
    unscored = _background_channels(listed, background)
    if where is not None:
        where = check_where(where, channel_of(p, 0))
        if mask is not None and not independent and tuple(getattr(mask, "shape", ())) == tuple(where.shape):
            mask = fill_unselected(mask, check_where(where, mask))
    mask_of = _channel_masks(p, mask) if independent else _label_masks(p, mask)
    classes: dict[str, Any] = {}
    predicted = []
    for number, name in enumerate(listed):
        channel, source = channel_of(p, number), f"p[{name!r}]"
        if number in unscored:
            open_map(channel, source=source, where=where).count()  # bad values are rejected here too
            continue
        scores, is_predicted = _score_class(channel, mask_of(number), estimators, threshold, source, where)
        classes[name] = scores and {label: number_of(value) for label, value in scores.items()}
        if is_predicted:
            predicted.append(name)
    if not independent:  # last, because NaN and logits have been rejected by now, with better messages
        remedy = "Move the class axis to the front; for sigmoids pass independent=True."
        check_normalised(p if where is None else _some_selected(p, where), remedy=remedy)
    case = None
    if predicted:
        rows = [classes[name] for name in predicted]
        case = {label: sum(row[label] for row in rows) / len(rows) for label in estimators}
    return ClassScores(classes, tuple(predicted), case)


def _some_selected(p: Any, where: Any) -> Any:
    """Return all channels of some selected pixels, of shape (classes, pixels)."""
    if is_chunked(p):
        channels = [channel_of(p, number) for number in range(p.shape[0])]
        for tile in tiles_of(channels[0]):
            chosen = read_tile(where, tile).astype(bool)
            if chosen.any():
                return np.stack([read_tile(channel, tile)[chosen][:_CHECKED_PIXELS] for channel in channels])
    flat = np.flatnonzero(np.asarray(on_host(where)))
    some = flat[:: -(-flat.size // _CHECKED_PIXELS)]
    return p[(slice(None), *np.unravel_index(some, tuple(p.shape[1:])))]


def is_background(name: str) -> bool:
    """Return whether a class is the background by its name, in any capitalisation.

    Examples
    --------
    >>> is_background("Background"), is_background("back")
    (True, False)
    """
    return name.casefold() == "background"


def _background_channels(names: list[str], background: int | str | None) -> set[int]:
    """Return the numbers of the channels that are not scored."""
    if background is None:
        return set()
    if isinstance(background, str):
        found = {i for i, name in enumerate(names) if name.casefold() == background.casefold()}
        if not found and not is_background(background):
            raise ParameterError(
                f"background: expected one of the names {names}, its number, or None, got {background!r}."
            )
        return found
    return {check_whole(background, "background", most=len(names) - 1)}


def _check_names(p: Any, names: Any) -> list[str]:
    """Check that there is one name per channel, and return the names as a list."""
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
    if isinstance(names, Mapping):
        names = _names_in_order(names)
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise ParameterError(
            f"names: expected one text per channel, got {describe(listed)}. Name every channel, in order."
        )
    listed = [str(name) for name in listed]  # np.str_ reads badly in errors
    if len(listed) != p.shape[0] or len(set(listed)) < len(listed):
        raise ParameterError(
            f"names: expected {p.shape[0]} different names, got {listed}. "
            "Name every channel, the background too; channels lie along the first axis of p."
        )
    return listed


def _names_in_order(names: Mapping[Any, Any]) -> list[Any]:
    """Return the names of the channels 0, 1, … of a mapping from numbers to names."""
    if set(names) == set(range(len(names))):
        return [names[number] for number in range(len(names))]
    remedy = ""
    if all(isinstance(name, str) for name in names):  # as in the dataset.json of nnU-Net
        remedy = " Turn names to numbers around: {number: name for name, number in names.items()}."
    raise ParameterError(
        f"names: expected the channel numbers from 0 to {len(names) - 1} as keys, got {list(names)}.{remedy}"
    )


def _score_class(
    p: Any,
    mask: Any,
    estimators: dict[str, ConfidenceEstimator],
    threshold: float,
    source: str,
    where: Any,
) -> tuple[dict[str, Any] | None, bool]:
    """Return the confidences of one class, and whether the mask contains it."""
    summary = summarise_array(p, mask, estimators.values(), threshold=threshold, where=where, source=source)
    is_predicted = bool(summary.counts.k > 0)
    if not is_predicted and open_map(p, threshold=threshold, where=where).count().k == 0:
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
