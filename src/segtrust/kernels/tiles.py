"""Maps that are read piece by piece: larger than memory (Dask, Zarr, HDF5), or laid out with gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = ["extended", "is_chunked", "read_tile", "tiles_of"]

_SLAB = 1 << 24
"""Pixels of a piece of an array that says nothing about its chunks."""
_SLABS = 16
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


def _slabs(p: Any) -> list[int]:
    """Cut an array in memory across the axis whose neighbours lie farthest apart: a slab is then compact."""
    across = int(np.argmax(np.abs(p.strides)))
    return [-(-length // _SLABS) if axis == across else length for axis, length in enumerate(p.shape)]


def tiles_of(p: Any) -> Iterator[tuple[slice, ...]]:
    """Index of each chunk, in the order of the array."""
    chunks = _slabs(p) if isinstance(p, np.ndarray) else p.chunks
    if chunks is None:  # a contiguous HDF5 data set
        rows = max(1, _SLAB // max(1, int(np.prod(p.shape[1:]))))
        chunks = (rows, *p.shape[1:])
    return product(*(_steps(length, chunk) for length, chunk in zip(p.shape, chunks, strict=True)))


def extended(tile: tuple[slice, ...], shape: tuple[int, ...], sides: tuple[int, ...]) -> tuple[slice, ...]:
    """Grow a tile so that it holds every box that begins in it."""
    return tuple(
        slice(part.start, min(part.stop + side - 1, length))
        for part, length, side in zip(tile, shape, sides, strict=True)
    )


def read_tile(p: Any, tile: tuple[slice, ...]) -> Any:
    """Read one piece into memory; ``None`` stays ``None``."""
    return None if p is None else np.asarray(p[tile])
