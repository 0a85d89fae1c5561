"""Maps that the compiled loops sum: in memory, or tile by tile (Dask, Zarr, HDF5, arrays with gaps).

A module of its own because it loads Numba.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from segtrust.kernels.device import as_float
from segtrust.kernels.dice_sums import count_in_place, count_map, count_rows, dice_statistics
from segtrust.kernels.map_view import MapView, view_map
from segtrust.kernels.patches import largest_patch, measure_with_patches
from segtrust.kernels.quantiles import (
    SAMPLE,
    DistinctDoubts,
    Selector,
    bracket_from_sample,
    distinct_codes,
    distinct_doubts,
    merge_distinct,
    sample_doubts,
)
from segtrust.kernels.statistics import (
    COLLECT,
    NOWHERE,
    Bracket,
    Counts,
    DiceStatistics,
    Ranks,
    UncertaintyNeeds,
    UncertaintyStatistics,
)
from segtrust.kernels.tiles import Tile, extend_tile, over_tiles, read_tile, tiles_of
from segtrust.kernels.uncertainty import Measured, entropy_map, measure_map, total_of_parts

__all__ = ["ChunkedMap", "HostMap", "MemoryMap", "count_in_place", "count_rows"]


class HostMap(ABC):
    """Base class for maps that the compiled loops can reach; finds order statistics by counting."""

    number: Callable[[Any], Any]
    """Turns a result into what the caller expects: `as_float`, or `as_tensor` for a tensor on the CPU."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of pixels."""

    @abstractmethod
    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""

    @abstractmethod
    def dice_statistics(self, *, any_weights: bool = False) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed."""

    @abstractmethod
    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits, as a NumPy array of the map's shape."""

    @abstractmethod
    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""

    @abstractmethod
    def measure_once(
        self, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
    ) -> Measured:
        """Make one pass; see `segtrust.kernels.uncertainty.measure_map`."""

    @abstractmethod
    def sample(self, size: int) -> Any:
        """Return the doubts of about ``size`` pixels, for a first guess of where an order statistic lies."""

    def ranks(self, bracket: Bracket) -> Ranks:
        """Count the pixels around a bracket of doubts, in a pass of its own."""
        return self.measure_once(UncertaintyNeeds(), bracket, self._room)[1]

    @property
    def _room(self) -> int:
        """Room for all doubts of a bracket from a sample, even if they all lie in one segment."""
        return max(COLLECT, self.n // 50)

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Return statistics of the doubts and entropies, with the median if it is needed."""
        if needs.side == 1:  # without running sums, whose rounding would make equal maps differ
            statistics = self.measure(replace(needs, side=None))
            return replace(statistics, patch=float(statistics.entropy_of(statistics.highest)))
        if not needs.median:
            return self.measure_once(needs)[0]
        sample = self.sample(SAMPLE)
        bracket = bracket_from_sample(sample, 0.5)
        statistics, ranks = self.measure_once(needs, bracket, self._room)
        selector = Selector(self.ranks, self.n, sample, bracket, ranks)
        middle = (self.n - 1) // 2
        if self.n % 2:
            return replace(statistics, middle=(selector.one(middle),) * 2)
        return replace(statistics, middle=selector.pair(middle))


@dataclass(frozen=True)
class MemoryMap(HostMap):
    """A NumPy array or memory map, or the memory of a tensor."""

    view: MapView
    number: Callable[[Any], Any] = as_float

    @property
    def n(self) -> int:
        """Number of pixels."""
        return int(self.view.values.size)

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""
        return count_map(self.view)

    def dice_statistics(self, *, any_weights: bool = False) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed."""
        return dice_statistics(self.view, any_weights=any_weights)

    def measure_once(
        self, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
    ) -> Measured:
        """Make one pass; see `segtrust.kernels.uncertainty.measure_map`."""
        if needs.side is None:
            return measure_map(self.view, needs, bracket, room)
        return measure_with_patches(self.view, needs.side, needs, bracket, room)

    def sample(self, size: int) -> Any:
        """Return the doubts of pixels drawn with a fixed seed."""
        return sample_doubts(self.view, size)

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits."""
        self.measure_once(UncertaintyNeeds())  # checks the values
        entropies = entropy_map(self.view.values, self.view.codes)
        return entropies.T if self.view.reversed_axes else entropies

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""
        self.measure_once(UncertaintyNeeds())  # checks the values
        if self.view.codes.size:
            return distinct_codes(self.view.values, self.view.codes)
        p = self.view.values.astype(np.float64)
        return distinct_doubts([np.minimum(p, 1.0 - p)])


@dataclass(frozen=True)
class ChunkedMap(HostMap):
    """An array that is read one tile at a time; every method reads it again.

    Attributes
    ----------
    p, mask
        Sliceable arrays of the same shape; the mask may be ``None``.
    threshold
        Decision threshold of the mask if there is none.
    source
        Name of the map in errors.
    """

    p: Any
    mask: Any
    threshold: float
    source: str
    number: Callable[[Any], Any] = as_float

    @property
    def n(self) -> int:
        """Number of pixels."""
        return math.prod(self.p.shape)

    def _read(self, tile: Tile) -> MemoryMap:
        values, mask = read_tile(self.p, tile), read_tile(self.mask, tile)
        view = view_map(values, mask, threshold=self.threshold, source=self.source)
        return MemoryMap(replace(view, origin=tuple(part.start for part in tile)))

    # Tiles may run in other processes: bound methods can be pickled, closures cannot.

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""
        return sum(over_tiles(self._count_tile, self.p), start=Counts(0, 0, 0.0, 0.0))

    def _count_tile(self, tile: Tile) -> Counts:
        return self._read(tile).count()

    def dice_statistics(self, *, any_weights: bool = False) -> DiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed."""
        return reduce(add, over_tiles(partial(self._dice_tile, any_weights), self.p))  # one tile at a time

    def _dice_tile(self, any_weights: bool, tile: Tile) -> DiceStatistics:
        return self._read(tile).dice_statistics(any_weights=any_weights)

    def measure_once(
        self, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
    ) -> Measured:
        """Make one pass; boxes that cross chunks are summed on overlapping tiles."""
        return total_of_parts(over_tiles(partial(self._measure_tile, needs, bracket, room), self.p))

    def _measure_tile(self, needs: UncertaintyNeeds, bracket: Bracket, room: int, tile: Tile) -> Measured:
        if needs.side is None:
            return self._read(tile).measure_once(needs, bracket, room)
        sides = tuple(min(needs.side, length) for length in self.p.shape)
        enlarged = self._read(extend_tile(tile, self.p.shape, sides)).view
        own = enlarged.cropped(tuple(part.stop - part.start for part in tile))
        statistics, ranks = measure_map(own, needs, bracket, room)
        return replace(statistics, patch=largest_patch(enlarged, sides)), ranks

    def sample(self, size: int) -> Any:
        """Return the doubts of pixels of each tile, in proportion to its size."""
        return np.concatenate(list(over_tiles(partial(self._sample_tile, size / self.n), self.p)))

    def _sample_tile(self, share: float, tile: Tile) -> Any:
        in_memory = self._read(tile)
        return in_memory.sample(1 + int(share * in_memory.n))

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits; unlike the other methods this holds a whole map."""
        out = np.empty(self.p.shape)
        for tile in tiles_of(self.p):
            out[tile] = self._read(tile).entropy_map()
        return out

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each."""
        return reduce(merge_distinct, (self._read(tile).distinct_doubts() for tile in tiles_of(self.p)))
