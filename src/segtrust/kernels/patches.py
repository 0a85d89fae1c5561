"""Largest sum of entropies over a sliding box, without ever holding the entropy map.

The map is seen as (z, y, x). It is cut into tiles of rows (y); a tile walks along z with a ring of the last
``side`` slices, whose sum is kept up to date; every slice is then summed along y and x. Rows that two tiles
share are handed on, not computed again. Along x a window is the sum of five windows of a fifth of its side
and a rest, which takes two passes over a cached row for the usual side of 10.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain
from segtrust.kernels.patterns import prefer_wide_vectors
from segtrust.kernels.uncertainty import entropy_map, measure_stretch, new_work

__all__ = [
    "Walk",
    "bytes_of_walk",
    "hand_over",
    "largest_sum",
    "new_walk",
    "rows_per_tile",
    "walk_tile",
    "window_sums",
]

_RING_BYTES = 1 << 20
_LINE = 1536
"""Pixels of the rows that are summed along x together: three such buffers fit the first-level cache."""

_REFRESH = 32
"""Sides after which the running sum along z is made anew, so that rounding cannot pile up."""


class Walk(NamedTuple):
    """A tile's buffers; ``rows`` are those of the tile and the ``sides[1] - 1`` shared with the next."""

    sides: Any
    """Box along z, y, x."""
    width: int
    entropy: Any
    ring: Any
    column: Any
    column_rows: Any
    """``column``, seen as rows."""
    lines: Any
    line_rows: Any
    """``lines``, seen as rows."""
    fifths: Any
    """Zeros, and never written to, where the side is below five."""
    rests: Any
    """Zeros, and never written to, where the side is a multiple of five."""
    best: Any
    """Largest window sum so far at each place of a line of a few rows."""
    handed: Any
    """Entropies of the shared rows of each slice, from the tile before."""
    work: Any


def bytes_of_walk(shape: tuple[int, ...], sides: tuple[int, ...]) -> int:
    """Memory of the larger buffers of a walk: the ring, and the rows that tiles share."""
    depth, _, width = shape
    rows = rows_per_tile(shape, sides) + sides[1] - 1
    return 8 * width * (sides[0] * rows + depth * (sides[1] - 1))


def rows_per_tile(shape: tuple[int, ...], sides: tuple[int, ...]) -> int:
    """Rows whose ring of slices fits the second-level cache; at least one, and as many in every tile.

    Threads walk the same number of tiles each, so that equal tiles are equal shares.
    """
    _, height, width = shape
    places = height - sides[1] + 1
    rows = max(1, min(_RING_BYTES // (8 * sides[0] * width) - (sides[1] - 1), places))
    tiles = -(-places // rows)
    return -(-places // tiles)


def new_walk(shape: tuple[int, ...], sides: tuple[int, ...]) -> Walk:
    """Buffers for one thread."""
    depth, _, width = shape
    rows = rows_per_tile(shape, sides) + sides[1] - 1
    line = max(1, _LINE // width) * width
    column, lines = np.empty((rows, width)), np.empty((rows, width))
    return Walk(
        sides=sides,
        width=width,
        entropy=np.empty(rows * width),
        ring=np.empty((sides[0], rows * width)),
        column=column.reshape(-1),
        column_rows=column,
        lines=lines.reshape(-1),
        line_rows=lines,
        fifths=np.zeros(line),
        rests=np.zeros(line),
        best=np.zeros(line),
        handed=np.empty((depth, (sides[1] - 1) * width)),
        work=new_work(),
    )


@elementwise
def _step(entropy: Any, slot: Any, column: Any) -> None:
    prefer_wide_vectors()
    for i in range(entropy.size):
        column[i] += entropy[i] - slot[i]
        slot[i] = entropy[i]


@elementwise
def _grow(entropy: Any, slot: Any, column: Any) -> None:
    for i in range(entropy.size):
        column[i] += entropy[i]
        slot[i] = entropy[i]


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
def _slide(columns: Any, side: int, lines: Any, count: int) -> None:
    """Fill the lines after the first: each gains the row that enters the box and loses one that leaves."""
    prefer_wide_vectors()
    for y in range(count - 1):
        for x in range(lines.shape[1]):
            lines[y + 1, x] = lines[y, x] + (columns[y + side, x] - columns[y, x])


@elementwise
def _keep_larger(parts: Any, rest: Any, best: Any) -> None:
    first, second, third, fourth, fifth = parts
    prefer_wide_vectors()
    for i in range(best.size):
        value = (first[i] + second[i]) + (third[i] + fourth[i]) + (fifth[i] + rest[i])
        best[i] = value if value > best[i] else best[i]


@plain
def _five(values: Any, step: int) -> Any:
    """Five views a step apart; a loop over them needs no index but its own, or it is not vectorised."""
    return values, values[step:], values[2 * step :], values[3 * step :], values[4 * step :]


@elementwise
def _copy(values: Any, out: Any) -> None:
    # Assigning to a slice does the same, but brings in code that formats errors and doubles compilation.
    for i in range(out.size):
        out[i] = values[i]


@elementwise
def _clear(out: Any) -> None:
    for i in range(out.size):
        out[i] = 0.0


@plain
def _sum_along_z(walk: Any, z: int, size: int) -> bool:
    """Bring ``column`` up to slice ``z``; tell whether it covers a whole box."""
    side = walk.sides[0]
    entropy, column, slot = walk.entropy[:size], walk.column[:size], walk.ring[z % side, :size]
    if z == 0:
        _clear(column)
    if z < side:
        _grow(entropy, slot, column)
    else:
        _step(entropy, slot, column)
        if z % (_REFRESH * side) == 0:
            _clear(column)
            for i in range(side):
                _add_to(column, walk.ring[i, :size])
    return bool(z >= side - 1)


@plain
def _sum_along_y(walk: Any, rows: int) -> int:
    """Fill ``lines`` with sums over ``sides[1]`` rows of ``column``; give how many lines there are."""
    width, side, count = walk.width, walk.sides[1], rows - walk.sides[1] + 1
    first = walk.lines[:width]
    _copy(walk.column, first)
    for y in range(1, side):
        _add_to(first, walk.column[y * width :])
    _slide(walk.column_rows, side, walk.line_rows, count)
    return int(count)


@plain
def _windows(line: Any, side: int, out: Any) -> Any:
    """Add up ``side`` neighbours in ``line``; with none ``out`` is returned as it is."""
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
def _largest_windows(walk: Any, lines: int) -> None:
    """Update ``best`` with the windows along x: five of a fifth of the side, and the rest.

    A few rows are taken as one line. Windows that run over the end of a row are summed too, because that is
    faster than stopping there; `largest_sum` does not look at them.
    """
    width, side = walk.width, walk.sides[2]
    fifth, rest = side // 5, side % 5
    after = side - rest if rest else 0  # without a rest the zeros are read from the line's beginning
    together = walk.best.size // width
    for first in range(0, lines, together):
        line = walk.lines[first * width : min(first + together, lines) * width]
        fifths, rests = _windows(line, fifth, walk.fifths), _windows(line, rest, walk.rests)
        best = walk.best[: line.size - side + 1]
        _keep_larger(_five(fifths, fifth), rests[after:], best)


@entry
def walk_tile(values: Any, codes: Any, span: Any, walk: Any, measures: Any) -> bool:
    """Walk the tile of rows ``span = (first, fresh, last)`` along z; False at a bad value.

    ``values`` holds one slice a row.

    Rows before ``fresh`` were computed by the tile before and lie in ``walk.handed``; only the fresh ones
    are measured. The rows that the next tile shares are left there for it.
    """
    first, fresh, last = span
    width = walk.width
    size, known, shared = (last - first) * width, (fresh - first) * width, walk.handed.shape[1]
    for z in range(values.shape[0]):
        _copy(walk.handed[z], walk.entropy[:known])
        stretch = values[z, fresh * width : last * width]
        if not measure_stretch(stretch, codes, walk.work, measures, walk.entropy[known:size]):
            return False
        _copy(walk.entropy[size - shared : size], walk.handed[z])
        if _sum_along_z(walk, z, size):
            _largest_windows(walk, _sum_along_y(walk, last - first))
    return True


def hand_over(values: Any, codes: Any, rows: tuple[int, int], walk: Walk) -> None:
    """Compute what the tile before would have handed on, for a walk that begins in the middle."""
    first, fresh = rows
    for z in range(values.shape[0] if fresh > first else 0):
        shared = values[z, first * walk.width : fresh * walk.width]
        walk.handed[z, : shared.size] = entropy_map(shared, codes)


def largest_sum(walk: Walk) -> float:
    """Largest window sum that the walk has met, leaving out windows that run over the end of a row."""
    places = walk.best.reshape(-1, walk.width)[:, : walk.width - walk.sides[2] + 1]
    return float(places.max())


def window_sums(values: Any, sides: tuple[int, ...]) -> Any:
    """Add up all boxes that fit, in an array of any dimension; plain and allocating.

    Examples
    --------
    >>> window_sums(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), (2, 2)).tolist()
    [[12.0, 16.0]]
    """
    for axis, side in enumerate(sides):
        values = np.moveaxis(_windows_along(np.moveaxis(values, axis, 0), side), 0, axis)
    return values


def _windows_along(values: Any, side: int) -> Any:
    """Add up ``side`` neighbours along the first axis, of windows of 1, 2, 4, … neighbours."""
    count = values.shape[0] - side + 1
    total, done, window, length = 0.0, 0, values, 1
    while True:
        if side & length:
            total = total + window[done : done + count]
            done += length
        if done == side:
            return total
        window = window[:-length] + window[length:]
        length *= 2
