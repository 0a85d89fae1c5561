"""Maps that are read piece by piece: larger than memory (Dask, Zarr, HDF5), or laid out with gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from typing import Any, TypeVar

import numpy as np

__all__ = ["Spread", "extended", "is_chunked", "over_tiles", "read_tile", "spreading", "tiles_of"]

_Result = TypeVar("_Result")
Tile = tuple[slice, ...]
Spread = Callable[[Callable[[Tile], Any], Iterable[Tile]], Iterable[Any]]
"""Applies a function to tiles and gives the results in their order, as ``map`` does."""

_PIECE = 1 << 22
"""Most pixels of a piece of an array that says nothing about its chunks."""
_PIECES = 16
"""Pieces of an array in memory; one of them is copied at a time, and patches reach into the next."""


def is_chunked(p: Any) -> bool:
    """Tell whether an array is to be read in pieces."""
    return not isinstance(p, np.ndarray) and all(hasattr(p, name) for name in ("chunks", "shape", "dtype"))


def _steps(length: int, chunk: int | Sequence[int]) -> list[slice]:
    """Cut one axis; ``chunk`` is one length for all pieces, or (Dask) the length of each."""
    if isinstance(chunk, Sequence):
        ends = np.cumsum(chunk).tolist()
        return [slice(end - size, end) for end, size in zip(ends, chunk, strict=True) if size]
    return [slice(first, min(first + chunk, length)) for first in range(0, length, max(chunk, 1))]


def _cut(shape: Sequence[int], axes: Sequence[int], most: int) -> list[int]:
    """Shape of pieces of at most so many pixels; axes are cut in the order given, each as far as needed."""
    piece = list(shape)
    for axis in axes:
        others = math.prod(piece) // piece[axis]
        piece[axis] = min(piece[axis], max(1, most // others))
    return piece


def _chunks_of(p: Any) -> Sequence[int | Sequence[int]]:
    """Give the chunks of an array, or where it has none pieces that are compact in memory or on disk."""
    if isinstance(p, np.ndarray):  # the axis whose neighbours lie farthest apart is cut first
        farthest = np.argsort(-np.abs(np.array(p.strides)), kind="stable")
        return _cut(p.shape, farthest.tolist(), min(_PIECE, -(-p.size // _PIECES)))
    if p.chunks is None:  # a contiguous HDF5 data set
        return _cut(p.shape, range(len(p.shape)), _PIECE)
    chunks: Sequence[int | Sequence[int]] = p.chunks
    return chunks


def tiles_of(p: Any) -> Iterator[tuple[slice, ...]]:
    """Index of each chunk, in the order of the array."""
    return product(*(_steps(length, chunk) for length, chunk in zip(p.shape, _chunks_of(p), strict=True)))


_spread: ContextVar[Spread] = ContextVar("segtrust_spread", default=map)


@contextmanager
def spreading(spread: Spread) -> Iterator[None]:
    """Let the tiles of the maps inside the block be read by others, such as processes side by side.

    Results do not depend on it, to the last bit: they are put together in the order of the tiles.
    """
    token = _spread.set(spread)
    try:
        yield
    finally:
        _spread.reset(token)


def over_tiles(function: Callable[[Tile], _Result], p: Any) -> Iterable[_Result]:
    """Apply a function to each tile of an array, one after the other or as `spreading` says."""
    return _spread.get()(function, tiles_of(p))


def extended(tile: tuple[slice, ...], shape: tuple[int, ...], sides: tuple[int, ...]) -> tuple[slice, ...]:
    """Grow a tile so that it holds every box that begins in it."""
    return tuple(
        slice(part.start, min(part.stop + side - 1, length))
        for part, length, side in zip(tile, shape, sides, strict=True)
    )


def read_tile(p: Any, tile: tuple[slice, ...]) -> Any:
    """Read one piece into memory; ``None`` stays ``None``."""
    return None if p is None else np.asarray(p[tile])
