"""What is scored in a case: structures, the labels that belong to them, and where their names come from.

Names come from nnU-Net's ``dataset.json``, from TotalSegmentator's package, or from the header of a mask.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import read_json
from segtrust._optional import require
from segtrust.errors import NotBinaryError, UnknownNameError, WrongContentError
from segtrust.io.volume import Volume
from segtrust.kernels import is_chunked

__all__ = [
    "FOREGROUND",
    "PARTS_REMEDY",
    "TASK_PREFIX",
    "LabelScheme",
    "LazyMask",
    "Structure",
    "check_channels",
    "find_dataset_json",
    "find_scheme",
    "is_task",
    "mask_from_labels",
    "mask_from_truth",
    "read_label_names",
    "read_scheme",
    "read_task_scheme",
]

FOREGROUND = "foreground"
"""The structure of a file that names no other: everything except the background."""
_ROUNDING = 1e-3
_MAX_LISTED = 8
_MAX_CHANNELS_LISTED = 12


@dataclass(frozen=True)
class Structure:
    """An organ, a lesion, a region: one binary question about a case.

    Attributes
    ----------
    name
        Name in tables.
    channel
        Number of its channel; ``None`` if there is only one map.
    is_complement
        Whether the probability is one minus that of the channel, as for everything except the background.
    values
        Labels of masks and ground truth that belong to it; ``None`` if these are binary.
    known
        All labels that may occur; empty if unknown.
    """

    name: str = FOREGROUND
    channel: int | None = None
    is_complement: bool = False
    values: tuple[int, ...] | None = None
    known: tuple[int, ...] = ()

    def probabilities(self, volume: Volume) -> Any:
        """Read the map of the structure; a chunked array stays one."""
        if self.channel is not None:
            values = volume.read(self.channel)
            return _complement(np.asarray(values)) if self.is_complement else values
        if not volume.has_channels:
            return volume.read()
        if volume.shape[0] == 1:
            return volume.read(0)
        raise WrongContentError(
            f"{volume.path}: expected one map, got {volume.shape[0]} channels. Choose one: --channel or "
            "--region."
        )

    def mask(self, labels: Any, source: str) -> Any:
        """Return where the labels are those of the structure; lazily for a chunked array."""
        if is_chunked(labels):
            return LazyMask(labels, self.values, source, self.known)
        return mask_from_labels(labels, self.values, source, known=self.known)


def _complement(values: Any) -> Any:
    """Return one minus probabilities; the sum of a softmax may differ from 1 in the last digit."""
    if values.dtype == bool:
        return ~values
    if values.dtype.kind != "f":
        return np.iinfo(values.dtype).max - values
    wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
    rest = wide.dtype.type(1) - wide
    return np.maximum(rest, 0, out=rest) if -_ROUNDING < rest.min(initial=0) < 0 else rest


@dataclass(frozen=True)
class LabelScheme:
    """The structures of a model, as nnU-Net's ``dataset.json`` names them.

    Attributes
    ----------
    labels
        Names with their labels, in the order of the channels, without the background.
    is_regions
        Whether each structure has its own channel (sigmoids) and there is no channel for the background.
    others
        Labels that masks may also contain, of structures that have no channel here.
    undelivered
        Names that occur in no mask; they are scored only if they are requested by name.

    Examples
    --------
    >>> scheme = LabelScheme((("organ", (1,)), ("lesion", (2,))), is_regions=False)
    >>> [(structure.name, structure.channel, structure.values) for structure in scheme.structures]
    [('organ', 1, (1,)), ('lesion', 2, (2,))]
    >>> scheme.usual.name, scheme.usual.channel, scheme.usual.is_complement, scheme.usual.values
    ('foreground', 0, True, (1, 2))
    """

    labels: tuple[tuple[str, tuple[int, ...]], ...]
    is_regions: bool
    others: tuple[int, ...] = field(default=(), repr=False)
    undelivered: tuple[str, ...] = field(default=(), repr=False)

    @property
    def _own(self) -> tuple[int, ...]:
        return tuple(sorted({value for _, values in self.labels for value in values} - {0}))

    @property
    def known(self) -> tuple[int, ...]:
        """All labels, including the background."""
        return tuple(sorted({0, *self._own, *self.others}))

    @property
    def structures(self) -> tuple[Structure, ...]:
        """One structure per name."""
        first = 0 if self.is_regions else 1
        return tuple(
            Structure(name, first + i, values=values, known=self.known)
            for i, (name, values) in enumerate(self.labels)
        )

    @property
    def usual(self) -> Structure:
        """The structure that is scored by default: the first region, or everything except background."""
        if self.is_regions or len(self.labels) == 1:
            return self.structures[0]
        return Structure(FOREGROUND, 0, is_complement=True, values=self._own, known=self.known)

    @property
    def channels(self) -> int:
        """Number of channels of probabilities with this scheme."""
        return len(self.labels) + (not self.is_regions)

    def chosen(self, names: Sequence[str]) -> tuple[Structure, ...]:
        """Return the structures of these names; the usual one for no names, and all for ``"each"``."""
        if not names:
            return (self.usual,)
        if tuple(names) == ("each",):
            return tuple(each for each in self.structures if each.name not in self.undelivered)
        known = {each.name: each for each in (*self.structures, self.usual)}
        for name in names:
            if name not in known:
                raise UnknownNameError(f"Unknown region {name!r}; available: {', '.join(known)}, each.")
        return tuple(known[name] for name in names)


def check_channels(volume: Volume, scheme: LabelScheme, remedy: str = "") -> None:
    """Reject probabilities whose number of channels is not that of the scheme."""
    if volume.shape[0] != scheme.channels:
        kind = "regions" if scheme.is_regions else "labels and background"
        names = [name for name, _ in scheme.labels]
        listed = ", ".join(
            [*names[:_MAX_CHANNELS_LISTED], *(["…"] if len(names) > _MAX_CHANNELS_LISTED else [])]
        )
        raise WrongContentError(
            f"{volume.path}: expected {scheme.channels} channels, for the {kind} that are named "
            f"({listed}), got {volume.shape[0]}. {remedy or 'Are they of one model?'}"
        )


# Masks from labels

_WHITE = (1, 255, 65535)
"""Foreground of a mask of two values."""


def mask_from_labels(
    labels: Any, values: Collection[int] | None, source: str, *, known: Collection[int] = ()
) -> Any:
    """Return where labels are those of a structure, as an array of bool.

    Parameters
    ----------
    labels
        Whole numbers, also as floats; a binary mask may contain 0 and 1, 0 and 255, or 0 and 65535.
    values
        Labels of the structure; ``None`` for a binary mask.
    source
        Name of the file in errors.
    known
        All labels that may occur; empty if unknown.

    Examples
    --------
    >>> mask_from_labels(np.array([0, 1, 2, 3]), (2, 3), "labels.nii.gz").tolist()
    [False, False, True, True]
    >>> mask_from_labels(np.array([0, 2], np.uint8), None, "mask.png")
    Traceback (most recent call last):
    ...
    segtrust.errors.NotBinaryError: mask.png: expected a mask of 0 and 1, or 0 and 255, got 2 values from 0 to
    2. If these are labels, say which are meant: --label.
    """
    array = np.asarray(labels)
    if array.dtype == bool and values is None:
        return array
    array = _whole_numbers(array, source)
    if values is None:
        highest = int(array.max(initial=0))
        mask = array != 0
        white = array == highest if highest else array > 0
        if highest not in (0, *_WHITE) or not np.array_equal(white, mask):
            values = _distinct(array)
            raise NotBinaryError(
                f"{source}: expected a mask of 0 and 1, or 0 and 255, got {len(values)} values from "
                f"{values[0]} to {values[-1]}. If these are labels, say which are meant: --label."
            )
        return mask
    if known:
        _check_known(array, {0, *known, *values}, source)
    mask = np.zeros(array.shape, bool)
    for value in values:
        mask |= array == value
    return mask


def _whole_numbers(labels: Any, source: str) -> Any:
    """Return integers as they are, and floats that are whole numbers as integers."""
    if labels.dtype.kind in "iu":
        return labels
    if labels.dtype == bool:
        return labels.view(np.uint8)
    if labels.dtype.kind != "f":
        raise NotBinaryError(
            f"{source}: expected labels, which are whole numbers, got {labels.dtype}. Save them as integers."
        )
    with np.errstate(invalid="ignore"):
        rounded = labels.astype(np.int32)
    if np.array_equal(rounded, labels):
        return rounded
    raise NotBinaryError(
        f"{source}: expected labels, which are whole numbers, got {labels.dtype} from {labels.min():.3g} to "
        f"{labels.max():.3g}. If these are probabilities, they are not a mask: threshold them."
    )


def _check_known(labels: Any, known: set[int], source: str) -> None:
    lowest, highest = int(labels.min(initial=0)), int(labels.max(initial=0))
    if lowest >= 0 and highest <= max(known) and len(known) == max(known) + 1:
        return  # every label from 0 on is known
    unknown = sorted(set(_distinct(labels)) - known)
    if unknown:
        raise NotBinaryError(
            f"{source}: expected the labels {_listed(sorted(known))}, got {_listed(unknown)} as well. Is it "
            "of another data set? A dataset.json beside the predictions lists the labels; one that "
            "it calls 'ignore' marks pixels that nobody has annotated, and such a case cannot be evaluated."
        )


def _distinct(labels: Any) -> list[int]:
    if labels.dtype.kind == "u" and labels.dtype.itemsize <= 2:
        return [int(value) for value in np.flatnonzero(np.bincount(labels.reshape(-1)))]
    return [int(value) for value in np.unique(labels)]


def _listed(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:_MAX_LISTED]))
    return f"{shown}, …" if len(values) > _MAX_LISTED else shown


@dataclass(frozen=True, eq=False)
class LazyMask:
    """A mask of labels that are read tile by tile, as those of a map larger than the memory.

    Attributes
    ----------
    labels
        A chunked array.
    values, known, source
        Labels of the structure, all labels that may occur, and the name of the file in errors.
    """

    labels: Any
    values: tuple[int, ...] | None
    source: str
    known: tuple[int, ...] = ()
    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return tuple(self.labels.shape)

    @property
    def chunks(self) -> Any:
        """Chunks of the labels."""
        return self.labels.chunks

    def __getitem__(self, tile: tuple[slice, ...]) -> Any:
        """Read one tile."""
        return mask_from_labels(np.asarray(self.labels[tile]), self.values, self.source, known=self.known)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read the whole mask into memory."""
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype=dtype)


# Ground truth with soft edges

_IS_IMAGE = "It looks like an image. Was the folder of images given as ground truth?"
_MANY_BETWEEN = 1 / 3
"""Share of pixels between dark and bright above which ground truth looks like a photograph."""
_FEWEST_GREYS = 64
"""Different values above which these are not taken for labels."""
_MOST_LABELS = 8
"""Different values, 0 and the maximum included, up to which a lossless image contains labels, not greys."""


def mask_from_truth(
    values: Any, source: str, *, threshold: float | None = None, is_lossy: bool = False
) -> tuple[Any, str]:
    """Return the mask of binary ground truth, and a note if its grey levels had to be thresholded.

    The note, or the error, asks whether the folder of images or of probability maps was given as ground truth
    if the grey levels look like it: those of a mask lie at edges, and are few.

    A mask of two values is read as it is. Soft edges (of a mask that was resized or smoothed, or saved as
    JPEG) are thresholded at half of the maximum if the grey levels cluster at 0 and at the maximum:

    - the maximum is at least half of white (255 or 65535);
    - at most 10 % of all pixels, and at most twice as many as are bright, lie in between, that is between
      10 % and 90 % of the maximum; bright pixels are those above;
    - unless the format is lossy: there are more than 8 different values, and most pixels that are neither 0
      nor the maximum differ from a neighbour, because they belong to edges and not to areas. So images of
      labels are never thresholded, nor is label 1 with 255 for "ignore".

    Parameters
    ----------
    values
        Array of the ground truth.
    source
        Name of the file in errors and in the note.
    threshold
        Grey level from which on a pixel is foreground, instead of this rule; below 1 a share of white (255,
        65535, or 1 for floats).
    is_lossy
        Whether the format changes pixels, as JPEG does.

    Examples
    --------
    >>> mask, note = mask_from_truth(np.array([0, 3, 131, 250], np.uint8), "a.png", threshold=0.5)
    >>> mask.tolist(), note
    ([False, False, True, True], 'a.png: ground truth thresholded at 127.5; 1 of 4 pixels lay in between.')
    """
    array = np.asarray(values)
    try:
        if not is_lossy or not array.any():
            return mask_from_labels(array, None, source), ""
    except NotBinaryError as error:
        is_grey = array.dtype.kind in "iuf" if threshold is not None else _has_soft_edges(array)
        if not is_grey:
            question = f" {_IS_IMAGE}" if _looks_like_image(array) else ""
            raise NotBinaryError(
                f"{error}{question} If they are grey levels of a mask, say from which on a pixel is "
                "foreground: --truth-threshold."
            ) from None
    highest = array.max()
    if is_lossy and threshold is None and not _has_soft_edges(array, is_lossy=True):
        raise NotBinaryError(
            f"{source}: expected a mask, in JPEG with grey levels near 0 and near white, got levels up to "
            f"{highest} and many in between. {_IS_IMAGE} If not, say from which grey level on a pixel is "
            "foreground: --truth-threshold; labels must be saved in another format, such as PNG."
        )
    if threshold is None:
        level = float(highest) / 2
    else:
        white = next((white for white in _WHITE if highest <= white), highest)
        if array.dtype.kind != "f":
            white = max(white, 255)
        level = threshold * float(white) if threshold < 1 else threshold
        if not level <= highest:  # also NaN
            raise NotBinaryError(
                f"{source}: expected ground truth that reaches the threshold {level:g}, got values up to "
                f"{highest}. If these are labels, say which are meant: --label; else choose another "
                "--truth-threshold."
            )
    between = round(_share_between(array) * array.size)
    note = (
        f"{source}: ground truth thresholded at {level:g}; {between} of {array.size} pixels lay in between."
    )
    if between > _MANY_BETWEEN * array.size:
        note = f"{note} {_IS_IMAGE}"
    elif _has_greys_far_from_edges(array):
        note = f"{note} Many grey pixels lie far from edges. Were probability maps given as ground truth?"
    return array >= level, note


def _looks_like_image(array: Any) -> bool:
    """Return whether there are many different values, and many of them between dark and bright."""
    return (
        array.dtype.kind in "iuf"
        and _share_between(array) > _MANY_BETWEEN
        and len(np.unique(array)) > _FEWEST_GREYS
    )


def _share_between(array: Any) -> float:
    """Return the share of pixels between 10 % and 90 % of the maximum."""
    highest = array.max()
    return float(np.mean((array > 0.1 * highest) & (array < 0.9 * highest)))


def _has_greys_far_from_edges(array: Any) -> bool:
    """Return whether more than 2 % of the grey pixels have no dark or no bright pixel within 16 pixels.

    Resizing, smoothing and JPEG make edges grey; models also have areas of which they are unsure.
    """
    from scipy.ndimage import maximum_filter  # slow to import, and rarely needed

    levels = array / np.float32(array.max())
    is_grey = (levels > 0.003) & (levels < 0.997)  # of 8 bits all but 0 and white
    near_dark, near_bright = (
        np.asarray(maximum_filter(each, 33), bool) for each in (levels <= 0.1, levels >= 0.9)
    )
    near_both = near_dark & near_bright
    return bool(np.count_nonzero(is_grey & ~near_both) > 0.02 * np.count_nonzero(is_grey))


def _has_soft_edges(array: Any, *, is_lossy: bool = False) -> bool:
    """Return whether grey levels cluster at 0 and at the maximum; see `mask_from_truth`."""
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() > _WHITE[-1]:
        return False
    counts = np.bincount(array.reshape(-1).astype(np.intp))
    levels, highest = np.arange(counts.size), counts.size - 1
    if 2 * highest < (255 if highest <= 255 else 65535):
        return False
    bright = int(counts[10 * levels >= 9 * highest].sum())
    between = int(counts[(10 * levels > highest) & (10 * levels < 9 * highest)].sum())
    if 10 * between > array.size or between > 2 * bright or is_lossy:
        return 10 * between <= array.size and between <= 2 * bright
    if np.count_nonzero(counts) <= _MOST_LABELS:
        return False
    grey = (array > 0) & (array < highest)
    is_flat = grey.copy()  # equal to the next pixel along every axis
    for axis in range(array.ndim):
        ahead = np.moveaxis(is_flat, axis, 0)
        ahead[:-1] &= np.diff(np.moveaxis(array, axis, 0), axis=0) == 0
        ahead[-1:] = False
    return bool(2 * np.count_nonzero(is_flat) < np.count_nonzero(grey))


# Names of labels: nnU-Net's dataset.json

_LEVELS_UP = 3
"""Folders above the predictions in which ``dataset.json`` is looked for, as above ``fold_0/validation``."""
_MAX_JSON_BYTES = 8 << 20
_IGNORED = "ignore"
"""Name of the label that nnU-Net leaves out of training; it has no channel."""


def find_dataset_json(path: Path) -> Path | None:
    """Return the ``dataset.json`` that a map belongs to, in its folder or above it; else ``None``."""
    folders = path.absolute().parents[: _LEVELS_UP + 1]
    return next((folder / "dataset.json" for folder in folders if (folder / "dataset.json").is_file()), None)


def find_scheme(path: Path) -> LabelScheme | None:
    """Return the structures that a ``dataset.json`` in the folder of a file or above it names."""
    dataset_json = find_dataset_json(path)
    return None if dataset_json is None else read_scheme(dataset_json)


def read_scheme(path: Path) -> LabelScheme:
    """Read the labels of a ``dataset.json``, or of a task such as ``totalsegmentator:total``.

    Examples
    --------
    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "dataset.json"
    >>> labels = {"background": 0, "whole": [1, 2], "core": 2}
    >>> _ = path.write_text(json.dumps({"labels": labels, "regions_class_order": [1, 2]}))
    >>> read_scheme(path)
    LabelScheme(labels=(('whole', (1, 2)), ('core', (2,))), is_regions=True)
    """
    if is_task(path):
        return read_task_scheme(path)
    status = path.stat() if path.is_file() else None
    return _read_once(path, *((status.st_mtime_ns, status.st_size) if status is not None else (0, 0)))


@lru_cache(maxsize=64)
def _read_once(path: Path, changed: int, size: int) -> LabelScheme:
    """Read a ``dataset.json`` once as long as it does not change."""
    return read_labels_of_dataset(path)


def read_labels_of_dataset(path: Path) -> LabelScheme:
    """Read the labels of a ``dataset.json``."""
    described = read_json(path, error=WrongContentError, most=_MAX_JSON_BYTES)
    labels = described.get("labels") if isinstance(described, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        raise WrongContentError(f"{path}: expected nnU-Net's 'labels', names with numbers, got {labels!r}.")
    try:
        pairs = [_name_and_values(name, value) for name, value in labels.items()]
    except (TypeError, ValueError, OverflowError):
        raise WrongContentError(
            f"{path}: expected whole numbers for each label, or lists of them, got {labels!r}."
        ) from None
    named = [(name, values) for name, values in pairs if name != _IGNORED and set(values) - {0}]
    if not named:
        raise WrongContentError(f"{path}: expected a label besides the background, got {labels!r}.")
    is_regions = any(len(values) > 1 for _, values in named)
    if not is_regions:  # the channels of a softmax are in the order of the labels
        named.sort(key=lambda pair: pair[1])
    return LabelScheme(tuple(named), is_regions)


def _name_and_values(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    """Return the name and the values of one label: version 2 has names first, version 1 numbers."""
    if isinstance(value, str):
        return value, (int(name),)
    values = value if isinstance(value, list) else [value]
    if any(int(number) != number for number in values):
        raise ValueError(f"{value!r} is not a whole number")
    return name, tuple(int(number) for number in values)


# Names of labels: TotalSegmentator. It writes probabilities as nnU-Net does, but no dataset.json beside them.
# Its lists of names change with its versions, so they are read from the installed package.

TASK_PREFIX = "totalsegmentator:"
"""Prefix of a task, which can be given instead of the path of a ``dataset.json``."""
PARTS_REMEDY = (
    "For a task that runs several models, TotalSegmentator saves only the probabilities of the last one: "
    "name that model, as in totalsegmentator:total/ribs, or run it with --fast, which uses one model."
)
"""What to do if a file has fewer channels than its task has structures."""
_PART = "class_map_part_"
_AUXILIARY = "_auxiliary"

_Classes = Mapping[int, str]


def is_task(path: Path) -> bool:
    """Return whether a task is named instead of a file.

    Examples
    --------
    >>> is_task(Path("totalsegmentator:total")), is_task(Path("dataset.json"))
    (True, False)
    """
    return str(path).startswith(TASK_PREFIX)


def read_task_scheme(path: Path) -> LabelScheme:
    """Return the structures of a task, ``totalsegmentator:total``, or of one model, ``…:total/ribs``.

    The labels are those of the masks of the whole task, so the mask of a part also contains others.
    """
    task, _, part = str(path).removeprefix(TASK_PREFIX).partition("/")
    lists = require("totalsegmentator.map_to_binary", extra="totalsegmentator")
    tasks: Mapping[str, _Classes] = lists.class_map
    if task not in tasks:
        listed = ", ".join(sorted(name for name in tasks if not name.endswith(_AUXILIARY)))
        raise UnknownNameError(f"Unknown task of TotalSegmentator {task!r}; available: {listed}.")
    classes = tasks[task]
    if not part:
        # Auxiliary structures help the training and are removed from the masks.
        auxiliary = tasks.get(task + _AUXILIARY, {})
        every = {**classes, **auxiliary}
        labels = tuple((every[i], (i,)) for i in sorted(every))
        return LabelScheme(labels, is_regions=False, undelivered=tuple(auxiliary.values()))
    names = set(classes.values())
    parts: dict[str, _Classes] = {
        name.removeprefix(_PART): values
        for lists_of_parts in vars(lists).values()
        if isinstance(lists_of_parts, dict)
        for name, values in lists_of_parts.items()
        if isinstance(name, str) and name.startswith(_PART) and isinstance(values, dict)
        if set(values.values()) <= names
    }
    short = part.removeprefix(_PART)
    if short not in parts:
        listed = ", ".join(parts) or "none, as one model does all"
        raise UnknownNameError(
            f"Unknown part of TotalSegmentator's task {task!r} {part!r}; available: {listed}."
        )
    numbers = {name: number for number, name in classes.items()}
    own = tuple((parts[short][i], (numbers[parts[short][i]],)) for i in sorted(parts[short]))
    others = sorted(set(classes) - {number for _, own_numbers in own for number in own_numbers})
    return LabelScheme(own, is_regions=False, others=tuple(others))


# Names of labels in the header of a NIfTI file, as TotalSegmentator writes them: XML in the form of Caret,
# <Label Key="5" …>liver</Label>, in an extension of the header.

_TABLE = re.compile(rb"<LabelTable>(.*?)</LabelTable>", re.DOTALL)
_LABEL = re.compile(
    r"<Label\b[^>]*\bKey=\"(\d{1,9})\"[^>]*>\s*(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))\s*</Label>", re.DOTALL
)


def read_label_names(path: Path) -> dict[int, str]:
    """Return the names of labels in the header of a NIfTI file; empty if there are none.

    Examples
    --------
    >>> read_label_names(Path("mask.png"))
    {}
    """
    if not path.name.lower().endswith((".nii", ".nii.gz")) or not path.is_file():
        return {}
    status = path.stat()
    return dict(_read_label_table(path, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=8)
def _read_label_table(path: Path, changed: int, size: int) -> tuple[tuple[int, str], ...]:
    nibabel = require("nibabel", extra="io")
    try:
        extensions = nibabel.load(path).header.extensions
        table = _TABLE.search(b"\n".join(extension.content for extension in extensions))
    except Exception:  # noqa: BLE001 - whatever nibabel makes of it: who reads the pixels reports it
        return ()
    if table is None:
        return ()
    text = table[1].decode("utf-8", "replace")
    return tuple((int(key), plain or html.unescape(words)) for key, plain, words in _LABEL.findall(text))
