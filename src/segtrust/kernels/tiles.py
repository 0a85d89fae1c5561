"""Tiles of maps that are read one tile at a time: larger than memory (Dask, Zarr, HDF5), or with gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from typing import Any, TypeVar

import numpy as np

_Result = TypeVar("_Result")
Tile = tuple[slice, ...]
TileMapper = Callable[[Callable[[Tile], Any], Iterable[Tile]], Iterable[Any]]
"""Applies a function to tiles and returns the results in the order of the tiles, as ``map`` does."""

_LARGEST_TILE = 1 << 22
"""Most pixels in a tile of an array without chunks."""
_TILES_IN_MEMORY = 16
"""Tiles of an array in memory; one at a time is copied, and patches reach into the next."""


def is_chunked(p: Any) -> bool:
    """Return whether an array is to be read tile by tile."""
    return not isinstance(p, np.ndarray) and all(hasattr(p, name) for name in ("chunks", "shape", "dtype"))


def tiles_of(p: Any) -> Iterator[Tile]:
    """Return the index of each tile, in the order of the array.

    Chunks are tiles; an array without chunks is split into tiles that are compact in memory or on disk.
    """
    chunks: Sequence[int | Sequence[int]]
    if isinstance(p, np.ndarray):  # the axis whose neighbours lie farthest apart is split first
        axes = np.argsort(-np.abs(np.array(p.strides)), kind="stable").tolist()
        chunks = _tile_shape(p.shape, axes, min(_LARGEST_TILE, -(-p.size // _TILES_IN_MEMORY)))
    elif p.chunks is None:  # a contiguous HDF5 data set
        chunks = _tile_shape(p.shape, range(len(p.shape)), _LARGEST_TILE)
    else:
        chunks = p.chunks
    return product(*(_split_axis(length, chunk) for length, chunk in zip(p.shape, chunks, strict=True)))


def _tile_shape(shape: Sequence[int], axes: Sequence[int], most: int) -> list[int]:
    """Return the shape of tiles of at most ``most`` pixels; axes are split in order, as far as needed."""
    tile = list(shape)
    for axis in axes:
        others = math.prod(tile) // tile[axis]
        tile[axis] = min(tile[axis], max(1, most // others))
    return tile


def _split_axis(length: int, chunk: int | Sequence[int]) -> list[slice]:
    """Split one axis; ``chunk`` is one length for all tiles, or (Dask) the length of each."""
    if isinstance(chunk, Sequence):
        ends = np.cumsum(chunk).tolist()
        return [slice(end - size, end) for end, size in zip(ends, chunk, strict=True) if size]
    return [slice(first, min(first + chunk, length)) for first in range(0, length, max(chunk, 1))]


def read_tile(p: Any, tile: Tile) -> Any:
    """Read one tile into memory; ``None`` for a mask that is ``None``."""
    return None if p is None else np.asarray(p[tile])


def extend_tile(tile: Tile, shape: tuple[int, ...], sides: tuple[int, ...]) -> Tile:
    """Return a tile enlarged so that it contains every box of these sides that begins in it."""
    return tuple(
        slice(part.start, min(part.stop + side - 1, length))
        for part, length, side in zip(tile, shape, sides, strict=True)
    )


_mapper: ContextVar[TileMapper] = ContextVar("segtrust_tile_mapper", default=map)


@contextmanager
def tiles_mapped_by(mapper: TileMapper) -> Iterator[None]:
    """Have the tiles of the maps inside the block processed by ``mapper``, for example in several processes.

    Results do not depend on it, to the last bit: they are combined in the order of the tiles.
    """
    token = _mapper.set(mapper)
    try:
        yield
    finally:
        _mapper.reset(token)


def over_tiles(function: Callable[[Tile], _Result], p: Any) -> Iterable[_Result]:
    """Apply a function to each tile of an array, one after the other or as `tiles_mapped_by` specifies."""
    return _mapper.get()(function, tiles_of(p))
