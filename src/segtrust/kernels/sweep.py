"""From a map in memory to its statistics: threads, segments, and the order in which they are added."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segtrust.kernels.layouts import Layout, Tile, layout_of
from segtrust.kernels.patches import Walk, hand_over, largest_sum, new_walk, walk_tile
from segtrust.kernels.slices import largest_by_slices
from segtrust.kernels.statistics import APART_ABOVE, ORDER, Counts, DiceStatistics, UncertaintyStatistics
from segtrust.kernels.sums import (
    QUARTIC_MASS,
    QUARTIC_TOP,
    Pixels,
    Sums,
    new_refined,
    new_scratch,
    new_sums,
    refine_segment,
    segments_of,
    sum_segment,
)
from segtrust.kernels.uncertainty import (
    BLOCK,
    COLLECT,
    NOWHERE,
    Bracket,
    Measures,
    measure_segment,
    new_measures,
    new_work,
)
from segtrust.kernels.view import MapView, explain_bad_values
from segtrust.settings import current_threads
from segtrust.threads import in_order

__all__ = ["Ranks", "UncertaintyRequest", "count", "dice_statistics", "largest_patch", "measure", "total"]


def _pixels(view: MapView, segment: slice) -> Pixels:
    mask = None if view.mask is None else view.mask.reshape(-1)[segment]
    values, compared = view.values.reshape(-1)[segment], type(view.unit)
    limits = compared(QUARTIC_TOP), compared(APART_ABOVE)
    return Pixels(values, view.codes, mask, view.threshold, view.unit, *limits)


def _sum_segments(view: MapView, *, powers: bool) -> Sequence[Sums]:
    def one(segment: slice) -> Sums:
        pixels = _pixels(view, segment)
        sums = new_sums(pixels.values.size, powers=powers)
        if not sum_segment(pixels, new_scratch(), sums):
            explain_bad_values(view, segment)
        return sums

    return in_order(one, segments_of(view.values.size))


def _counts_of(parts: Sequence[Sums]) -> Counts:
    totals = np.array([sums.totals for sums in parts]).reshape(-1, 4)
    outside, lam, inside, s = (math.fsum(column) for column in totals.T)
    return Counts(int(outside + inside), int(inside), s, lam)


def count(view: MapView) -> Counts:
    """Count a map: all that the soft Dice confidence and its bounds need."""
    return _counts_of(_sum_segments(view, powers=False))


def dice_statistics(view: MapView) -> DiceStatistics:
    """Sum a map with all that the exact expectations of overlap scores need."""
    parts = _sum_segments(view, powers=True)
    counts = _counts_of(parts)
    powers = np.zeros((2, ORDER - 1))
    powers[:, :3] = sum(part.powers for part in parts)
    provisional = sum(part.provisional for part in parts)
    masses = (counts.lam, counts.s)
    for side in (0, 1):
        if masses[side] >= QUARTIC_MASS:
            powers[side, :3] += provisional[side]
    refined = _refine(view, [part.kinds for part in parts], masses)
    powers += sum((more for more, _ in refined), start=np.zeros_like(powers))
    outside, inside = (
        np.concatenate([np.empty(0), *(apart[side] for _, apart in refined)]) for side in (0, 1)
    )
    return DiceStatistics(counts, powers, (outside, inside))


def _refine(
    view: MapView, kinds: Sequence[Any], masses: tuple[float, float]
) -> Sequence[tuple[Any, tuple[Any, Any]]]:
    """Give the powers of the blocks with larger values and the values set apart, a pair a segment.

    Sides with much mass need none of it; neither does a side without any.
    """
    light = [0.0 < mass < QUARTIC_MASS for mass in masses]
    if not any(light):
        return []

    def one(task: tuple[slice, Any]) -> tuple[Any, tuple[Any, Any]]:
        segment, blocks = task
        refined = new_refined()
        refine_segment(_pixels(view, segment), blocks, masses, refined)
        outside, inside = (refined.apart[side, : refined.apart_count[side]].copy() for side in (0, 1))
        return refined.powers, (outside, inside)

    return in_order(one, list(zip(segments_of(view.values.size), kinds, strict=True)))


@dataclass(frozen=True)
class UncertaintyRequest:
    """Which statistics of the uncertainty are wanted.

    Attributes
    ----------
    entropies
        Whether Σ u is.
    doubt_limit
        Σ u and count of the pixels with more doubt than this; infinite for none.
    side
        Side of the box whose largest Σ u is wanted; ``None`` for none.
    bracket
        Doubts between which an order statistic is sought.
    room
        Most doubts inside the bracket that one segment keeps.
    """

    entropies: bool = True
    doubt_limit: float = math.inf
    side: int | None = None
    bracket: Bracket = NOWHERE
    room: int = COLLECT

    def new_measures(self) -> Measures:
        """Empty accumulators for this request."""
        return new_measures(
            bracket=self.bracket, doubt_limit=self.doubt_limit, entropies=self.entropies, room=self.room
        )


@dataclass(frozen=True)
class Ranks:
    """Where a bracket of doubts lies among the pixels.

    Attributes
    ----------
    below_low, upto_low, below_high, upto_high
        Pixels with doubt < low, <= low, < high and <= high.
    inside
        The doubts strictly between, or fewer where there was no room for all.
    """

    below_low: int
    upto_low: int
    below_high: int
    upto_high: int
    inside: Any

    @property
    def complete(self) -> bool:
        """Whether ``inside`` holds all doubts of the bracket."""
        return int(self.inside.size) == max(self.below_high - self.upto_low, 0)

    @classmethod
    def together(cls, parts: Iterable[Ranks]) -> Ranks:
        """Add up the ranks in several tiles, all at once: their doubts are copied one time only."""
        tiles = list(parts)
        return cls(
            sum(tile.below_low for tile in tiles),
            sum(tile.upto_low for tile in tiles),
            sum(tile.below_high for tile in tiles),
            sum(tile.upto_high for tile in tiles),
            np.concatenate([tile.inside for tile in tiles]),
        )


def measure(view: MapView, request: UncertaintyRequest) -> tuple[UncertaintyStatistics, Ranks]:
    """Measure the uncertainty of a map, its patches in the same pass where that takes little memory."""
    if request.side is None:
        return _measure_by_segments(view, request)
    side = request.side
    sides = tuple(min(side, length) for length in view.values.shape)
    if layout := _layout_of(view, sides):
        return _measure_by_tiles(view, request, layout)
    statistics, ranks = _measure_by_segments(view, request)
    return replace(statistics, patch=largest_by_slices(view, sides)), ranks


def _layout_of(view: MapView, sides: tuple[int, ...]) -> Layout | None:
    return layout_of(view.values.shape, sides, view.values.nbytes)


def _read(measures: Measures, n: int, patch: float = -math.inf) -> tuple[UncertaintyStatistics, Ranks]:
    doubt, entropy, above, above_count = measures.totals.tolist()
    lowest, highest = measures.extremes.tolist()
    below_low, upto_low, below_high, upto_high = measures.ranks.tolist()
    kept = below_high - upto_low
    room = measures.inside.size - BLOCK  # with less left a block may have been passed over
    inside = measures.inside[: kept if 0 <= kept <= room else 0].copy()
    statistics = UncertaintyStatistics(n, doubt, entropy, above, int(above_count), lowest, highest, patch)
    return statistics, Ranks(below_low, upto_low, below_high, upto_high, inside)


def total(
    parts: Iterable[tuple[UncertaintyStatistics, Ranks]],
) -> tuple[UncertaintyStatistics, Ranks]:
    """Add up what tiles have given."""
    (first, *others), ranks = zip(*parts, strict=True)
    return sum(others, start=first), Ranks.together(ranks)


def _measure_by_segments(view: MapView, request: UncertaintyRequest) -> tuple[UncertaintyStatistics, Ranks]:
    flat = view.values.reshape(-1)

    def one(segment: slice) -> tuple[UncertaintyStatistics, Ranks]:
        measures = request.new_measures()
        if not measure_segment(flat[segment], view.codes, new_work(), measures):
            explain_bad_values(view, segment)
        return _read(measures, flat[segment].size)

    return total(in_order(one, segments_of(flat.size)))


def _measure_by_tiles(
    view: MapView, request: UncertaintyRequest, layout: Layout
) -> tuple[UncertaintyStatistics, Ranks]:
    """Measure a map with its patches; each thread walks neighbouring tiles and hands rows on."""
    volume, tiles = view.values.reshape(layout.shape), layout.tiles
    threads = min(current_threads(), len(tiles))
    runs = [tiles[len(tiles) * i // threads : len(tiles) * (i + 1) // threads] for i in range(threads)]

    def one(run: list[Tile]) -> list[tuple[UncertaintyStatistics, Ranks]] | None:
        return _walk_run(volume, view.codes, run, new_walk(layout), request)

    results = in_order(one, runs)
    if None in results:
        explain_bad_values(view)
    return total(part for parts in results if parts is not None for part in parts)


def _walk_run(
    volume: Any, codes: Any, run: list[Tile], walk: Walk, request: UncertaintyRequest
) -> list[tuple[UncertaintyStatistics, Ranks]] | None:
    """Walk neighbouring tiles; ``None`` where a value is no probability."""
    parts = []
    slices = volume.reshape(volume.shape[0], -1)
    hand_over(slices, codes, run[0], walk)
    for tile in run:
        measures = request.new_measures()
        if not walk_tile(slices, codes, (tile.first, tile.fresh, tile.last), walk, measures):
            return None
        pixels = volume.shape[0] * (tile.last - tile.fresh) * volume.shape[2]
        parts.append(_read(measures, pixels, largest_sum(walk)))
    return parts


def largest_patch(view: MapView, sides: tuple[int, ...]) -> float:
    """Largest sum of entropies over a box with these sides; minus infinity where it does not fit."""
    if view.reversed_axes:
        sides = sides[::-1]
    if any(side > length for side, length in zip(sides, view.values.shape, strict=True)):
        return -math.inf
    if layout := _layout_of(view, sides):
        return _measure_by_tiles(view, UncertaintyRequest(), layout)[0].patch
    return largest_by_slices(view, sides)
