"""Exact expectations of overlap scores when pixels are independent, in linear time.

With W1 and W0 the numbers of true foreground pixels inside and outside a mask of k pixels, every score here
has the form W1 / (α(k - W1) + βW0 + W1), the Tversky index. Because 1/c = ∫ exp(-cy) dy over y > 0,

    E = ∫ exp(-y(α(k - 1) + 1)) G1'(exp(-(1 - α)y)) G0(exp(-βy)) dy

where G1 and G0 are the generating functions of W1 and W0: products over pixels, whose logarithms are sums
over pixels and are known from `segtrust.kernels.statistics.DiceStatistics`. Dice is α = β = 1/2, IoU is
α = β = 1, F-beta is α = 1/(1 + beta²), β = 1 - α.

The integrand is a mixture of exponentials exp(-cy) with positive weights. For each of them the trapezoidal
rule in log y with step h is wrong by about exp(-π²/h) relative, whatever c is: with h = 1/4 that is 1e-16,
and one set of nodes serves every image. The tail towards y = 0, where the integrand is flat, is summed in
closed form.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from segtrust.kernels.statistics import DiceStatistics, host_number

__all__ = [
    "expected_dice",
    "expected_dice_of_growing",
    "expected_tversky",
    "probability_of_empty",
    "probability_of_foreground",
]

_STEP = 0.25
_FIRST, _LAST = -73, 33
"""Steps from y = 1e-8 to y = 4e3, in units of 1 / (mean of the denominator)."""
_MIDDLING, _MIDDLING_ORDER = 1.0 / 16.0, 12
"""Values set apart up to here need no factor of their own: 16⁻¹² < 4e-15. There may be ten times as many of
them as of larger ones, and the rounding of so many factors close to 1 would show where they are equal."""
_LARGEST_Y, _LARGEST_Y_OF_SINGLES = 300.0, 64.0
"""Beyond it even the slowest exponential, exp(-y), is 0; up to it Σ p/(1 - p + p exp(-y)) over the pixels set
apart is finite where some are certain, in doubles and in singles."""

_LEVELS_AT_ONCE = 1024
"""Masks of a growing one whose integrands are held at a time."""


class Nodes(NamedTuple):
    """Nodes and weights of the rule for one image, and the weight of the flat tail."""

    y: Any
    weight: Any
    tail: float


def _nodes(scale: float, stretch: float, largest_y: float) -> Nodes:
    """Place the nodes; ``stretch``, above 1, is how much farther it is from the mean to the slowest term."""
    more = math.ceil(math.log(max(stretch, 1.0)) / _STEP)
    y = np.exp(np.arange(_FIRST, _LAST + 1 + more) * _STEP) / scale
    weight = np.where(y <= largest_y, _STEP * y, 0.0)
    tail = _STEP * float(y[0]) / np.expm1(_STEP)
    return Nodes(np.minimum(y, largest_y), weight, tail)


def _series(powers: Any, u: Any) -> tuple[Any, Any]:
    """Give Σ log(1 - up) and Σ p/(1 - up) over the pixels known by their power sums."""
    logarithm, slope, u_power = 0.0, 0.0, 1.0
    for order, power_sum in enumerate(powers, start=1):
        slope = slope + power_sum * u_power
        u_power = u_power * u
        logarithm = logarithm - power_sum * u_power / order
    return logarithm, slope


def _side(statistics: DiceStatistics, side: int, y: Any) -> tuple[Any, Any]:
    """Give log G and G'/G of one side of the mask at t = exp(-y)."""
    xp = statistics.namespace
    u = -xp.expm1(-y)
    logarithm, slope = _series(statistics.powers_of_rest(side), u)
    apart = statistics.apart[side]
    if apart.shape[0] == 0:
        return logarithm, slope
    middling = apart <= _MIDDLING
    more_logarithm, more_slope = _series(_power_sums(apart[middling]), u)
    exact_logarithm, exact_slope = statistics.generating_sums(apart[~middling], xp.exp(-y), u)
    return logarithm + more_logarithm + exact_logarithm, slope + more_slope + exact_slope


def _power_sums(values: Any) -> list[Any]:
    """Give Σp, Σp², … for values up to `_MIDDLING`."""
    power, sums = values, [values.sum()]
    for _ in range(1, _MIDDLING_ORDER):
        power = power * values
        sums.append(power.sum())
    return sums


def expected_tversky(statistics: DiceStatistics, alpha: float, beta: float) -> Any:
    """Exact expectation of the Tversky index; 0 for an empty mask.

    Parameters
    ----------
    statistics
        Sums of one map, see `segtrust.kernels.statistics`.
    alpha, beta
        Weights of a false positive and of a false negative, at least 0; alpha at most 1.
    """
    if statistics.k == 0:
        return statistics.s * 0.0
    k, s, lam = float(statistics.k), host_number(statistics.s), host_number(statistics.lam)
    floor = alpha * (k - 1.0) + 1.0
    largest_y = _LARGEST_Y if statistics.has_doubles else _LARGEST_Y_OF_SINGLES
    rule = _nodes(floor + (1.0 - alpha) * s + beta * lam, beta, largest_y)
    y, weight = statistics.constants(rule.y), statistics.constants(rule.weight)
    log_inside, slope = _side(statistics, 1, (1.0 - alpha) * y)
    # Beyond the last y what is certain outside the mask has no weight left, and exp(-βy) would be 0.
    log_outside, _ = _side(statistics, 0, statistics.constants(np.minimum(beta * rule.y, largest_y)))
    xp = statistics.namespace
    integrand = xp.exp(log_inside + log_outside - floor * y) * slope
    expected = xp.sum(weight * integrand) + rule.tail * statistics.s
    return min(expected, 1.0) if xp is np else expected  # rounding; on a device a limit would cut gradients


def expected_dice(statistics: DiceStatistics) -> Any:
    """Exact expectation of the Dice coefficient: the ideal Dice confidence of the marginals."""
    return expected_tversky(statistics, 0.5, 0.5)


def expected_dice_of_growing(statistics: DiceStatistics, values: Any, counts: Any) -> Any:
    """Exact expected Dice of a mask that is not empty, and of those it grows to, one level after the other.

    What a larger mask changes is k and which pixels are hits; the generating function of all pixels stays.
    So one set of nodes serves all of them, and a level adds one term to the sum of slopes at each node.

    Parameters
    ----------
    statistics
        Sums of the map with the first mask.
    values, counts
        Probability of the pixels that are added, level by level, and how many pixels have it.

    Returns
    -------
    ndarray of len(values) + 1
    """
    sizes = statistics.k + np.concatenate([[0], np.cumsum(counts)])
    mass = host_number(statistics.s) + host_number(statistics.lam)
    first, last = 0.5 * (sizes[0] + 1.0 + mass), 0.5 * (sizes[-1] + 1.0 + mass)
    rule = _nodes(last, last / first, _LARGEST_Y)
    y = 0.5 * rule.y
    log_inside, slope = _side(statistics, 1, y)
    log_whole = log_inside + _side(statistics, 0, y)[0]
    inside, found = host_number(statistics.s), []
    for at in range(0, sizes.size, _LEVELS_AT_ONCE):
        some = slice(max(at - 1, 0), at + _LEVELS_AT_ONCE - 1)  # the first mask has no level of its own
        slopes = _growing_slopes(slope, values[some], counts[some], y)[0 if at == 0 else 1 :]
        masses = inside + np.concatenate([[0.0], np.cumsum(values[some] * counts[some])])[-len(slopes) :]
        decay = np.exp(log_whole - (sizes[at : at + len(slopes), None] + 1.0) * y)
        found.append((decay * slopes) @ rule.weight + rule.tail * masses)
        slope, inside = slopes[-1], masses[-1]
    return np.minimum(np.concatenate(found), 1.0)


def _growing_slopes(slope: Any, values: Any, counts: Any, y: Any) -> Any:
    """Give Σ p/(1 - p + pt) over the mask, a row for what it is and one after each level that is added."""
    p = values[:, None]
    terms = counts[:, None] * p / ((1.0 - p) + p * np.exp(-y))
    return np.cumsum(np.concatenate([slope[None, :], terms]), axis=0)


def _is_never_empty(statistics: DiceStatistics) -> bool:
    """Tell whether an empty truth has no chance: some pixel is certain, or the mass leaves it exp(-700)."""
    certain = (bool(statistics.namespace.any(values >= 1.0)) for values in statistics.apart)
    return not statistics.keeps_all_apart or any(certain)


def _log_probability_of_empty(statistics: DiceStatistics) -> Any:
    xp = statistics.namespace
    logarithm = 0.0
    for side in (0, 1):
        rest, _ = _series(statistics.powers_of_rest(side), 1.0)
        logarithm = logarithm + rest + xp.sum(xp.log1p(-statistics.apart[side]))
    return logarithm


def probability_of_empty(statistics: DiceStatistics) -> Any:
    """Probability Π(1 - p) that no pixel is foreground."""
    if _is_never_empty(statistics):
        return statistics.s * 0.0
    return statistics.namespace.exp(_log_probability_of_empty(statistics))


def probability_of_foreground(statistics: DiceStatistics) -> Any:
    """Probability 1 - Π(1 - p) that some pixel is foreground, right where it is tiny."""
    if _is_never_empty(statistics):
        return statistics.s * 0.0 + 1.0
    return -statistics.namespace.expm1(_log_probability_of_empty(statistics))
