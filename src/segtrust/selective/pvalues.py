"""P-values of the null hypothesis "the mean loss is above the target", for losses in [0, 1].

Each p-value is valid for any distribution of the losses and any number of cases: if the mean loss is above
the target, the p-value is at most δ with probability at most δ. All of them treat the losses as independent
draws; these need not have the same distribution, as long as the mean of each is above the target. Only
`adaptive_betting_p_value` depends on the order of the losses, which has to be random. Which p-value is used
has to be fixed before the losses are seen.

`p_values_by_rank` computes the p-values of the k most confident cases for every k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from segtrust.errors import CaseValueError
from segtrust.selective.intervals import bernoulli_divergence

PValue = Callable[[Any, float, float], float]


def betting_p_value(losses: Any, target: float, delta: float) -> float:
    """Return one over the capital of gamblers who bet, case after case, that losses are below the target.

    A gambler with stake λ multiplies the capital by 1 - λ(loss - target) at each case. If the mean loss is
    above the target, the game is unfavourable: the expected capital, which starts at 1, stays at most 1, and
    so does that of several gamblers who share it. By Markov's inequality it reaches 1/δ with probability at
    most δ. A product does not depend on the order of its factors, so neither does the p-value.

    Stakes that adapt to the losses seen so far (`adaptive_betting_p_value`) are sharper, but need a random
    order, and take too long at every rank of very many cases.

    Parameters
    ----------
    losses
        Losses in [0, 1].
    target
        Limit on the mean loss, in (0, 1).
    delta
        Level for which the stakes are optimal; the p-value is valid at every level.

    Examples
    --------
    >>> round(betting_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0004
    """
    if losses.size == 0:
        return 1.0
    stakes = betting_stakes(losses.size, target, delta)
    factors = np.maximum(1.0 - np.multiply.outer(stakes, losses - target), 0.0)
    with np.errstate(divide="ignore"):  # a gambler who staked everything has nothing left after a loss of 1
        log_capitals = np.log(factors).sum(axis=-1)
    return math.exp(-max(float(np.logaddexp.reduce(log_capitals)) - math.log(stakes.size), 0.0))


@lru_cache(maxsize=4096)  # candidates that accept equally many cases, and simulations, need the same stakes
def betting_stakes(n: int, target: float, delta: float) -> Any:
    """Return the stakes of the three gamblers, from the most careful to the boldest.

    The best stake for n losses of standard deviation σ is about √(2 log(1/δ) / n) / σ. Losses whose mean is
    the target spread most if they are 0 or 1, which gives the most careful stake; the boldest stake loses
    everything at a loss of 1; the third is the geometric mean of the two.

    Examples
    --------
    >>> betting_stakes(150, 0.10, 0.05).round(2).tolist()
    [0.67, 0.86, 1.11]
    """
    boldest = 1.0 / (1.0 - target)
    careful = math.sqrt(2.0 * math.log(1.0 / delta) / (n * target * (1.0 - target)))
    stakes = np.geomspace(min(careful, boldest), boldest, 3)
    stakes.flags.writeable = False
    return stakes


def adaptive_betting_p_value(losses: Any, target: float, delta: float) -> float:
    """Return one over the largest capital of a gambler who adapts the stake to the losses seen so far.

    As in `betting_p_value`, the capital is multiplied by 1 - λ(loss - target) at each case. Here the stake λ
    is chosen before each case from the losses of the cases before it (Waudby-Smith and Ramdas 2024): larger
    if they scatter little, and if the capital is still far from 1/δ with few cases left. If each loss has an
    expectation above the target, whatever the losses before it were, no such choice makes the game
    favourable, and by Ville's inequality the capital *ever* reaches 1/δ with probability at most δ. So the
    largest capital counts, not the last.

    Parameters
    ----------
    losses
        Losses in [0, 1], in an order that was drawn at random, independently of losses and confidences.
        Sorted losses make the p-value invalid.
    target
        Limit on the mean loss, in (0, 1).
    delta
        Level that the stakes aim for; the p-value is valid at every level.

    Examples
    --------
    >>> round(adaptive_betting_p_value(np.full(30, 0.02), 0.10, 0.05), 3)  # too few cases
    0.078
    >>> adaptive_betting_p_value(np.full(100, 0.11), 0.10, 0.05)
    1.0
    """
    from segtrust.selective.betting_loops import peak_of_capital

    if losses.size == 0:
        return 1.0
    return math.exp(-peak_of_capital(np.ascontiguousarray(losses), target, math.log(1.0 / delta)))


@lru_cache(maxsize=65_536)  # SciPy spends more time on checks than on the computation
def _binomial_cdf(hits: int, n: int, share: float) -> float:
    from scipy.stats import binom

    return float(binom.cdf(hits, n, share))


def hoeffding_bentkus_p_value(losses: Any, target: float, delta: float) -> float:
    """Return the smaller of the p-values from the Hoeffding and Bentkus bounds; ``delta`` is not used.

    Both bound the same tail probability, so their minimum needs no correction.

    Examples
    --------
    >>> round(hoeffding_bentkus_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0053
    """
    if losses.size == 0:
        return 1.0
    mean = float(losses.mean())
    hoeffding = math.exp(-losses.size * bernoulli_divergence(min(mean, target), target))
    whole = math.ceil(round(losses.size * mean, 9))  # a rounding error in the mean must not cost a case
    return min(1.0, hoeffding, math.e * _binomial_cdf(whole, losses.size, target))


def binomial_p_value(losses: Any, target: float, delta: float) -> float:
    """Return the exact binomial p-value of losses that are all 0 or 1; ``delta`` is not used.

    For such losses it is the smallest valid p-value that grows with the number of failures.

    Examples
    --------
    >>> round(binomial_p_value(np.zeros(59), 0.05, 0.05), 4)
    0.0485
    """
    _check_zeros_and_ones(losses)
    return _binomial_cdf(int(losses.sum()), losses.size, target) if losses.size else 1.0


def _check_zeros_and_ones(losses: Any) -> None:
    if not np.isin(losses, (0.0, 1.0)).all():
        raise CaseValueError(
            "p_value: 'binomial' needs losses of 0 and 1 (a failure rate) and independent cases; for other "
            "losses, and for patients with several cases, choose 'betting'."
        )


P_VALUES: dict[str, PValue] = {
    "adaptive-betting": adaptive_betting_p_value,
    "betting": betting_p_value,
    "hoeffding-bentkus": hoeffding_bentkus_p_value,
    "binomial": binomial_p_value,
}
"""P-values by name."""

TEST_TITLES = {
    "adaptive-betting": "betting test with adaptive stakes",
    "betting": "betting test",
    "hoeffding-bentkus": "Hoeffding-Bentkus test",
    "binomial": "exact binomial test",
}
"""The tests in words, by the name of their p-value."""


def p_values_by_rank(
    losses: Any, name: str, target: float, delta: float, *, first: int, bet_order: Any
) -> Any:
    """Return the p-values of the k most confident cases, for k = first, first + 1, … up to all cases.

    They equal those of the p-value of this name on the first k losses, with two exceptions: the stakes of
    ``"betting"`` are those for the geometric mean of ``first`` and all cases, so that every rank follows from
    cumulative sums; and ``"adaptive-betting"`` ends with the first p-value above ``delta``.

    Parameters
    ----------
    losses
        Losses in [0, 1], those of the most confident cases first.
    name
        Name of the p-value: a key of `P_VALUES`.
    target
        Limit on the mean loss, in (0, 1).
    delta
        Level of each test.
    first
        Smallest number of cases, at least 0.
    bet_order
        A random order of the cases, in which adaptive stakes bet on them.
    """
    n = losses.size
    if name == "adaptive-betting":
        from segtrust.selective.betting_loops import peaks_by_rank

        peaks = peaks_by_rank(losses[bet_order], bet_order, first, target, math.log(1.0 / delta))
        return np.exp(-peaks)
    if name == "betting":
        stakes = betting_stakes(max(1, round(math.sqrt(max(first, 1) * n))), target, delta)
        factors = np.maximum(1.0 - np.multiply.outer(stakes, losses - target), 0.0)
        with np.errstate(divide="ignore"):
            log_capitals = np.cumsum(np.log(factors), axis=-1)
        log_capital = np.logaddexp.reduce(log_capitals, axis=0) - math.log(stakes.size)
        return np.append(1.0, np.exp(-np.maximum(log_capital, 0.0)))[first:]
    counts = np.arange(n + 1)
    sums = np.append(0.0, np.cumsum(losses))
    if name == "binomial":
        _check_zeros_and_ones(losses)
        from scipy.stats import binom

        return np.where(counts == 0, 1.0, binom.cdf(sums, counts, target))[first:]
    return np.array([P_VALUES[name](losses[:k], target, delta) for k in counts[first:]])
