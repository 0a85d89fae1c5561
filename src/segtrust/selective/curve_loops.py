"""Compiled loops of the risk-coverage curve: the order of the cases, the points, the areas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import elementwise, entry, plain, reduction

CASES_PER_SUM = 1024
"""Cases in a partial sum; the rounding error then grows with n / 1024 instead of n."""

MOST_SWAPS = 8
"""Swaps per case beyond which an ordinary sort is faster than `_repair_order`."""

_SIGN = np.uint64(1 << 63)


class Points(NamedTuple):
    """Memory for the points of a curve: one for coverage 0 and at most one per case."""

    coverages: Any
    risks: Any
    thresholds: Any


def descending_order(confidence: Any) -> Any:
    """Return the indices of the cases from the most to the least confident; ties keep their order.

    Sorting numbers is several times faster than sorting indices. So the index of each case replaces the last
    bits of a number that is ordered like its confidence, these numbers are sorted, and cases that differ only
    in the replaced bits are put in order afterwards. Sorted input, which is common in tables, is recognised
    first.

    Examples
    --------
    >>> descending_order(np.array([0.5, 0.9, 0.5, 0.7])).tolist()
    [1, 3, 0, 2]
    """
    n = confidence.size
    direction = _direction(confidence)
    if direction != 0:
        return np.arange(n) if direction < 0 else np.arange(n - 1, -1, -1)
    keys = np.empty(n, np.uint64)
    index_bits = np.uint64((1 << int(n - 1).bit_length()) - 1)
    _pack(confidence.view(np.uint64), index_bits, keys)
    keys.sort()
    if _repair_order(keys, index_bits, confidence):
        return keys.view(np.int64)
    return np.argsort(-confidence, kind="stable")


@entry
def _direction(confidence: Any) -> int:
    """Return -1 if the confidences never rise, 1 if each is above the one before, else 0."""
    falls = rises = True
    for at in range(1, confidence.size):
        falls = falls and confidence[at] <= confidence[at - 1]
        rises = rises and confidence[at] > confidence[at - 1]
        if not (falls or rises):
            return 0
    return -1 if falls else 1


@elementwise
def _write_keys(bits: Any, index_bits: Any, keys: Any) -> None:
    for case in range(bits.size):
        own = bits[case]
        falling = own if own > _SIGN else ~(own | _SIGN)  # a negative zero counts as zero
        keys[case] = (falling & ~index_bits) | np.uint64(case)


@entry
def _pack(bits: Any, index_bits: Any, keys: Any) -> None:
    """Turn the bits of floats into integers that fall where the floats rise, and end in the case's index."""
    _write_keys(bits, index_bits, keys)


@entry
def _repair_order(keys: Any, index_bits: Any, confidence: Any) -> bool:
    """Reduce sorted keys to indices, in falling order of confidence; False if that takes too many swaps."""
    swaps_left = MOST_SWAPS * keys.size
    before = ~keys[0]
    for at in range(keys.size):
        top = keys[at] & ~index_bits
        keys[at] &= index_bits
        if top == before:
            swaps_left -= _insert(keys, at, confidence)
            if swaps_left < 0:
                return False
        before = top
    return True


@plain
def _insert(keys: Any, at: int, confidence: Any) -> int:
    """Move a case in front of those that are less confident; return the number of swaps."""
    case = keys[at]
    place = at
    while place > 0 and confidence[keys[place - 1]] < confidence[case]:
        keys[place] = keys[place - 1]
        place -= 1
    keys[place] = case
    return at - place


@plain
def _weight(weights: Any, case: Any) -> Any:
    """Return the weight of a case; the compiler decides the branch."""
    if weights is None:
        return 1.0
    return weights[case]


@plain
def _write_point(points: Points, last: int, mass: float, losses: float, threshold: float) -> int:
    """Write the point after the last one unless nothing was accepted since; return the index of the last."""
    if mass == points.coverages[last]:
        return last
    points.coverages[last + 1] = mass
    points.risks[last + 1] = losses
    points.thresholds[last + 1] = threshold
    return last + 1


@plain
def _accumulate(order: Any, confidence: Any, loss: Any, weights: Any, points: Points) -> int:
    """Write the accepted weight and weighted loss at the end of each tie block; return the last index."""
    last = 0
    mass = losses = mass_before = losses_before = 0.0
    threshold = confidence[order[0]]
    for place in range(order.size):
        case = order[place]
        if confidence[case] != threshold:
            last = _write_point(points, last, mass_before + mass, losses_before + losses, threshold)
            threshold = confidence[case]
        weight = _weight(weights, case)
        mass += weight
        losses += weight * loss[case]
        if place % CASES_PER_SUM == CASES_PER_SUM - 1:
            mass_before += mass
            losses_before += losses
            mass = losses = 0.0
    return _write_point(points, last, mass_before + mass, losses_before + losses, threshold)


@elementwise
def _divide(points: Points, last: int) -> None:
    """Turn weights and sums into coverages and risks; by true divisions, so that the last coverage is 1."""
    total = points.coverages[last]
    for at in range(1, last + 1):
        points.risks[at] = points.risks[at] / points.coverages[at]
        points.coverages[at] = points.coverages[at] / total


@entry
def trace(order: Any, confidence: Any, loss: Any, weights: Any, points: Points) -> int:
    """Write the curve of cases in falling ``order`` of confidence; return the number of points."""
    points.coverages[0] = 0.0
    last = _accumulate(order, confidence, loss, weights, points)
    _divide(points, last)
    points.risks[0] = points.risks[1]
    points.thresholds[0] = np.inf
    return last + 1


@reduction
def _sum_areas(coverages: Any, risks: Any) -> tuple[float, float, float]:
    twice = steps = generalised = 0.0
    for at in range(1, coverages.size):
        width = coverages[at] - coverages[at - 1]
        twice += width * (risks[at] + risks[at - 1])
        steps += width * risks[at]
        generalised += width * (coverages[at] * risks[at] + coverages[at - 1] * risks[at - 1])
    return twice, steps, generalised


@entry
def integrate(coverages: Any, risks: Any) -> tuple[float, float, float]:
    """Return the trapezoid under the risks, the steps up to each point, the trapezoid of coverage × risk."""
    twice, steps, generalised = _sum_areas(coverages, risks)
    return 0.5 * twice, steps, 0.5 * generalised
