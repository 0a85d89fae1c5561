"""From an array of any kind to something that can be summed: in memory, in chunks, or on a device."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from segtrust._arguments import check_threshold
from segtrust.kernels.array_checks import as_array, check_map_type, check_shapes, mask_name
from segtrust.kernels.device import DeviceMap, in_host_memory, is_device_array, on_host
from segtrust.kernels.map_view import is_readable_in_place, view_map
from segtrust.kernels.quantiles import DistinctDoubts
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyNeeds, UncertaintyStatistics
from segtrust.kernels.tiles import Tile, is_chunked, over_tiles, read_tile, tiles_of

_COPIED_WHOLE = 1 << 20
"""Pixels up to which an array in memory that cannot be summed in place is copied at once."""

_BATCHED_UP_TO = 1 << 19
"""Pixels of a map up to which a batch is counted in one call: larger maps are shared by threads."""


class MapSource(Protocol):
    """A map that can be summed: in memory, in chunks, or on a device."""

    @property
    def n(self) -> int:
        """Number of pixels."""
        ...

    def number(self, value: Any) -> Any:
        """Return a result as a caller expects it: a float, or a scalar of the array library of the map."""
        ...

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""
        ...

    def dice_statistics(self, *, any_weights: bool = False) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed.

        They serve Tversky indices with 1 - alpha <= beta <= 1 (Dice, IoU, F-beta), or those of any weights.
        """
        ...

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Return statistics of the doubts and entropies."""
        ...

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits, as a NumPy array of the map's shape."""
        ...

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""
        ...


def open_map(
    p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p", where: Any = None
) -> MapSource:
    """Open a map for summing.

    Shape and type of the map are checked now; its values, and the mask's, in the pass that reads them.

    Parameters
    ----------
    p
        Map of foreground probabilities: a NumPy array, number or list; a Dask, Zarr or HDF5 array, which is
        read tile by tile; or a torch, CuPy or JAX array, which is summed on its device, except for a torch
        tensor on the CPU that needs no gradient: the compiled loops read its memory.
    mask
        Binary mask of the same shape, of any of these kinds; ``None`` for ``p >= threshold``.
    threshold
        Decision threshold in [0, 1].
    source
        Name of the map in errors.
    where
        Boolean array of the map's shape that selects the pixels that count; ``None`` for all. Other pixels
        may hold anything.

    Examples
    --------
    >>> open_map(np.array([0.75, 0.5, 0.25])).count()
    Counts(n=3, k=2, s=1.25, lam=0.25)
    """
    if not (type(threshold) is float and 0.0 <= threshold <= 1.0):
        threshold = check_threshold(threshold, "threshold")
    p, number = in_host_memory(p)
    if where is not None:
        from segtrust.kernels.selection import open_selection

        return open_selection(p, mask, where, threshold=threshold, source=source, number=number)
    if type(p) is np.ndarray and mask is None and p.size <= _COPIED_WHOLE:  # the most common case
        opened: MapSource = _compiled().MemoryMap(view_map(p, threshold=threshold, source=source), number)
        return opened

    if type(p) is not np.ndarray:
        p = as_array(p, source)
    if mask is not None:
        mask = as_array(in_host_memory(mask)[0], mask_name(source))
    check_shapes(tuple(p.shape), None if mask is None else tuple(mask.shape), source)
    check_map_type(p.dtype, source)

    if type(p) is not np.ndarray and is_device_array(p):
        mask = mask if mask is None or is_device_array(mask) else np.asarray(mask)
        return DeviceMap(p, mask, threshold, source)

    compiled = _compiled()
    mask = None if mask is None else on_host(mask)
    if type(p) is not np.ndarray:
        if p.shape and is_chunked(p):
            opened = compiled.ChunkedMap(p, mask, threshold, source, number)
            return opened
        p = np.asarray(p)
    mask = None if mask is None else np.asarray(mask)
    if p.size > _COPIED_WHOLE and not is_readable_in_place(p, mask):
        opened = compiled.ChunkedMap(p, mask, threshold, source, number)
    else:
        opened = compiled.MemoryMap(view_map(p, mask, threshold=threshold, source=source), number)
    return opened


@cache
def _compiled() -> Any:
    """Return the module of maps on the host, which loads Numba and takes a while the first time."""
    from segtrust.kernels import host_maps

    return host_maps


def count_map(
    p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p", where: Any = None
) -> Counts:
    """Return the counts of a map: `open_map` and `MapSource.count`, with a short way for one small image.

    Parameters
    ----------
    p
        Map of foreground probabilities, of any kind that `open_map` accepts.
    mask
        Binary mask of the same shape; ``None`` for ``p >= threshold``.
    threshold
        Decision threshold in [0, 1].
    source
        Name of the map in errors.
    where
        Boolean array of the map's shape that selects the pixels that count; ``None`` for all.

    Examples
    --------
    >>> count_map(np.array([0.75, 0.5, 0.25]))
    Counts(n=3, k=2, s=1.25, lam=0.25)
    """
    if mask is not None and type(mask) is not np.ndarray:
        mask, _ = in_host_memory(mask)
    in_memory = type(p) is np.ndarray and (mask is None or type(mask) is np.ndarray) and where is None
    if in_memory and type(threshold) is float and 0.0 <= threshold <= 1.0:
        counts: Counts | None = _compiled().count_in_place(p, mask, threshold)
        if counts is not None:
            return counts
    return open_map(p, mask, threshold=threshold, source=source, where=where).count()


def count_batch(p: Any, mask: Any = None, *, threshold: float = 0.5) -> Counts | None:
    """Return the counts of all maps of a batch as arrays, or ``None`` if they are to be opened one by one.

    They are counted together if they are small and lie one after the other in memory, as their masks do.

    Parameters
    ----------
    p
        Foreground probabilities, checked for shape and type: a leading batch axis, then the axes of a map.
    mask
        Masks of the same shape; ``None`` for ``p >= threshold``.
    threshold
        Decision threshold in [0, 1].

    Examples
    --------
    >>> count_batch(np.array([[0.9, 0.1], [0.6, 0.7]])).k.tolist()
    [1.0, 2.0]
    """
    arrays = [p] if mask is None else [p, mask]
    if any(type(array) is not np.ndarray or not array.flags.c_contiguous for array in arrays):
        return None
    if not 0 < p[0].size <= _BATCHED_UP_TO or (mask is not None and mask.dtype.char not in "?B"):
        return None
    threshold = check_threshold(threshold, "threshold")
    counts, bad = _compiled().count_rows(p, mask, threshold)
    if bad is not None:  # raises the error with the name of the map
        mask_of_bad = None if mask is None else mask[bad]
        open_map(p[bad], mask_of_bad, threshold=threshold, source=f"p[{bad}]").count()
    return counts  # type: ignore[no-any-return]


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
