"""P-values for "the mean loss is above the target", valid for any losses in [0, 1] and any number of them.

Which one is used has to be fixed before the losses are seen. All of them treat the losses as independent
draws, and none depends on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from segtrust.errors import CaseValueError, ParameterError
from segtrust.selective.intervals import coin_divergence

__all__ = [
    "P_VALUES",
    "betting_p_value",
    "betting_stakes",
    "binomial_p_value",
    "get_p_value",
    "hoeffding_bentkus_p_value",
]

PValue = Callable[[Any, float, float], float]


def betting_p_value(losses: Any, target: float, delta: float) -> float:
    """One over the fortune of gamblers who bet on losses below the target, case after case.

    A gambler with stake λ multiplies the fortune by 1 - λ(loss - target) at each case. Where the mean loss is
    above the target the game is unfair: the expected fortune, which began as 1, is at most 1, and so is that
    of several gamblers with a share of it each; it reaches 1/δ with probability at most δ (Markov). A product
    knows no order, so neither does the answer.

    Waudby-Smith and Ramdas (2024) let the stake follow the losses seen so far. Stakes fixed beforehand need
    no random order and do as well here, because the useful ones lie close together (see `betting_stakes`).

    Parameters
    ----------
    losses
        In [0, 1].
    target
        In (0, 1).
    delta
        The level at which the stakes are best; the p-value is valid at every level.

    Examples
    --------
    >>> round(betting_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0004
    """
    if losses.size == 0:
        return 1.0
    stakes = betting_stakes(losses.size, target, delta)
    factors = np.maximum(1.0 - np.multiply.outer(stakes, losses - target), 0.0)
    with np.errstate(divide="ignore"):  # who staked everything on a loss of 1 is left with nothing
        fortunes = np.log(factors).sum(axis=-1)
    return math.exp(-max(float(np.logaddexp.reduce(fortunes)) - math.log(stakes.size), 0.0))


@lru_cache(maxsize=4096)  # candidates that accept equally many cases, and simulations, ask for the same
def betting_stakes(n: int, target: float, delta: float) -> Any:
    """Give the gamblers' stakes: three, from the most careful to the boldest.

    The best stake for n losses of standard deviation σ is about √(2 log(1/δ) / n) / σ. Losses with the
    target as their mean spread most where they are 0 or 1, which gives the most careful stake; the boldest
    loses everything at a loss of 1; between them stands their geometric mean.

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


@lru_cache(maxsize=65_536)
def _binomial_cdf(hits: int, n: int, share: float) -> float:
    """Chance of at most so many hits in ``n``; SciPy checks for longer than it computes, so it is kept."""
    from scipy.stats import binom

    return float(binom.cdf(hits, n, share))


def hoeffding_bentkus_p_value(losses: Any, target: float, delta: float) -> float:
    """Smaller of the p-values that the bounds of Hoeffding and of Bentkus give; ``delta`` is not used.

    Examples
    --------
    >>> round(hoeffding_bentkus_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0053
    """
    if losses.size == 0:
        return 1.0
    mean = float(losses.mean())
    hoeffding = math.exp(-losses.size * coin_divergence(min(mean, target), target))
    whole = math.ceil(round(losses.size * mean, 9))  # rounding of a mean must not cost a case
    return min(1.0, hoeffding, math.e * _binomial_cdf(whole, losses.size, target))


def binomial_p_value(losses: Any, target: float, delta: float) -> float:
    """Exact p-value of losses that are 0 or 1, the smallest there is; ``delta`` is not used.

    Examples
    --------
    >>> round(binomial_p_value(np.zeros(59), 0.05, 0.05), 4)
    0.0485
    """
    if not np.isin(losses, (0.0, 1.0)).all():
        raise CaseValueError(
            "p_value: 'binomial' is for losses of 0 and 1, as of a failure rate, and for single cases; for "
            "other losses, and for patients with several cases, choose 'betting'."
        )
    return _binomial_cdf(int(losses.sum()), losses.size, target) if losses.size else 1.0


P_VALUES: dict[str, PValue] = {
    "betting": betting_p_value,
    "hoeffding-bentkus": hoeffding_bentkus_p_value,
    "binomial": binomial_p_value,
}
"""P-values by name."""


def get_p_value(name: str) -> PValue:
    """Find a p-value; an unknown name lists the known ones."""
    if not isinstance(name, str) or name not in P_VALUES:
        raise ParameterError(f"p_value: expected one of {', '.join(P_VALUES)}, got {name!r}.")
    return P_VALUES[name]
