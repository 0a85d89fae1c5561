"""Statistics of a map's doubt and entropy that do not depend on where a pixel lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain, reduction
from segtrust.kernels.entropy import fill_doubts, fill_entropies
from segtrust.kernels.patterns import as_floats, pattern, prefer_wide_vectors
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
"""Most doubts inside a bracket that one segment keeps; beyond it only their number is right."""

_ROW = 256
"""Doubts of a block that are looked at together for one inside a bracket are this far apart."""

_HALF_BITS = np.int64(0x3FE0000000000000)


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
    """Bit patterns of the smallest and the largest doubt."""
    ranks: Any
    """Pixels with doubt < low, <= low, < high and <= high of the bracket."""
    inside: Any
    """The doubts strictly inside the bracket, as many as there is room for."""
    columns: Any
    """For each column of a block the number of doubts inside the bracket."""
    bracket: Any
    doubt_limit: float
    """Pixels with more doubt than this are above the entropy threshold; infinite where not wanted."""
    entropies: bool
    """Whether any sum of entropies is wanted."""


def new_measures(*, bracket: Bracket = NOWHERE, doubt_limit: float, entropies: bool) -> Measures:
    """Empty accumulators for one segment."""
    room = COLLECT if bracket.low <= bracket.high else 0
    extremes = np.array([_HALF_BITS, 0], np.int64)
    return Measures(
        np.zeros(4),
        extremes,
        np.zeros(4),
        np.empty(room),
        np.empty(_ROW),
        bracket,
        float(doubt_limit),
        entropies,
    )


def new_work() -> Any:
    """Buffers of one block: probabilities, doubts, entropies."""
    return np.empty((3, BLOCK))


@reduction
def _survey(doubt: Any) -> Any:
    """Sum and extremes of the doubts of one block."""
    prefer_wide_vectors()
    total = 0.0
    lowest = highest = pattern(doubt[0])
    for i in range(doubt.size):
        x = doubt[i]
        total += x
        bits = pattern(x)
        lowest = bits if bits < lowest else lowest
        highest = bits if bits > highest else highest
    return total, lowest, highest


@reduction
def _rank(doubt: Any, bracket: Any) -> Any:
    """Count the doubts of one block around a bracket: < low, <= low, < high, <= high."""
    prefer_wide_vectors()
    below_low = upto_low = below_high = upto_high = 0.0
    for i in range(doubt.size):
        x = doubt[i]
        below_low += 1.0 if x < bracket.low else 0.0
        upto_low += 1.0 if x <= bracket.low else 0.0
        below_high += 1.0 if x < bracket.high else 0.0
        upto_high += 1.0 if x <= bracket.high else 0.0
    return below_low, upto_low, below_high, upto_high


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


@elementwise
def _count_inside(doubt: Any, bracket: Any, counts: Any) -> None:
    for i in range(counts.size):
        counts[i] += 1.0 if (doubt[i] > bracket.low) & (doubt[i] < bracket.high) else 0.0


@plain
def _collect(doubt: Any, measures: Any) -> None:
    """Keep the doubts inside the bracket; ``ranks`` before this block say how many there are already.

    Few doubts lie inside, so most columns of the block, seen as rows of `_ROW`, are passed over.
    """
    at = int(measures.ranks[2] - measures.ranks[1])
    if at + doubt.size > measures.inside.size:
        return
    columns = measures.columns
    for column in range(_ROW):
        columns[column] = 0.0
    whole = doubt.size - doubt.size % _ROW
    for start in range(0, whole, _ROW):
        _count_inside(doubt[start:], measures.bracket, columns)
    for column in range(_ROW):
        if columns[column] > 0.0:
            at = _keep(doubt[column:whole:_ROW], measures, at)
    _keep(doubt[whole:], measures, at)


@plain
def _keep(doubt: Any, measures: Any, at: int) -> int:
    """Keep the doubts inside the bracket from place ``at`` on; give the next free place.

    Every doubt is stored and the place moves on only behind one that is kept: a branch would be a toss-up.
    """
    for i in range(doubt.size):
        measures.inside[at] = doubt[i]
        at += 1 if (doubt[i] > measures.bracket.low) & (doubt[i] < measures.bracket.high) else 0
    return at


@plain
def _add_survey(doubt: Any, measures: Any) -> bool:
    """Add one block; False for a doubt that is no doubt: its pattern is negative or above that of 1/2."""
    total, lowest, highest = _survey(doubt)
    measures.totals[0] += total
    measures.extremes[0] = min(measures.extremes[0], lowest)
    measures.extremes[1] = max(measures.extremes[1], highest)
    if measures.inside.size:
        _add_ranks(doubt, measures)
    return bool(lowest >= 0 and highest <= _HALF_BITS)


@plain
def _add_ranks(doubt: Any, measures: Any) -> None:
    below_low, upto_low, below_high, upto_high = _rank(doubt, measures.bracket)
    if below_high > upto_low:
        _collect(doubt, measures)
    measures.ranks[0] += below_low
    measures.ranks[1] += upto_low
    measures.ranks[2] += below_high
    measures.ranks[3] += upto_high


@plain
def _measure_block(block: Any, doubt: Any, measures: Any, entropy: Any) -> bool:
    if not measures.entropies:
        fill_doubts(block, doubt)
        return _add_survey(doubt, measures)
    fill_entropies(block, doubt, entropy)
    total, above, count = _sum_entropies(doubt, entropy, measures.doubt_limit)
    measures.totals[1] += total
    measures.totals[2] += above
    measures.totals[3] += count
    return _add_survey(doubt, measures)


@plain
def measure_stretch(values: Any, codes: Any, work: Any, measures: Any, entropies: Any) -> bool:
    """Measure contiguous pixels and leave their entropies in ``entropies``; False at a bad value."""
    for first in range(0, values.size, BLOCK):
        last = min(first + BLOCK, values.size)
        block = as_floats(values[first:last], codes, work[0])
        if not _measure_block(block, work[1, : last - first], measures, entropies[first:last]):
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
