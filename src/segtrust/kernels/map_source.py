"""From an array of any kind to something that can be summed: in memory, in chunks, or on a device."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

from segtrust._arguments import check_threshold
from segtrust.kernels.array_checks import as_array, check_map_type, check_shapes, mask_name
from segtrust.kernels.device import DeviceMap, is_device_array, on_host
from segtrust.kernels.map_view import is_readable_in_place, view_map
from segtrust.kernels.quantiles import DistinctDoubts
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyNeeds, UncertaintyStatistics
from segtrust.kernels.tiles import Tile, is_chunked, over_tiles, read_tile, tiles_of

_COPIED_WHOLE = 1 << 20
"""Pixels up to which an array in memory that cannot be summed in place is copied at once."""


class MapSource(Protocol):
    """A map that can be summed: in memory, in chunks, or on a device."""

    @property
    def n(self) -> int:
        """Number of pixels."""

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""

    def dice_statistics(self) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed."""

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Return statistics of the doubts and entropies."""

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits, as a NumPy array of the map's shape."""

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""


def open_map(p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p") -> MapSource:
    """Open a map for summing.

    Shape and type of the map are checked now; its values, and the mask's, in the pass that reads them.

    Parameters
    ----------
    p
        Map of foreground probabilities: a NumPy array, number or list; a Dask, Zarr or HDF5 array, which is
        read tile by tile; or a torch, CuPy or JAX array, which is summed on its device.
    mask
        Binary mask of the same shape, of any of these kinds; ``None`` for ``p >= threshold``.
    threshold
        Decision threshold in [0, 1].
    source
        Name of the map in errors.

    Examples
    --------
    >>> open_map(np.array([0.75, 0.5, 0.25])).count()
    Counts(n=3, k=2, s=1.25, lam=0.25)
    """
    if not (type(threshold) is float and 0.0 <= threshold <= 1.0):
        threshold = check_threshold(threshold, "threshold")
    if type(p) is np.ndarray and mask is None and p.size <= _COPIED_WHOLE:  # the most common case
        from segtrust.kernels.host_maps import MemoryMap

        return MemoryMap(view_map(p, threshold=threshold, source=source))

    if type(p) is not np.ndarray:
        p = as_array(p, source)
    if mask is not None:
        mask = as_array(mask, mask_name(source))
    check_shapes(tuple(p.shape), None if mask is None else tuple(mask.shape), source)
    check_map_type(p.dtype, source)

    if type(p) is not np.ndarray and is_device_array(p):
        mask = mask if mask is None or is_device_array(mask) else np.asarray(mask)
        return DeviceMap(p, mask, threshold, source)

    from segtrust.kernels.host_maps import ChunkedMap, MemoryMap  # loads Numba, which takes a while

    mask = None if mask is None else on_host(mask)
    if type(p) is not np.ndarray:
        if p.shape and is_chunked(p):
            return ChunkedMap(p, mask, threshold, source)
        p = np.asarray(p)
    mask = None if mask is None else np.asarray(mask)
    if p.size > _COPIED_WHOLE and not is_readable_in_place(p, mask):
        return ChunkedMap(p, mask, threshold, source)
    return MemoryMap(view_map(p, mask, threshold=threshold, source=source))


def threshold_map(p: Any, *, threshold: float = 0.5, source: str = "p") -> Any:
    """Return the mask ``p >= threshold``, with the threshold rounded as in the estimators.

    Values are not checked. A chunked map is read tile by tile.

    Examples
    --------
    >>> threshold_map(np.array([127, 128], np.uint8)).tolist()
    [False, True]
    """
    if not (type(threshold) is float and 0.0 <= threshold <= 1.0):
        threshold = check_threshold(threshold, "threshold")
    if is_chunked(p):
        mask = np.empty(p.shape, bool)
        for tile in tiles_of(p):
            mask[tile] = threshold_map(read_tile(p, tile), threshold=threshold, source=source)
        return mask
    view = view_map(p, threshold=threshold, source=source)
    is_foreground = view.codes >= view.threshold  # for each integer code
    mask = is_foreground[view.values] if is_foreground.size else view.values >= view.threshold
    return (mask.T if view.reversed_axes else mask).reshape(np.shape(p))


def count_mask_changes(p: Any, mask: Any, *, threshold: float = 0.5, source: str = "p") -> int:
    """Count the pixels in which a mask differs from ``p >= threshold``, tile by tile.

    Examples
    --------
    >>> count_mask_changes(np.array([0.9, 0.2, 0.5]), np.array([1, 1, 1]))
    1
    """
    return sum(over_tiles(partial(_count_changes_in_tile, p, mask, threshold, source), p))


def _count_changes_in_tile(p: Any, mask: Any, threshold: float, source: str, tile: Tile) -> int:
    thresholded = threshold_map(read_tile(p, tile), threshold=threshold, source=source)
    return int(np.count_nonzero(thresholded != read_tile(mask, tile).astype(bool)))
