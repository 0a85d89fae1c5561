"""A case as layers that can be looked at: image, probabilities, mask and truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.engine.outcomes import Row
from segtrust.engine.reopening import files_of_row, reopen_case
from segtrust.errors import SegtrustError, UnsafeFileError, WrongContentError
from segtrust.io.case_images import read_case_image
from segtrust.io.grids import Grid
from segtrust.io.readers import open_volume
from segtrust.kernels.masks import thresholded
from segtrust.kernels.tiles import is_chunked
from segtrust.review.nifti_file import nifti_bytes
from segtrust.review.tiles import Box, level_count, png_of, reduced

__all__ = ["Layer", "OpenedCase", "Slices", "TilePlace", "Window", "open_case", "stamp_of_case"]

MOST_BYTES = 1 << 30
"""Of a volume that is sent to the page."""
_LOOKED_AT = 1 << 20
"""Pixels from which the usual window of an image is told."""
_USUAL = (0.005, 0.995)
"""Shares of the pixels that are darker than black and white."""


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
class Window:
    """Values of an image that are black and white, and the range within which these can be."""

    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True)
class Slices:
    """Slices of a volume to begin with."""

    middle: int
    uncertain: int


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
        Of a volume, for the viewer.
    """

    probabilities: Any
    mask: Any
    truth: Any
    image: Any
    threshold: float
    spacing_mm: tuple[float, ...] | None
    affine: Any

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
    def levels(self) -> int:
        """Of tiles."""
        return level_count(self.shape[-2:])

    @property
    def memory(self) -> int:
        """Memory that it takes; what lies on the disk counts a little, for what is read of it."""
        arrays = [
            each for each in (self.probabilities, self.mask, self.truth, self.image) if each is not None
        ]
        return sum(each.nbytes if _is_in_memory(each) else 1 << 20 for each in arrays)

    @cached_property
    def window(self) -> Window | None:
        """The usual window of the image; ``None`` where it has none, or colours."""
        if self.image is None or self.image.ndim > self.dimensions:
            return None
        some = self.image.reshape(-1)[:: max(1, self.image.size // _LOOKED_AT)].astype(np.float64)
        some = some[np.isfinite(some)]
        if not some.size:
            return None
        low, high = np.quantile(some, _USUAL)
        least, most = some.min(), some.max()
        return Window(
            *(float(each) for each in ((low, high) if high > low else (least, most)) + (least, most))
        )

    @cached_property
    def slices(self) -> Slices:
        """The middle one, and that whose pixels are least certain on the whole."""
        if self.dimensions == 2:
            return Slices(0, 0)
        doubts = [self._doubt(number) for number in range(self.shape[0])]
        return Slices(self.shape[0] // 2, int(np.argmax(doubts)))

    def _doubt(self, number: int) -> float:
        p = _as_floats(np.asarray(self.probabilities[number]))
        return float(np.minimum(p, 1.0 - p).sum())

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
        return values if self.dimensions == 2 else values[number]

    def _image_tile(self, number: int, box: Box, window: tuple[float, float] | None) -> Any:
        usual = self.window
        image = self._slice(self.image, number)
        if usual is None:
            return np.rint(reduced(image, box, np.asarray))
        low, high = window or (usual.low, usual.high)
        shown = reduced(image, box, np.nan_to_num)
        return np.rint(255.0 * np.clip((shown - low) / (high - low if high > low else 1.0), 0.0, 1.0))

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
    return thresholded(np.ascontiguousarray(p), threshold=threshold).astype(np.uint8)


def _as_labels(values: Any) -> Any:
    return (values != 0).astype(np.uint8)


def open_case(row: Row, about: Mapping[str, Any]) -> OpenedCase:
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
    image = None if files.image is None else read_case_image(files.image, shape)
    grid = _grid_of(files.probabilities, shape)
    return OpenedCase(
        p,
        prediction.mask,
        loaded.truth,
        image,
        prediction.threshold,
        prediction.spacing_mm,
        _upright(prediction.spacing_mm or (1.0,) * len(shape)) if grid is None else grid.affine,
    )


def stamp_of_case(row: Row, about: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give what changes when a case is scored again, or one of its files is written again."""
    if not row.get("file"):
        raise WrongContentError(f"{row['case']}: the table does not say where its map is. Score it anew.")
    files = files_of_row(row, about)
    places = (files.probabilities, files.mask, files.truth, files.image)
    return (row.get("digest"), *(None if each is None else _changed(each.path) for each in places))


def _changed(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_mtime_ns, found.st_size


def _grid_of(place: Any, shape: tuple[int, ...]) -> Grid | None:
    """Give where a volume lies in space, where its file tells."""
    try:
        grid = open_volume(place).grid
    except (SegtrustError, OSError):
        return None
    return grid if grid is not None and grid.shape == shape else None


def _upright(spacing_mm: tuple[float, ...]) -> Any:
    """Give an affine by which the viewer shows the first row of a slice on top, as pictures are."""
    steps = (*spacing_mm[::-1], 1.0)[:3]
    return np.diag([steps[0], -steps[1], steps[2], 1.0])
