"""P-values for "the mean loss is above the target", valid for any losses in [0, 1] and any number of them.

Which one is used has to be fixed before the losses are seen. All of them treat the losses as independent
draws in the order in which they come; put cases that may be sorted into a random order first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from segtrust.errors import CaseValueError, ParameterError

__all__ = ["P_VALUES", "betting_p_value", "binomial_p_value", "get_p_value", "hoeffding_bentkus_p_value"]

PValue = Callable[[Any, float, float], float]


def betting_p_value(losses: Any, target: float, delta: float) -> float:
    """One over the largest fortune of a gambler who bets, case after case, on losses below the target.

    A fair game starts with 1 and reaches 1/δ with probability at most δ (Ville), and the game is unfair to
    the gambler while the mean is above the target. The stakes are the predictable plug-in of Waudby-Smith and
    Ramdas (2024): each depends on the losses before it only, through their variance.

    Parameters
    ----------
    losses
        In [0, 1], in an order that does not depend on their size.
    target
        In (0, 1).
    delta
        The level at which the stakes are best; the p-value is valid at every level.

    Examples
    --------
    >>> round(betting_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0005
    """
    if losses.size == 0:
        return 1.0
    seen = np.arange(1, losses.size + 1)
    means = (0.5 + np.cumsum(losses)) / (seen + 1)
    variances = (0.25 + np.cumsum((losses - means) ** 2)) / (seen + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    stakes = np.minimum(1.0, np.sqrt(2.0 * math.log(1.0 / delta) / (losses.size * before)))
    fortune = np.cumsum(np.log1p(-stakes * (losses - target)))
    return math.exp(-max(float(fortune.max()), 0.0))


def hoeffding_bentkus_p_value(losses: Any, target: float, delta: float) -> float:
    """Smaller of the p-values that the bounds of Hoeffding and of Bentkus give; ``delta`` is not used.

    Examples
    --------
    >>> round(hoeffding_bentkus_p_value(np.full(100, 0.02), 0.10, 0.05), 4)
    0.0053
    """
    from scipy.stats import binom

    if losses.size == 0:
        return 1.0
    mean = float(losses.mean())
    hoeffding = math.exp(-losses.size * _divergence(min(mean, target), target))
    whole = math.ceil(round(losses.size * mean, 9))  # rounding of a mean must not cost a case
    return min(1.0, hoeffding, math.e * float(binom.cdf(whole, losses.size, target)))


def _divergence(mean: float, target: float) -> float:
    """Relative entropy of two coins, in nats."""
    hits = mean * math.log(mean / target) if mean > 0.0 else 0.0
    misses = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - target)) if mean < 1.0 else 0.0
    return hits + misses


def binomial_p_value(losses: Any, target: float, delta: float) -> float:
    """Exact p-value of losses that are 0 or 1, the smallest there is; ``delta`` is not used.

    Examples
    --------
    >>> round(binomial_p_value(np.zeros(59), 0.05, 0.05), 4)
    0.0485
    """
    from scipy.stats import binom

    if not np.isin(losses, (0.0, 1.0)).all():
        raise CaseValueError(
            "p_value: 'binomial' is for losses of 0 and 1, as of a failure rate; for others choose 'betting'."
        )
    return float(binom.cdf(losses.sum(), losses.size, target)) if losses.size else 1.0


P_VALUES: dict[str, PValue] = {
    "betting": betting_p_value,
    "hoeffding-bentkus": hoeffding_bentkus_p_value,
    "binomial": binomial_p_value,
}
"""P-values by name."""


def get_p_value(name: str) -> PValue:
    """Find a p-value; an unknown name lists the known ones."""
    if name not in P_VALUES:
        raise ParameterError(f"p_value: expected one of {', '.join(P_VALUES)}, got {name!r}.")
    return P_VALUES[name]
