"""Sums over the pixels of a map that the Dice family of estimators is made of.

For each side of the mask (foreground, background) the sums of p, p², … p⁶ are computed. The power series of
the integrals in `segtrust.kernels.integrals` converges fast for small values or for much mass, but not for a
few large values: those are kept apart, one by one, if the map holds little probability.

How many powers a block needs follows from its largest value t and from the rate R at which the integrand
falls with u, the variable of the series. If powers up to j are summed, the first term left out is at most
m tʲ uʲ⁺¹ / (j + 1), where m <= R is the mass of the pixels. Weighted with R exp(-Ru) this is at most
j! (t/R)ʲ, which is the relative error of the result. The rate is at least the mass of the whole map, on both
sides of the mask, for all Tversky indices with 1 - alpha <= beta <= 1: Dice, IoU and F-beta. With other
weights only the mass of a side itself counts (``any_weights``).

The mass is known only at the end. A small map is in the cache by then: it is counted first, and then each
block is summed with the powers that it needs, or not at all (`_sum_small_map`). Of a large map, the first
pass sums four powers of every block, which is enough for much mass, and `_refine_segment` returns to the
blocks with larger values if it was not. Segments and blocks are fixed by the position in the map, so the
result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import elementwise, entry, map_in_threads, plain, reduction
from segtrust.kernels.intrinsics import (
    as_floats,
    float_from_pattern,
    prefer_wide_vectors,
    unsigned_pattern,
)
from segtrust.kernels.map_view import (
    NO_CODES,
    SEGMENT_UNIT,
    SMALLEST_SEGMENT,
    MapView,
    contiguous,
    raise_first_bad_value,
    segments_of,
    view_map,
)
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT, ORDER, Counts, DiceStatistics

DICE_BLOCK = SEGMENT_UNIT
"""Pixels summed at once: they stay in the first-level cache, and a float32 counter is exact."""

QUARTIC_MASS = 7e3
"""If the integrand falls at this rate or more, powers above 4 are below 1e-14 of the result."""

QUARTIC_TOP = 2.0**-12
"""In a block whose largest value is below it, the powers above 4 are below 4e-15 and are not summed."""

UP_TO_ONE, UP_TO_FOUR = 1e-14, 1 / QUARTIC_MASS
"""Largest t/R of a block for which powers up to 1 and up to 4 are enough: there j! (t/R)ʲ is 1e-14."""

BACKGROUND, FOREGROUND, LARGE = 1, 2, 4
"""A block with values above `QUARTIC_TOP` has background, has foreground, has values above `APART_ABOVE`."""

_MOST_APART = int(MASS_LIMIT / APART_ABOVE) + 1  # and the slot that is written but not kept


def count_in_place(p: Any, mask: Any, threshold: float) -> Counts | None:
    """Count a small array without opening it, if the loops can read it as it is and its values are valid.

    This is the fast path for one image: a few microseconds. ``None`` means that the array is to be opened,
    because its type, layout or size is another one or because a check failed; the error is raised there.
    """
    types = _IN_PLACE.get(p.dtype)
    size = p.size
    if types is None or not 0 < size <= SMALLEST_SEGMENT or not p.flags.c_contiguous:
        return None
    if mask is not None:
        if (mask.dtype.char not in "?B") or mask.shape != p.shape or not mask.flags.c_contiguous:
            return None
        mask = mask.view(np.uint8).reshape(-1)
        mask.setflags(write=False)
    values = p.reshape(-1).view()  # of one axis, reshape may return the array itself
    values.setflags(write=False)  # loops are compiled for read-only arrays only
    compared, unit = types
    k, s, lam, mask_top = _count_segment(values, NO_CODES, mask, compared(threshold), unit, NO_CODES)
    return Counts(size, int(k), s, lam) if k >= 0.0 and mask_top <= 1 else None


_IN_PLACE = {np.dtype(kind): (kind, kind(1)) for kind in (np.float32, np.float64)}
"""Types that are compared and summed as they are stored, each with its 1."""


def count_rows(p: Any, mask: Any, threshold: float) -> tuple[Counts, int | None]:
    """Count each map of a batch in one call per thread; the maps are small and lie one after the other.

    Parameters
    ----------
    p, mask
        Contiguous batch, and its masks as bool or uint8, or ``None``.
    threshold
        Decision threshold.

    Returns
    -------
    Counts with arrays, and the number of the first map with a bad value or mask, ``None`` if all are good
    """
    n = math.prod(p.shape[1:])
    view = view_map(p.reshape(p.shape[0], n), threshold=threshold)
    if mask is not None:
        mask = contiguous(mask.view(np.uint8).reshape(p.shape[0], n))
    unit = _LIMITS[type(view.threshold)][0]
    counts = np.empty((p.shape[0], 3))

    def count_part(part: slice) -> None:
        part_mask = None if mask is None else mask[part]
        scratch = _scratch_for(view)
        _count_rows(view.values[part], view.codes, part_mask, view.threshold, unit, scratch, counts[part])

    step = max(1, min(SMALLEST_SEGMENT // n, -(-p.shape[0] // _BATCH_PARTS)))
    map_in_threads(count_part, [slice(first, first + step) for first in range(0, p.shape[0], step)])
    bad = np.flatnonzero(counts[:, 0] < 0.0)
    k, s, lam = (np.ascontiguousarray(column) for column in counts.T)
    return Counts(n, k, s, lam), int(bad[0]) if bad.size else None


_BATCH_PARTS = 8
"""Number of parts of a batch that threads share, unless its maps are large."""


def count_map(view: MapView) -> Counts:
    """Count the pixels and sum the probabilities on both sides of the mask: all that the SDC needs."""

    def count_one(segment: slice) -> tuple[float, float, float]:
        pixels = _pixels(view, segment)
        k, s, lam, _ = _count_segment(*pixels[:5], _scratch_for(view))
        if k < 0.0:
            raise_first_bad_value(view, segment)
        return k, s, lam

    return _total(view, map_in_threads(count_one, segments_of(view.values.size)))


def _total(view: MapView, parts: Sequence[Sequence[float]]) -> Counts:
    """Return the counts of a map from k, s and λ of its segments."""
    k, s, lam = map(math.fsum, zip(*parts, strict=True))
    return Counts(view.values.size, int(k), s, lam)


def dice_statistics(view: MapView, *, any_weights: bool = False) -> DiceStatistics:
    """Return the sums from which exact expectations of overlap scores are computed.

    Parameters
    ----------
    view
        The map.
    any_weights
        Whether the sums have to serve all Tversky indices, and not only those with 1 - alpha <= beta <= 1.
    """
    if view.values.size <= SMALLEST_SEGMENT and not any_weights:
        pixels = _pixels(view, slice(None))
        k, s, lam, powers, outside, inside = _sum_small_map(*pixels, _scratch_for(view))
        if k < 0.0:
            raise_first_bad_value(view)
        return DiceStatistics(Counts(view.values.size, int(k), s, lam), powers, (outside, inside))

    def sum_one(segment: slice) -> _Sums:
        pixels = _pixels(view, segment)
        kinds = np.zeros(-(-pixels.values.size // DICE_BLOCK), np.uint8)
        sums = _Sums(np.zeros(3), np.zeros((2, 3)), np.zeros((2, 3)), kinds)
        if not _sum_segment(pixels, _scratch_for(view), sums):
            raise_first_bad_value(view, segment)
        return sums

    segments = segments_of(view.values.size)
    parts = map_in_threads(sum_one, segments)
    counts = _total(view, [part.totals.tolist() for part in parts])
    masses = (counts.lam, counts.s)
    mass = counts.lam + counts.s
    rates = masses if any_weights else (mass, mass)
    powers = np.zeros((2, ORDER - 1))
    powers[:, :3] = sum(part.powers for part in parts)
    provisional: Any = sum(part.provisional for part in parts)
    for side in (0, 1):
        if rates[side] >= QUARTIC_MASS:
            powers[side, :3] += provisional[side]
    refined = []
    if min(rates) < QUARTIC_MASS and mass > 0.0:

        def refine(segment_and_kinds: tuple[slice, Any]) -> tuple[Any, list[Any]]:
            segment, kinds = segment_and_kinds
            apart, apart_count = (np.empty(_MOST_APART), np.empty(_MOST_APART)), np.zeros(2, np.int64)
            buffers = np.empty(DICE_BLOCK), np.empty(DICE_BLOCK), np.empty(DICE_BLOCK, np.uint8)
            sums = _Refined(np.zeros((2, ORDER - 1)), *apart, apart_count, _scratch_for(view), *buffers)
            _refine_segment(_pixels(view, segment), kinds, rates, sums)
            return sums.powers, [apart[side][: apart_count[side]].copy() for side in (0, 1)]

        kinds = [part.kinds for part in parts]
        refined = map_in_threads(refine, list(zip(segments, kinds, strict=True)))
    powers += sum((more for more, _ in refined), start=np.zeros_like(powers))
    outside, inside = (
        np.concatenate([np.empty(0), *(apart[side] for _, apart in refined)]) for side in (0, 1)
    )
    return DiceStatistics(counts, powers, (outside, inside))


def _scratch_for(view: MapView) -> Any:
    """Return room for the probabilities of one block of integer codes; floats need none."""
    return np.empty(DICE_BLOCK) if view.codes.size else NO_CODES


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
    """Result of the first pass over a segment; row 0 of the powers is the background."""

    totals: Any
    """k, and Σp inside and outside."""
    powers: Any
    """Σp², Σp³, Σp⁴ per side, of the blocks without larger values."""
    provisional: Any
    """The same of the blocks with larger values; accurate only for a side with much mass."""
    kinds: Any
    """Content of each block, a sum of `BACKGROUND`, `FOREGROUND` and `LARGE`; 0 without larger values."""


class _Refined(NamedTuple):
    """Result of the second pass for the blocks with larger values; row 0 is the background."""

    powers: Any
    """Σp², … Σp⁶ per side, without the values that are kept apart."""
    outside: Any
    inside: Any
    """Values kept apart, per side."""
    apart_count: Any
    """How many values are kept apart, per side."""
    scratch: Any
    background: Any
    foreground: Any
    large: Any
    """For each pixel of a block 1 if it is kept apart outside, 2 inside, 0 if it is not."""


def _pixels(view: MapView, segment: slice) -> _Pixels:
    mask = None if view.mask is None else view.mask.reshape(-1)[segment]
    limits = _LIMITS[type(view.threshold)]
    return _Pixels(view.values.reshape(-1)[segment], view.codes, mask, view.threshold, *limits)


_LIMITS = {
    compared: (compared(1), compared(QUARTIC_TOP), compared(APART_ABOVE))
    for compared in (np.float32, np.float64)
}
"""The last fields of `_Pixels`, by the type in which values are compared."""


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
def _sum_block(block: Any, mask: Any, threshold: Any, unit: Any) -> Any:
    """Return Σp outside and inside, the number of pixels inside, and the largest bit pattern of one block.

    Adding zero removes the sign of a negative zero, whose pattern is not that of 0. Adding a negative zero
    changes nothing and is optimised away.
    """
    prefer_wide_vectors()
    none = unit - unit
    outside = inside = count = 0.0
    top = unsigned_pattern(none)
    for i in range(block.size):
        stored = block[i] + none
        x = np.float64(stored)
        hit = _inside(stored, mask, i, threshold)
        inside += x if hit else -0.0
        outside += -0.0 if hit else x
        count += 1.0 if hit else 0.0
        bits = unsigned_pattern(stored)
        top = bits if bits > top else top
    return outside, inside, count, top


@reduction
def _quartic_both_sides(part: Any, mask: Any, threshold: float, powers: Any) -> None:
    """Add Σp², Σp³, Σp⁴ outside and inside to ``powers``.

    Without Σp, which `_sum_block` returns: a loop that sums more is vectorised differently and adds in
    another order, so the SDC computed with the IDC would differ in its last digit from the SDC alone.
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
def _count_segment(values: Any, codes: Any, mask: Any, threshold: Any, unit: Any, scratch: Any) -> Any:
    """Return k, Σp inside and outside, and the largest value of the mask; k is -1 at a bad value.

    The pattern of a bad value is above that of 1. ``scratch`` has room for one block of integer codes.
    """
    one = np.uint64(unsigned_pattern(unit))
    k = s = lam = 0.0
    mask_top = 0
    for first in range(0, values.size, DICE_BLOCK):
        last = min(first + DICE_BLOCK, values.size)
        block = as_floats(values[first:last], codes, scratch)
        block_mask = _mask_block(mask, first, last)
        mask_top |= _all_bits(block_mask)
        outside, inside, count, top = _sum_block(block, block_mask, threshold, unit)
        if top > one:
            return -1.0, 0.0, 0.0, mask_top
        k += count
        s += inside
        lam += outside
    return k, s, lam, mask_top


@entry
def _count_rows(
    values: Any, codes: Any, mask: Any, threshold: Any, unit: Any, scratch: Any, counts: Any
) -> None:
    """Store k, s and λ of each row; k is -1 if a value or a mask is bad."""
    for row in range(values.shape[0]):
        row_mask = _mask_row(mask, row)
        k, s, lam, mask_top = _count_segment(values[row], codes, row_mask, threshold, unit, scratch)
        counts[row, 0] = k if mask_top <= 1 else -1.0
        counts[row, 1] = s
        counts[row, 2] = lam


@plain
def _mask_row(mask: Any, row: int) -> Any:
    if mask is None:
        return None
    return mask[row]


@reduction
def _all_bits(mask: Any) -> int:
    """Return all bits that are set in a mask: 0 or 1, unless it is not binary."""
    if mask is None:
        return 0
    prefer_wide_vectors()
    bits = 0
    for i in range(mask.size):
        bits |= mask[i]
    return bits


@entry
def _sum_segment(pixels: Any, scratch: Any, sums: Any) -> bool:
    """Add a segment to ``sums``; return False at a bad value. The counts equal those of `_count_segment`."""
    one = np.uint64(unsigned_pattern(pixels.unit))
    for first in range(0, pixels.values.size, DICE_BLOCK):
        last = min(first + DICE_BLOCK, pixels.values.size)
        block = as_floats(pixels.values[first:last], pixels.codes, scratch)
        mask = _mask_block(pixels.mask, first, last)
        outside, inside, count, top = _sum_block(block, mask, pixels.threshold, pixels.unit)
        if top > one:
            return False
        sums.totals[0] += count
        sums.totals[1] += inside
        sums.totals[2] += outside
        kind = _kind_of(top, count, block.size, pixels)
        sums.kinds[first // DICE_BLOCK] = kind
        if top > 0:
            powers = sums.provisional if kind else sums.powers
            _add_quartic(block, mask, pixels.threshold, count, powers)
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
def _split(block: Any, mask: Any, threshold: Any, most: Any, refined: Any) -> None:
    """Copy the values of each side that are at most ``most`` of that side; the others become 0."""
    prefer_wide_vectors()
    background, foreground = refined.background, refined.foreground
    most_outside, most_inside = most
    for i in range(block.size):
        x = np.float64(block[i])
        hit = _inside(block[i], mask, i, threshold)
        kept = x if x <= (most_inside if hit else most_outside) else 0.0
        foreground[i] = kept if hit else 0.0
        background[i] = 0.0 if hit else kept


@elementwise
def _find_large(block: Any, mask: Any, threshold: Any, most: Any, large: Any) -> None:
    prefer_wide_vectors()
    most_outside, most_inside = most
    for i in range(block.size):
        x = np.float64(block[i])
        hit = _inside(block[i], mask, i, threshold)
        inside = np.uint8(2) if x > most_inside else np.uint8(0)
        outside = np.uint8(1) if x > most_outside else np.uint8(0)
        large[i] = inside if hit else outside


@plain
def _set_apart(block: Any, refined: Any) -> None:
    """Keep the large values of each side; always store, so that no branch is mispredicted."""
    large, outside, inside = refined.large, refined.outside, refined.inside
    number_outside, number_inside = refined.apart_count[0], refined.apart_count[1]
    for i in range(block.size):
        x = np.float64(block[i])
        outside[number_outside] = x
        inside[number_inside] = x
        number_outside += large[i] & 1
        number_inside += large[i] >> 1
    refined.apart_count[0], refined.apart_count[1] = number_outside, number_inside


@plain
def _refine_block(block: Any, mask: Any, pixels: Any, kind: int, rates: Any, refined: Any) -> None:
    """Sum six powers of one block, for each side whose rate is too low for four."""
    side = 1 if kind & FOREGROUND else 0
    two_sided = (kind & BACKGROUND) and (kind & FOREGROUND)
    if not two_sided and not (kind & LARGE and rates[side] < MASS_LIMIT):
        _sextic(block, refined.powers[side])
        return
    most = (
        APART_ABOVE if rates[0] < MASS_LIMIT else 1.0,
        APART_ABOVE if rates[1] < MASS_LIMIT else 1.0,
    )
    if kind & LARGE and min(rates[0], rates[1]) < MASS_LIMIT:
        _find_large(block, mask, pixels.threshold, most, refined.large)
        _set_apart(block, refined)
    _split(block, mask, pixels.threshold, most, refined)
    if kind & BACKGROUND and rates[0] < QUARTIC_MASS:
        _sextic(refined.background[: block.size], refined.powers[0])
    if kind & FOREGROUND and rates[1] < QUARTIC_MASS:
        _sextic(refined.foreground[: block.size], refined.powers[1])


@entry
def _refine_segment(pixels: Any, kinds: Any, rates: Any, refined: Any) -> None:
    """Sum the blocks with larger values again, for sides on which the integrand falls at ``rates``.

    A side with a rate that is enough for four powers is skipped, and so are blocks that have none of the
    other side.
    """
    wanted = BACKGROUND if rates[0] < QUARTIC_MASS else 0
    wanted += FOREGROUND if rates[1] < QUARTIC_MASS else 0
    for first in range(0, pixels.values.size, DICE_BLOCK):
        kind = kinds[first // DICE_BLOCK]
        if kind & wanted:
            last = min(first + DICE_BLOCK, pixels.values.size)
            block = as_floats(pixels.values[first:last], pixels.codes, refined.scratch)
            _refine_block(block, _mask_block(pixels.mask, first, last), pixels, kind, rates, refined)


@entry
def _sum_small_map(
    values: Any, codes: Any, mask: Any, threshold: Any, unit: Any, tiny: Any, small: Any, scratch: Any
) -> Any:
    """Count a map of one segment, then sum the powers of each block that the mass of the map leaves relevant.

    Returns
    -------
    k (-1 at a bad value), s, λ, Σp² … Σp⁶ per side, and the values kept apart, outside and inside
    """
    pixels = _Pixels(values, codes, mask, threshold, unit, tiny, small)
    size = values.size
    blocks = np.empty((-(-size // DICE_BLOCK), 2))  # number of pixels inside, largest value
    powers = np.zeros((2, ORDER - 1))
    one = np.uint64(unsigned_pattern(unit))
    k = s = lam = 0.0
    for first in range(0, size, DICE_BLOCK):
        last = min(first + DICE_BLOCK, size)
        block = as_floats(values[first:last], codes, scratch)
        outside, inside, count, top = _sum_block(block, _mask_block(mask, first, last), threshold, unit)
        if top > one:
            return -1.0, 0.0, 0.0, powers, np.empty(0), np.empty(0)
        k += count
        s += inside
        lam += outside
        blocks[first // DICE_BLOCK, 0] = count
        blocks[first // DICE_BLOCK, 1] = _value_of(top, one)
    mass = s + lam
    apart_outside, apart_inside = np.empty(_room_apart(size, lam, mass)), np.empty(_room_apart(size, s, mass))
    apart_count = np.zeros(2, np.int64)
    room = min(size, DICE_BLOCK) if mass < QUARTIC_MASS else 0
    buffers = np.empty(room), np.empty(room), np.empty(room, np.uint8)
    refined = _Refined(powers, apart_outside, apart_inside, apart_count, scratch, *buffers)
    for first in range(0, size, DICE_BLOCK):
        count, top = blocks[first // DICE_BLOCK]
        ratio = top / max(mass, 1.0)
        if ratio > UP_TO_ONE:
            last = min(first + DICE_BLOCK, size)
            block = as_floats(values[first:last], codes, scratch)
            block_mask = _mask_block(mask, first, last)
            if ratio <= UP_TO_FOUR:
                _add_quartic(block, block_mask, threshold, count, powers)
            else:
                kind = LARGE if top > APART_ABOVE else 0
                kind += BACKGROUND if count < block.size else 0
                kind += FOREGROUND if count > 0.0 else 0
                _refine_block(block, block_mask, pixels, kind, (mass, mass), refined)
    return k, s, lam, powers, apart_outside[: apart_count[0]], apart_inside[: apart_count[1]]


_ONE_AS_SINGLE = np.uint64(0x3F800000)
_WIDER_BY, _BIAS_DIFFERENCE = np.uint64(29), np.uint64(896 << 52)


@plain
def _value_of(pattern: Any, one: Any) -> float:
    """Return the double of a bit pattern of which that of 1 is ``one``; at least the value if it is tiny."""
    bits = np.uint64(pattern)
    if one == _ONE_AS_SINGLE:
        bits = (bits << _WIDER_BY) + _BIAS_DIFFERENCE
    return float(float_from_pattern(bits))


@plain
def _room_apart(size: int, mass: float, rate: float) -> int:
    """Return room for all values above `APART_ABOVE`, and the slot that is written but not kept."""
    return (min(size, int(mass / APART_ABOVE)) if rate < MASS_LIMIT else 0) + 1


# Sums for the generating functions in `segtrust.kernels.integrals`, over pixels kept one by one

_FACTORS = 16
"""Number of factors that are multiplied before a logarithm is taken. Each is at least exp(-300)·p or 1 - p,
so the product underflows only if pixels are certain; the sum is then minus infinity, as it should be."""

_NEAR_ONE = 0.5


def generating_sums(values: Any, t: Any, u: Any) -> tuple[Any, Any]:
    """Return Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values`` for each ``t``; ``u`` is 1 - t."""
    logarithms, slopes = np.zeros(t.size), np.zeros(t.size)
    _add_all_generating_sums(values, t, u, logarithms, slopes)
    return logarithms, slopes


@entry
def _add_all_generating_sums(values: Any, t: Any, u: Any, logarithms: Any, slopes: Any) -> None:
    for node in range(t.size):
        add_generating_sums(values, t[node], u[node], logarithms, slopes, node)


@plain
def add_generating_sums(values: Any, t: float, u: float, logarithms: Any, slopes: Any, node: int) -> None:
    """Add Σ log(1 - p + pt) and Σ p/(1 - p + pt) to the sums of one node; ``u`` is 1 - t.

    A factor close to 1 is rounded by 1e-16, and equal pixels are rounded alike, which would show over
    thousands of them. So where a product is close to 1 its distance from 1 is computed instead.
    """
    for first in range(0, values.size, _FACTORS):
        some = values[first : first + _FACTORS]
        product, slope = _product_and_slope(some, t)
        if product < _NEAR_ONE:
            logarithms[node] += np.log(product)
        else:
            logarithms[node] += np.log1p(-_distance_from_one(some, u))
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
