"""Doubts and entropies of the pixels of a map, and what they add up to, in one pass.

The entropy of p depends only on the *doubt* m = min(p, 1 - p), which is exact in floating point, and
increases with it. So order statistics of the entropy are order statistics of m, and

    u(m) = m · (h(m) - log2 m),    h(m) = -(1 - m) log2(1 - m) / m

has two positive parts for m <= 1/2 and no cancellation; u(0) = 0 exactly. h is a polynomial accurate to 6e-15
(computed by ``tools/entropy_coefficients.py``), because a call of a logarithm would not be vectorised. Its
even and odd powers are summed separately: each step of a sum waits for the one before. The logarithm of the
binary fraction of m is an odd function of a quotient: the division runs in parallel with the multiplications
and saves eleven of them, a sixth of the time.

Largest patches, which depend on where a pixel lies, are in `segtrust.kernels.patches`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import elementwise, entry, map_in_threads, nan_reduction, plain, reduction
from segtrust.kernels.intrinsics import (
    as_floats,
    float_from_pattern,
    larger,
    prefer_wide_vectors,
    smaller,
    unsigned_pattern,
)
from segtrust.kernels.map_view import MapView, contiguous, raise_first_bad_value, segments_of
from segtrust.kernels.statistics import (
    COLLECT,
    NOWHERE,
    Bracket,
    Ranks,
    UncertaintyNeeds,
    UncertaintyStatistics,
)

ENTROPY_BLOCK = 2048
"""Pixels per round; its few buffers fit the first-level cache."""

Measured = tuple[UncertaintyStatistics, Ranks]
"""Result of a pass: the statistics, and where the bracket lies among the pixels."""

_ROWS = 4
"""A block is seen as this many rows, so that a column is checked for doubts in a bracket at once."""

_FEW = 8
"""At most one doubt in this many is compared by itself."""


def measure_map(
    view: MapView, needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
) -> Measured:
    """Measure the uncertainty of a map without its patches.

    Parameters
    ----------
    view
        The map.
    needs
        The statistics that somebody will read; its ``side`` and ``median`` are ignored here.
    bracket
        Doubts between which an order statistic is sought.
    room
        Most doubts inside the bracket that one segment keeps.
    """
    flat = view.values.reshape(-1)

    def measure_one(segment: slice) -> Measured:
        accumulators = new_accumulators(needs, bracket, room)
        if not _measure_segment(flat[segment], view.codes, new_buffers(), accumulators):
            raise_first_bad_value(view, segment)
        return result_of(accumulators, flat[segment].size)

    return total_of_parts(map_in_threads(measure_one, segments_of(flat.size)))


def total_of_parts(parts: Iterable[Measured]) -> Measured:
    """Add up the results of segments or tiles."""
    statistics, ranks = zip(*parts, strict=True)
    return reduce(add, statistics), Ranks.together(ranks)


def entropy_map(values: Any, codes: Any) -> Any:
    """Return the entropy in bits of each pixel of an array whose values have been checked, as doubles."""
    out = np.empty(values.shape)
    _fill_map(contiguous(values).reshape(-1), codes, new_buffers(), out.reshape(-1))
    return out


class Accumulators(NamedTuple):
    """Accumulators for a segment of a map."""

    totals: Any
    """Σ doubt, Σ u, Σ u over the pixels above ``doubt_limit``, number of those pixels."""
    extremes: Any
    """The smallest and the largest doubt."""
    ranks: Any
    """Number of pixels with doubt < low, <= low, < high and <= high of the bracket."""
    inside: Any
    """The doubts strictly inside the bracket, as many as there is room for."""
    columns: Any
    """Number of doubts inside the bracket in each column of a block."""
    bracket: Any
    doubt_limit: float
    """Pixels with more doubt than this are above the entropy threshold; infinite if not wanted."""
    entropies: bool
    """Whether any sum of entropies is wanted."""


def new_accumulators(
    needs: UncertaintyNeeds, bracket: Bracket = NOWHERE, room: int = COLLECT
) -> Accumulators:
    """Return empty accumulators for one segment; room that is not used takes no memory."""
    return Accumulators(
        np.zeros(4),
        np.array([0.5, 0.0]),
        np.zeros(4, np.int64),
        np.empty(room if bracket.low <= bracket.high else 0),
        np.empty(ENTROPY_BLOCK // _ROWS, np.int64),
        bracket,
        float(needs.doubt_limit),
        needs.any_entropies,
    )


def result_of(accumulators: Accumulators, n: int, patch: float = -math.inf) -> Measured:
    """Return the content of the accumulators of ``n`` pixels."""
    doubt, entropy, above, above_count = accumulators.totals.tolist()
    lowest, highest = accumulators.extremes.tolist()
    below_low, upto_low, below_high, upto_high = accumulators.ranks.tolist()
    kept = below_high - upto_low
    room = accumulators.inside.size - ENTROPY_BLOCK  # with less left a block may have been skipped
    inside = accumulators.inside[: kept if 0 <= kept <= room else 0].copy()
    statistics = UncertaintyStatistics(n, doubt, entropy, above, int(above_count), lowest, highest, patch)
    return statistics, Ranks(below_low, upto_low, below_high, upto_high, inside)


def new_buffers() -> Any:
    """Return buffers of one block: probabilities, doubts, entropies."""
    return np.empty((3, ENTROPY_BLOCK))


_EXPONENT_AS_FLOAT = np.uint64(0x4330000000000000)  # 2**52: or-ing an integer below 2**52 into it adds it
_EXPONENT_BIAS = 4503599627371519.0  # 2**52 + 1023
_EXPONENT_PLACE = np.uint64(52)
_FRACTION_BITS = np.uint64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.uint64(0x3FF0000000000000)

_REST_CONSTANT = 1.2451124978365355
_CONSTANT = _REST_CONSTANT - 0.5
_ROOT_OF_TWO = math.sqrt(2.0)


@plain
def _compute_doubts(block: Any, doubt: Any) -> None:
    """Compute min(p, 1 - p): negative outside [0, 1], NaN for NaN, so that one comparison finds a bad value.

    Adding zero removes the sign of a negative zero, which is a good value.
    """
    for i in range(block.size):
        x = np.float64(block[i]) + 0.0
        rest = 1.0 - x
        doubt[i] = x if x < rest else rest


@elementwise
def _slope_of_rest(v: Any) -> Any:
    """Return (h(v + 1/4) - `_REST_CONSTANT`) / v, v in [-1/4, 1/4]; Chebyshev fit, error of h 6e-15."""
    square = v * v
    even = -0.49918358798107726
    even = even * square - 0.24251163227866326
    even = even * square - 0.20287882626511608
    even = even * square - 0.16786318211728182
    even = even * square - 0.1534566473057973
    even = even * square - 0.16399113764901477
    even = even * square - 0.23823088488667257
    even = even * square - 0.8698198249056425
    odd = -0.4262438314657602
    odd = odd * square - 0.21331917270546516
    odd = odd * square - 0.18316473919557852
    odd = odd * square - 0.15815311956997782
    odd = odd * square - 0.15463647093125993
    odd = odd * square - 0.18698365042603482
    odd = odd * square - 0.3679074760898821
    return even + odd * v


@elementwise
def _slope_of_fraction(w: Any) -> Any:
    """Return (log2 f - 1/2) / w at w = (f - √2)/(f + √2), f in [1, 2]; error of the log 1e-16.

    This is 2 artanh(w) / (w ln 2), an even function of w.
    """
    square = w * w
    slope = 0.2429160853987535
    slope = slope * square + 0.2614442493522915
    slope = slope * square + 0.32061638813224547
    slope = slope * square + 0.4121984020482752
    slope = slope * square + 0.5770780172463286
    slope = slope * square + 0.9617966939243345
    return slope * square + 2.885390081777927


@elementwise
def _compute_entropies(block: Any, doubt: Any, entropy: Any) -> None:
    """Compute the doubt and the entropy of each pixel; entropies of bad values are meaningless."""
    prefer_wide_vectors()
    for i in range(block.size):
        x = np.float64(block[i]) + 0.0
        rest = 1.0 - x
        m = x if x < rest else rest
        doubt[i] = m
        bits = unsigned_pattern(m)
        v = m - 0.25
        fraction = float_from_pattern((bits & _FRACTION_BITS) | _ONE_BITS)
        w = (fraction - _ROOT_OF_TWO) / (fraction + _ROOT_OF_TWO)
        exponent = float_from_pattern((bits >> _EXPONENT_PLACE) | _EXPONENT_AS_FLOAT) - _EXPONENT_BIAS
        entropy[i] = m * ((_CONSTANT - exponent) + v * _slope_of_rest(v) - w * _slope_of_fraction(w))


@nan_reduction
def _survey(doubt: Any) -> Any:
    """Return sum, minimum and maximum of the doubts of a block; with a NaN only the sum (NaN) is right."""
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
def _collect(doubt: Any, columns: Any, accumulators: Any) -> Any:
    """Keep the doubts inside the bracket; return how many are equal to its low and its high end.

    Only columns with a doubt inside are visited. Every value is stored, and the position advances only after
    one that is kept: a branch would often be mispredicted.
    """
    width, hits = columns.size, 0
    for column in range(width):
        hit = columns[column] > 0
        columns[hits] = column
        hits += 1 if hit else 0
    low, high = accumulators.bracket.low, accumulators.bracket.high
    at, at_low, at_high = accumulators.ranks[2] - accumulators.ranks[1], 0, 0
    for hit in range(hits):
        for row in range(_ROWS):
            x = doubt[columns[hit] + row * width]
            accumulators.inside[at] = x
            at += 1 if (x > low) & (x < high) else 0
            at_low += 1 if x == low else 0
            at_high += 1 if x == high else 0
    return at_low, at_high


@plain
def _has_room(doubt: Any, accumulators: Any) -> bool:
    """Return whether all doubts of a block could be kept; ``ranks`` has how many there are already."""
    kept = accumulators.ranks[2] - accumulators.ranks[1]
    return bool(0 <= kept <= accumulators.inside.size - doubt.size)


@plain
def _rank_ends(doubt: Any, rows: Any, columns: Any, accumulators: Any) -> Any:
    """Count the doubts <= low and < high of a block with many between, which may be equal to an end."""
    low, high = accumulators.bracket.low, accumulators.bracket.high
    above_low = float_from_pattern(unsigned_pattern(low) + np.uint64(1))
    below_high = float_from_pattern(unsigned_pattern(high) - np.uint64(1)) if high > 0.0 else -1.0
    below, upto = _rank(rows, above_low, below_high, columns)
    if upto > below and _has_room(doubt, accumulators):
        _collect(doubt, columns, accumulators)
    return below, upto


@plain
def _add_ranks(doubt: Any, accumulators: Any) -> None:
    """Add where the doubts of a block lie around the bracket; their number is a multiple of `_ROWS`."""
    columns = accumulators.columns[: doubt.size // _ROWS]
    width = columns.size
    rows = doubt[:width], doubt[width:], doubt[2 * width :], doubt[3 * width :]
    below_low, upto_high = _rank(rows, accumulators.bracket.low, accumulators.bracket.high, columns)
    between = upto_high - below_low
    upto_low, below_high = below_low, upto_high
    if between * _FEW > doubt.size or (between > 0 and not _has_room(doubt, accumulators)):
        upto_low, below_high = _rank_ends(doubt, rows, columns, accumulators)
    elif between > 0:
        at_low, at_high = _collect(doubt, columns, accumulators)
        upto_low += at_low
        below_high -= at_high
    accumulators.ranks[0] += below_low
    accumulators.ranks[1] += upto_low
    accumulators.ranks[2] += below_high
    accumulators.ranks[3] += upto_high


@plain
def _add_survey(doubt: Any, size: int, accumulators: Any) -> bool:
    """Add the first ``size`` doubts of a buffer; return False if one is negative or NaN: a bad value."""
    total, lowest, highest = _survey(doubt[:size])
    if math.isnan(total) or lowest < 0.0:
        return False
    accumulators.totals[0] += total
    accumulators.extremes[0] = min(accumulators.extremes[0], lowest)
    accumulators.extremes[1] = max(accumulators.extremes[1], highest)
    if accumulators.inside.size:
        padded = size + -size % _ROWS
        for i in range(size, padded):
            doubt[i] = 1.0  # above every bracket
        _add_ranks(doubt[:padded], accumulators)
    return True


@plain
def _measure_block(block: Any, doubt: Any, accumulators: Any, entropy: Any) -> bool:
    """Measure one block; ``doubt`` is a buffer for a whole one."""
    if not accumulators.entropies:
        _compute_doubts(block, doubt)
        return _add_survey(doubt, block.size, accumulators)
    _compute_entropies(block, doubt, entropy)
    total, above, count = _sum_entropies(doubt[: block.size], entropy, accumulators.doubt_limit)
    accumulators.totals[1] += total
    accumulators.totals[2] += above
    accumulators.totals[3] += count
    return _add_survey(doubt, block.size, accumulators)


@plain
def measure_pixels(values: Any, codes: Any, buffers: Any, accumulators: Any, entropies: Any) -> bool:
    """Measure contiguous pixels and store their entropies in ``entropies``; return False at a bad value."""
    for first in range(0, values.size, ENTROPY_BLOCK):
        last = min(first + ENTROPY_BLOCK, values.size)
        block = as_floats(values[first:last], codes, buffers[0])
        if not _measure_block(block, buffers[1], accumulators, entropies[first:last]):
            return False
    return True


@entry
def _measure_segment(values: Any, codes: Any, buffers: Any, accumulators: Any) -> bool:
    """Measure contiguous pixels whose entropies are not needed elsewhere; return False at a bad value."""
    for first in range(0, values.size, ENTROPY_BLOCK):
        block = values[first : first + ENTROPY_BLOCK]
        if not measure_pixels(block, codes, buffers, accumulators, buffers[2]):
            return False
    return True


@plain
def fill_entropies(values: Any, codes: Any, buffers: Any, out: Any) -> None:
    """Fill ``out`` with the entropies of contiguous pixels, without measuring anything."""
    for first in range(0, values.size, ENTROPY_BLOCK):
        last = min(first + ENTROPY_BLOCK, values.size)
        block = as_floats(values[first:last], codes, buffers[0])
        _compute_entropies(block, buffers[1, : last - first], out[first:last])


@entry
def _fill_map(values: Any, codes: Any, buffers: Any, out: Any) -> None:
    fill_entropies(values, codes, buffers, out)
