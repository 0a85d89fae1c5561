"""Several classes in one array: its channels one at a time, labels, and sums over the classes.

Arrays in memory and on a device are used as they are. Of arrays that are read in chunks (Dask, Zarr, HDF5) a
channel, and the mask of a label, are views of which a piece is read when it is asked for. On the host the
likeliest labels are found a piece at a time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from segtrust.errors import MaskError, NotNormalisedError
from segtrust.kernels.arrays import LEVELS, block_size, cut_in_blocks, detached, name_of, wide_type
from segtrust.kernels.device import is_device_array, on_host
from segtrust.kernels.statistics import host_number
from segtrust.kernels.tiles import is_chunked, read_tile, tiles_of

__all__ = [
    "channel_of",
    "check_labels",
    "check_normalised",
    "is_normalised",
    "labels_beside",
    "likeliest_labels",
    "mask_of_label",
]

_SUM_TOLERANCE = 0.02
"""Channels of a softmax saved as float16 miss 1 by up to this much."""
_PIXELS = 1000
"""Pixels whose sums are looked at; a softmax misread as classes last shows in a few."""


@dataclass(frozen=True)
class _View(ABC):
    """A part of an array in chunks that is itself read in chunks."""

    whole: Any
    number: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Pixels along each axis."""

    @abstractmethod
    def __getitem__(self, tile: tuple[slice, ...]) -> Any:
        """Read a piece."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read it all, for who needs it in memory."""
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype=dtype)


class _Channel(_View):
    """One channel of an array whose first axis is that of the classes."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape[1:])

    @property
    def dtype(self) -> Any:
        return self.whole.dtype

    @property
    def chunks(self) -> Any:
        return None if self.whole.chunks is None else tuple(self.whole.chunks[1:])

    def __getitem__(self, tile: tuple[slice, ...]) -> Any:
        return self.whole[(self.number, *tile)]


class _MaskOfLabel(_View):
    """Where labels are those of one class."""

    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape)

    def __getitem__(self, tile: tuple[slice, ...]) -> Any:
        return read_tile(self.whole, tile) == self.number


def channel_of(p: Any, number: int) -> Any:
    """Give one channel of an array, classes first; nothing is read yet of an array in chunks."""
    return _Channel(p, number) if is_chunked(p) else p[number]


def mask_of_label(labels: Any, number: int, p: Any) -> Any:
    """Give the mask of one label, piece by piece if the map ``p`` is read so."""
    return _MaskOfLabel(labels, number) if is_chunked(p) else labels == number


def labels_beside(labels: Any, p: Any) -> Any:
    """Bring labels to the host for a map that is there, and into memory unless the map is read in chunks."""
    if is_device_array(p):
        return labels if is_device_array(labels) else np.asarray(labels)
    return labels if is_chunked(p) and is_chunked(labels) else np.asarray(on_host(labels))


def likeliest_labels(p: Any) -> Any:
    """Give for each pixel the number of its largest channel, in memory.

    On the host a tile at a time, one byte a pixel, or two above 256 classes: ``numpy.argmax`` would copy the
    map and take eight.
    """
    if is_device_array(p):
        xp = array_namespace(p)  # torch has no argmax of some integers
        return xp.argmax(p if xp.isdtype(p.dtype, "real floating") else xp.astype(p, xp.float32), axis=0)
    labels = np.empty(p.shape[1:], _label_type(p))
    for tile in tiles_of(channel_of(p, 0)):
        labels[tile] = _likeliest_in(p, tile)
    return labels


def _label_type(p: Any) -> Any:
    """Give the smallest type that can number the channels."""
    return np.min_scalar_type(p.shape[0] - 1)


def _likeliest_in(p: Any, tile: tuple[slice, ...]) -> Any:
    """Compare the channels of one tile, two in memory at a time."""
    highest = read_tile(_Channel(p, 0), tile)
    labels = np.zeros(highest.shape, _label_type(p))
    for number in range(1, p.shape[0]):
        values = read_tile(_Channel(p, number), tile)
        labels = np.where(values > highest, number, labels)
        highest = np.maximum(values, highest)
    return labels


def check_labels(labels: Any, classes: int, source: str = "mask") -> None:
    """Refuse labels that are not whole numbers from 0 to ``classes`` - 1, wherever they lie.

    Parameters
    ----------
    labels
        Class of each pixel, bool, integers or floats; NumPy, in chunks, or on a device.
    classes
        Number of channels that the map has.
    source
        How the error names the labels.
    """
    kind = name_of(labels.dtype)
    known = kind.startswith(("bool", "int", "uint", "float", "bfloat", "longdouble"))
    if not known or kind.startswith("float8_"):
        _refuse_labels(f"the type {labels.dtype}", classes, source)
    for piece in _pieces(labels):
        xp = array_namespace(piece)
        if "int" not in kind and kind != "bool":
            broken = piece[xp.floor(piece) != piece]
            if broken.shape[0]:
                _refuse_labels(f"{host_number(broken[0]):g}", classes, source)
        low, high = host_number(xp.min(piece)), host_number(xp.max(piece))
        if low < 0.0 or high > classes - 1.0:
            _refuse_labels(f"{low if low < 0.0 else high:g}", classes, source)


def _pieces(labels: Any) -> Iterator[Any]:
    """Give labels a piece at a time; on a device as floats, because torch cannot order some integers."""
    if is_device_array(labels):
        xp = array_namespace(labels)
        flat = xp.reshape(detached(labels), (-1,))
        return (xp.astype(block, wide_type(flat)) for block in cut_in_blocks(flat, block_size(flat)))
    return (read_tile(labels, tile) for tile in tiles_of(labels)) if is_chunked(labels) else iter([labels])


def _refuse_labels(found: str, classes: int, source: str) -> None:
    raise MaskError(
        f"{source}: expected whole numbers as labels, from 0 to {classes - 1}, one a channel, got {found}. "
        "Renumber the labels in the order of the channels; pixels with an ignore index such as 255 must be "
        "given a class, or be cropped from map and labels."
    )


def check_normalised(p: Any, *, axis: int = 0, source: str = "p", remedy: str) -> None:
    """Refuse a softmax whose classes, along ``axis``, do not add up to 1 in the pixels that are looked at.

    The tolerance is that of half precision; integers may miss 1 by half a level a class besides.
    """
    low, high, tolerance = _sums(p, axis)
    if not (low > 1.0 - tolerance and high < 1.0 + tolerance):
        raise NotNormalisedError(
            f"{source}: expected a softmax over axis {axis} of {tuple(p.shape)}, but its sums run from "
            f"{low:.3g} to {high:.3g}. {remedy}"
        )


def is_normalised(p: Any, axis: int) -> bool:
    """Tell whether an axis looks like the classes of a softmax: it adds up to 1 wherever it is looked at.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet((1, 1, 1), (8, 9))
    >>> is_normalised(p, 2), is_normalised(p, 0)
    (True, False)
    """
    low, high, tolerance = _sums(p, axis)
    return low > 1.0 - tolerance and high < 1.0 + tolerance


def _sums(p: Any, axis: int) -> tuple[float, float, float]:
    """Give the least and the largest sum over classes in some pixels, and by how much they may miss 1."""
    scale = LEVELS.get(name_of(p.dtype), 1.0)
    some = detached(_some_pixels(p, axis))
    xp = array_namespace(some)
    sums = xp.sum(xp.astype(some, wide_type(some)), axis=axis) / scale
    tolerance = _SUM_TOLERANCE + (p.shape[axis] / (2.0 * scale) if scale > 1.0 else 0.0)
    return host_number(xp.min(sums)), host_number(xp.max(sums)), tolerance


def _some_pixels(p: Any, axis: int) -> Any:
    """Give all classes of about a thousand pixels: spread over the map, or of one box if it is in chunks."""
    before, lengths = (slice(None),) * (axis + 1), tuple(p.shape)[axis + 1 :]
    if not is_chunked(p):
        steps = _steps(lengths)
        return p[(*before, *(slice(None, None, step) for step in steps))]
    side = math.ceil(_PIXELS ** (1.0 / len(lengths)))
    starts = [max(0, (length - side) // 2) for length in lengths]
    return read_tile(p, (*before, *(slice(start, start + side) for start in starts)))


def _steps(lengths: tuple[int, ...]) -> list[int]:
    """Give steps along the axes that leave about a thousand pixels."""
    steps = [1] * len(lengths)
    left = list(lengths)
    while math.prod(left) > _PIXELS:
        axis = left.index(max(left))
        steps[axis] *= 2
        left[axis] = math.ceil(lengths[axis] / steps[axis])
    return steps
