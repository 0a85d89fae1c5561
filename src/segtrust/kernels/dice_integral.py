"""The integral of `segtrust.kernels.integrals.expected_tversky`, compiled, for sums on the host.

The rule is the same; two things make it cheap enough for small images:

* Fewer nodes. The integrand is a mixture of decaying exponentials, so it falls with y: the sum ends where
  the rest cannot matter. Towards y = 0 two terms of the integrand are summed in closed form instead of one.
* Fewer pixels one by one. The power series of a side, taken to 16 terms, is exact at every node if the side
  holds a mass of 64 or more, because its generating function has vanished where the series has not
  converged: the first term left out is below 64·u¹⁷·exp(-64u)/17 < 1e-16. With less mass it is exact up to
  u = 1/10, and pixels are visited one by one only beyond, where few nodes are left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust._compile import entry, plain, reduction
from segtrust.kernels.dice_sums import add_generating_sums
from segtrust.kernels.intrinsics import prefer_wide_vectors
from segtrust.kernels.statistics import DiceStatistics

_STEP = 0.25
_GROWTH = math.exp(_STEP)
_FIRST, _FIRST_IF_WIDE = -47, -73
"""First node in steps of log y, in units of 1 / (mean of the denominator). The second term of the closed form
is good for denominators whose spread is limited, that is for weights up to 1."""
_LARGEST_Y = 300.0
_NEGLIGIBLE = 1e-18
_TERMS = 16
_TINY, _TERMS_IF_TINY = 1e-3, 6
"""Up to this u, six terms are exact."""
_SERIES_MASS, _SERIES_UP_TO = 64.0, 0.1
_SMALL = 1.0 / 16.0
"""Pixels up to this value are summed by their powers at every node."""


def expected_tversky_on_host(statistics: DiceStatistics, alpha: float, beta: float) -> float:
    """Return the exact expectation of the Tversky index of a mask that is not empty."""
    outside, inside = statistics.apart
    counts = statistics.counts
    expected: float = _integrate(
        (float(counts.k), float(counts.s), float(counts.lam)), statistics.powers, outside, inside, alpha, beta
    )
    return expected


@entry
def _integrate(counts: Any, powers: Any, outside: Any, inside: Any, alpha: float, beta: float) -> float:
    k, s, lam = counts
    floor = alpha * (k - 1.0) + 1.0
    scale = floor + (1.0 - alpha) * s + beta * lam
    series, small_series = np.zeros((2, 2, _TERMS)), np.zeros((2, 2, _TERMS))
    large_outside = _fill_series(outside, lam, powers[0], series[0], small_series[0])
    large_inside = _fill_series(inside, s, powers[1], series[1], small_series[1])

    # Σ of the nodes before the first: the integrand is s - second·y there.
    y = math.exp((_FIRST if beta <= 1.0 else _FIRST_IF_WIDE) * _STEP) / scale
    expected = s * (_STEP * y / (_GROWTH - 1.0))
    if beta <= 1.0:
        second = alpha * k * s + (1.0 - alpha) * (s * s + s - series[1, 0, 1]) + beta * s * lam
        expected -= second * (_STEP * y * y / (_GROWTH * _GROWTH - 1.0))

    negligible = _NEGLIGIBLE * s * floor / scale
    sums = np.empty((2, 1))  # log G and G'/G at one node
    while y <= _LARGEST_Y:
        y_inside, y_outside = (1.0 - alpha) * y, min(beta * y, _LARGEST_Y)
        u_inside = -math.expm1(-y_inside)
        _generating_function(y_inside, u_inside, s, series[1], small_series[1], large_inside, sums)
        exponent, slope = sums[0, 0] - floor * y, sums[1, 0]
        if lam > 0.0:
            u_outside = u_inside if y_inside == y_outside else -math.expm1(-y_outside)
            _generating_function(y_outside, u_outside, lam, series[0], small_series[0], large_outside, sums)
            exponent += sums[0, 0]
        integrand = math.exp(exponent) * slope
        expected += _STEP * y * integrand
        if integrand < negligible:
            break
        y *= _GROWTH
    return float(min(expected, 1.0))  # rounding


@plain
def _fill_series(apart: Any, mass: float, rest: Any, series: Any, small_series: Any) -> Any:
    """Fill Σp, Σp², … of one side, of all pixels and of those up to `_SMALL`; return the others.

    The second row of each series is divided by 1, 2, …, as in the series of the logarithm. ``rest`` holds
    Σp² … Σp⁶ over the pixels that are not in ``apart``. A side with enough mass needs only the first series.
    """
    large = apart
    if mass < _SERIES_MASS:
        small, large = np.empty(apart.size), np.empty(apart.size)
        number_of_small = number_of_large = 0
        for i in range(apart.size):
            x = apart[i]
            small[number_of_small] = x
            large[number_of_large] = x
            number_of_small += 1 if x <= _SMALL else 0
            number_of_large += 0 if x <= _SMALL else 1
        large = large[:number_of_large]
        _add_power_sums(small[:number_of_small], small_series[0])
    _add_power_sums(large, series[0])
    for order in range(_TERMS):
        series[0, order] += small_series[0, order]
    others = mass - series[0, 0]
    for order in range(rest.size + 1):
        power_sum = others if order == 0 else rest[order - 1]
        series[0, order] += power_sum
        small_series[0, order] += power_sum
    for order in range(_TERMS):
        series[1, order] = series[0, order] / (order + 1)
        small_series[1, order] = small_series[0, order] / (order + 1)
    return large


@reduction
def _add_power_sums(values: Any, sums: Any) -> None:
    """Add Σp … Σp¹⁶, four powers at a time."""
    prefer_wide_vectors()
    for group in range(0, _TERMS, 4):
        first = second = third = fourth = 0.0
        for i in range(values.size):
            x = values[i]
            square = x * x
            fourth_power = square * square
            factor = 1.0
            if group >= 4:
                factor = fourth_power
            if group >= 8:
                factor *= fourth_power
            if group >= 12:
                factor *= fourth_power
            first += factor * x
            second += factor * square
            third += factor * (square * x)
            fourth += factor * fourth_power
        sums[group] += first
        sums[group + 1] += second
        sums[group + 2] += third
        sums[group + 3] += fourth


@plain
def _generating_function(
    y: float, u: float, mass: float, series: Any, small_series: Any, large: Any, sums: Any
) -> None:
    """Store log G and G'/G of one side of the mask at t = exp(-y) = 1 - u."""
    by_series = u <= _SERIES_UP_TO or mass >= _SERIES_MASS or large.size == 0
    powers = series if by_series else small_series
    logarithm = slope = 0.0
    for order in range(_TERMS if u > _TINY else _TERMS_IF_TINY, 0, -1):  # from the highest power
        slope = slope * u + powers[0, order - 1]
        logarithm = logarithm * u + powers[1, order - 1]
    sums[0, 0], sums[1, 0] = -logarithm * u, slope
    if not by_series:
        add_generating_sums(large, math.exp(-y), u, sums[0], sums[1], 0)
