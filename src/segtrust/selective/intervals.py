"""Confidence intervals of a proportion or a mean in [0, 1] that are valid for any number of cases."""

from __future__ import annotations

import math
from typing import Any


def clopper_pearson(hits: int, n: int, level: float) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval of a proportion, from ``hits`` of ``n`` cases.

    Examples
    --------
    >>> [round(end, 4) for end in clopper_pearson(0, 59, 0.95)]
    [0.0, 0.0606]
    """
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1.0 - tail)) if hits < n else 1.0
    return low, high


def chernoff_interval(mean: float, n: int, level: float) -> tuple[float, float]:
    """Return an interval of the expectation of ``n`` independent numbers in [0, 1] of any distribution.

    Its ends are the expectations at which the relative entropy of the mean is log(2 / (1 - level)) / n
    (Hoeffding 1963).

    Examples
    --------
    >>> [round(end, 3) for end in chernoff_interval(0.6, 100, 0.95)]
    [0.464, 0.726]
    """
    divergence = math.log(2.0 / (1.0 - level)) / n
    return _lower_end(mean, divergence), 1.0 - _lower_end(1.0 - mean, divergence)


def _lower_end(mean: float, divergence: float) -> float:
    from scipy.optimize import brentq

    tiny = 1e-300
    if mean <= tiny or bernoulli_divergence(mean, tiny) <= divergence:
        return 0.0
    root: Any = brentq(lambda end: bernoulli_divergence(mean, end) - divergence, tiny, mean)
    return float(root)


def bernoulli_divergence(mean: float, other: float) -> float:
    """Return the relative entropy (Kullback-Leibler divergence) of two Bernoulli distributions, in nats.

    Examples
    --------
    >>> bernoulli_divergence(0.5, 0.5)
    0.0
    """
    hits = mean * math.log(mean / other) if mean > 0.0 else 0.0
    misses = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - other)) if mean < 1.0 else 0.0
    return hits + misses
