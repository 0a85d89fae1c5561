"""Largest sum of entropies over a sliding box, without ever holding the entropy map.

The map is seen as (z, y, x). It is cut into tiles of rows (y); a tile walks along z with a ring of the last
``side`` slices, whose sum is kept up to date; every slice is then summed along y and x. Rows that two tiles
share are handed on, not computed again. Where all that would take much memory, the ring has one slot, nothing
is handed on, and entropies are computed once more. Along x a window is the sum of five windows of a fifth of
its side and a rest, which takes two passes over a cached row for the usual side of 10; large fifths are
summed in the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain
from segtrust.kernels.layouts import Layout, Tile
from segtrust.kernels.patterns import larger, prefer_wide_vectors
from segtrust.kernels.uncertainty import entropy_map, fill_stretch, measure_stretch, new_work

__all__ = [
    "Walk",
    "hand_over",
    "largest_sum",
    "new_walk",
    "walk_tile",
    "window_sums",
]

_LINE = 1024
"""Pixels of the rows that are summed along x together: three such buffers fit a 32 kB cache."""

_LARGE = 10
"""Neighbours that are added up by fifths."""

_REFRESH = 32
"""Sides after which the running sum along z is made anew, so that rounding cannot pile up."""


class Walk(NamedTuple):
    """A tile's buffers; ``rows`` are those of the tile and the ``sides[1] - 1`` shared with the next."""

    sides: Any
    """Box along z, y, x."""
    width: int
    entropy: Any
    ring: Any
    """Entropies of the slices in the box, or one slot for those of the slice that leaves it."""
    forgotten: Any
    """That slot where entropies are computed once more; ``None`` where all in the box are held. What is not
    needed then is not compiled, which takes a tenth off the first call."""
    column: Any
    column_rows: Any
    """``column``, seen as rows."""
    lines: Any
    line_rows: Any
    """``lines``, seen as rows."""
    fifths: Any
    """Zeros, and never written to, where the side is below five."""
    parts: Any
    """Windows of a fifth of a fifth."""
    rests: Any
    """Windows of what is left of the side."""
    best: Any
    """Largest window sum so far at each place of a line of a few rows."""
    handed: Any
    """Entropies of the shared rows of each slice, from the tile before."""
    work: Any


def new_walk(layout: Layout) -> Walk:
    """Buffers for one thread."""
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
        forgotten=ring[0] if layout.slots < layout.sides[0] else None,
        column=column.reshape(-1),
        column_rows=column,
        lines=lines.reshape(-1),
        line_rows=lines,
        fifths=np.zeros(line),
        parts=np.empty(line),
        rests=np.empty(line),
        best=np.zeros(line),
        handed=np.empty((depth, layout.handed * width)),
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
def _sum_five(parts: Any, out: Any) -> None:
    first, second, third, fourth, fifth = parts
    prefer_wide_vectors()
    for i in range(out.size):
        out[i] = (first[i] + second[i]) + (third[i] + fourth[i]) + fifth[i]


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
def _recalled(source: Any, z: int, walk: Any, forgotten: Any) -> Any:
    """Entropies of the tile's rows of slice ``z``, which is in the box."""
    size = source[3] - source[2]
    if forgotten is None:
        return walk.ring[z % walk.ring.shape[0], :size]
    _compute_again(source, z, walk, forgotten[:size])
    return forgotten[:size]


@plain
def _known(source: Any, z: int, walk: Any, forgotten: Any, out: Any) -> None:
    """Fill ``out`` with the entropies of the rows of slice ``z`` that the tile before has measured."""
    if forgotten is None:
        _copy(walk.handed[z], out)
    else:
        _compute_again(source, z, walk, out)


@plain
def _compute_again(source: Any, z: int, walk: Any, out: Any) -> None:
    values, codes, first, _ = source
    fill_stretch(values[z, first : first + out.size], codes, walk.work, out)


@plain
def _sum_along_z(source: Any, z: int, walk: Any) -> bool:
    """Bring ``column`` up to slice ``z``; tell whether it covers a whole box."""
    side, size = walk.sides[0], source[3] - source[2]
    entropy, column = walk.entropy[:size], walk.column[:size]
    if z == 0:
        _clear(column)
    if z < side:
        _grow(entropy, walk.ring[z % walk.ring.shape[0], :size], column)
    else:
        _step(entropy, _recalled(source, z - side, walk, walk.forgotten), column)
        if z % (_REFRESH * side) == 0:
            _clear(column)
            for i in range(side):
                _add_to(column, _recalled(source, z - i, walk, walk.forgotten))
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
def _large_windows(line: Any, side: int, out: Any, parts: Any) -> Any:
    """Do as `_windows` does, in fewer passes where the side is large."""
    if side < _LARGE:
        return _windows(line, side, out)
    size, fifth = line.size - side + 1, side // 5
    _sum_five(_five(_windows(line, fifth, parts), fifth), out[:size])
    for offset in range(5 * fifth, side):
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
    together = walk.best.size // width
    for first in range(0, lines, together):
        line = walk.lines[first * width : min(first + together, lines) * width]
        best = walk.best[: line.size - side + 1]
        fifths = _five(_large_windows(line, fifth, walk.fifths, walk.parts), fifth)
        if rest:
            _keep_larger_with_rest(fifths, _windows(line, rest, walk.rests)[side - rest :], best)
        else:
            _keep_larger(fifths, best)


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
    source = values, codes, first * width, last * width
    for z in range(values.shape[0]):
        _known(source, z, walk, walk.forgotten, walk.entropy[:known])
        stretch = values[z, fresh * width : last * width]
        if not measure_stretch(stretch, codes, walk.work, measures, walk.entropy[known:size]):
            return False
        _copy(walk.entropy[size - shared : size], walk.handed[z])
        if _sum_along_z(source, z, walk):
            _largest_windows(walk, _sum_along_y(walk, last - first))
    return True


def hand_over(values: Any, codes: Any, tile: Tile, walk: Walk) -> None:
    """Compute what the tile before would have handed on, for a walk that begins in the middle."""
    for z in range(values.shape[0] if walk.handed.size and tile.fresh > tile.first else 0):
        shared = values[z, tile.first * walk.width : tile.fresh * walk.width]
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
