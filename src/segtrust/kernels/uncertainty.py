"""Statistics of a map's doubt and entropy that do not depend on where a pixel lies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import entry, plain, reduction, wary
from segtrust.kernels.entropy import fill_doubts, fill_entropies
from segtrust.kernels.patterns import (
    as_floats,
    float_from_pattern,
    larger,
    prefer_wide_vectors,
    smaller,
    unsigned_pattern,
)
from segtrust.kernels.view import packed

__all__ = [
    "BLOCK",
    "COLLECT",
    "NOWHERE",
    "Bracket",
    "Measures",
    "entropy_map",
    "fill_stretch",
    "measure_segment",
    "measure_stretch",
    "new_measures",
    "new_work",
]

BLOCK = 2048
"""Pixels a round; its few buffers fit the first-level cache."""

COLLECT = 1 << 17
"""Doubts inside a bracket that one segment has room for at least; of more only their number is right."""

_ROWS = 4
"""A block is looked at as so many rows, so that one look tells whether a column has a doubt in a bracket."""

_FEW = 8
"""One doubt in so many at most is looked at by itself."""


class Bracket(NamedTuple):
    """Two doubts between which an order statistic is sought; ``low > high`` seeks nothing."""

    low: float
    high: float


NOWHERE = Bracket(1.0, 0.0)


class Measures(NamedTuple):
    """What a stretch of a map adds up to."""

    totals: Any
    """Σ doubt, Σ u, Σ u over the pixels above the entropy threshold, number of those pixels."""
    extremes: Any
    """The smallest and the largest doubt."""
    ranks: Any
    """Pixels with doubt < low, <= low, < high and <= high of the bracket."""
    inside: Any
    """The doubts strictly inside the bracket, as many as there is room for."""
    columns: Any
    """Of each column of a block whether it has doubts inside the bracket."""
    bracket: Any
    doubt_limit: float
    """Pixels with more doubt than this are above the entropy threshold; infinite where not wanted."""
    entropies: bool
    """Whether any sum of entropies is wanted."""


def new_measures(
    *, bracket: Bracket = NOWHERE, doubt_limit: float, entropies: bool, room: int = COLLECT
) -> Measures:
    """Empty accumulators for one segment; room that is not used takes no memory."""
    room = room if bracket.low <= bracket.high else 0
    return Measures(
        np.zeros(4),
        np.array([0.5, 0.0]),
        np.zeros(4, np.int64),
        np.empty(room),
        np.empty(BLOCK // _ROWS, np.int64),
        bracket,
        float(doubt_limit),
        entropies,
    )


def new_work() -> Any:
    """Buffers of one block: probabilities, doubts, entropies."""
    return np.empty((3, BLOCK))


@wary
def _survey(doubt: Any) -> Any:
    """Sum and extremes of the doubts of one block; with a NaN the sum is NaN, and extremes mean nothing."""
    prefer_wide_vectors()
    total, lowest, highest = 0.0, 0.5, 0.0
    for i in range(doubt.size):
        x = doubt[i]
        total += x
        lowest = smaller(lowest, x)
        highest = larger(highest, x)
    return total, lowest, highest


@reduction
def _sum_entropies(doubt: Any, entropy: Any, limit: float) -> Any:
    prefer_wide_vectors()
    total = above = count = 0.0
    for i in range(doubt.size):
        hit = doubt[i] > limit
        total += entropy[i]
        above += entropy[i] if hit else 0.0
        count += 1.0 if hit else 0.0
    return total, above, count


@plain
def _rows_of(doubt: Any, width: int) -> Any:
    return doubt[:width], doubt[width:], doubt[2 * width :], doubt[3 * width :]


@plain
def _below(x: float, limit: float) -> int:
    return 1 if x < limit else 0


@plain
def _upto(x: float, limit: float) -> int:
    return 1 if x <= limit else 0


@reduction
def _rank(rows: Any, low: float, high: float, columns: Any) -> Any:
    """Count the doubts < low and <= high of one block, and for each column those between."""
    first, second, third, fourth = rows
    prefer_wide_vectors()
    below = upto = 0
    for i in range(columns.size):
        less = (_below(first[i], low) + _below(second[i], low)) + (
            _below(third[i], low) + _below(fourth[i], low)
        )
        most = (_upto(first[i], high) + _upto(second[i], high)) + (
            _upto(third[i], high) + _upto(fourth[i], high)
        )
        below += less
        upto += most
        columns[i] = most - less
    return below, upto


@plain
def _collect(doubt: Any, columns: Any, measures: Any) -> Any:
    """Keep the doubts inside the bracket; give how many are equal to its low and its high end.

    Only columns with a doubt inside are looked at. Every value is stored and the place moves on only behind
    one that is kept: a branch would be a toss-up.
    """
    width, hits = columns.size, 0
    for column in range(width):
        hit = columns[column] > 0
        columns[hits] = column
        hits += 1 if hit else 0
    low, high = measures.bracket.low, measures.bracket.high
    at, at_low, at_high = measures.ranks[2] - measures.ranks[1], 0, 0
    for hit in range(hits):
        for row in range(_ROWS):
            x = doubt[columns[hit] + row * width]
            measures.inside[at] = x
            at += 1 if (x > low) & (x < high) else 0
            at_low += 1 if x == low else 0
            at_high += 1 if x == high else 0
    return at_low, at_high


@plain
def _has_room(doubt: Any, measures: Any) -> bool:
    """Tell whether a block's doubts could all be kept; ``ranks`` say how many there are already."""
    kept = measures.ranks[2] - measures.ranks[1]
    return bool(0 <= kept <= measures.inside.size - doubt.size)


@plain
def _rank_ends(doubt: Any, rows: Any, columns: Any, measures: Any) -> Any:
    """Count the doubts <= low and < high of a block with many between, which may well be equal to an end."""
    low, high = measures.bracket.low, measures.bracket.high
    above_low = float_from_pattern(unsigned_pattern(low) + np.uint64(1))
    below_high = float_from_pattern(unsigned_pattern(high) - np.uint64(1)) if high > 0.0 else -1.0
    below, upto = _rank(rows, above_low, below_high, columns)
    if upto > below and _has_room(doubt, measures):
        _collect(doubt, columns, measures)
    return below, upto


@plain
def _add_ranks(doubt: Any, measures: Any) -> None:
    """Add where the doubts of a block lie around the bracket; their number is a multiple of `_ROWS`."""
    columns = measures.columns[: doubt.size // _ROWS]
    rows = _rows_of(doubt, columns.size)
    below_low, upto_high = _rank(rows, measures.bracket.low, measures.bracket.high, columns)
    between = upto_high - below_low
    upto_low, below_high = below_low, upto_high
    if between * _FEW > doubt.size or (between > 0 and not _has_room(doubt, measures)):
        upto_low, below_high = _rank_ends(doubt, rows, columns, measures)
    elif between > 0:
        at_low, at_high = _collect(doubt, columns, measures)
        upto_low += at_low
        below_high -= at_high
    measures.ranks[0] += below_low
    measures.ranks[1] += upto_low
    measures.ranks[2] += below_high
    measures.ranks[3] += upto_high


@plain
def _add_survey(doubt: Any, size: int, measures: Any) -> bool:
    """Add the first ``size`` doubts of a buffer; False for one that is no doubt: it is negative, or NaN."""
    total, lowest, highest = _survey(doubt[:size])
    if math.isnan(total) or lowest < 0.0:
        return False
    measures.totals[0] += total
    measures.extremes[0] = min(measures.extremes[0], lowest)
    measures.extremes[1] = max(measures.extremes[1], highest)
    if measures.inside.size:
        padded = size + -size % _ROWS
        for i in range(size, padded):
            doubt[i] = 1.0  # above every bracket
        _add_ranks(doubt[:padded], measures)
    return True


@plain
def _measure_block(block: Any, doubt: Any, measures: Any, entropy: Any) -> bool:
    """Measure one block; ``doubt`` is a buffer for a whole one."""
    if not measures.entropies:
        fill_doubts(block, doubt)
        return _add_survey(doubt, block.size, measures)
    fill_entropies(block, doubt, entropy)
    total, above, count = _sum_entropies(doubt[: block.size], entropy, measures.doubt_limit)
    measures.totals[1] += total
    measures.totals[2] += above
    measures.totals[3] += count
    return _add_survey(doubt, block.size, measures)


@plain
def measure_stretch(values: Any, codes: Any, work: Any, measures: Any, entropies: Any) -> bool:
    """Measure contiguous pixels and leave their entropies in ``entropies``; False at a bad value."""
    for first in range(0, values.size, BLOCK):
        last = min(first + BLOCK, values.size)
        block = as_floats(values[first:last], codes, work[0])
        if not _measure_block(block, work[1], measures, entropies[first:last]):
            return False
    return True


@entry
def measure_segment(values: Any, codes: Any, work: Any, measures: Any) -> bool:
    """Measure contiguous pixels whose entropies nobody else needs; ``work`` is of `new_work`."""
    for first in range(0, values.size, BLOCK):
        stretch = values[first : first + BLOCK]
        if not measure_stretch(stretch, codes, work, measures, work[2]):
            return False
    return True


@plain
def fill_stretch(values: Any, codes: Any, work: Any, out: Any) -> None:
    """Fill ``out`` with the entropies of contiguous pixels, and measure nothing."""
    for first in range(0, values.size, BLOCK):
        last = min(first + BLOCK, values.size)
        block = as_floats(values[first:last], codes, work[0])
        fill_entropies(block, work[1, : last - first], out[first:last])


@entry
def _fill_map(values: Any, codes: Any, work: Any, out: Any) -> None:
    fill_stretch(values, codes, work, out)


def entropy_map(values: Any, codes: Any) -> Any:
    """Entropies in bits of the pixels of an array, as doubles; values are taken as checked."""
    out = np.empty(values.shape)
    _fill_map(packed(values).reshape(-1), codes, new_work(), out.reshape(-1))
    return out
