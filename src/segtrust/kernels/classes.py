"""Maps of several classes in one array: channels, labels, and sums over the classes.

Arrays in memory and on a device are used as they are. For arrays in chunks (Dask, Zarr, HDF5) a channel, or
the mask of a label, is a view of which tiles are read on demand. On the host the most probable labels are
found one tile at a time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from array_api_compat import array_namespace

from segtrust.errors import MaskError, NotNormalisedError
from segtrust.kernels.array_checks import dtype_name
from segtrust.kernels.device import (
    FULL_SCALE,
    block_size,
    detached,
    is_device_array,
    on_host,
    split_in_blocks,
    wide_type,
)
from segtrust.kernels.statistics import host_number
from segtrust.kernels.tiles import Tile, is_chunked, read_tile, tiles_of

_SUM_TOLERANCE = 0.02
"""The channels of a softmax saved as float16 miss 1 by up to this much."""
_CHECKED_PIXELS = 1000
"""Number of pixels whose sums are checked; if the classes are on another axis, a few pixels show it."""


@dataclass(frozen=True)
class _View(ABC):
    """Part of an array in chunks that is itself read in tiles."""

    whole: Any
    number: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Pixels along each axis."""

    @abstractmethod
    def __getitem__(self, tile: Tile) -> Any:
        """Read a tile."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read the whole view into memory."""
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype=dtype)


class _Channel(_View):
    """One channel of an array with the classes on its first axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape[1:])

    @property
    def dtype(self) -> Any:
        return self.whole.dtype

    @property
    def chunks(self) -> Any:
        return None if self.whole.chunks is None else tuple(self.whole.chunks[1:])

    def __getitem__(self, tile: Tile) -> Any:
        return self.whole[(self.number, *tile)]


class _MaskOfLabel(_View):
    """Mask of the pixels with one label."""

    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape)

    def __getitem__(self, tile: Tile) -> Any:
        return read_tile(self.whole, tile) == self.number


def channel_of(p: Any, number: int) -> Any:
    """Return one channel of an array with the classes first; an array in chunks is not read yet."""
    return _Channel(p, number) if is_chunked(p) else p[number]


def mask_of_label(labels: Any, number: int, p: Any) -> Any:
    """Return the mask of one label, to be read tile by tile if the map ``p`` is in chunks."""
    return _MaskOfLabel(labels, number) if is_chunked(p) else labels == number


def labels_for(labels: Any, p: Any) -> Any:
    """Copy labels to the host if the map ``p`` is there, and into memory unless the map is in chunks."""
    if is_device_array(p):
        return labels if is_device_array(labels) else np.asarray(labels)
    return labels if is_chunked(p) and is_chunked(labels) else np.asarray(on_host(labels))


def most_probable_labels(p: Any) -> Any:
    """Return the number of the largest channel of each pixel, in memory.

    On the host the labels take one byte per pixel, or two for more than 256 classes; ``numpy.argmax`` would
    copy the map and take eight.
    """
    if is_device_array(p):
        xp = array_namespace(p)  # torch has no argmax for some integers
        return xp.argmax(p if xp.isdtype(p.dtype, "real floating") else xp.astype(p, xp.float32), axis=0)
    from segtrust.kernels.labels import label_pixels  # loads Numba

    label_type = np.min_scalar_type(p.shape[0] - 1)
    labels = np.empty(p.shape[1:], label_type)
    if type(p) is np.ndarray and p.flags.c_contiguous and _is_compiled_for(p.dtype):
        highest: Any = np.empty(labels.size, p.dtype)
        label_pixels(p.reshape(p.shape[0], -1), 0, highest, labels.reshape(-1))
        return labels
    for tile in tiles_of(channel_of(p, 0)):
        labels_in_tile = np.empty(labels[tile].size, label_type)
        highest = None
        for number in range(p.shape[0]):
            values = read_tile(_Channel(p, number), tile)
            if not _is_compiled_for(values.dtype):
                values = values.astype(np.float64)
            if highest is None:
                highest = np.empty(values.size, values.dtype)
            label_pixels(values.reshape(1, -1), number, highest, labels_in_tile)
        labels[tile] = labels_in_tile.reshape(labels[tile].shape)
    return labels


def _is_compiled_for(dtype: Any) -> bool:
    """Return whether the loop that finds labels reads a type as it is."""
    return bool(dtype.isnative and dtype.char in "efdBH?")


def check_labels(labels: Any, classes: int, source: str = "mask") -> None:
    """Check that labels are whole numbers from 0 to ``classes`` - 1.

    Parameters
    ----------
    labels
        Class of each pixel, as bool, integers or floats: a NumPy array, an array in chunks or on a device.
    classes
        Number of channels of the map.
    source
        Name of the labels in errors.
    """
    kind = dtype_name(labels.dtype)
    is_number = kind.startswith(("bool", "int", "uint", "float", "bfloat", "longdouble"))
    if not is_number or kind.startswith("float8_"):
        _raise_labels(f"the type {labels.dtype}", classes, source)
    for part in _parts(labels):
        xp = array_namespace(part)
        if "int" not in kind and kind != "bool":
            fractional = part[xp.floor(part) != part]
            if fractional.shape[0]:
                _raise_labels(f"{host_number(fractional[0]):g}", classes, source)
        low, high = host_number(xp.min(part)), host_number(xp.max(part))
        if low < 0.0 or high > classes - 1.0:
            _raise_labels(f"{low if low < 0.0 else high:g}", classes, source)


def _parts(labels: Any) -> Iterator[Any]:
    """Return labels part by part; on a device as floats, because torch cannot compare some integers."""
    if is_device_array(labels):
        xp = array_namespace(labels)
        flat = xp.reshape(detached(labels), (-1,))
        return (xp.astype(block, wide_type(flat)) for block in split_in_blocks(flat, block_size(flat)))
    return (read_tile(labels, tile) for tile in tiles_of(labels)) if is_chunked(labels) else iter([labels])


def _raise_labels(received: str, classes: int, source: str) -> NoReturn:
    raise MaskError(
        f"{source}: expected whole numbers as labels, from 0 to {classes - 1}, one per channel, got "
        f"{received}. Renumber the labels in the order of the channels. To leave out pixels with an ignore "
        "index such as 255, pass where=(labels != 255) to score_classes, or ignore_index=255 to the torch "
        "module and metrics; elsewhere, crop them from the map and the labels."
    )


def check_normalised(p: Any, *, axis: int = 0, source: str = "p", remedy: str) -> None:
    """Check that the classes add up to 1, in about a thousand pixels.

    Sums may miss 1 by 0.02, as those of half floats do; those of integers by half a level per class more.

    Parameters
    ----------
    p
        Softmax of several classes.
    axis
        Axis of the classes.
    source
        Name of the map in errors.
    remedy
        Last sentence of the error: what to do.
    """
    low, high, tolerance = _class_sums(p, axis)
    if not _is_one(low, high, tolerance):
        raise NotNormalisedError(
            f"{source}: expected a softmax over axis {axis} of {tuple(p.shape)}, but its sums run from "
            f"{low:.3g} to {high:.3g}. {remedy}"
        )


def is_normalised(p: Any) -> bool:
    """Return whether the values along the first axis add up to 1, as the classes of a softmax do.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet((1, 1, 1), (8, 9))
    >>> is_normalised(p.T), is_normalised(p)
    (True, False)
    """
    return _is_one(*_class_sums(p, 0))


def _is_one(low: float, high: float, tolerance: float) -> bool:
    """Return whether numbers from ``low`` to ``high`` are all 1 up to the tolerance; NaN is not."""
    return low > 1.0 - tolerance and high < 1.0 + tolerance


def _class_sums(p: Any, axis: int) -> tuple[float, float, float]:
    """Return the smallest and the largest sum over classes in some pixels, and the tolerance."""
    scale = FULL_SCALE.get(dtype_name(p.dtype), 1.0)
    before, lengths = (slice(None),) * (axis + 1), tuple(p.shape)[axis + 1 :]
    if is_chunked(p):  # all classes of one box
        side = math.ceil(_CHECKED_PIXELS ** (1.0 / len(lengths)))
        starts = [max(0, (length - side) // 2) for length in lengths]
        pixels = read_tile(p, (*before, *(slice(start, start + side) for start in starts)))
    else:  # of pixels spread over the map
        pixels = p[(*before, *(slice(None, None, step) for step in _steps(lengths)))]
    pixels = detached(pixels)
    xp = array_namespace(pixels)
    sums = xp.sum(xp.astype(pixels, wide_type(pixels)), axis=axis) / scale
    tolerance = _SUM_TOLERANCE + (p.shape[axis] / (2.0 * scale) if scale > 1.0 else 0.0)
    return host_number(xp.min(sums)), host_number(xp.max(sums)), tolerance


def _steps(lengths: tuple[int, ...]) -> list[int]:
    """Return steps along the axes that leave about a thousand pixels."""
    steps = [1] * len(lengths)
    left = list(lengths)
    while math.prod(left) > _CHECKED_PIXELS:
        axis = left.index(max(left))
        steps[axis] *= 2
        left[axis] = math.ceil(lengths[axis] / steps[axis])
    return steps
