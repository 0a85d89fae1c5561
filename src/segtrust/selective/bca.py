"""Bias-corrected and accelerated intervals (Efron 1987): at which quantiles of the resamples they end."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["acceleration", "bca_levels", "bias"]

EQUAL = 1e-12
"""Relative difference up to which a resample counts as equal to the estimate."""


def bias(values: Any, estimate: float) -> float:
    """Median bias of the resamples on the scale of a standard normal; those equal to the estimate count half.

    Examples
    --------
    >>> bias(np.array([1.0, 2.0, 3.0]), 2.0)
    0.0
    """
    from scipy.special import ndtri

    room = EQUAL * max(abs(estimate), float(np.abs(values).max()))
    below = np.count_nonzero(values < estimate - room)
    level = below + 0.5 * np.count_nonzero(np.abs(values - estimate) <= room)
    return float(ndtri(np.clip(level, 0.5, values.size - 0.5) / values.size))


def acceleration(without: Any) -> float:
    """Change of the standard error with the value, from the values without each unit; 0 if those are equal.

    Examples
    --------
    >>> acceleration(np.array([1.0, 2.0, 3.0]))
    0.0
    """
    influence = without.mean() - without
    influence = influence / (np.abs(influence).max() or 1.0)  # the cube of a large one would be infinite
    spread = float(np.sum(influence**2)) ** 1.5
    return float(np.sum(influence**3)) / (6.0 * spread) if spread > 0.0 else 0.0


def bca_levels(values: Any, estimate: float, without: Any, tails: Any) -> Any:
    """Move the levels ``tails`` by bias and acceleration.

    Parameters
    ----------
    values
        Of the resamples.
    without
        Values without each unit.
    tails
        Levels of a plain interval, such as 0.025 and 0.975.
    """
    from scipy.special import ndtr, ndtri

    shift, growth = bias(values, estimate), acceleration(without)
    moved = shift + ndtri(tails)
    shrink = 1.0 - growth * moved
    ends = np.where(moved > 0.0, np.inf, -np.inf)  # where the correction has left the range it is made for
    return ndtr(np.where(shrink > 0.0, shift + moved / np.where(shrink > 0.0, shrink, 1.0), ends))
