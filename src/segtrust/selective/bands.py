"""How far a whole risk-coverage curve would move with other cases: an interval at each coverage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.selective.curve import ROUNDING
from segtrust.selective.resample import Bootstrap
from segtrust.selective.sample import Sample
from segtrust.selective.vectors import check_seed, confidences_of

__all__ = ["RiskBand", "risk_band"]

_SMALLEST = 1e-12
"""Coverage that is asked for in place of 0, where no case is accepted and there is no risk."""


class RiskBand(NamedTuple):
    """Ends of the interval of the selective risk at each coverage that was asked for."""

    low: Any
    high: Any


def risk_band(
    confidence: Any,
    loss: Any,
    coverages: Any,
    *,
    patients: Any = None,
    bootstrap: Bootstrap | None = None,
) -> RiskBand:
    """Give percentile bootstrap intervals of the selective risk, one for each coverage by itself.

    Parameters
    ----------
    confidence, loss
        As for `risk_coverage_curve`.
    coverages
        In [0, 1]; the risk of a resample is that of its smallest coverage that is at least this.
    patients
        Patient of each case; whole patients are then drawn.
    bootstrap
        Resamples, level and seed; the method is always that of percentiles.

    Examples
    --------
    >>> band = risk_band([0.9, 0.8, 0.3, 0.1], [0.0, 0.1, 0.5, 0.9], [0.5, 1.0])
    >>> bool((band.low <= [0.05, 0.375]).all() and (band.high >= [0.05, 0.375]).all())
    True
    """
    how = bootstrap or Bootstrap(resamples=500)
    confidence = confidences_of(confidence, fewest=2)
    sample = Sample.of(loss, confidence.size, patients)
    asked = np.maximum(np.asarray(coverages, np.float64), _SMALLEST) * (1.0 - ROUNDING)
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0.0, True))
    unit, losses = sample.unit[order], sample.loss[order]
    draw = check_seed(how.seed)
    risks = np.empty((how.resamples, asked.size))
    for row in risks:
        drawn = np.bincount(draw.integers(0, sample.units, sample.units), minlength=sample.units)
        row[:] = _risks(drawn[unit], losses, ends, asked)
    tails = (1.0 - how.level) / 2.0
    low, high = np.quantile(risks, [tails, 1.0 - tails], axis=0)
    return RiskBand(low, high)


def _risks(times: Any, losses: Any, ends: Any, asked: Any) -> Any:
    """Give the risks of a resample, in which each case, from the surest on, counts so many times."""
    accepted = np.cumsum(times)[ends]
    at = np.searchsorted(accepted / accepted[-1], asked)
    return np.cumsum(times * losses)[ends][at] / accepted[at]
