"""Compiled loops of the betting test with adaptive stakes, on one list of losses and at every rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust._compile import entry, plain

_PRIOR_WEIGHT = 0.1
"""Weight of the spread assumed at first, as a share of the cases: that of losses of 0 and 1."""

_SMALLEST_VARIANCE = 1e-12


@plain
def _peak_of_capital(losses: Any, n: int, target: float, goal: float) -> float:
    """Return the logarithm of the largest capital while betting on the first ``n`` losses, in their order.

    The stake for a case depends only on the losses before it. For losses with standard deviation σ, of which
    m are left, and a distance d between the logarithm of the capital and the goal, √(2 d / m) / σ is about
    the stake that is most likely to reach the goal in time. So it becomes larger when the bet falls behind.
    No stake is above 1 / (1 - target), with which a loss of 1 takes all.
    """
    boldest = 1.0 / (1.0 - target)
    weight = max(1.0, _PRIOR_WEIGHT * n)
    mean, squares = target, weight * target * (1.0 - target)
    capital = peak = 0.0
    for seen in range(n):
        variance = max(squares / weight, _SMALLEST_VARIANCE)
        stake = min(math.sqrt(2.0 * (goal - capital) / ((n - seen) * variance)), boldest)
        loss = losses[seen]
        factor = 1.0 - stake * (loss - target)
        if factor <= 0.0:
            break
        capital += math.log(factor)
        peak = max(peak, capital)
        if capital >= goal:
            break
        weight += 1.0
        difference = loss - mean
        mean += difference / weight
        squares += difference * (loss - mean)
    return peak


@entry
def peak_of_capital(losses: Any, target: float, goal: float) -> float:
    """Return the logarithm of the largest capital that adaptive stakes reach on losses in random order.

    Parameters
    ----------
    losses
        Losses in [0, 1], in an order that was drawn at random, independently of them.
    target
        Limit on the mean loss, in (0, 1).
    goal
        Logarithm of the capital to aim for, log(1/δ); the bet ends when it is reached.
    """
    return _peak_of_capital(losses, losses.size, target, goal)


@entry
def peaks_by_rank(losses: Any, rank: Any, first: int, target: float, goal: float) -> Any:
    """Return the logarithm of the largest capital on the cases of rank below k, for k = first, first + 1, ….

    The walk ends with the first k at which the goal is missed, or with all cases.

    Parameters
    ----------
    losses
        Losses in [0, 1], in random order.
    rank
        Rank of each case by confidence, in the same order; 0 is the most confident.
    first
        Smallest number of cases.
    target, goal
        Limit on the mean loss, and logarithm of the capital to aim for.
    """
    n = losses.size
    peaks = np.empty(n - first + 1)
    accepted = np.empty(n)
    for k in range(first, n + 1):
        filled = 0
        for at in range(n):
            if rank[at] < k:
                accepted[filled] = losses[at]
                filled += 1
        peaks[k - first] = _peak_of_capital(accepted, k, target, goal)
        if peaks[k - first] < goal:
            return peaks[: k - first + 1]
    return peaks
