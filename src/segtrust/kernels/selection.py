"""Maps of which only some pixels count: those that ``where`` selects.

The selected pixels are a map of one dimension, from which sums and order statistics are computed. Boxes of
neighbouring pixels, and the entropy map, need the grid: for them the other pixels are set to 0, a certain
background without entropy. Maps in chunks, and large ones in memory, are read tile by tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NoReturn, TypeVar

import numpy as np
from array_api_compat import array_namespace

from segtrust.errors import EmptyArrayError, ProbabilityRangeError
from segtrust.kernels.array_checks import (
    as_array,
    as_binary,
    check_map_type,
    check_shapes,
    mask_name,
    raise_shape_mismatch,
)
from segtrust.kernels.device import as_binary_on_device, as_float, is_device_array, on_host, to_device_of
from segtrust.kernels.map_source import MapSource, open_map
from segtrust.kernels.quantiles import DistinctDoubts
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyNeeds, UncertaintyStatistics
from segtrust.kernels.tiles import Tile, is_chunked, read_tile, tiles_of

_Result = TypeVar("_Result")
_COPIED_WHOLE = 1 << 20
"""Pixels up to which the selected pixels of an array in memory are copied at once."""


def open_selection(
    p: Any,
    mask: Any,
    where: Any,
    *,
    threshold: float,
    source: str,
    number: Callable[[Any], Any] = as_float,
) -> MapSource:
    """Open the pixels of a map that ``where`` selects; the others may hold anything and are not checked.

    Parameters
    ----------
    p, mask
        Map and mask as for `open_map`.
    where
        Boolean array, or 0 and 1, of the map's shape.
    threshold, source
        Decision threshold, and the name of the map in errors.
    number
        Turns a result into what the caller expects, see `in_host_memory`.
    """
    p = as_array(p, source)
    mask = None if mask is None else as_array(mask, mask_name(source))
    check_shapes(tuple(p.shape), None if mask is None else tuple(mask.shape), source)
    check_map_type(p.dtype, source)
    where = check_where(where, p)
    select: Callable[[Any], Any]
    fill: Callable[[Any], Any]
    if is_device_array(p):
        if mask is not None and not is_device_array(mask):  # copied without what is not selected
            mask = fill_outside(np.asarray(mask), on_host(where))
        mask = None if mask is None else to_device_of(mask, p, mask_name(source))
        selects_any = bool(array_namespace(p).any(where))
        select = lambda values: values[where]  # noqa: E731
        fill = lambda values: fill_unselected(values, where)  # noqa: E731
    elif is_chunked(p) or p.size > _COPIED_WHOLE:
        mask, tiles = on_host(mask), list(tiles_of(p))
        counts = [int(np.count_nonzero(_read_where(where, tile))) for tile in tiles]
        selects_any = any(counts)
        select = lambda values: _Selected(values, where, tiles, counts)  # noqa: E731
        fill = lambda values: _Filled(values, where)  # noqa: E731
    else:
        mask, selects_any = on_host(mask), bool(where.any())
        select = lambda values: np.asarray(values)[where]  # noqa: E731
        fill = lambda values: fill_outside(values, where)  # noqa: E731
    if not selects_any:
        _raise_none_selected(p)
    selected_mask = None if mask is None else select(mask)
    selected = open_map(select(p), selected_mask, threshold=threshold, source=source)
    to_caller = selected.number if is_device_array(p) else number
    return SelectedMap(selected, lambda: open_map(fill(p), threshold=threshold, source=source), to_caller)


def check_where(where: Any, p: Any) -> Any:
    """Return a selection of pixels as booleans, stored like its map: in chunks, in memory or on a device.

    Parameters
    ----------
    where
        Boolean array, or 0 and 1, of the map's shape. One in chunks is checked when it is read.
    p
        The map.
    """
    where = as_array(where, "where")
    if tuple(where.shape) != tuple(p.shape):
        raise_shape_mismatch(tuple(where.shape), f"the shape of the map, {tuple(p.shape)}", "where")
    if is_device_array(p):
        where = np.asarray(where) if is_chunked(where) else where
        return as_binary_on_device(to_device_of(where, p, "where"), "where")
    where = on_host(where)
    if is_chunked(where) and is_chunked(p):
        return where
    return as_binary(np.asarray(where), "where").view(bool)


def select_pixels(values: Any, where: Any) -> Any:
    """Return the selected pixels of an array, in one dimension, in memory or on its device.

    Examples
    --------
    >>> select_pixels(np.array([[1, 255], [0, 1]]), np.array([[True, False], [True, True]])).tolist()
    [1, 0, 1]
    """
    values = values if is_device_array(values) else np.asarray(values)
    selected = values[check_where(where, values)]
    if not selected.shape[0]:
        _raise_none_selected(values)
    return selected


def fill_unselected(values: Any, where: Any) -> Any:
    """Return an array with 0 in the pixels that are not selected, as far as it is read.

    Parameters
    ----------
    values
        Array in memory, in chunks or on a device.
    where
        Selection as `check_where` returns it for this array.
    """
    if is_device_array(values):
        xp = array_namespace(values)
        return xp.where(where, values, xp.zeros_like(values))
    return _Filled(values, where) if is_chunked(values) else fill_outside(values, where)


def _raise_none_selected(p: Any) -> NoReturn:
    raise EmptyArrayError(
        f"where: expected at least one selected pixel, got none of {math.prod(p.shape)}. "
        "True selects a pixel; leave out an image without any."
    )


def fill_outside(values: Any, where: Any) -> Any:
    """Return a copy of an array in memory with 0 in the pixels that are not selected."""
    filled = np.array(values)
    filled[~where] = 0
    return filled


def _read_where(where: Any, tile: Tile) -> Any:
    return as_binary(read_tile(where, tile), "where").view(bool)


@dataclass(frozen=True, eq=False)
class SelectedMap:
    """The selected pixels of a map.

    Attributes
    ----------
    selected
        The selected pixels, as a map of one dimension.
    open_filled
        Opens the map on its grid, with 0 in all other pixels.
    to_caller
        Turns a result into what the caller expects, see `number`.
    """

    selected: MapSource
    open_filled: Callable[[], MapSource]
    to_caller: Callable[[Any], Any]

    @cached_property
    def _filled(self) -> MapSource:
        return self.open_filled()

    @property
    def n(self) -> int:
        """Number of selected pixels."""
        return self.selected.n

    def number(self, value: Any) -> Any:
        """Return a result as a caller expects it: a float, or a scalar of the array library of the map."""
        return self.to_caller(value)

    def _locate_errors(self, compute: Callable[[], _Result]) -> _Result:
        """Compute something; if a value is bad, raise the error with its index in the whole map."""
        try:
            return compute()
        except ProbabilityRangeError:
            self._filled.count()
            raise

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""
        return self._locate_errors(self.selected.count)

    def dice_statistics(self, *, any_weights: bool = False) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed."""
        return self._locate_errors(lambda: self.selected.dice_statistics(any_weights=any_weights))

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Return statistics of the doubts and entropies; boxes are those of the whole map."""
        statistics = self._locate_errors(lambda: self.selected.measure(replace(needs, side=None)))
        if needs.side is None:
            return statistics
        return replace(statistics, patch=self._filled.measure(UncertaintyNeeds(side=needs.side)).patch)

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits, 0 where it is not selected."""
        return self._filled.entropy_map()

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""
        return self._locate_errors(self.selected.distinct_doubts)


@dataclass(frozen=True, eq=False)
class _Selected:
    """The selected pixels of an array as an array of one dimension, whose chunks are those of its tiles."""

    whole: Any
    where: Any
    tiles: list[Tile]
    counts: list[int]

    @property
    def shape(self) -> tuple[int]:
        return (sum(self.counts),)

    @property
    def dtype(self) -> Any:
        return self.whole.dtype

    @property
    def chunks(self) -> tuple[tuple[int, ...]]:
        return (tuple(self.counts),)

    @cached_property
    def _number_at(self) -> dict[int, int]:
        """Number of the tile that begins at a position; empty tiles are overwritten by the next."""
        return {start: i for i, start in enumerate(accumulate(self.counts[:-1], initial=0)) if self.counts[i]}

    def __getitem__(self, tile: Tile) -> Any:
        original = self.tiles[self._number_at[tile[0].start]]
        return read_tile(self.whole, original)[_read_where(self.where, original)]


@dataclass(frozen=True, eq=False)
class _Filled:
    """An array in chunks, or a large one in memory, with 0 where it is not selected."""

    whole: Any
    where: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape)

    @property
    def dtype(self) -> Any:
        return self.whole.dtype

    @property
    def chunks(self) -> Any:
        return getattr(self.whole, "chunks", None)

    def __getitem__(self, tile: Tile) -> Any:
        return fill_outside(read_tile(self.whole, tile), _read_where(self.where, tile))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype=dtype)
