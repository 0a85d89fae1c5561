"""Exact expectations of overlap scores for independent pixels, in linear time.

Let W1 and W0 be the numbers of true foreground pixels inside and outside a mask of k pixels. All scores here
have the form W1 / (α(k - W1) + βW0 + W1), the Tversky index: Dice is α = β = 1/2, IoU is α = β = 1, and
F-beta is α = 1/(1 + beta²), β = 1 - α. Because 1/c = ∫ exp(-cy) dy over y > 0, the expectation is

    E = ∫ exp(-y(α(k - 1) + 1)) G1'(exp(-(1 - α)y)) G0(exp(-βy)) dy

where G1 and G0 are the generating functions of W1 and W0. They are products over pixels, so their logarithms
are sums over pixels, which follow from `segtrust.kernels.statistics.DiceStatistics`: power sums for most
pixels, and the large probabilities of a side with little mass one by one (`segtrust.kernels.dice_sums`).

The integrand is a mixture of exponentials exp(-cy) with positive weights. For each of them the trapezoidal
rule in log y with step h has a relative error of about exp(-π²/h), whatever c is: with h = 1/4 this is 1e-16,
and one set of nodes serves every image. The tail towards y = 0, where the integrand is flat, is summed in
closed form.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from segtrust.kernels.statistics import DiceStatistics, host_number

_STEP = 0.25
_FIRST, _LAST = -73, 33
"""Steps from y = 1e-8 to y = 4e3, in units of 1 / (mean of the denominator)."""
_SERIES_UP_TO, _SERIES_ORDER = 1.0 / 16.0, 12
"""Probabilities kept one by one go into power sums up to this value: 16⁻¹² < 4e-15. There may be ten times as
many of them as of larger ones, and the rounding of so many factors close to 1 would show if they are
equal."""
_LARGEST_Y, _LARGEST_Y_SINGLE = 300.0, 64.0
"""Beyond this y even the slowest exponential, exp(-y), is 0; up to it Σ p/(1 - p + p exp(-y)) over the pixels
kept one by one is finite even if some are certain, in double and in single precision."""

_SIZES_AT_ONCE = 1024
"""Number of growing masks whose integrands are held at a time."""


class Nodes(NamedTuple):
    """Nodes and weights of the rule for one image, and the weight of the flat tail."""

    y: Any
    weight: Any
    tail: float


def _nodes(scale: float, stretch: float, largest_y: float) -> Nodes:
    """Compute the nodes; a ``stretch`` above 1 is the ratio of the mean rate of decay to the slowest."""
    more = math.ceil(math.log(max(stretch, 1.0)) / _STEP)
    y = np.exp(np.arange(_FIRST, _LAST + 1 + more) * _STEP) / scale
    weight = np.where(y <= largest_y, _STEP * y, 0.0)
    tail = _STEP * float(y[0]) / np.expm1(_STEP)
    return Nodes(np.minimum(y, largest_y), weight, tail)


def expected_tversky(statistics: DiceStatistics, alpha: float, beta: float) -> Any:
    """Return the exact expectation of the Tversky index; 0 for an empty mask.

    Parameters
    ----------
    statistics
        Sums of one map and its mask.
    alpha, beta
        Weights of a false positive and of a false negative, at least 0; alpha at most 1.
    """
    if statistics.k == 0:
        return statistics.s * 0.0
    if statistics.namespace is np:
        return _compiled().expected_tversky_on_host(statistics, alpha, beta)
    return integrate_tversky(statistics, alpha, beta)


@cache
def _compiled() -> Any:
    """Return the module of the compiled integral, which loads Numba and takes a while the first time."""
    from segtrust.kernels import dice_integral

    return dice_integral


def integrate_tversky(statistics: DiceStatistics, alpha: float, beta: float) -> Any:
    """Return what `expected_tversky` does, in the array library of the statistics, for a mask with pixels."""
    k, s, lam = float(statistics.k), host_number(statistics.s), host_number(statistics.lam)
    floor = alpha * (k - 1.0) + 1.0
    largest_y = _LARGEST_Y if statistics.has_doubles else _LARGEST_Y_SINGLE
    rule = _nodes(floor + (1.0 - alpha) * s + beta * lam, beta, largest_y)
    y, weight = statistics.constants(rule.y), statistics.constants(rule.weight)
    log_inside, slope = _generating_function(statistics, 1, (1.0 - alpha) * y)
    # Beyond the largest y, certain pixels outside the mask have no weight left, and exp(-βy) would be 0.
    y_outside = statistics.constants(np.minimum(beta * rule.y, largest_y))
    log_outside, _ = _generating_function(statistics, 0, y_outside)
    xp = statistics.namespace
    integrand = xp.exp(log_inside + log_outside - floor * y) * slope
    expected = xp.sum(weight * integrand) + rule.tail * statistics.s
    return min(expected, 1.0) if xp is np else expected  # rounding; on a device min would cut off gradients


def expected_dice(statistics: DiceStatistics) -> Any:
    """Return the exact expectation of the Dice coefficient: the ideal Dice confidence of the marginals."""
    return expected_tversky(statistics, 0.5, 0.5)


def expected_dice_of_growing(statistics: DiceStatistics, values: Any, counts: Any) -> Any:
    """Return the exact expected Dice of a mask and of the masks it grows to, level by level.

    A larger mask has another k, and other pixels are hits; the generating function of all pixels stays the
    same. So one set of nodes serves all masks, and a level adds one term to the sum of slopes at each node.

    Parameters
    ----------
    statistics
        Sums of the map with the first mask, which is not empty.
    values, counts
        Probability of the pixels that each level adds, and their number.

    Returns
    -------
    ndarray of len(values) + 1
    """
    sizes = statistics.k + np.concatenate([[0], np.cumsum(counts)])
    mass = host_number(statistics.s) + host_number(statistics.lam)
    first, last = 0.5 * (sizes[0] + 1.0 + mass), 0.5 * (sizes[-1] + 1.0 + mass)
    rule = _nodes(last, last / first, _LARGEST_Y)
    y = 0.5 * rule.y
    log_inside, slope = _generating_function(statistics, 1, y)
    log_all = log_inside + _generating_function(statistics, 0, y)[0]
    mass_inside, expected = host_number(statistics.s), []
    for start in range(0, sizes.size, _SIZES_AT_ONCE):
        # The first mask has no level of its own.
        levels = slice(max(start - 1, 0), start + _SIZES_AT_ONCE - 1)
        p = values[levels, None]
        terms = counts[levels, None] * p / ((1.0 - p) + p * np.exp(-y))
        slopes = np.cumsum(np.concatenate([slope[None, :], terms]), axis=0)[0 if start == 0 else 1 :]
        gains = np.concatenate([[0.0], np.cumsum(values[levels] * counts[levels])])
        masses = mass_inside + gains[-len(slopes) :]
        decay = np.exp(log_all - (sizes[start : start + len(slopes), None] + 1.0) * y)
        expected.append((decay * slopes) @ rule.weight + rule.tail * masses)
        slope, mass_inside = slopes[-1], masses[-1]
    return np.minimum(np.concatenate(expected), 1.0)


def probability_of_empty(statistics: DiceStatistics) -> Any:
    """Return the probability Π(1 - p) that no pixel is foreground."""
    logarithm = _log_probability_of_empty(statistics)
    return statistics.s * 0.0 if logarithm is None else statistics.namespace.exp(logarithm)


def probability_of_foreground(statistics: DiceStatistics) -> Any:
    """Return the probability 1 - Π(1 - p) that some pixel is foreground, accurate even if it is tiny."""
    logarithm = _log_probability_of_empty(statistics)
    return statistics.s * 0.0 + 1.0 if logarithm is None else -statistics.namespace.expm1(logarithm)


def _log_probability_of_empty(statistics: DiceStatistics) -> Any:
    """Return Σ log(1 - p), or ``None`` if some pixel is certain or the mass leaves less than exp(-700)."""
    xp = statistics.namespace
    if not statistics.keeps_all_apart or any(bool(xp.any(values >= 1.0)) for values in statistics.apart):
        return None
    logarithm = 0.0
    for side in (0, 1):
        rest, _ = _sums_by_series(statistics.powers_of_rest(side), 1.0)
        logarithm = logarithm + rest + xp.sum(xp.log1p(-statistics.apart[side]))
    return logarithm


def _generating_function(statistics: DiceStatistics, side: int, y: Any) -> tuple[Any, Any]:
    """Return log G and G'/G of one side of the mask at t = exp(-y)."""
    xp = statistics.namespace
    u = -xp.expm1(-y)
    logarithm, slope = _sums_by_series(statistics.powers_of_rest(side), u)
    apart = statistics.apart[side]
    if apart.shape[0] == 0:
        return logarithm, slope
    is_small = apart <= _SERIES_UP_TO
    power = small = apart[is_small]
    powers = [power.sum()]
    for _ in range(1, _SERIES_ORDER):
        power = power * small
        powers.append(power.sum())
    small_logarithm, small_slope = _sums_by_series(powers, u)
    large_logarithm, large_slope = statistics.generating_sums(apart[~is_small], xp.exp(-y), u)
    return logarithm + small_logarithm + large_logarithm, slope + small_slope + large_slope


def _sums_by_series(powers: Any, u: Any) -> tuple[Any, Any]:
    """Return Σ log(1 - up) and Σ p/(1 - up) over pixels of which the power sums Σp, Σp², … are known."""
    logarithm, slope, u_power = 0.0, 0.0, 1.0
    for order, power_sum in enumerate(powers, start=1):
        slope = slope + power_sum * u_power
        u_power = u_power * u
        logarithm = logarithm - power_sum * u_power / order
    return logarithm, slope
