"""How far a number would move with other cases: bootstrap intervals for areas and coverages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.curve import ROUNDING
from segtrust.selective.sample import Resamples, Sample
from segtrust.selective.statistic import Statistic, get_statistic
from segtrust.selective.vectors import check_fraction, check_seed, confidences_of

__all__ = ["Bootstrap", "BootstrapInterval", "bootstrap_interval", "bootstrap_of", "interval_of"]

MOST_GROUPS = 1000
"""Units beyond this number are left out in as many groups; the acceleration then errs by less than 0.001."""

SUITED = "suited"
METHODS = (SUITED, "bca", "percentile")


@dataclass(frozen=True)
class Bootstrap:
    """How resamples are drawn and turned into an interval.

    Attributes
    ----------
    resamples
        At least 100. Results are exact repetitions for the same number and seed, whatever the threads.
    level
        Probability that the interval is meant to hold the true value with.
    method
        ``"bca"``, corrected for bias and skewness (Efron 1987), ``"percentile"``, or ``"suited"``: the one
        that holds the true value more often for the statistic at hand.
    seed
        A whole number.

    Examples
    --------
    >>> Bootstrap(level=0.9).method
    'suited'
    """

    resamples: int = 10_000
    level: float = 0.95
    method: str = SUITED
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse options that mean nothing."""
        check_fraction(self.level, "level", open_ends=True)
        check_seed(self.seed)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ParameterError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r}.")
        if not isinstance(self.resamples, int | np.integer) or self.resamples < 100:
            raise ParameterError(
                f"resamples: expected a whole number of at least 100, got {self.resamples!r}."
            )

    def states(self) -> Any:
        """Where the generator of each resample starts."""
        return check_seed(self.seed).integers(0, 2**64, self.resamples, dtype=np.uint64)

    def groups(self, units: int) -> Any:
        """Give the group in which each unit is left out: its own, or one of a thousand dealt at random."""
        if units <= MOST_GROUPS:
            return np.arange(units)
        return np.random.default_rng((self.seed, 1)).permutation(units) % MOST_GROUPS


@dataclass(frozen=True)
class BootstrapInterval:
    """A number with its interval.

    Attributes
    ----------
    statistic
        Name of the number.
    estimate
        From the cases themselves.
    low, high
        Ends of the interval; equal to each other where all resamples gave the same.
    units
        Cases, or patients, that were resampled.
    bootstrap
        How.
    """

    statistic: str
    estimate: float
    low: float
    high: float
    units: int
    bootstrap: Bootstrap


def bootstrap_of(bootstrap: Bootstrap | None, method: str) -> Bootstrap:
    """Give the usual options where none are said, with this method unless another is; refuse what is none."""
    if not isinstance(bootstrap, Bootstrap | None):
        raise ParameterError(f"bootstrap: expected Bootstrap(...), got {bootstrap!r}.")
    found = bootstrap or Bootstrap()
    return replace(found, method=method) if found.method == SUITED else found


def bootstrap_interval(
    confidence: Any,
    loss: Any,
    statistic: str | Statistic = "aurc",
    *,
    patients: Any = None,
    weights: Any = None,
    bootstrap: Bootstrap | None = None,
) -> BootstrapInterval:
    """Give a number of the risk-coverage curve with its bootstrap interval.

    Parameters
    ----------
    confidence, loss, weights
        As for `risk_coverage_curve`.
    statistic
        ``"aurc"``, ``"augrc"``, ``"e_aurc"`` or ``coverage_at_risk(target)``. A coverage that is never
        reached counts as 0, in the estimate and in each resample. It moves in steps, for which the
        corrections of BCa are not made.
    patients
        Patient of each case. Whole patients are then drawn, with all their cases: slices or lesions of one
        patient resemble each other, and an interval that takes them for separate evidence is too short. With
        few patients it is too short all the same: see Notes.
    bootstrap
        Number of resamples, level, method and seed. Where not given: 10,000 resamples, 95 %, seed 0. Suited
        is BCa, but percentiles for a coverage at a risk.

    Returns
    -------
    BootstrapInterval
        Cases drawn twice are tied with themselves; the statistic is exact for ties in each resample.

    Notes
    -----
    With few units intervals are too short. Of 1000 simulated draws a 95 % interval of the AURC held the truth
    in 93 % with 30 cases and in 94 % with 300; with 20 patients in 87 to 92 %, with 60 in 92 to 94 %, and
    another simulation found 89 % with 60. For a coverage at a risk percentiles held in 95 % with 30 cases,
    where BCa held in 92 % (``tools/interval_coverage.py``).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> confidence = rng.random(50)
    >>> loss = (1 - confidence) * rng.random(50)
    >>> found = bootstrap_interval(confidence, loss)
    >>> found.low < found.estimate < found.high
    True
    """
    statistic = get_statistic(statistic)
    bootstrap = bootstrap_of(bootstrap, "bca" if statistic.smooth else "percentile")
    confidence = confidences_of(confidence, fewest=2)
    sample = Sample.of(loss, confidence.size, patients, weights)
    signed = [(1.0, confidence[sample.counts])]
    if statistic.beyond_oracle:
        signed.append((-1.0, -sample.loss))
    estimate = sum(sign * sample.value(statistic, each) for sign, each in signed)
    resamples = sample.resamples(statistic, signed)
    low, high = interval_of(resamples.drawn(bootstrap.states()), estimate, resamples, bootstrap)
    return BootstrapInterval(statistic.name, estimate, low, high, sample.units, bootstrap)


def interval_of(
    values: Any, estimate: float, resamples: Resamples, bootstrap: Bootstrap
) -> tuple[float, float]:
    """Give the ends of the interval around an estimate, from the values of its resamples."""
    from segtrust.selective.bca import bca_levels

    tails = np.array([1.0 - bootstrap.level, 1.0 + bootstrap.level]) / 2.0
    if np.ptp(values) <= ROUNDING * abs(estimate):
        return estimate, estimate
    if bootstrap.method == "bca":
        tails = bca_levels(values, estimate, resamples.left_out(bootstrap.groups(resamples.units)), tails)
    low, high = np.quantile(values, tails)
    return float(low), float(high)
