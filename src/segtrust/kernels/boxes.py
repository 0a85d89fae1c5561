"""Largest sums over boxes of many sides, from one summed-area table.

The table holds at each corner the sum of all pixels before it, so that any box is a difference of eight of
its entries, whatever its side. Of each side only the largest box is wanted, and most are out of the question:
the places of boxes are taken in cells, and a cell is passed over where even the sum of all that its boxes
cover together is not above the largest sum so far. The best box of the side before is tried first.
Differences of large entries round, so the sum over the box that is found is added up anew, pixel by pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import elementwise, entry, plain, reduction
from segtrust.kernels.patches import window_sums
from segtrust.kernels.patterns import larger, prefer_wide_vectors

__all__ = ["largest_box_sums"]

_CELL = 8
"""Fewest places along an axis that are passed over or looked at together."""

_ROW = 32
"""The same along the last axis, where boxes that begin next to each other are summed side by side."""


def largest_box_sums(values: Any, sides: Any) -> Any:
    """Give the largest sum over a box of each side, for an array without negative values.

    Parameters
    ----------
    values
        float64, any number of dimensions; up to three go through one table, more are added up plainly.
    sides
        Whole numbers of at least 1, capped by the array along each axis.

    Returns
    -------
    numpy.ndarray
        float64, one for each side.

    Examples
    --------
    >>> largest_box_sums(np.array([[1.0, 2.0, 0.0], [4.0, 0.0, 3.0]]), [1, 2, 9]).tolist()
    [4.0, 7.0, 10.0]
    """
    values = np.asarray(values, np.float64)
    if values.ndim > 3:
        return np.array([_plainly(values, int(side)) for side in sides])
    volume = np.ascontiguousarray(values.reshape((1,) * (3 - values.ndim) + values.shape))
    found = np.empty(len(sides))
    _largest_boxes(volume, _table(volume), np.asarray(sides, np.int64), found)
    return found


def _plainly(values: Any, side: int) -> float:
    return float(window_sums(values, tuple(min(side, length) for length in values.shape)).max())


def _table(volume: Any) -> Any:
    """Give the sums of all pixels before each corner."""
    table = np.zeros(tuple(length + 1 for length in volume.shape))
    _fill_table(volume, table)
    return table


@elementwise
def _add_rows(above: Any, row: Any) -> None:
    prefer_wide_vectors()
    for x in range(row.size):
        row[x] += above[x]


@plain
def _fill_row(values: Any, row: Any) -> None:
    total = 0.0
    for x in range(values.size):
        total += values[x]
        row[x + 1] = total


@entry
def _fill_table(volume: Any, table: Any) -> None:
    for z in range(volume.shape[0]):
        for y in range(volume.shape[1]):
            _fill_row(volume[z, y], table[z + 1, y + 1])
            _add_rows(table[z + 1, y], table[z + 1, y + 1])
        if z > 0:  # the slice before is whole now
            for y in range(1, volume.shape[1] + 1):
                _add_rows(table[z, y], table[z + 1, y])


@plain
def _box(table: Any, low: Any, high: Any) -> float:
    """Sum over the box from ``low`` to before ``high``."""
    (z, y, x), (w, v, u) = low, high
    upper = (table[w, v, u] - table[w, v, x]) - (table[w, y, u] - table[w, y, x])
    lower = (table[z, v, u] - table[z, v, x]) - (table[z, y, u] - table[z, y, x])
    return float(upper - lower)


@elementwise
def _row_of_boxes(corners: Any, side: int, out: Any) -> None:
    """Sum boxes that begin next to each other along a row; ``corners`` are four rows of the table."""
    first, second, third, fourth = corners
    prefer_wide_vectors()
    for x in range(out.size):
        ends = (fourth[x + side] - second[x + side]) - (third[x + side] - first[x + side])
        begins = (fourth[x] - second[x]) - (third[x] - first[x])
        out[x] = ends - begins


@reduction
def _highest_of_row(corners: Any, side: int, count: int) -> float:
    """Give the largest of ``count`` boxes that begin next to each other."""
    first, second, third, fourth = corners
    prefer_wide_vectors()
    highest = 0.0
    for x in range(count):
        ends = (fourth[x + side] - second[x + side]) - (third[x + side] - first[x + side])
        begins = (fourth[x] - second[x]) - (third[x] - first[x])
        highest = larger(ends - begins, highest)
    return float(highest)


@reduction
def _highest_of_flat_row(above: Any, below: Any, side: int, count: int) -> float:
    """Do the same in an image, where the table before the only slice is zero: half of the work."""
    prefer_wide_vectors()
    highest = 0.0
    for x in range(count):
        value = (below[x + side] - above[x + side]) - (below[x] - above[x])
        highest = larger(value, highest)
    return float(highest)


@plain
def _place_of_highest(values: Any) -> int:
    place = 0
    for x in range(values.size):
        if values[x] > values[place]:
            place = x
    return place


@plain
def _search_cell(table: Any, sides: Any, cell: Any, best: float, place: Any, work: Any) -> float:
    """Look at each box that begins in a cell; put the place of a larger one into ``place``."""
    (z0, y0, x0), (z1, y1, x1) = cell
    count = x1 - x0
    for z in range(z0, z1):
        for y in range(y0, y1):
            w, v = z + sides[0], y + sides[1]
            corners = table[z, y, x0:], table[z, v, x0:], table[w, y, x0:], table[w, v, x0:]
            if table.shape[0] == 2:
                highest = _highest_of_flat_row(corners[2], corners[3], sides[2], count)
            else:
                highest = _highest_of_row(corners, sides[2], count)
            if highest > best:
                best = highest
                _row_of_boxes(corners, sides[2], work[:count])
                place[0], place[1], place[2] = z, y, x0 + _place_of_highest(work[:count])
    return best


@plain
def _end_of_run(table: Any, sides: Any, begin: Any, step: int, best: float) -> int:
    """Give where the cells along a row end, from one on, of which none can be passed over."""
    (z, y, x), (z1, y1) = begin
    end = table.shape[2] - sides[2]
    while x < end:
        until = min(x + step, end)
        if _box(table, (z, y, x), (z1 - 1 + sides[0], y1 - 1 + sides[1], until - 1 + sides[2])) <= best:
            break
        x = until
    return int(x)


@plain
def _search(table: Any, sides: Any, place: Any, work: Any) -> None:
    """Move ``place``, where some box of these sides begins, to the beginning of the largest."""
    depth, height, width = table.shape[0] - 1, table.shape[1] - 1, table.shape[2] - 1
    low = place[0], place[1], place[2]
    best = _box(table, low, (low[0] + sides[0], low[1] + sides[1], low[2] + sides[2]))
    steps = max(_CELL, sides[0] // 4), max(_CELL, sides[1] // 4), max(_ROW, sides[2] // 4)
    ends = depth - sides[0] + 1, height - sides[1] + 1, width - sides[2] + 1
    for z in range(0, ends[0], steps[0]):
        for y in range(0, ends[1], steps[1]):
            last = min(z + steps[0], ends[0]), min(y + steps[1], ends[1])
            x = 0
            while x < ends[2]:
                until = _end_of_run(table, sides, ((z, y, x), last), steps[2], best)
                if until > x:  # cells side by side are looked at in one go: long rows are quicker than short
                    cell = (z, y, x), (last[0], last[1], until)
                    best = _search_cell(table, sides, cell, best, place, work)
                x = max(until, x + steps[2])


@reduction
def _sum_row(values: Any) -> float:
    prefer_wide_vectors()
    total = 0.0
    for x in range(values.size):
        total += values[x]
    return total


@plain
def _sum_box(volume: Any, place: Any, sides: Any) -> float:
    total = 0.0
    z, y, x = place[0], place[1], place[2]
    for i in range(sides[0]):
        for j in range(sides[1]):
            total += _sum_row(volume[z + i, y + j, x : x + sides[2]])
    return total


@entry
def _largest_boxes(volume: Any, table: Any, every: Any, found: Any) -> None:
    depth, height, width = volume.shape
    place, work = np.zeros(3, np.int64), np.empty(width)
    for i in range(every.size):
        side = every[i]
        sides = min(side, depth), min(side, height), min(side, width)
        place[0] = min(place[0], depth - sides[0])
        place[1] = min(place[1], height - sides[1])
        place[2] = min(place[2], width - sides[2])
        _search(table, sides, place, work)
        found[i] = _sum_box(volume, place, sides)
