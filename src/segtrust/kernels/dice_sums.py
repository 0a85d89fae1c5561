"""Sums over the pixels of a map that the Dice family of estimators is made of.

For each side of the mask (foreground, background) the sums of p, p², … p⁶ are computed. The power series of
the integrals in `segtrust.kernels.integrals` converges fast for small values or for much mass, but not for a
few large values: those are kept apart, one by one, if their side holds little probability. How much a side
holds is known only at the end. So a first pass sums four powers of every block, which is enough for a side
with much mass, and `_refine_segment` returns to the blocks with larger values if it was not. Segments and
blocks are fixed by the position in the map, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import elementwise, entry, map_in_threads, plain, reduction
from segtrust.kernels.intrinsics import FETCHED, as_floats, fetch_ahead, prefer_wide_vectors, unsigned_pattern
from segtrust.kernels.map_view import (
    SEGMENT_UNIT,
    SMALLEST_SEGMENT,
    MapView,
    raise_first_bad_value,
    segments_of,
)
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT, ORDER, Counts, DiceStatistics

DICE_BLOCK = SEGMENT_UNIT
"""Pixels summed at once: they stay in the first-level cache, and a float32 counter is exact."""

QUARTIC_MASS = 7e3
"""If a side has this mass or more, its powers above 4 are below 1e-14 of the result."""

QUARTIC_TOP = 2.0**-12
"""In a block whose largest value is below it, the powers above 4 are below 4e-15 and are not summed."""

BACKGROUND, FOREGROUND, LARGE = 1, 2, 4
"""A block with values above `QUARTIC_TOP` has background, has foreground, has values above `APART_ABOVE`."""

_MOST_APART = int(MASS_LIMIT / APART_ABOVE) + 1  # and the slot that is written but not kept


def count_map(view: MapView) -> Counts:
    """Count the pixels and sum the probabilities on both sides of the mask: all that the SDC needs."""
    counts, _ = _sum_segments(view, powers=False)
    return counts


def dice_statistics(view: MapView) -> DiceStatistics:
    """Return the sums from which exact expectations of overlap scores are computed."""
    counts, parts = _sum_segments(view, powers=True)
    masses = (counts.lam, counts.s)
    powers = np.zeros((2, ORDER - 1))
    powers[:, :3] = sum(part.powers for part in parts)
    provisional = sum(part.provisional for part in parts)
    for side in (0, 1):
        if masses[side] >= QUARTIC_MASS:
            powers[side, :3] += provisional[side]
    refined = []
    if any(0.0 < mass < QUARTIC_MASS for mass in masses):

        def refine(segment_and_kinds: tuple[slice, Any]) -> tuple[Any, list[Any]]:
            segment, kinds = segment_and_kinds
            apart, apart_count = np.empty((2, _MOST_APART)), np.zeros(2, np.int64)
            buffers = np.empty(DICE_BLOCK), np.empty(DICE_BLOCK), np.empty(DICE_BLOCK)
            sums = _Refined(np.zeros((2, ORDER - 1)), apart, apart_count, *buffers)
            _refine_segment(_pixels(view, segment), kinds, masses, sums)
            return sums.powers, [apart[side, : apart_count[side]].copy() for side in (0, 1)]

        kinds = [part.kinds for part in parts]
        refined = map_in_threads(refine, list(zip(segments_of(view.values.size), kinds, strict=True)))
    powers += sum((more for more, _ in refined), start=np.zeros_like(powers))
    outside, inside = (
        np.concatenate([np.empty(0), *(apart[side] for _, apart in refined)]) for side in (0, 1)
    )
    return DiceStatistics(counts, powers, (outside, inside))


class _Pixels(NamedTuple):
    """A segment of a map as the compiled loops take it."""

    values: Any
    """Floats, or unsigned integer codes; contiguous, one dimension."""
    codes: Any
    """Probability of each integer code; empty for floats."""
    mask: Any
    """0 or 1 for each pixel, or ``None`` if the mask is ``p >= threshold``."""
    threshold: Any
    """Decision threshold in the type in which values are compared."""
    unit: Any
    """1 in the same type: counters of that type let the loop be vectorised."""
    tiny: Any
    """`QUARTIC_TOP` in the same type."""
    small: Any
    """`APART_ABOVE` in the same type."""


class _Sums(NamedTuple):
    """Result of the first pass over a segment; row 0 is the background, row 1 the foreground."""

    totals: Any
    """(pixels, Σp) per side."""
    powers: Any
    """Σp², Σp³, Σp⁴ per side, of the blocks without larger values; no columns if powers are not wanted."""
    provisional: Any
    """The same of the blocks with larger values; accurate only for a side with much mass."""
    kinds: Any
    """Content of each block, a sum of `BACKGROUND`, `FOREGROUND` and `LARGE`; 0 without larger values."""


class _Refined(NamedTuple):
    """Result of the second pass for the blocks with larger values; row 0 is the background."""

    powers: Any
    """Σp², … Σp⁶ per side, without the values that are kept apart."""
    apart: Any
    """Values kept apart, one row per side."""
    apart_count: Any
    """How many values of each row are in use."""
    scratch: Any
    background: Any
    foreground: Any


def _pixels(view: MapView, segment: slice) -> _Pixels:
    compared = type(view.threshold)
    mask = None if view.mask is None else view.mask.reshape(-1)[segment]
    limits = compared(1), compared(QUARTIC_TOP), compared(APART_ABOVE)
    return _Pixels(view.values.reshape(-1)[segment], view.codes, mask, view.threshold, *limits)


def _sum_segments(view: MapView, *, powers: bool) -> tuple[Counts, Sequence[_Sums]]:
    """Make the first pass; return the counts of the map and the sums of its segments."""
    shape = (2, 3 if powers else 0)
    size = view.values.size

    def sum_one(segment: slice) -> _Sums:
        pixels = _pixels(view, segment)
        kinds = np.zeros(-(-pixels.values.size // DICE_BLOCK), np.uint8)
        sums = _Sums(np.zeros((2, 2)), np.zeros(shape), np.zeros(shape), kinds)
        if not _sum_segment(pixels, np.empty(DICE_BLOCK), sums):
            raise_first_bad_value(view, segment)
        return sums

    # A small map is one segment, which threads cannot share.
    parts = (
        [sum_one(slice(0, size))] if size <= SMALLEST_SEGMENT else map_in_threads(sum_one, segments_of(size))
    )
    totals = np.array([sums.totals.reshape(-1) for sums in parts])
    outside, lam, inside, s = map(math.fsum, totals.T)
    return Counts(int(outside + inside), int(inside), s, lam), parts


@plain
def _inside(value: Any, mask: Any, at: int, threshold: Any) -> Any:
    """Return whether a pixel is foreground; the branch is decided when the loop is compiled."""
    if mask is None:
        return value >= threshold
    return mask[at] != 0


@plain
def _mask_block(mask: Any, first: int, last: int) -> Any:
    if mask is None:
        return None
    return mask[first:last]


@reduction
def _count(block: Any, mask: Any, threshold: Any, unit: Any) -> Any:
    """Count the foreground of one block, and find its largest bit pattern.

    Adding zero removes the sign of a negative zero, whose pattern is not that of 0.
    """
    prefer_wide_vectors()
    none = unit - unit
    count = none
    top = unsigned_pattern(none)
    for i in range(block.size):
        x = block[i] + none
        count += unit if _inside(x, mask, i, threshold) else none
        bits = unsigned_pattern(x)
        top = bits if bits > top else top
    return count, top


@reduction
def _masses(part: Any, mask: Any, threshold: float) -> Any:
    """Return Σp outside and inside.

    A loop of its own, in doubles from the start: counts and sums in one loop mix vectors of two widths, and
    with 16 registers that takes twice as long.
    """
    prefer_wide_vectors()
    inside = outside = 0.0
    for i in range(part.size):
        x = np.float64(part[i])
        hit = _inside(x, mask, i, threshold)
        inside += x if hit else -0.0  # adding a negative zero changes nothing and is optimised away
        outside += -0.0 if hit else x
    return outside, inside


@reduction
def _quartic_both_sides(part: Any, mask: Any, threshold: float, powers: Any) -> None:
    """Add Σp², Σp³, Σp⁴ outside and inside to ``powers``.

    Without Σp, which `_masses` returns: a loop that sums more is vectorised differently and adds in another
    order, so the SDC computed with the IDC would differ in its last digit from the SDC alone.
    """
    prefer_wide_vectors()
    in2 = in3 = in4 = out2 = out3 = out4 = 0.0
    for i in range(part.size):
        x = np.float64(part[i])
        square = x * x
        inner = square if _inside(x, mask, i, threshold) else 0.0
        outer = square - inner
        in2 += inner
        in3 += inner * x
        in4 += inner * square
        out2 += outer
        out3 += outer * x
        out4 += outer * square
    _add(powers[1], in2, in3, in4)
    _add(powers[0], out2, out3, out4)


@plain
def _masses_while_fetching(block: Any, mask: Any, pixels: Any, last: int) -> Any:
    """Return Σp outside and inside of a block that ends before ``last``, while the next one is fetched."""
    outside = inside = 0.0
    for first in range(0, block.size, FETCHED):
        fetch_ahead(pixels.values, last + first)
        part, part_mask = block[first : first + FETCHED], _mask_block(mask, first, first + FETCHED)
        less, more = _masses(part, part_mask, np.float64(pixels.threshold))
        outside += less
        inside += more
    return outside, inside


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
def _add_quartic(block: Any, mask: Any, threshold: Any, count: float, powers: Any) -> None:
    """Add the powers of a block with ``count`` pixels of foreground."""
    if 0 < count < block.size:
        _quartic_both_sides(block, mask, np.float64(threshold), powers)
    else:
        _quartic_one_side(block, powers[1 if count > 0 else 0])


@plain
def _add(total: Any, second: float, third: float, fourth: float) -> None:
    total[0] += second
    total[1] += third
    total[2] += fourth


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
    total[3] += fifth
    total[4] += sixth


@entry
def _sum_segment(pixels: Any, scratch: Any, sums: Any) -> bool:
    """Add a segment to ``sums``; return False at a bad value, whose pattern is above that of 1.

    ``scratch`` has room for the probabilities of one block of integer codes.
    """
    one = np.uint64(unsigned_pattern(pixels.unit))
    for first in range(0, pixels.values.size, DICE_BLOCK):
        last = min(first + DICE_BLOCK, pixels.values.size)
        block = as_floats(pixels.values[first:last], pixels.codes, scratch)
        mask = _mask_block(pixels.mask, first, last)
        count, top = _count(block, mask, pixels.threshold, pixels.unit)
        if top > one:
            return False
        sums.totals[0, 0] += block.size - count
        sums.totals[1, 0] += count
        kind = _kind_of(top, count, block.size, pixels)
        sums.kinds[first // DICE_BLOCK] = kind
        powers = sums.provisional if kind else sums.powers
        outside, inside = _masses_while_fetching(block, mask, pixels, last)
        if powers.shape[1] and top > 0:
            _add_quartic(block, mask, pixels.threshold, count, powers)
        sums.totals[0, 1] += outside
        sums.totals[1, 1] += inside
    return True


@plain
def _kind_of(top: Any, count: float, size: int, pixels: Any) -> int:
    if top <= unsigned_pattern(pixels.tiny):
        return 0
    kind = LARGE if top > unsigned_pattern(pixels.small) else 0
    kind += BACKGROUND if count < size else 0
    kind += FOREGROUND if count > 0.0 else 0
    return kind


@elementwise
def _split(block: Any, mask: Any, threshold: Any, background: Any, foreground: Any) -> None:
    prefer_wide_vectors()
    for i in range(block.size):
        x = np.float64(block[i])
        foreground[i] = x if _inside(block[i], mask, i, threshold) else 0.0
        background[i] = x - foreground[i]


@plain
def _set_apart(values: Any, apart: Any, count: int) -> int:
    """Move large values to ``apart``; always store, so that there is no branch to mispredict."""
    for i in range(values.size):
        x = values[i]
        large = x > APART_ABOVE
        apart[count] = x
        count += 1 if large else 0
        values[i] = 0.0 if large else x
    return count


@plain
def _refine_side(values: Any, mass: float, side: int, refined: Any) -> None:
    if mass < MASS_LIMIT:
        refined.apart_count[side] = _set_apart(values, refined.apart[side], refined.apart_count[side])
    _sextic(values, refined.powers[side])


@plain
def _refine_block(block: Any, mask: Any, pixels: Any, kind: int, masses: Any, refined: Any) -> None:
    """Sum one block again for each side that holds too little for four powers."""
    side = 1 if kind & FOREGROUND else 0
    two_sided = (kind & BACKGROUND) and (kind & FOREGROUND)
    if not two_sided and not (kind & LARGE and masses[side] < MASS_LIMIT):
        _sextic(block, refined.powers[side])
        return
    background, foreground = refined.background[: block.size], refined.foreground[: block.size]
    _split(block, mask, pixels.threshold, background, foreground)
    if _is_light(masses[0]):
        _refine_side(background, masses[0], 0, refined)
    if _is_light(masses[1]):
        _refine_side(foreground, masses[1], 1, refined)


@plain
def _is_light(mass: float) -> bool:
    return 0.0 < mass < QUARTIC_MASS


@entry
def _refine_segment(pixels: Any, kinds: Any, masses: Any, refined: Any) -> None:
    """Sum the blocks with larger values again, for a map whose sides hold ``masses``.

    A side with enough mass for four powers is skipped, and so are blocks that have none of the other side.
    """
    wanted = BACKGROUND if _is_light(masses[0]) else 0
    wanted += FOREGROUND if _is_light(masses[1]) else 0
    for first in range(0, pixels.values.size, DICE_BLOCK):
        kind = kinds[first // DICE_BLOCK]
        if kind & wanted:
            last = min(first + DICE_BLOCK, pixels.values.size)
            block = as_floats(pixels.values[first:last], pixels.codes, refined.scratch)
            _refine_block(block, _mask_block(pixels.mask, first, last), pixels, kind, masses, refined)


# Sums for the generating functions in `segtrust.kernels.integrals`, over pixels kept one by one

_FACTORS = 16
"""Number of factors that are multiplied before a logarithm is taken. Each is at least exp(-300)·p or 1 - p,
so the product underflows only if pixels are certain; the sum is then minus infinity, as it should be."""

_NEAR_ONE = 0.5


def generating_sums(values: Any, t: Any, u: Any) -> tuple[Any, Any]:
    """Return Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values`` for each ``t``; ``u`` is 1 - t."""
    logarithms, slopes = np.zeros(t.size), np.zeros(t.size)
    _add_generating_sums(values, t, u, logarithms, slopes)
    return logarithms, slopes


@entry
def _add_generating_sums(values: Any, t: Any, u: Any, logarithms: Any, slopes: Any) -> None:
    # A factor close to 1 is rounded by 1e-16, and equal pixels are rounded alike, which would show over
    # thousands of them. So where a product is close to 1 its distance from 1 is computed instead.
    for node in range(t.size):
        for first in range(0, values.size, _FACTORS):
            some = values[first : first + _FACTORS]
            product, slope = _product_and_slope(some, t[node])
            if product < _NEAR_ONE:
                logarithms[node] += np.log(product)
            else:
                logarithms[node] += np.log1p(-_distance_from_one(some, u[node]))
            slopes[node] += slope


@reduction
def _product_and_slope(values: Any, t: float) -> Any:
    prefer_wide_vectors()
    product = 1.0
    slope = 0.0
    for i in range(values.size):
        factor = (1.0 - values[i]) + values[i] * t
        product *= factor
        slope += values[i] / factor
    return product, slope


@plain
def _distance_from_one(values: Any, u: float) -> float:
    """Return one minus the product of all 1 - pu, accurate to the last digit where it is small."""
    distance = 0.0
    for i in range(values.size):
        part = values[i] * u
        distance += part - distance * part
    return distance
