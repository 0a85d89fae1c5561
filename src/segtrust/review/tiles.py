"""Pieces of large pictures, full size or reduced, without reading more than they show."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust._optional import require
from segtrust.kernels import is_chunked

__all__ = ["TILE", "Box", "box_of", "level_count", "png_of", "reduced"]

TILE = 256
"""Side of a tile, in pixels."""
_BAND = 1 << 22
"""Pixels that are read at a time."""
_SAMPLES = 4
"""Pixels along each axis that are averaged to one of a much smaller picture, where others can be skipped."""


@dataclass(frozen=True)
class Box:
    """A piece of a picture at a level: the rows and columns of the whole that it shows.

    Attributes
    ----------
    rows, columns
        Of the whole picture.
    factor
        Pixels of the whole, along each axis, that are one of the piece.
    """

    rows: slice
    columns: slice
    factor: int


def level_count(shape: tuple[int, ...]) -> int:
    """Give how many levels there are: the last shows all in one tile.

    Examples
    --------
    >>> level_count((256, 256)), level_count((257, 10)), level_count((20000, 20000))
    (1, 2, 8)
    """
    return 1 + max(0, math.ceil(math.log2(max(shape) / TILE)))


def box_of(shape: tuple[int, ...], level: int, row: int, column: int) -> Box | None:
    """Give the part of a picture that a tile shows; ``None`` where there is no such tile.

    Examples
    --------
    >>> box_of((300, 400), 0, 1, 1)
    Box(rows=slice(256, 300, None), columns=slice(256, 400, None), factor=1)
    >>> box_of((300, 400), 0, 2, 0) is None
    True
    """
    if not 0 <= level < level_count(shape):
        return None
    factor = 1 << level
    parts = [
        slice(first * TILE * factor, min((first + 1) * TILE * factor, length))
        for first, length in zip((row, column), shape, strict=True)
    ]
    if any(part.start < 0 or part.start >= part.stop for part in parts):
        return None
    return Box(parts[0], parts[1], factor)


def reduced(values: Any, box: Box, convert: Callable[[Any], Any], *, keep_any: bool = False) -> Any:
    """Read a piece of a picture, (H, W) or (H, W, C), reduced by averages; read in bands, never whole.

    Parameters
    ----------
    values
        The picture: an array in memory, on disk, or read chunk by chunk.
    box
        What is shown of it.
    convert
        Makes what is shown of what is read; it must not turn large into small.
    keep_any
        Whether a pixel is the largest of those that it stands for, instead of their mean: no finding of a
        mask is then lost, however small.
    """
    step = 1 if keep_any else max(1, box.factor // _SAMPLES)
    bands = (_band(values, rows, box.columns, step) for rows in _bands(values, box))
    return np.concatenate([_pooled(each, convert, box.factor // step, keep_any) for each in bands])


def _band(values: Any, rows: slice, columns: slice, step: int) -> Any:
    """Read some rows, of them every so many pixels; chunks are read whole in any case."""
    if is_chunked(values):
        return np.asarray(values[rows, columns])[::step, ::step]
    return np.asarray(values[rows.start : rows.stop : step, columns.start : columns.stop : step])


def _bands(values: Any, box: Box) -> Iterator[slice]:
    """Cut the rows of a box so that a band is not too large, and a chunk is not read again for each band."""
    width = box.columns.stop - box.columns.start
    chunk = values.chunks[0] if is_chunked(values) and values.chunks else 1
    least = chunk if isinstance(chunk, int) else max(chunk)
    height = max(_BAND // width, least, 1)
    height = max(box.factor, height // box.factor * box.factor)
    for first in range(box.rows.start, box.rows.stop, height):
        yield slice(first, min(first + height, box.rows.stop))


def _pooled(values: Any, convert: Callable[[Any], Any], factor: int, keep_any: bool) -> Any:
    """Put blocks of pixels together; those at the lower and right edge may be smaller."""
    if factor == 1:
        return convert(values)
    starts = [np.arange(0, length, factor) for length in values.shape[:2]]
    if keep_any:  # what the largest becomes is the largest of what all become
        return convert(np.maximum.reduceat(np.maximum.reduceat(values, starts[0]), starts[1], axis=1))
    numbers = convert(values).astype(np.float32)
    sums = np.add.reduceat(np.add.reduceat(numbers, starts[0]), starts[1], axis=1)
    sizes = [
        np.diff(np.append(start, length)) for start, length in zip(starts, values.shape[:2], strict=True)
    ]
    counts = np.multiply.outer(*sizes).astype(np.float32)
    return sums / (counts[..., None] if values.ndim == 3 else counts)


def png_of(values: Any) -> bytes:
    """Write greys (H, W) or colours (H, W, 1 or 3) of 8 bits as a PNG file."""
    image_of = require("PIL.Image", extra="review")
    flat = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    file = io.BytesIO()
    image_of.fromarray(np.ascontiguousarray(flat, np.uint8)).save(file, format="PNG", compress_level=1)
    return file.getvalue()
