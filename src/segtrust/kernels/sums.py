"""Sums over the pixels of a map that the Dice family of estimators is made of.

For each side of the mask (foreground, background) the sums of p, p², … p⁶ are gathered. While a side
holds little probability its larger values are set apart one by one instead, because the power series of
the integrals in `segtrust.kernels.integrals` converges fast for small values or for much mass, not for a
few large values. Blocks are fixed by the position in the map, so the result does not depend on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.kernels.jit import (
    as_floats,
    elementwise,
    entry,
    plain,
    prefer_wide_vectors,
    reduction,
    unsigned_pattern,
)
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT, ORDER

__all__ = ["QUARTIC_TOP", "SEGMENT", "Pixels", "Sums", "new_look", "new_sums", "sum_segment"]

SEGMENT = 1 << 20
"""Pixels summed in one call; the unit that threads share out."""

SUPERBLOCK = 1 << 16
"""Pixels that stay in the second-level cache between the first and the second look at them."""

BLOCK = 4096
"""Pixels summed without looking up; a float32 counter is exact far beyond it."""

QUARTIC_MASS = 7e3
"""From this mass on (both sides) the powers above 4 are below 1e-14 of the result and are not summed."""

QUARTIC_TOP = 2.0**-12
"""In a block whose largest value is below it the powers above 4 are below 4e-15 and are not summed."""

_MOST_APART = int(MASS_LIMIT / APART_ABOVE) + 1  # and the slot that is written but not kept


class Pixels(NamedTuple):
    """A stretch of a map as the compiled loops take it."""

    values: Any
    """Floats, or unsigned integer codes; contiguous, one dimension."""
    codes: Any
    """Probability of each integer code; empty for floats."""
    mask: Any
    """0 or 1 for each pixel, or ``None`` where the mask is ``p >= threshold``."""
    threshold: Any
    """In the type in which values are compared."""
    unit: Any
    """1 in the same type: counters of that type let the loop be vectorised."""
    quartic_top: Any
    """`QUARTIC_TOP` in the same type."""


class Sums(NamedTuple):
    """What one segment adds up to; row 0 is the background, row 1 the foreground."""

    totals: Any
    """(pixels, Σp, Σp², … Σp⁶) a side; the powers leave out what is set apart, the first two do not."""
    apart: Any
    """Values set apart, a row a side; no room at all means that only pixels and Σp are wanted."""
    apart_count: Any
    """How many values of each row are in use."""


class Look(NamedTuple):
    """What the first look at a superblock tells the second one, a row a block."""

    counts: Any
    masses: Any
    tops: Any
    """Largest bit pattern."""
    scratch: Any
    background: Any
    foreground: Any


def new_look() -> Look:
    """Buffers for the blocks of one superblock."""
    blocks = SUPERBLOCK // BLOCK
    tops = np.empty(blocks, np.uint64)
    return Look(np.empty(blocks), np.empty(blocks), tops, np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK))


def new_sums(*, powers: bool) -> Sums:
    """Empty buffers for one segment."""
    return Sums(np.zeros((2, ORDER + 1)), np.empty((2, _MOST_APART if powers else 0)), np.zeros(2, np.int64))


@plain
def _inside(value: Any, mask: Any, at: int, threshold: Any) -> Any:
    """Tell whether a pixel is foreground; the branch is decided when the loop is compiled."""
    if mask is None:
        return value >= threshold
    return mask[at] != 0


@plain
def _cut(mask: Any, first: int, last: int) -> Any:
    if mask is None:
        return None
    return mask[first:last]


@reduction
def _count(block: Any, mask: Any, threshold: Any, unit: Any) -> Any:
    prefer_wide_vectors()
    inside = 0.0
    outside = 0.0
    none = unit - unit
    count = none
    top = unsigned_pattern(none)
    for i in range(block.size):
        x = block[i]
        hit = _inside(x, mask, i, threshold)
        inside += np.float64(x) if hit else 0.0
        outside += 0.0 if hit else np.float64(x)
        count += unit if hit else none
        bits = unsigned_pattern(x)
        top = bits if bits > top else top
    return count, inside, outside, top


@reduction
def _quartic(block: Any, mask: Any, threshold: Any, totals: Any) -> None:
    prefer_wide_vectors()
    in2 = in3 = in4 = out2 = out3 = out4 = 0.0
    for i in range(block.size):
        x = np.float64(block[i])
        v = x if _inside(block[i], mask, i, threshold) else 0.0
        w = x - v
        v2 = v * v
        w2 = w * w
        in2 += v2
        in3 += v2 * v
        in4 += v2 * v2
        out2 += w2
        out3 += w2 * w
        out4 += w2 * w2
    _add(totals[1], in2, in3, in4)
    _add(totals[0], out2, out3, out4)


@reduction
def _quartic_one_side(values: Any, total: Any) -> None:
    prefer_wide_vectors()
    second = third = fourth = 0.0
    for i in range(values.size):
        x = np.float64(values[i])
        square = x * x
        second += square
        third += square * x
        fourth += square * square
    _add(total, second, third, fourth)


@plain
def _add(total: Any, second: float, third: float, fourth: float) -> None:
    total[2] += second
    total[3] += third
    total[4] += fourth


@reduction
def _sextic(values: Any, total: Any) -> None:
    prefer_wide_vectors()
    second = third = fourth = fifth = sixth = 0.0
    for i in range(values.size):
        x = np.float64(values[i])
        square = x * x
        second += square
        third += square * x
        fourth += square * square
        fifth += square * square * x
        sixth += square * square * square
    _add(total, second, third, fourth)
    total[5] += fifth
    total[6] += sixth


@elementwise
def _split(block: Any, mask: Any, threshold: Any, background: Any, foreground: Any) -> None:
    prefer_wide_vectors()
    for i in range(block.size):
        x = np.float64(block[i])
        foreground[i] = x if _inside(block[i], mask, i, threshold) else 0.0
        background[i] = x - foreground[i]


@plain
def _set_apart(values: Any, apart: Any, count: int) -> int:
    """Move large values to ``apart``; always stores, so that there is no branch to mispredict."""
    for i in range(values.size):
        x = values[i]
        large = x > APART_ABOVE
        apart[count] = x
        count += 1 if large else 0
        values[i] = 0.0 if large else x
    return count


@plain
def _fold(sums: Any, side: int) -> None:
    """Turn the values set apart into power sums once their side has mass enough."""
    if sums.apart_count[side] and sums.totals[side, 1] >= MASS_LIMIT:
        _sextic(sums.apart[side, : sums.apart_count[side]], sums.totals[side])
        sums.apart_count[side] = 0


@plain
def _add_powers(values: Any, sums: Any, side: int) -> None:
    if sums.totals[side, 1] < MASS_LIMIT:
        sums.apart_count[side] = _set_apart(values, sums.apart[side], sums.apart_count[side])
    _sextic(values, sums.totals[side])


@plain
def _first_look(pixels: Any, first: int, last: int, look: Any) -> Any:
    """Count one block by side; give (count, Σp inside, Σp outside, largest bit pattern)."""
    block = as_floats(pixels.values[first:last], pixels.codes, look.scratch)
    return _count(block, _cut(pixels.mask, first, last), pixels.threshold, pixels.unit)


@plain
def _four_powers_do(sums: Any) -> bool:
    """Both sides hold so much probability, or none, that the fifth power is below 1e-14."""
    enough = True
    for side in range(2):
        mass = sums.totals[side, 1]
        enough = enough and (mass == 0.0 or mass >= QUARTIC_MASS)
    return enough


@plain
def _second_look(pixels: Any, first: int, last: int, look: Any, sums: Any) -> None:
    """Add the powers of one block, the cheapest way that is exact for what it holds."""
    at = (first % SUPERBLOCK) // BLOCK
    if look.masses[at] == 0.0:
        return
    block = as_floats(pixels.values[first:last], pixels.codes, look.scratch)
    mask = _cut(pixels.mask, first, last)
    four_do = _four_powers_do(sums)
    limit = np.uint64(unsigned_pattern(pixels.quartic_top))
    if look.counts[at] == 0.0 and (four_do or look.tops[at] <= limit):
        _quartic_one_side(block, sums.totals[0])
    elif four_do:
        _quartic(block, mask, pixels.threshold, sums.totals)
    else:
        _split_powers(block, mask, pixels.threshold, look, sums)


@plain
def _split_powers(block: Any, mask: Any, threshold: Any, look: Any, sums: Any) -> None:
    background, foreground = look.background[: block.size], look.foreground[: block.size]
    _split(block, mask, threshold, background, foreground)
    _add_powers(background, sums, 0)
    _add_powers(foreground, sums, 1)


@plain
def _sum_superblock(pixels: Any, begin: int, end: int, look: Any, sums: Any) -> Any:
    highest = np.uint64(0)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        count, inside, outside, top = _first_look(pixels, first, last, look)
        at = (first - begin) // BLOCK
        look.counts[at], look.masses[at], look.tops[at] = count, inside + outside, top
        highest = max(highest, look.tops[at])
        sums.totals[0, 0] += last - first - count
        sums.totals[1, 0] += count
        sums.totals[0, 1] += outside
        sums.totals[1, 1] += inside
    return highest


@entry
def sum_segment(pixels: Any, look: Any, sums: Any) -> bool:
    """Add a segment to ``sums``; False at a value that is no probability or a negative zero.

    The largest bit pattern tells, see `unsigned_pattern`. Summing ends where the check fails: the room for
    values set apart is enough for probabilities only.
    """
    one = np.uint64(unsigned_pattern(pixels.unit))
    for begin in range(0, pixels.values.size, SUPERBLOCK):
        end = min(begin + SUPERBLOCK, pixels.values.size)
        if _sum_superblock(pixels, begin, end, look, sums) > one:
            return False
        if sums.apart.shape[1]:
            _fold(sums, 0)
            _fold(sums, 1)
            for first in range(begin, end, BLOCK):
                _second_look(pixels, first, min(first + BLOCK, end), look, sums)
    return True
