"""Intervals of a mean that hold for any number of cases."""

from __future__ import annotations

import math

__all__ = ["chernoff_interval", "clopper_pearson", "coin_divergence"]


def clopper_pearson(hits: int, n: int, level: float) -> tuple[float, float]:
    """Exact interval of a share of yes and no.

    Examples
    --------
    >>> [round(end, 4) for end in clopper_pearson(0, 59, 0.95)]
    [0.0, 0.0606]
    """
    from scipy.stats import beta

    tail = (1.0 - level) / 2.0
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1.0 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def chernoff_interval(mean: float, n: int, level: float) -> tuple[float, float]:
    """Interval of the expectation of ``n`` independent numbers in [0, 1], of whatever distribution.

    Its ends are the coins whose relative entropy to the mean is log(2 / (1 - level)) / n (Hoeffding 1963).

    Examples
    --------
    >>> [round(end, 3) for end in chernoff_interval(0.6, 100, 0.95)]
    [0.464, 0.726]
    """
    allowed = math.log(2.0 / (1.0 - level)) / n
    return _lower_end(mean, allowed), 1.0 - _lower_end(1.0 - mean, allowed)


def _lower_end(mean: float, allowed: float) -> float:
    from scipy.optimize import brentq

    tiny = 1e-300
    if mean <= tiny or coin_divergence(mean, tiny) <= allowed:
        return 0.0
    return float(brentq(lambda end: coin_divergence(mean, end) - allowed, tiny, mean))


def coin_divergence(mean: float, other: float) -> float:
    """Relative entropy of two coins, in nats.

    Examples
    --------
    >>> coin_divergence(0.5, 0.5)
    0.0
    """
    hits = mean * math.log(mean / other) if mean > 0.0 else 0.0
    misses = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - other)) if mean < 1.0 else 0.0
    return hits + misses
