"""One pass over a map that measures its uncertainty and its patch with the largest sum of entropies."""

from __future__ import annotations

import math
from dataclasses import replace

from segtrust.kernels.layouts import Layout, Tile, layout_of
from segtrust.kernels.map_view import MapView, raise_first_bad_value
from segtrust.kernels.patches import hand_over, largest_sum, new_walk, walk_tile
from segtrust.kernels.slices import largest_by_slices
from segtrust.kernels.statistics import COLLECT, NOWHERE, Bracket, UncertaintyNeeds
from segtrust.kernels.uncertainty import Measured, measure_map, new_measures, read_measures, total_of_parts
from segtrust.settings import current_threads
from segtrust.threads import in_order

__all__ = ["largest_patch", "measure_with_patches"]


def measure_with_patches(
    view: MapView, side: int, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
) -> Measured:
    """Measure a map with its largest patch, in the same pass if memory allows it; see `measure_map`."""
    sides = tuple(min(side, length) for length in view.values.shape)
    if layout := layout_of(view.values.shape, sides, view.values.nbytes):
        return _measure_by_tiles(view, needs, bracket, room, layout)
    statistics, ranks = measure_map(view, needs, bracket, room)
    return replace(statistics, patch=largest_by_slices(view, sides)), ranks


def largest_patch(view: MapView, sides: tuple[int, ...]) -> float:
    """Return the largest sum of entropies over a box with these sides; minus infinity if it does not fit."""
    if view.reversed_axes:
        sides = sides[::-1]
    if any(side > length for side, length in zip(sides, view.values.shape, strict=True)):
        return -math.inf
    if layout := layout_of(view.values.shape, sides, view.values.nbytes):
        return _measure_by_tiles(view, UncertaintyNeeds(entropies=True), NOWHERE, 0, layout)[0].patch
    return largest_by_slices(view, sides)


def _measure_by_tiles(
    view: MapView, needs: UncertaintyNeeds, bracket: Bracket, room: int, layout: Layout
) -> Measured:
    """Measure a map with its patches; each thread walks neighbouring tiles and hands rows on."""
    depth, _, width = layout.shape
    slices, tiles = view.values.reshape(depth, -1), layout.tiles
    threads = min(current_threads(), len(tiles))
    runs = [tiles[len(tiles) * i // threads : len(tiles) * (i + 1) // threads] for i in range(threads)]

    def walk_run(run: list[Tile]) -> list[Measured] | None:
        """Walk neighbouring tiles; return ``None`` at a value that is not a probability."""
        walk, parts = new_walk(layout), []
        hand_over(slices, view.codes, run[0], walk)
        for tile in run:
            measures = new_measures(needs, bracket, room)
            if not walk_tile(slices, view.codes, (tile.first, tile.fresh, tile.last), walk, measures):
                return None
            parts.append(read_measures(measures, depth * (tile.last - tile.fresh) * width, largest_sum(walk)))
        return parts

    results = in_order(walk_run, runs)
    if None in results:
        raise_first_bad_value(view)
    return total_of_parts(part for parts in results if parts is not None for part in parts)
