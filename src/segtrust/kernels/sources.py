"""Maps that the compiled loops sum: in memory, or (Dask, Zarr, HDF5) chunk by chunk."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from segtrust.kernels import sweep
from segtrust.kernels.distinct import DistinctDoubts, distinct_codes, distinct_doubts, merge_distinct
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.refusals import check_shapes
from segtrust.kernels.select import SAMPLE, Selector, bracket_from_sample, sample_doubts
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyStatistics
from segtrust.kernels.sweep import Ranks, UncertaintyRequest
from segtrust.kernels.tiles import extended, is_chunked, over_tiles, read_tile, tiles_of
from segtrust.kernels.uncertainty import COLLECT, Bracket, entropy_map
from segtrust.kernels.view import MapView, is_packed, view_map

__all__ = ["ChunkedMap", "HostMap", "MemoryMap", "open_host_map"]

_COPIED_WHOLE = 1 << 20
"""Pixels up to which a map that cannot be summed where it lies is copied at once."""


class HostMap(ABC):
    """A map that the compiled loops can reach; finds order statistics by counting."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of pixels."""

    @abstractmethod
    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""

    @abstractmethod
    def dice_statistics(self) -> DiceStatistics:
        """All that exact expectations of overlap scores need."""

    @abstractmethod
    def sweep(self, request: UncertaintyRequest) -> tuple[UncertaintyStatistics, Ranks]:
        """Make one pass."""

    @abstractmethod
    def sample(self, size: int = SAMPLE) -> Any:
        """Doubts of about ``size`` pixels, for a first guess of where an order statistic lies."""

    @abstractmethod
    def entropy_map(self) -> Any:
        """Entropy of each pixel in bits, an array of the map's shape."""

    @abstractmethod
    def distinct_doubts(self) -> DistinctDoubts:
        """Give the doubts that occur, sorted; of a map of floats they may be as many as its pixels."""

    def ranks(self, bracket: Bracket) -> Ranks:
        """Count the pixels around a bracket of doubts; a pass of its own."""
        return self.sweep(UncertaintyRequest(entropies=False, bracket=bracket, room=self._room))[1]

    @property
    def _room(self) -> int:
        """Room for all doubts of a bracket from a sample, also where they lie in one segment."""
        return max(COLLECT, self.n // 50)

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Statistics of the doubts and entropies, the median included where it is needed."""
        if needs.side == 1:  # without running sums, whose rounding would tell equal maps apart
            statistics = self.measure(replace(needs, side=None))
            return replace(statistics, patch=float(statistics.entropy_of(statistics.highest)))
        entropies = needs.entropies or needs.side is not None or needs.doubt_limit < math.inf
        request = UncertaintyRequest(entropies, needs.doubt_limit, needs.side)
        if not needs.median:
            return self.sweep(request)[0]
        sample = self.sample()
        bracket = bracket_from_sample(sample, 0.5)
        statistics, ranks = self.sweep(replace(request, bracket=bracket, room=self._room))
        selector = Selector(self.ranks, self.n, sample, bracket, ranks)
        return replace(statistics, middle=_middle(selector))


def _middle(selector: Selector) -> tuple[float, float]:
    """Give the two middle values; of an odd number the middle one twice."""
    middle = (selector.n - 1) // 2
    return (selector.one(middle),) * 2 if selector.n % 2 else selector.pair(middle)


class MemoryMap(HostMap):
    """A NumPy array or memory map."""

    def __init__(self, view: MapView) -> None:
        self.view = view

    @property
    def n(self) -> int:
        """Number of pixels."""
        return int(self.view.values.size)

    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""
        return sweep.count(self.view)

    def dice_statistics(self) -> DiceStatistics:
        """All that exact expectations of overlap scores need."""
        return sweep.dice_statistics(self.view)

    def sweep(self, request: UncertaintyRequest) -> tuple[UncertaintyStatistics, Ranks]:
        """Make one pass."""
        return sweep.measure(self.view, request)

    def sample(self, size: int = SAMPLE) -> Any:
        """Doubts of pixels drawn with a fixed seed."""
        return sample_doubts(self.view, size)

    def entropy_map(self) -> Any:
        """Entropy of each pixel in bits; a pass before it checks the values."""
        self.sweep(UncertaintyRequest(entropies=False))
        entropies = entropy_map(self.view.values, self.view.codes)
        return entropies.T if self.view.reversed_axes else entropies

    def distinct_doubts(self) -> DistinctDoubts:
        """Give the doubts that occur, sorted; a pass before it checks the values."""
        values, codes = self.view.values, self.view.codes
        self.sweep(UncertaintyRequest(entropies=False))
        if codes.size:
            return distinct_codes(values, codes)
        p = values.astype(np.float64)
        return distinct_doubts([np.minimum(p, 1.0 - p)])


@dataclass(frozen=True)
class ChunkedMap(HostMap):
    """An array that is read one piece at a time; every question reads it once more.

    Attributes
    ----------
    p, mask
        Sliceable arrays of the same shape; the mask may be ``None``.
    threshold, source
        See `segtrust.kernels.view.MapView`.
    """

    p: Any
    mask: Any
    threshold: float
    source: str

    def __post_init__(self) -> None:
        """Check the shapes; types are checked when a chunk is read."""
        mask_shape = None if self.mask is None else tuple(self.mask.shape)
        check_shapes(tuple(self.p.shape), mask_shape, self.source)

    @property
    def n(self) -> int:
        """Number of pixels."""
        return math.prod(self.p.shape)

    def _view(self, tile: tuple[slice, ...]) -> MapView:
        values, mask = read_tile(self.p, tile), read_tile(self.mask, tile)
        view = view_map(values, mask, threshold=self.threshold, source=self.source)
        return replace(view, origin=tuple(part.start for part in tile))

    def _views(self) -> Iterator[MapView]:
        return map(self._view, tiles_of(self.p))

    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""
        return sum(over_tiles(self._count_tile, self.p), start=Counts(0, 0, 0.0, 0.0))

    def _count_tile(self, tile: tuple[slice, ...]) -> Counts:
        return sweep.count(self._view(tile))

    def dice_statistics(self) -> DiceStatistics:
        """All that exact expectations of overlap scores need."""
        return reduce(add, over_tiles(self._dice_tile, self.p))  # one tile at a time

    def _dice_tile(self, tile: tuple[slice, ...]) -> DiceStatistics:
        return sweep.dice_statistics(self._view(tile))

    def sweep(self, request: UncertaintyRequest) -> tuple[UncertaintyStatistics, Ranks]:
        """Make one pass; boxes that cross chunks are summed on overlapping tiles."""
        return sweep.total(over_tiles(partial(self._sweep_tile, request), self.p))

    def _sweep_tile(
        self, request: UncertaintyRequest, tile: tuple[slice, ...]
    ) -> tuple[UncertaintyStatistics, Ranks]:
        plain = replace(request, side=None)
        if request.side is None:
            return sweep.measure(self._view(tile), plain)
        sides = tuple(min(request.side, length) for length in self.p.shape)
        larger = self._view(extended(tile, self.p.shape, sides))
        own = larger.cropped(tuple(part.stop - part.start for part in tile))
        statistics, ranks = sweep.measure(own, plain)
        return replace(statistics, patch=sweep.largest_patch(larger, sides)), ranks

    def sample(self, size: int = SAMPLE) -> Any:
        """Doubts of pixels of each chunk, in proportion to its size."""
        share = size / self.n
        return np.concatenate(list(over_tiles(partial(self._sample_tile, share), self.p)))

    def _sample_tile(self, share: float, tile: tuple[slice, ...]) -> Any:
        view = self._view(tile)
        return sample_doubts(view, 1 + int(share * view.values.size))

    def entropy_map(self) -> Any:
        """Entropy of each pixel in bits; unlike all the rest this takes the memory of a whole map."""
        out = np.empty(self.p.shape)
        for tile in tiles_of(self.p):
            out[tile] = MemoryMap(self._view(tile)).entropy_map()
        return out

    def distinct_doubts(self) -> DistinctDoubts:
        """Give the doubts that occur, sorted."""
        return reduce(merge_distinct, (MemoryMap(view).distinct_doubts() for view in self._views()))


def open_host_map(p: Any, mask: Any, *, threshold: float, source: str) -> HostMap:
    """Take a map as it lies where the loops can, else piece by piece, so that it is never copied whole."""
    if is_chunked(p):
        return ChunkedMap(p, mask, threshold, source)
    p, mask = np.asarray(p), None if mask is None else np.asarray(mask)
    if p.size > _COPIED_WHOLE and not is_packed(p, mask):
        return ChunkedMap(p, mask, threshold, source)
    return MemoryMap(view_map(p, mask, threshold=threshold, source=source))
