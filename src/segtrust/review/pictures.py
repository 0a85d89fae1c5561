"""A case as layers that can be looked at: image, probabilities, mask and truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.engine import files_of_row, read_options_of, reopen_case
from segtrust.errors import ReadError, SegtrustError, UnsafeFileError, WrongContentError
from segtrust.io import (
    AS_STORED,
    ArrayRef,
    Grid,
    Orientation,
    ScoreRow,
    Window,
    companions_of,
    middle_slice,
    orientation_of,
    read_case_image,
    slice_uncertainty,
    stretch,
    upright_affine,
    window_of,
)
from segtrust.kernels import is_chunked, threshold_map
from segtrust.review.cache import ByteCache
from segtrust.review.nifti_file import nifti_bytes
from segtrust.review.tiles import Box, level_count, png_of, reduced

__all__ = [
    "CaseView",
    "Layer",
    "OpenedCase",
    "Plane",
    "Slices",
    "TilePlace",
    "ask_case",
    "open_case",
    "stamp_of_case",
]

_OPENED_BYTES = 1 << 29
"""Of opened cases that a worker process keeps."""

MOST_BYTES = 1 << 30
"""Of a volume that is sent to the page."""
_SCORED = ("checksum", "mask_checksum", "k", "s", "lam")
"""Columns that change when other files are scored, or the same ones read otherwise."""
_NO_IMAGE = "No image is known of this case. Score with --image-dir FOLDER, or name it in the manifest."


class Layer(StrEnum):
    """What can be looked at."""

    IMAGE = "image"
    PROBABILITIES = "probabilities"
    MASK = "mask"
    TRUTH = "truth"


@dataclass(frozen=True)
class TilePlace:
    """Which tile: of a row of the table, a layer, a slice (0 of a picture), a level, and where in it."""

    number: int
    layer: Layer
    slice: int
    level: int
    row: int
    column: int


@dataclass(frozen=True)
class Plane:
    """How a slice is shown.

    Attributes
    ----------
    rows, columns
        Pixels on the screen; those of the array may be exchanged.
    aspect
        Height of a pixel for its width.
    letters
        The sides of the body (of R, L, A, P, S, I) that are left, right, on top and at the bottom; empty
        where nothing tells.
    """

    rows: int
    columns: int
    aspect: float
    letters: str


@dataclass(frozen=True)
class Slices:
    """Slices of a volume to begin with."""

    middle: int
    uncertain: int


@dataclass(frozen=True)
class CaseView:
    """How a case can be looked at; see `OpenedCase` for what the attributes mean."""

    shape: tuple[int, ...]
    spacing_mm: tuple[float, ...] | None
    layers: list[Layer]
    levels: int
    plane: Plane
    slices: Slices
    window: Window | None
    note: str

    @property
    def dimensions(self) -> int:
        """Of a picture 2, of a volume 3."""
        return len(self.shape)


@dataclass(frozen=True, eq=False)
class OpenedCase:
    """A case with its layers.

    Attributes
    ----------
    probabilities
        Two or three axes; in memory, on disk, or read chunk by chunk.
    mask, truth, image
        Of the same shape, or ``None``; an image may have colours as a last axis.
    threshold
        At which the map is cut where there is no mask.
    spacing_mm
        Of the axes; ``None`` where nothing tells.
    affine
        Of a volume, for the viewer: along the axes of the body, or as the array is.
    orientation
        How slices are turned for the screen.
    note
        Why something is not shown; empty where all is.
    """

    probabilities: Any
    mask: Any
    truth: Any
    image: Any
    threshold: float
    spacing_mm: tuple[float, ...] | None
    affine: Any
    note: str = ""
    orientation: Orientation = AS_STORED

    @property
    def shape(self) -> tuple[int, ...]:
        """Pixels along each axis."""
        return tuple(self.probabilities.shape)

    @property
    def dimensions(self) -> int:
        """Of a picture 2, of a volume 3."""
        return len(self.shape)

    @property
    def layers(self) -> list[Layer]:
        """What there is to look at."""
        found = {Layer.IMAGE: self.image, Layer.TRUTH: self.truth}
        return [layer for layer in Layer if found.get(layer, self.probabilities) is not None]

    @property
    def plane(self) -> Plane:
        """How a slice or a picture is shown."""
        rows, columns = self.orientation.ordered(self.shape[-2:])
        return Plane(rows, columns, self.orientation.aspect(self.spacing_mm), self.orientation.letters)

    @property
    def levels(self) -> int:
        """Of tiles."""
        return level_count(self.shape[-2:])

    def view(self) -> CaseView:
        """Return how the case can be looked at."""
        names = ("shape", "spacing_mm", "layers", "levels", "plane", "slices", "window", "note")
        return CaseView(**{name: getattr(self, name) for name in names})

    @property
    def memory(self) -> int:
        """Memory that it takes; what lies on the disk counts a little, for what is read of it."""
        arrays = [
            each for each in (self.probabilities, self.mask, self.truth, self.image) if each is not None
        ]
        return sum(each.nbytes if _is_in_memory(each) else 1 << 20 for each in arrays)

    @cached_property
    def window(self) -> Window | None:
        """The usual window of the image; ``None`` where there is none to show."""
        if self.image is None:
            return None
        return window_of(
            self.image, has_colours=self.image.ndim > self.dimensions and self.image.shape[-1] > 1
        )

    @cached_property
    def slices(self) -> Slices:
        """The middle one of those that are filled, and that whose pixels are least certain on the whole."""
        if self.dimensions == 2:
            return Slices(0, 0)
        numbers = range(self.shape[0])
        doubts = [slice_uncertainty(_as_floats(np.asarray(self.probabilities[number]))) for number in numbers]
        return Slices(middle_slice([self._is_filled(number) for number in numbers]), int(np.argmax(doubts)))

    def _is_filled(self, number: int) -> bool:
        """Tell whether mask or truth have a pixel in a slice."""
        layers = [Layer.MASK] if self.truth is None else [Layer.MASK, Layer.TRUTH]
        found = ((values[number], convert) for values, convert in map(self._labels, layers))
        return any(bool(convert(np.asarray(values)).any()) for values, convert in found)

    def tile(self, layer: Layer, number: int, box: Box, window: tuple[float, float] | None) -> bytes:
        """Draw a piece of a layer as PNG; ``number`` is that of the slice."""
        if layer is Layer.IMAGE:
            return png_of(self._image_tile(number, box, window))
        if layer is Layer.PROBABILITIES:
            shown = reduced(self._slice(self.probabilities, number), box, _as_floats)
            return png_of(np.rint(255.0 * np.clip(shown, 0.0, 1.0)))
        values, convert = self._labels(layer)
        return png_of(255 * reduced(self._slice(values, number), box, convert, keep_any=True))

    def _labels(self, layer: Layer) -> tuple[Any, Callable[[Any], Any]]:
        """Give what a mask is made of, and how: the map is cut where no mask was delivered."""
        values = self.truth if layer is Layer.TRUTH else self.mask
        if values is None:
            return self.probabilities, partial(_cut, threshold=self.threshold)
        return values, _as_labels

    def _slice(self, values: Any, number: int) -> Any:
        return self.orientation.slice_of(values, None if self.dimensions == 2 else number)

    def _image_tile(self, number: int, box: Box, window: tuple[float, float] | None) -> Any:
        usual = self.window
        shown = reduced(self._slice(self.image, number), box, np.nan_to_num)
        if usual is None:  # no value of it is a number
            return np.zeros_like(shown)
        return stretch(shown, *(window or (usual.low, usual.high)))

    def volume(self, layer: Layer) -> bytes:
        """Give a layer of a volume as NIfTI."""
        width = 4 if layer is Layer.IMAGE else 1
        if math.prod(self.shape) * width > MOST_BYTES:
            raise UnsafeFileError(
                f"expected a volume of at most {MOST_BYTES >> 20} MiB, got one of shape {self.shape}. "
                "Look at its slices."
            )
        return nifti_bytes(self._whole(layer), self.affine)

    def _whole(self, layer: Layer) -> Any:
        if layer is Layer.IMAGE:
            return np.nan_to_num(np.asarray(self.image, np.float32))
        if layer is Layer.PROBABILITIES:
            slices = (_as_floats(np.asarray(each)) for each in self.probabilities)
            return np.stack([np.rint(255.0 * np.clip(each, 0.0, 1.0)).astype(np.uint8) for each in slices])
        values, convert = self._labels(layer)
        return np.asarray(convert(np.asarray(values)), np.uint8)


def _is_in_memory(values: Any) -> bool:
    return isinstance(values, np.ndarray) and not isinstance(_owner(values), np.memmap)


def _owner(values: Any) -> Any:
    """Follow a view to the array that it is a part of; a part of a file stays in the file."""
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values


def _as_floats(p: Any) -> Any:
    """Give probabilities of 8 or 16 bits, or of 0 and 1, as floats."""
    if p.dtype.kind == "u":
        return p.astype(np.float32) / np.float32(np.iinfo(p.dtype).max)
    return p.astype(np.float32)


def _cut(p: Any, threshold: float) -> Any:
    """Cut a map exactly as it was scored."""
    return threshold_map(np.ascontiguousarray(p), threshold=threshold).astype(np.uint8)


def _as_labels(values: Any) -> Any:
    return (values != 0).astype(np.uint8)


_opened: ByteCache[OpenedCase] = ByteCache(_OPENED_BYTES)
"""The cases that this worker process has opened."""


def ask_case(
    key: Hashable,
    row: ScoreRow,
    about: Mapping[str, Any],
    question: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """Return ``question(case, *arguments)`` for the opened case of a row; to be called in a worker process.

    The case stays open under its key.
    """
    case = _opened.get(key, lambda: open_case(row, about), lambda opened: opened.memory)
    return question(case, *arguments)


def open_case(row: ScoreRow, about: Mapping[str, Any]) -> OpenedCase:
    """Open the case of a row of a score table, which is the only way to any file.

    Raises
    ------
    SegtrustError
        If its files are gone, or no longer what they were; also for maps of more than three axes.
    """
    loaded = reopen_case(row, about)
    prediction, files = loaded.prediction, files_of_row(row, about)
    p, shape = prediction.probabilities, prediction.shape
    if not (isinstance(p, np.ndarray) or is_chunked(p)) or len(shape) not in (2, 3):
        raise WrongContentError(f"{files.probabilities}: expected a picture or a volume, got {shape}.")
    image, note = _image(files.image, shape, loaded.grid, bool(read_options_of(about).resample))
    return OpenedCase(
        p,
        prediction.mask,
        loaded.truth,
        image,
        prediction.threshold,
        prediction.spacing_mm,
        _affine(loaded.grid, prediction.spacing_mm or (1.0,) * len(shape)),
        note,
        orientation_of(loaded.grid),
    )


def _image(
    place: ArrayRef | None, shape: tuple[int, ...], grid: Grid | None, resample: bool
) -> tuple[Any, str]:
    """Give the image of a case, or why it is not shown: the case can be decided without."""
    if place is None:
        return None, _NO_IMAGE
    try:
        return read_case_image(place, shape, grid, resample=resample), ""
    except SegtrustError as error:
        return None, f"The image is not shown. {error}"


def stamp_of_case(
    row: ScoreRow, about: Mapping[str, Any], find_companions: Callable[[Path], Sequence[Path]] = companions_of
) -> tuple[Any, ...]:
    """Return what changes when a case is scored again, or one of its files is written again.

    ``find_companions`` returns the files that belong to a file, which may have to be read for that.
    """
    if not row.get("file"):
        raise WrongContentError(f"{row['case']}: the table does not say where its map is. Score it again.")
    files = files_of_row(row, about)
    stamps: list[Any] = [about.get("checksum"), *(row.get(name) for name in _SCORED)]
    for ref in (*files.maps, files.mask, files.truth, files.image):
        if ref is None:
            stamps.append(None)
            continue
        try:
            states = [path.stat() for path in (ref.path, *find_companions(ref.path))]
        except (OSError, ReadError):
            states = []
        # A file of before that is put back with its old time has another time of its directory entry.
        stamps += [str(ref.path)]
        stamps += [(state.st_mtime_ns, state.st_size, state.st_ctime_ns, state.st_ino) for state in states]
    return tuple(stamps)


def _affine(grid: Grid | None, spacing_mm: tuple[float, ...]) -> Any:
    """Give where a volume lies; if nothing tells, so that the first row of a slice is shown on top."""
    if grid is not None and grid.is_oriented:
        return upright_affine(grid)
    steps = (*spacing_mm[::-1], 1.0)[:3]
    return np.diag([steps[0], -steps[1], steps[2], 1.0])
