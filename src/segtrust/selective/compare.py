"""Whether one confidence ranks the errors better than another, on the same cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.selective.resample import Bootstrap, bootstrap_of, interval_of
from segtrust.selective.sample import Sample
from segtrust.selective.statistic import Statistic, get_statistic
from segtrust.selective.vectors import vector

__all__ = ["Comparison", "compare_estimators"]

CHUNK = 1000
"""Sign vectors held at a time."""


@dataclass(frozen=True)
class Comparison:
    """Difference between two estimators.

    Attributes
    ----------
    statistic
        Name of the number that is compared.
    a, b
        Its value for each; ``difference`` is a − b. Lower areas are better, higher coverages are.
    low, high
        Interval of the difference; paired, both estimators see the same resamples.
    p_value
        Two-sided, for "both have the same value in the population". A test on means: where one estimator
        errs rarely but grossly, few cases may hold none of these errors, and then it is small too often (17 %
        of the time below 0.05 with 30 cases, 8 % with 300). For a coverage at a risk it has little
        power: a difference that areas show in 37 % of draws of 30 cases shows in 12 %, and with 100 cases in
        63 % instead of 96 %.
    units
        Cases, or patients.
    bootstrap
        How the interval was drawn.
    """

    statistic: str
    a: float
    b: float
    low: float
    high: float
    p_value: float
    units: int
    bootstrap: Bootstrap

    @property
    def difference(self) -> float:
        """Value of a less that of b."""
        return self.a - self.b


def compare_estimators(
    confidence_a: Any,
    confidence_b: Any,
    loss: Any,
    *,
    statistic: str | Statistic = "aurc",
    patients: Any = None,
    bootstrap: Bootstrap | None = None,
) -> Comparison:
    """Compare two confidences of the same cases, with a paired interval and a paired test.

    The interval is that of the difference over common resamples. The p-value is the larger of two. The first
    flips signs: swapping the two estimators in one case changes the sign of what the case contributes to the
    difference, its jackknife pseudo-value, and where the estimators are interchangeable either sign is as
    likely. The second shifts the resampled differences so that they centre on none. No confidence is ever put
    on the other's scale. A coverage at a risk moves in steps, for which the jackknife fails; there the second
    stands alone.

    Parameters
    ----------
    confidence_a, confidence_b
        Of each case, each on its own scale.
    loss
        Of each case.
    statistic, patients
        As for `bootstrap_interval`; patients are then drawn, left out and flipped as wholes.
    bootstrap
        As for `bootstrap_interval`, but percentiles are suited: for a difference the corrections of BCa cost
        more coverage than they bring.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> loss = rng.random(100)
    >>> found = compare_estimators(0.3 * rng.random(100) - loss, rng.random(100), loss)
    >>> bool(found.high < 0 and found.p_value < 0.001)
    True
    """
    statistic = get_statistic(statistic)
    bootstrap = bootstrap_of(bootstrap, "percentile")
    a = vector(confidence_a, "confidence_a", fewest=2)
    b = vector(confidence_b, "confidence_b", n=a.size)
    sample = Sample.of(loss, a.size, patients)
    value_a, value_b = (sample.value(statistic, each) for each in (a, b))
    resamples = sample.resamples(statistic, [(1.0, a), (-1.0, b)])
    values = resamples.drawn(bootstrap.states())
    ends = interval_of(values, value_a - value_b, resamples, bootstrap)
    p_value = shifted(values, value_a - value_b)
    if statistic.smooth:
        p_value = max(p_value, sign_flip(resamples, value_a - value_b, bootstrap))
    less = sample.value(statistic, -sample.loss) if statistic.beyond_oracle else 0.0
    return Comparison(statistic.name, value_a - less, value_b - less, *ends, p_value, sample.units, bootstrap)


def sign_flip(resamples: Any, difference: float, bootstrap: Bootstrap) -> float:
    """Share of sign vectors under which the pseudo-values add up to as much as they do."""
    groups = bootstrap.groups(resamples.units)
    without = resamples.left_out(groups)
    pseudo = without.size * difference - (without.size - 1) * without
    observed = abs(pseudo.sum()) * (1.0 - 1e-12)
    rng = np.random.default_rng((bootstrap.seed, 2))
    hits = 0
    for first in range(0, bootstrap.resamples, CHUNK):
        flips = rng.integers(0, 2, (min(CHUNK, bootstrap.resamples - first), pseudo.size), dtype=np.int8)
        hits += int(np.count_nonzero(np.abs(2.0 * (flips @ pseudo) - pseudo.sum()) >= observed))
    return (1 + hits) / (1 + bootstrap.resamples)


def shifted(values: Any, difference: float) -> float:
    """Share of resamples that lie as far from the difference as the difference does from 0."""
    hits = int(np.count_nonzero(np.abs(values - difference) >= abs(difference) * (1.0 - 1e-12)))
    return (1 + hits) / (1 + len(values))
