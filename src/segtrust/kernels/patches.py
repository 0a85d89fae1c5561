"""Largest sum of the entropies of a map over a box ("patch"), for one side or for many.

There are three ways, and all of them give the same number:

* `measure_with_patches` finds the largest box in the pass that measures everything else about a map, without
  ever holding the entropy map. The map is seen as (z, y, x) and split into *ranges* of rows. A range is
  walked along z with a ring of the last ``side`` slices, whose sum is kept up to date; this sum is then
  summed along y and x. Rows that two ranges share are handed from one to the next instead of being computed
  again. Where this would take much memory, the ring has a single slot, nothing is handed over, and entropies
  are computed twice. Along x a window is the sum of five windows of a fifth of its side and of a remainder:
  two passes over a cached row for the usual side of 10. Large fifths are summed in the same way. Boxes that
  cannot be larger than one found before are left out.
  `choose_layout` decides how a map is walked, or that it is not.
* `largest_box_by_slices` works for maps of any shape, slice by slice along the longest axis, in a pass of its
  own.
* `largest_box_sums` finds the largest box of each of many sides from one summed-area table of the entropies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import current_threads, elementwise, entry, map_in_threads, plain, reduction
from segtrust.kernels.device import window_sums_along
from segtrust.kernels.intrinsics import larger, prefer_wide_vectors
from segtrust.kernels.map_view import MapView, raise_first_bad_value
from segtrust.kernels.statistics import COLLECT, NOWHERE, Bracket, UncertaintyNeeds
from segtrust.kernels.uncertainty import (
    Measured,
    entropy_map,
    fill_entropies,
    measure_map,
    measure_pixels,
    new_accumulators,
    new_buffers,
    result_of,
    total_of_parts,
)


def measure_with_patches(
    view: MapView, side: int, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
) -> Measured:
    """Measure a map as `measure_map` does, and find its largest patch, in the same pass if memory allows it.

    Parameters
    ----------
    view
        The map.
    side
        Side of the patch in pixels; along an axis that is shorter, the patch ends with the map.
    needs, bracket, room
        Statistics that are needed, bracket of doubts to be counted, and the number of doubts inside the
        bracket for which there is room.
    """
    sides = tuple(min(side, length) for length in view.values.shape)
    if layout := choose_layout(view.values.shape, sides, view.values.nbytes):
        return _walk_map(view, needs, bracket, room, layout)
    statistics, ranks = measure_map(view, needs, bracket, room)
    return replace(statistics, patch=largest_box_by_slices(view, sides)), ranks


def largest_patch(view: MapView, sides: tuple[int, ...]) -> float:
    """Return the largest sum of entropies over a box with these sides; minus infinity if it does not fit."""
    if view.reversed_axes:
        sides = sides[::-1]
    if any(side > length for side, length in zip(sides, view.values.shape, strict=True)):
        return -math.inf
    if layout := choose_layout(view.values.shape, sides, view.values.nbytes):
        return _walk_map(view, UncertaintyNeeds(entropies=True), NOWHERE, 0, layout)[0].patch
    return largest_box_by_slices(view, sides)


def _walk_map(
    view: MapView, needs: UncertaintyNeeds, bracket: Bracket, room: int, layout: Layout
) -> Measured:
    """Measure a map with its patches; each thread walks neighbouring ranges and hands over rows."""
    depth, _, width = layout.shape
    slices, ranges = view.values.reshape(depth, -1), layout.row_ranges
    threads = min(current_threads(), len(ranges))
    runs = [ranges[len(ranges) * i // threads : len(ranges) * (i + 1) // threads] for i in range(threads)]

    def walk_run(run: list[RowRange]) -> list[Measured] | None:
        """Walk neighbouring ranges; return ``None`` at a value that is not a probability."""
        walk, parts = new_walk(layout), []
        hand_over(slices, view.codes, run[0], walk)
        for rows in run:
            accumulators = new_accumulators(needs, bracket, room)
            if not walk_rows(slices, view.codes, (rows.first, rows.fresh, rows.last), walk, accumulators):
                return None
            parts.append(result_of(accumulators, depth * (rows.last - rows.fresh) * width, largest_sum(walk)))
        return parts

    results = map_in_threads(walk_run, runs)
    if None in results:
        raise_first_bad_value(view)
    return total_of_parts(part for parts in results if parts is not None for part in parts)


# How a map is walked

_RING_BYTES = 5 << 18
"""Size of a ring: about that of the second-level cache. With a smaller one, ranges would share more rows."""
_WALK_BYTES, _WALK_SHARE = 5 << 20, 0.14
"""Memory that a walk may take: so many bytes, or this share of the map if it is more."""
_FEW_VISITS, _MANY_VISITS = 2.0, 12.0
"""How often rows may be visited if another layout is available, and before not walking is faster."""
_MANY_SLICES, _TINY_SLICE = 256, 128
"""A walk along more slices than this, each with fewer pixels than that, is slower than no walk."""


@dataclass(frozen=True)
class RowRange:
    """Rows ``first`` to ``last`` of each slice; those before ``fresh`` are shared with the range before."""

    first: int
    fresh: int
    last: int


@dataclass(frozen=True)
class Layout:
    """A map seen as slices of rows, and how boxes are summed along the slices.

    Attributes
    ----------
    shape, sides
        Shape of the map and of the box along z, y and x.
    slots
        Slices whose entropies are held until they leave the box: all ``sides[0]``, or 1 if entropies are
        computed again instead.
    """

    shape: tuple[int, int, int]
    sides: tuple[int, int, int]
    slots: int

    @property
    def shared(self) -> int:
        """Number of rows that a range shares with the next."""
        return self.sides[1] - 1

    @cached_property
    def rows(self) -> int:
        """Rows of boxes per range: as many as fit the ring, at least one.

        All ranges have about the same number of rows, so that threads get equal shares.
        """
        positions = self.shape[1] - self.shared
        most = _RING_BYTES // (8 * self.slots * self.shape[2]) - self.shared
        ranges = -(-positions // max(1, min(most, positions)))
        return -(-positions // ranges)

    @cached_property
    def row_ranges(self) -> list[RowRange]:
        """All ranges, from the first row to the last."""
        shared, height = self.shared, self.shape[1]
        return [
            RowRange(start, start + shared if start else 0, min(start + self.rows + shared, height))
            for start in range(0, height - shared, self.rows)
        ]

    @property
    def handed_over(self) -> int:
        """Number of rows of each slice whose entropies a range hands over to the next."""
        is_split = self.rows + self.shared < self.shape[1]
        return self.shared if is_split and self.slots == self.sides[0] else 0

    @property
    def visits(self) -> float:
        """How often a row is summed on average, because ranges share rows."""
        positions = self.shape[1] - self.shared
        return -(-positions // self.rows) * (self.rows + self.shared) / self.shape[1]

    @property
    def is_thin(self) -> bool:
        """Whether there are many slices with few pixels each."""
        depth, height, width = self.shape
        return depth > _MANY_SLICES and height * width < _TINY_SLICE

    @property
    def nbytes(self) -> int:
        """Memory of the large buffers: the ring, three more of a slot's size, and the rows handed over."""
        depth, _, width = self.shape
        return 8 * width * ((self.slots + 3) * (self.rows + self.shared) + depth * self.handed_over)


def choose_layout(shape: tuple[int, ...], sides: tuple[int, ...], nbytes: int) -> Layout | None:
    """Return how to walk a map, or ``None`` if it should not be walked.

    A map is not walked if it does not have two or three axes longer than 1, or if every walk would take much
    memory compared with the map, visit rows too often, or step through many tiny slices.

    Parameters
    ----------
    shape
        Shape of the map.
    sides
        Sides of the box, not larger than the map.
    nbytes
        Memory of the map.

    Examples
    --------
    >>> choose_layout((155, 240, 240), (10, 10, 10), 35_712_000)
    Layout(shape=(155, 240, 240), sides=(10, 10, 10), slots=10)
    >>> choose_layout((155, 240, 240), (20, 20, 20), 35_712_000)
    Layout(shape=(155, 240, 240), sides=(20, 20, 20), slots=1)
    >>> choose_layout((1024, 1024), (128, 128), 4_194_304)
    Layout(shape=(1024, 1, 1024), sides=(128, 1, 128), slots=128)
    """
    shape, sides = long_axes(shape, sides)
    allowed = max(_WALK_BYTES, _WALK_SHARE * nbytes)
    for layout, most_visits in _candidates(shape, sides) if len(shape) in (2, 3) else ():
        if layout.visits <= most_visits and layout.nbytes <= allowed and not layout.is_thin:
            return layout
    return None


def _candidates(shape: tuple[int, ...], sides: tuple[int, ...]) -> list[tuple[Layout, float]]:
    """Return possible layouts, the fastest first, each with the number of visits up to which it is taken."""
    if len(shape) == 2:  # the image as one slice of many rows, and as many slices of one row
        (height, width), (side_y, side_x) = shape, sides
        as_slice, box_in_slice = (1, height, width), (1, side_y, side_x)
        as_slices, box_in_slices = (height, 1, width), (side_y, 1, side_x)
    else:
        as_slice = as_slices = (shape[0], shape[1], shape[2])
        box_in_slice = box_in_slices = (sides[0], sides[1], sides[2])
    in_ranges = Layout(as_slice, box_in_slice, box_in_slice[0])
    return [
        (in_ranges, _FEW_VISITS),
        (Layout(as_slices, box_in_slices, box_in_slices[0]), _FEW_VISITS),
        (Layout(as_slices, box_in_slices, 1), _FEW_VISITS),
        (in_ranges, _MANY_VISITS),
    ]


def long_axes(shape: tuple[int, ...], sides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out axes of length 1, which make no difference to a box.

    Examples
    --------
    >>> long_axes((1, 30, 1, 40), (1, 9, 1, 9))
    ((30, 40), (9, 9))
    """
    kept = [axis for axis, length in enumerate(shape) if length > 1] or [0]
    return tuple(shape[axis] for axis in kept), tuple(sides[axis] for axis in kept)


# The walk

_LINE = 1024
"""Pixels of the rows that are summed along x together: three such buffers fit a cache of 32 kB."""

_LARGE = 10
"""Number of neighbours from which on they are summed by fifths."""

_REFRESH = 32
"""Number of sides after which the running sum along z is computed again, so that rounding cannot pile up."""


class Walk(NamedTuple):
    """Buffers of one thread; they hold the rows of a range, including those shared with the next range."""

    sides: Any
    """Sides of the box along z, y, x."""
    width: int
    entropy: Any
    ring: Any
    """Entropies of the slices in the box, or a single slot."""
    recomputed: Any
    """The single slot, for entropies that are computed again; ``None`` if the ring holds all slices. Code
    that is not needed in that case is not compiled, which takes a tenth off the first call."""
    column: Any
    """Sums along z."""
    column_rows: Any
    """``column`` as rows."""
    lines: Any
    """Sums along z and y."""
    line_rows: Any
    """``lines`` as rows."""
    fifths: Any
    """Windows of a fifth of the side; zeros that are never written to if the side is below five."""
    parts: Any
    """Windows of a fifth of a fifth."""
    rests: Any
    """Windows of the remainder of the side."""
    best: Any
    """Largest window sum so far at each position of a few rows."""
    record: Any
    """Largest box so far: what cannot become larger is not summed."""
    handed: Any
    """Entropies of the shared rows of each slice, from the range before."""
    buffers: Any


def new_walk(layout: Layout) -> Walk:
    """Allocate the buffers for one thread."""
    depth, _, width = layout.shape
    rows = layout.rows + layout.shared
    line = max(1, _LINE // width) * width
    column, lines = np.empty((rows, width)), np.empty((rows, width))
    ring = np.empty((layout.slots, rows * width))
    return Walk(
        sides=layout.sides,
        width=width,
        entropy=np.empty(rows * width),
        ring=ring,
        recomputed=ring[0] if layout.slots < layout.sides[0] else None,
        column=column.reshape(-1),
        column_rows=column,
        lines=lines.reshape(-1),
        line_rows=lines,
        fifths=np.zeros(line),
        parts=np.empty(line),
        rests=np.empty(line),
        best=np.zeros(line),
        record=np.zeros(1),
        handed=np.empty((depth, layout.handed_over * width)),
        buffers=new_buffers(),
    )


class _Rows(NamedTuple):
    """Neighbouring rows of all slices: the pixels ``first`` to ``last`` of each slice ``values[z]``."""

    values: Any
    codes: Any
    first: int
    last: int


@entry
def walk_rows(values: Any, codes: Any, span: Any, walk: Any, accumulators: Any) -> bool:
    """Walk the range of rows ``span = (first, fresh, last)`` along z; return False at a bad value.

    ``values`` holds one slice per row. The rows before ``fresh`` were measured by the range before, and their
    entropies lie in ``walk.handed``; only the others are measured. The entropies of the rows that the next
    range shares are left in ``walk.handed``.
    """
    first, fresh, last = span
    width = walk.width
    size, known, shared = (last - first) * width, (fresh - first) * width, walk.handed.shape[1]
    rows = _Rows(values, codes, first * width, last * width)
    for z in range(values.shape[0]):
        _fill_known_rows(rows, z, walk, walk.recomputed, walk.entropy[:known])
        pixels = values[z, fresh * width : last * width]
        if not measure_pixels(pixels, codes, walk.buffers, accumulators, walk.entropy[known:size]):
            return False
        _copy(walk.entropy[size - shared : size], walk.handed[z])
        if _sum_along_z(rows, z, walk) and not _are_boxes_smaller(walk, size):
            lines = _sum_along_y(walk, last - first)
            _sum_along_x(walk, lines)
            _update_record(walk, lines)
    return True


def hand_over(values: Any, codes: Any, rows: RowRange, walk: Walk) -> None:
    """Compute what the range before would have handed over, for a walk that begins at a later one."""
    for z in range(values.shape[0] if walk.handed.size and rows.fresh > rows.first else 0):
        shared = values[z, rows.first * walk.width : rows.fresh * walk.width]
        walk.handed[z, : shared.size] = entropy_map(shared, codes)


def largest_sum(walk: Walk) -> float:
    """Return the largest window sum of a walk, ignoring windows that run over the end of a row."""
    positions = walk.best.reshape(-1, walk.width)[:, : walk.width - walk.sides[2] + 1]
    return float(positions.max())


@plain
def _compute_again(rows: Any, z: int, walk: Any, out: Any) -> None:
    fill_entropies(rows.values[z, rows.first : rows.first + out.size], rows.codes, walk.buffers, out)


@plain
def _fill_known_rows(rows: Any, z: int, walk: Any, recomputed: Any, out: Any) -> None:
    """Fill ``out`` with the entropies of the rows of slice ``z`` that the range before has measured."""
    if recomputed is None:
        _copy(walk.handed[z], out)
    else:
        _compute_again(rows, z, walk, out)


@plain
def _recall_slice(rows: Any, z: int, walk: Any, recomputed: Any) -> Any:
    """Return the entropies of the rows of slice ``z``, which is in the box."""
    size = rows.last - rows.first
    if recomputed is None:
        return walk.ring[z % walk.ring.shape[0], :size]
    _compute_again(rows, z, walk, recomputed[:size])
    return recomputed[:size]


@plain
def _sum_along_z(rows: Any, z: int, walk: Any) -> bool:
    """Update ``column`` for slice ``z``; return whether it covers a whole box."""
    side, size = walk.sides[0], rows.last - rows.first
    entropy, column = walk.entropy[:size], walk.column[:size]
    if z == 0:
        _clear(column)
    if z < side:
        _add_and_store(entropy, walk.ring[z % walk.ring.shape[0], :size], column)
    else:
        _replace(entropy, _recall_slice(rows, z - side, walk, walk.recomputed), column)
        if z % (_REFRESH * side) == 0:
            _clear(column)
            for i in range(side):
                _add_to(column, _recall_slice(rows, z - i, walk, walk.recomputed))
    return bool(z >= side - 1)


@plain
def _sum_along_y(walk: Any, rows: int) -> int:
    """Fill ``lines`` with sums over ``sides[1]`` rows of ``column``; return the number of lines."""
    width, side, count = walk.width, walk.sides[1], rows - walk.sides[1] + 1
    first = walk.lines[:width]
    _copy(walk.column, first)
    for y in range(1, side):
        _add_to(first, walk.column[y * width :])
    _slide(walk.column_rows, side, walk.line_rows, count)
    return int(count)


@plain
def _sum_along_x(walk: Any, lines: int) -> None:
    """Update ``best`` with the windows along x: five of a fifth of the side, and the remainder.

    A few rows are treated as one line. Windows that run over the end of a row are summed too, because that is
    faster than stopping there; `largest_sum` ignores them.
    """
    width, side = walk.width, walk.sides[2]
    fifth, rest = side // 5, side % 5
    together = walk.best.size // width
    for first in range(0, lines, together):
        line = walk.lines[first * width : min(first + together, lines) * width]
        best = walk.best[: line.size - side + 1]
        fifths = _five(_large_windows(line, fifth, walk.fifths, walk.parts), fifth)
        if rest:
            _keep_larger_with_rest(fifths, _windows(line, rest, walk.rests)[side - rest :], best)
        else:
            _keep_larger(fifths, best)


_MARGIN = 1.0 + 1e-9
"""Factor that covers the rounding of sums by far, so that skipping boxes never changes a digit."""


@plain
def _are_boxes_smaller(walk: Any, size: int) -> bool:
    """Return whether all boxes over the first ``size`` sums along z are smaller than one found before.

    It ends at the first sums that are too large for that, so it costs little where nothing can be left out.
    """
    most = walk.record[0] / (walk.sides[1] * walk.sides[2] * _MARGIN)
    for first in range(0, size, _LINE):
        if _largest(walk.column[first : min(first + _LINE, size)]) >= most:
            return False
    return True


@plain
def _update_record(walk: Any, lines: int) -> None:
    width = walk.width
    for first in range(0, min(lines * width, walk.best.size), width):
        row = walk.best[first : first + width - walk.sides[2] + 1]
        walk.record[0] = max(walk.record[0], _largest(row))


@reduction
def _largest(values: Any) -> float:
    prefer_wide_vectors()
    highest = 0.0
    for i in range(values.size):
        highest = larger(values[i], highest)
    return float(highest)


@plain
def _windows(line: Any, side: int, out: Any) -> Any:
    """Sum ``side`` neighbours in ``line``; with a side of 0 return ``out`` as it is."""
    size = line.size - max(side, 1) + 1
    if side == 1:
        return line
    if side == 0:
        return out[:size]
    _sum_of(line[:size], line[1 : size + 1], out[:size])
    for offset in range(2, side):
        _add_to(out[:size], line[offset : offset + size])
    return out[:size]


@plain
def _large_windows(line: Any, side: int, out: Any, parts: Any) -> Any:
    """Sum ``side`` neighbours in ``line``, in fewer passes if the side is large."""
    if side < _LARGE:
        return _windows(line, side, out)
    size, fifth = line.size - side + 1, side // 5
    _sum_five(_five(_windows(line, fifth, parts), fifth), out[:size])
    for offset in range(5 * fifth, side):
        _add_to(out[:size], line[offset : offset + size])
    return out[:size]


@plain
def _five(values: Any, step: int) -> Any:
    """Return five views a step apart: a loop is only vectorised if its counter is its only index."""
    return values, values[step:], values[2 * step :], values[3 * step :], values[4 * step :]


@elementwise
def _add_and_store(entropy: Any, slot: Any, column: Any) -> None:
    for i in range(entropy.size):
        column[i] += entropy[i]
        slot[i] = entropy[i]


@elementwise
def _replace(entropy: Any, slot: Any, column: Any) -> None:
    prefer_wide_vectors()
    for i in range(entropy.size):
        column[i] += entropy[i] - slot[i]
        slot[i] = entropy[i]


@elementwise
def _slide(columns: Any, side: int, lines: Any, count: int) -> None:
    """Fill the lines after the first: each gains the row that enters the box and loses one that leaves."""
    prefer_wide_vectors()
    for y in range(count - 1):
        for x in range(lines.shape[1]):
            lines[y + 1, x] = lines[y, x] + (columns[y + side, x] - columns[y, x])


@elementwise
def _keep_larger(parts: Any, best: Any) -> None:
    first, second, third, fourth, fifth = parts
    prefer_wide_vectors()
    for i in range(best.size):
        value = (first[i] + second[i]) + (third[i] + fourth[i]) + fifth[i]
        best[i] = larger(value, best[i])


@elementwise
def _keep_larger_with_rest(parts: Any, rest: Any, best: Any) -> None:
    first, second, third, fourth, fifth = parts
    prefer_wide_vectors()
    for i in range(best.size):
        value = (first[i] + second[i]) + (third[i] + fourth[i]) + (fifth[i] + rest[i])
        best[i] = larger(value, best[i])


@elementwise
def _add_to(total: Any, values: Any) -> None:
    for i in range(total.size):
        total[i] += values[i]


@elementwise
def _sum_of(first: Any, second: Any, out: Any) -> None:
    prefer_wide_vectors()
    for i in range(out.size):
        out[i] = first[i] + second[i]


@elementwise
def _sum_five(parts: Any, out: Any) -> None:
    first, second, third, fourth, fifth = parts
    prefer_wide_vectors()
    for i in range(out.size):
        out[i] = (first[i] + second[i]) + (third[i] + fourth[i]) + fifth[i]


@elementwise
def _copy(values: Any, out: Any) -> None:
    # Assigning to a slice does the same, but pulls in code that formats errors and doubles compilation.
    for i in range(out.size):
        out[i] = values[i]


@elementwise
def _clear(out: Any) -> None:
    for i in range(out.size):
        out[i] = 0.0


# Maps of any shape, slice by slice

_SLAB = 1 << 15
"""Number of pixels whose entropies are held at once if slices are small."""


def largest_box_by_slices(view: MapView, sides: tuple[int, ...]) -> float:
    """Return the largest sum of entropies over a box, in a pass along the longest axis.

    Parameters
    ----------
    view
        A map whose values have been checked.
    sides
        Sides of the box, not larger than the map.
    """
    shape, sides = long_axes(view.values.shape, sides)
    along = int(np.argmax(shape))
    slices, side = np.moveaxis(view.values.reshape(shape), along, 0), sides[along]
    inner = sides[:along] + sides[along + 1 :]
    together = max(1, _SLAB // slices[0].size)
    if side > together:
        return _largest_by_running_sum(slices, view.codes, (side, *inner), together)
    # A box has few slices: take some at once, and those into which the last boxes reach.
    firsts = range(0, len(slices) - side + 1, together)
    slabs = (slices[first : first + together + side - 1] for first in firsts)
    return max(float(window_sums(entropy_map(slab, view.codes), (side, *inner)).max()) for slab in slabs)


def _largest_by_running_sum(slices: Any, codes: Any, sides: tuple[int, ...], together: int) -> float:
    """Return the largest sum if a box has many slices, or large ones.

    The entropies of a slice are added when it enters the box, and computed again to be subtracted when it
    leaves. All are positive, so the rounding errors in a box are at most those of the largest sum, which is
    the one that counts.
    """
    side, inner = sides[0], sides[1:]
    column, largest = np.zeros(slices[0].size), -math.inf
    for first in range(0, len(slices), together):
        last = min(first + together, len(slices))
        columns = entropy_map(slices[first:last], codes)
        leaving = entropy_map(slices[max(first - side, 0) : max(last - side, 0)], codes)
        columns[len(columns) - len(leaving) :] -= leaving
        _accumulate(columns.reshape(-1, column.size), column, np.zeros(column.size))
        column = columns[-1].flatten()
        whole = columns[max(side - 1 - first, 0) :]
        if len(whole):
            largest = max(largest, float(window_sums(whole, (1, *inner)).max()))
    return largest


@entry
def _accumulate(changes: Any, start: Any, gain: Any) -> None:
    """Replace the change due to each slice by the sum up to it, beginning at ``start``.

    Changes are summed in ``gain``, separate from where they started, so that rounding errors are those of one
    slab only.
    """
    _accumulate_rows(changes, start, gain)


@elementwise
def _accumulate_rows(changes: Any, start: Any, gain: Any) -> None:
    for z in range(changes.shape[0]):
        for i in range(changes.shape[1]):
            gain[i] += changes[z, i]
            changes[z, i] = start[i] + gain[i]


def window_sums(values: Any, sides: tuple[int, ...]) -> Any:
    """Return the sums over all boxes that fit into an array of any dimension.

    Examples
    --------
    >>> window_sums(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), (2, 2)).tolist()
    [[12.0, 16.0]]
    """
    for axis, side in enumerate(sides):
        values = window_sums_along(values, axis, side)
    return values


# Many sides, from a summed-area table

_POSITIONS = 8
"""Fewest positions along an axis that are skipped or searched together."""

_ROW = 32
"""The same along the last axis, where boxes that begin next to each other are summed together."""


def largest_box_sums(values: Any, sides: Sequence[int]) -> Any:
    """Return the largest sum over a box of each side, for an array without negative values.

    A summed-area table holds at each corner the sum of all pixels before it, so any box is a difference of
    eight of its entries, whatever its side. Only the largest box per side is wanted, so positions are
    searched in groups of neighbours, and a group is skipped if the sum of all pixels that its boxes cover
    together is not above the largest sum so far. The best box of the side before is tried first. Differences
    of large entries have rounding errors, so the sum over the best box is computed again, pixel by pixel.

    Parameters
    ----------
    values
        Array of floats. Up to three dimensions go through the table; more are summed directly, which is
        slower.
    sides
        Integers of at least 1. Along an axis that is shorter, a box ends with the array.

    Returns
    -------
    numpy.ndarray
        float64, one value per side.

    Examples
    --------
    >>> largest_box_sums(np.array([[1.0, 2.0, 0.0], [4.0, 0.0, 3.0]]), [1, 2, 9]).tolist()
    [4.0, 7.0, 10.0]
    """
    values = np.asarray(values, np.float64)
    if values.ndim > 3:
        boxes = [tuple(min(int(side), length) for length in values.shape) for side in sides]
        return np.array([window_sums(values, box).max() for box in boxes])
    volume = np.ascontiguousarray(values.reshape((1,) * (3 - values.ndim) + values.shape))
    table = np.zeros(tuple(length + 1 for length in volume.shape))
    _fill_table(volume, table)
    sums = np.empty(len(sides))
    _find_largest_boxes(volume, table, np.asarray(sides, np.int64), sums)
    return sums


@entry
def _fill_table(volume: Any, table: Any) -> None:
    for z in range(volume.shape[0]):
        for y in range(volume.shape[1]):
            _fill_row(volume[z, y], table[z + 1, y + 1])
            _add_row(table[z + 1, y], table[z + 1, y + 1])
        if z > 0:  # the slice before is complete now
            for y in range(1, volume.shape[1] + 1):
                _add_row(table[z, y], table[z + 1, y])


@plain
def _fill_row(values: Any, row: Any) -> None:
    total = 0.0
    for x in range(values.size):
        total += values[x]
        row[x + 1] = total


@elementwise
def _add_row(above: Any, row: Any) -> None:
    prefer_wide_vectors()
    for x in range(row.size):
        row[x] += above[x]


@entry
def _find_largest_boxes(volume: Any, table: Any, sides_to_try: Any, sums: Any) -> None:
    depth, height, width = volume.shape
    position, work = np.zeros(3, np.int64), np.empty(width)
    for i in range(sides_to_try.size):
        side = sides_to_try[i]
        sides = min(side, depth), min(side, height), min(side, width)
        position[0] = min(position[0], depth - sides[0])
        position[1] = min(position[1], height - sides[1])
        position[2] = min(position[2], width - sides[2])
        _search(table, sides, position, work)
        sums[i] = _sum_box(volume, position, sides)


@plain
def _search(table: Any, sides: Any, position: Any, work: Any) -> None:
    """Move ``position``, where some box with these sides begins, to the beginning of the largest box."""
    depth, height, width = table.shape[0] - 1, table.shape[1] - 1, table.shape[2] - 1
    low = position[0], position[1], position[2]
    best = _box_sum(table, low, (low[0] + sides[0], low[1] + sides[1], low[2] + sides[2]))
    steps = max(_POSITIONS, sides[0] // 4), max(_POSITIONS, sides[1] // 4), max(_ROW, sides[2] // 4)
    ends = depth - sides[0] + 1, height - sides[1] + 1, width - sides[2] + 1
    for z in range(0, ends[0], steps[0]):
        for y in range(0, ends[1], steps[1]):
            last = min(z + steps[0], ends[0]), min(y + steps[1], ends[1])
            x = 0
            while x < ends[2]:
                until = _end_of_run(table, sides, ((z, y, x), last), steps[2], best)
                if until > x:  # search neighbouring groups together: long rows are faster
                    group = (z, y, x), (last[0], last[1], until)
                    best = _search_positions(table, sides, group, best, position, work)
                x = max(until, x + steps[2])


@plain
def _end_of_run(table: Any, sides: Any, begin: Any, step: int, best: float) -> int:
    """Return where the run of groups along a row ends that cannot be skipped."""
    (z, y, x), (z1, y1) = begin
    end = table.shape[2] - sides[2]
    while x < end:
        until = min(x + step, end)
        if _box_sum(table, (z, y, x), (z1 - 1 + sides[0], y1 - 1 + sides[1], until - 1 + sides[2])) <= best:
            break
        x = until
    return int(x)


@plain
def _search_positions(table: Any, sides: Any, group: Any, best: float, position: Any, work: Any) -> float:
    """Search all boxes that begin in a group; put the position of a larger one into ``position``."""
    (z0, y0, x0), (z1, y1, x1) = group
    count = x1 - x0
    for z in range(z0, z1):
        for y in range(y0, y1):
            w, v = z + sides[0], y + sides[1]
            corners = table[z, y, x0:], table[z, v, x0:], table[w, y, x0:], table[w, v, x0:]
            if table.shape[0] == 2:
                highest = _largest_in_flat_row(corners[2], corners[3], sides[2], count)
            else:
                highest = _largest_in_row(corners, sides[2], count)
            if highest > best:
                best = highest
                _fill_row_of_boxes(corners, sides[2], work[:count])
                position[0], position[1], position[2] = z, y, x0 + _index_of_largest(work[:count])
    return best


@plain
def _box_sum(table: Any, low: Any, high: Any) -> float:
    """Return the sum over the box from ``low`` to before ``high``."""
    (z, y, x), (w, v, u) = low, high
    upper = (table[w, v, u] - table[w, v, x]) - (table[w, y, u] - table[w, y, x])
    lower = (table[z, v, u] - table[z, v, x]) - (table[z, y, u] - table[z, y, x])
    return float(upper - lower)


@elementwise
def _fill_row_of_boxes(corners: Any, side: int, out: Any) -> None:
    """Sum boxes that begin next to each other along a row; ``corners`` are four rows of the table."""
    first, second, third, fourth = corners
    prefer_wide_vectors()
    for x in range(out.size):
        ends = (fourth[x + side] - second[x + side]) - (third[x + side] - first[x + side])
        begins = (fourth[x] - second[x]) - (third[x] - first[x])
        out[x] = ends - begins


@reduction
def _largest_in_row(corners: Any, side: int, count: int) -> float:
    """Return the largest of ``count`` boxes that begin next to each other."""
    first, second, third, fourth = corners
    prefer_wide_vectors()
    highest = 0.0
    for x in range(count):
        ends = (fourth[x + side] - second[x + side]) - (third[x + side] - first[x + side])
        begins = (fourth[x] - second[x]) - (third[x] - first[x])
        highest = larger(ends - begins, highest)
    return float(highest)


@reduction
def _largest_in_flat_row(above: Any, below: Any, side: int, count: int) -> float:
    """Return the same for an image, where the table before the only slice is zero: half of the work."""
    prefer_wide_vectors()
    highest = 0.0
    for x in range(count):
        value = (below[x + side] - above[x + side]) - (below[x] - above[x])
        highest = larger(value, highest)
    return float(highest)


@plain
def _index_of_largest(values: Any) -> int:
    index = 0
    for x in range(values.size):
        if values[x] > values[index]:
            index = x
    return index


@plain
def _sum_box(volume: Any, position: Any, sides: Any) -> float:
    total = 0.0
    z, y, x = position[0], position[1], position[2]
    for i in range(sides[0]):
        for j in range(sides[1]):
            total += _sum_row(volume[z + i, y + j, x : x + sides[2]])
    return total


@reduction
def _sum_row(values: Any) -> float:
    prefer_wide_vectors()
    total = 0.0
    for x in range(values.size):
        total += values[x]
    return total
