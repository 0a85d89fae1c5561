"""A map cut at its threshold, and how far that is from a mask."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from segtrust.kernels.tiles import is_chunked, over_tiles, read_tile, tiles_of
from segtrust.kernels.view import view_map

__all__ = ["count_differing", "cut_map", "thresholded"]


def thresholded(p: Any, *, threshold: float = 0.5, source: str = "p") -> Any:
    """Give where a map in memory is at least the threshold, as the estimators compare it.

    Examples
    --------
    >>> thresholded(np.array([127, 128], np.uint8)).tolist()
    [False, True]
    """
    view = view_map(p, threshold=threshold, source=source)
    levels = view.codes >= view.threshold  # a table of truth values for integers
    mask = levels[view.values] if levels.size else view.values >= view.threshold
    return (mask.T if view.reversed_axes else mask).reshape(np.shape(p))


def cut_map(p: Any, *, threshold: float = 0.5, source: str = "p") -> Any:
    """Do the same with a map that may lie in chunks, of which one at a time is held beside the mask."""
    if not is_chunked(p):
        return thresholded(p, threshold=threshold, source=source)
    mask = np.empty(p.shape, bool)
    for tile in tiles_of(p):
        mask[tile] = thresholded(read_tile(p, tile), threshold=threshold, source=source)
    return mask


def count_differing(p: Any, mask: Any, *, threshold: float = 0.5, source: str = "p") -> int:
    """Count the pixels in which a mask differs from its map cut at the threshold, piece by piece.

    Examples
    --------
    >>> count_differing(np.array([0.9, 0.2, 0.5]), np.array([1, 1, 1]))
    1
    """
    return sum(over_tiles(partial(_differing_in_tile, p, mask, threshold, source), p))


def _differing_in_tile(p: Any, mask: Any, threshold: float, source: str, tile: tuple[slice, ...]) -> int:
    cut = thresholded(read_tile(p, tile), threshold=threshold, source=source)
    return int(np.count_nonzero(cut != read_tile(mask, tile).astype(bool)))
