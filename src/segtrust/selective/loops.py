"""The passes over cases: their order, the curve, and the areas under it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain, reduction

__all__ = ["Points", "integrate", "order_of", "trace"]

STRETCH = 1024
"""Cases summed before they are added to the total, so that rounding grows with n / 1024 and not with n."""

PATIENCE = 8
"""Swaps a case that `_mend` may take before sorting in the ordinary way is quicker."""

_SIGN = np.uint64(1 << 63)


class Points(NamedTuple):
    """Room for the points of a curve: one for coverage 0 and at most one a case."""

    coverages: Any
    risks: Any
    thresholds: Any


def order_of(confidence: Any) -> Any:
    """Give the cases from the surest to the least sure; equal ones in the order in which they came.

    Numbers are sorted several times faster than their places. So the place of each case is put into the last
    bits of a number that is ordered like its confidence, these numbers are sorted, and cases that differ
    only in the bits that gave way are put in order afterwards. Cases that come in order, as tables often do,
    are recognised at once.

    Examples
    --------
    >>> order_of(np.array([0.5, 0.9, 0.5, 0.7])).tolist()
    [1, 3, 0, 2]
    """
    direction = _direction(confidence)
    if direction != 0:
        n = confidence.size
        return np.arange(n) if direction < 0 else np.arange(n - 1, -1, -1)
    keys = np.empty(confidence.size, np.uint64)
    low = np.uint64((1 << int(confidence.size - 1).bit_length()) - 1)
    _pack(confidence.view(np.uint64), low, keys)
    keys.sort()
    if _mend(keys, low, confidence):
        return keys.view(np.int64)
    return np.argsort(-confidence, kind="stable")


@entry
def _direction(confidence: Any) -> int:
    """Give -1 if no case is surer than the one before, 1 if each is, else 0, as soon as that is known."""
    falls = rises = True
    for at in range(1, confidence.size):
        falls = falls and confidence[at] <= confidence[at - 1]
        rises = rises and confidence[at] > confidence[at - 1]
        if not (falls or rises):
            return 0
    return -1 if falls else 1


@elementwise
def _patterns(bits: Any, low: Any, keys: Any) -> None:
    for case in range(bits.size):
        own = bits[case]
        falling = own if own > _SIGN else ~(own | _SIGN)  # a negative zero counts as zero
        keys[case] = (falling & ~low) | np.uint64(case)


@entry
def _pack(bits: Any, low: Any, keys: Any) -> None:
    """Turn patterns of floats into integers that fall where the floats rise, with the place at the end."""
    _patterns(bits, low, keys)


@entry
def _mend(keys: Any, low: Any, confidence: Any) -> bool:
    """Leave only the places, in falling order of the whole confidence; ``False`` if that takes too long."""
    left = PATIENCE * keys.size
    before = ~keys[0]
    for at in range(keys.size):
        top = keys[at] & ~low
        keys[at] &= low
        if top == before:
            left -= _sink(keys, at, confidence)
            if left < 0:
                return False
        before = top
    return True


@plain
def _sink(keys: Any, at: int, confidence: Any) -> int:
    """Move a case before those that are less sure; give the number of steps."""
    case = keys[at]
    place = at
    while place > 0 and confidence[keys[place - 1]] < confidence[case]:
        keys[place] = keys[place - 1]
        place -= 1
    keys[place] = case
    return at - place


@plain
def _weight(weights: Any, case: Any) -> Any:
    """Weight of a case; the branch is decided when the loop is compiled."""
    if weights is None:
        return 1.0
    return weights[case]


@plain
def _keep(points: Points, found: int, mass: float, losses: float, value: float) -> int:
    """Write the point after ``found`` others unless nothing was accepted since; give the new number."""
    if mass == points.coverages[found]:
        return found
    points.coverages[found + 1] = mass
    points.risks[found + 1] = losses
    points.thresholds[found + 1] = value
    return found + 1


@plain
def _accumulate(order: Any, confidence: Any, loss: Any, weights: Any, points: Points) -> int:
    """Write weight and weighted loss accepted so far at the end of each tie block; count the blocks."""
    found = 0
    mass = losses = mass_before = losses_before = 0.0
    value = confidence[order[0]]
    for place in range(order.size):
        case = order[place]
        if confidence[case] != value:
            found = _keep(points, found, mass_before + mass, losses_before + losses, value)
            value = confidence[case]
        weight = _weight(weights, case)
        mass += weight
        losses += weight * loss[case]
        if place % STRETCH == STRETCH - 1:
            mass_before += mass
            losses_before += losses
            mass = losses = 0.0
    return _keep(points, found, mass_before + mass, losses_before + losses, value)


@elementwise
def _divide(points: Points, found: int) -> None:
    """Turn masses and sums into coverages and risks; by true divisions, so that the last coverage is 1."""
    total = points.coverages[found]
    for at in range(1, found + 1):
        points.risks[at] = points.risks[at] / points.coverages[at]
        points.coverages[at] = points.coverages[at] / total


@entry
def trace(order: Any, confidence: Any, loss: Any, weights: Any, points: Points) -> int:
    """Write the curve of cases in falling ``order`` of confidence; give the number of points."""
    points.coverages[0] = 0.0
    found = _accumulate(order, confidence, loss, weights, points)
    _divide(points, found)
    points.risks[0] = points.risks[1]
    points.thresholds[0] = np.inf
    return found + 1


@reduction
def _areas(coverages: Any, risks: Any) -> tuple[float, float, float]:
    twice = steps = generalised = 0.0
    for at in range(1, coverages.size):
        width = coverages[at] - coverages[at - 1]
        twice += width * (risks[at] + risks[at - 1])
        steps += width * risks[at]
        generalised += width * (coverages[at] * risks[at] + coverages[at - 1] * risks[at - 1])
    return twice, steps, generalised


@entry
def integrate(coverages: Any, risks: Any) -> tuple[float, float, float]:
    """Areas under a curve: the trapezoid, the steps up to each point, the trapezoid of coverage × risk."""
    twice, steps, generalised = _areas(coverages, risks)
    return 0.5 * twice, steps, 0.5 * generalised
