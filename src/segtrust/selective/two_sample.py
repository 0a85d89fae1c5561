"""Do new, unlabelled cases look like the calibration cases? A two-sample test on their confidences.

The p-value comes from permutations of who is new, so it is valid for any number of ties and any distribution:
under exchangeability it is at most α with probability at most α.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.vectors import check_count, check_fraction, check_seed, confidences_of, vector

__all__ = ["STATISTICS", "DriftTest", "drift_test"]

_BLOCK = 1 << 21
"""Labels that are permuted at a time: 16 MB."""


@dataclass(frozen=True)
class DriftTest:
    """What a two-sample test says about new cases.

    Attributes
    ----------
    statistic
        Name of the statistic.
    value
        Its value.
    p_value
        Chance of such a value, or a larger one, if nothing has changed; never below 1 / (permutations + 1).
    rank_shift
        P(new > reference) - P(new < reference) for a case of each, in [-1, 1]: -1 if all new cases are less
        confident than all reference cases, 0 if neither is.
    n_reference, n_new
        Cases compared.
    alpha
        Level of the alarm.

    Examples
    --------
    >>> found = drift_test([0.9, 0.8, 0.95, 0.85, 0.9], [0.5, 0.6, 0.4, 0.55, 0.3])
    >>> found.alarm, found.direction, found.rank_shift
    (True, 'less confident', -1.0)
    """

    statistic: str
    value: float
    p_value: float
    rank_shift: float
    n_reference: int
    n_new: int
    alpha: float

    @property
    def alarm(self) -> bool:
        """Whether the p-value is at most ``alpha``."""
        return self.p_value <= self.alpha

    @property
    def direction(self) -> str:
        """Whether the new cases are, on the whole, less or more confident than the reference."""
        if self.rank_shift == 0.0:
            return "as confident"
        return "less confident" if self.rank_shift < 0.0 else "more confident"

    def explain(self) -> str:
        """Say in one sentence what was found."""
        verdict = "differ" if self.alarm else "do not differ demonstrably"
        return (
            f"{self.n_new} new and {self.n_reference} reference cases {verdict} in confidence "
            f"({self.statistic} {self.value:.3g}, p = {self.p_value:.2g}; new cases are {self.direction}, "
            f"rank shift {self.rank_shift:+.2f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give all values, ready for JSON."""
        return {**asdict(self), "alarm": self.alarm, "direction": self.direction}


@dataclass(frozen=True, eq=False)
class _Pool:
    """Both samples, sorted; ``ends`` are the places at which a block of ties ends."""

    values: Any
    is_new: Any
    ends: Any

    @classmethod
    def of(cls, reference: Any, new: Any) -> _Pool:
        values = np.concatenate([reference, new])
        order = np.argsort(values, kind="stable")
        values = values[order]
        return cls(values, order >= reference.size, np.flatnonzero(np.append(np.diff(values) > 0.0, True)))

    @property
    def n_new(self) -> int:
        return int(np.count_nonzero(self.is_new))

    def gaps(self, labels: Any) -> Any:
        """Give N times #new minus n_new times #cases up to each block's end: whole numbers, 0 if alike."""
        up_to = np.cumsum(labels, axis=-1, dtype=np.int64)[..., self.ends]
        return up_to * self.values.size - self.n_new * (self.ends + 1)

    def permutations(self, count: int, rng: np.random.Generator) -> Iterator[Any]:
        """Shuffle who is new, in blocks of rows."""
        rows = max(1, _BLOCK // self.values.size)
        for first in range(0, count, rows):
            labels = np.tile(self.is_new, (min(rows, count - first), 1))
            yield rng.permuted(labels, axis=1, out=labels)


def _largest_gap(pool: _Pool, labels: Any) -> Any:
    return np.abs(pool.gaps(labels)).max(axis=-1)


def _energy(pool: _Pool, labels: Any) -> Any:
    widths = np.diff(pool.values[pool.ends])
    gaps = pool.gaps(labels)[..., :-1].astype(np.float64)
    return 2.0 * (gaps**2 @ widths)


def _rank_sum(pool: _Pool, labels: Any) -> Any:
    return np.abs(_signed_rank_sum(pool, labels))


def _signed_rank_sum(pool: _Pool, labels: Any) -> Any:
    """Give twice the new cases' rank sum (ties at their mean rank) beyond its mean, a whole number."""
    firsts = np.append(0, pool.ends[:-1] + 1)
    ranks = np.repeat(firsts + pool.ends + 2, pool.ends - firsts + 1)
    return labels @ ranks - pool.n_new * (pool.values.size + 1)


STATISTICS = {"ks": _largest_gap, "energy": _energy, "mann-whitney": _rank_sum}
"""By name; each grows with the distance of the samples, and the first and last are whole numbers."""


def _scale(name: str, n_reference: int, n_new: int) -> float:
    """Give what divides a statistic to make it the textbook's, in [0, 1] for ks and mann-whitney."""
    pairs = float(n_reference * n_new)
    return {"ks": pairs, "energy": pairs**2, "mann-whitney": pairs}[name]


def _p_value(name: str, pool: _Pool, permutations: int, rng: np.random.Generator) -> float:
    of = STATISTICS[name]
    observed = of(pool, pool.is_new) * (1.0 - 1e-9)  # the sums of `energy` may differ in their last digits
    as_large = sum(
        np.count_nonzero(of(pool, labels) >= observed) for labels in pool.permutations(permutations, rng)
    )
    return (1 + int(as_large)) / (1 + permutations)


def drift_test(
    reference: Any,
    new: Any,
    *,
    statistic: str = "ks",
    alpha: float = 0.05,
    permutations: int = 1999,
    seed: int = 0,
) -> DriftTest:
    """Test whether new, unlabelled cases have the confidences of the calibration cases.

    For one look at one batch. Looked at again and again while cases arrive, it alarms sooner or later;
    `ExchangeabilityMartingale` does not.

    Parameters
    ----------
    reference
        Confidences of the calibration cases, which no fitted estimator has learned from: confidences of cases
        that it knows are too high, and new cases then seem to have changed. Where cases have ids,
        ``refuse_seen(ids, used_ids, n)`` makes sure of it.
    new
        Confidences of the new cases.
    statistic
        ``"ks"`` (Kolmogorov-Smirnov: the largest distance of the two distribution functions),
        ``"mann-whitney"`` (absolute rank shift; sees only that cases are more or less confident) or
        ``"energy"`` (squared distance of the distribution functions, integrated; sees differences in the
        tails, and depends on the scale of the confidence).
    alpha
        Chance of a false alarm.
    permutations
        The smallest p-value is 1 / (permutations + 1).
    seed
        Of the permutations.

    See Also
    --------
    refuse_seen : Make sure that nothing has learned from the cases.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drift_test(rng.beta(9, 1, 150), rng.beta(9, 1, 150)).alarm
    False
    >>> drift_test(rng.beta(9, 1, 150), rng.beta(5, 1, 150)).alarm
    True
    """
    reference, new = confidences_of(reference, fewest=2), vector(new, "new confidence", fewest=1)
    check_fraction(alpha, "alpha", open_ends=True)
    if not isinstance(statistic, str) or statistic not in STATISTICS:
        raise ParameterError(f"statistic: expected one of {', '.join(STATISTICS)}, got {statistic!r}.")
    if 1.0 / (1 + check_count(permutations, "permutations")) > alpha:
        raise ParameterError(
            f"permutations: with {permutations} the smallest p-value is {1.0 / (1 + permutations):.2g}, and "
            f"alpha = {alpha:g} is never reached. Give at least {math.ceil(1.0 / alpha) - 1}."
        )
    pool = _Pool.of(reference, new)
    scale = _scale(statistic, reference.size, new.size)
    return DriftTest(
        statistic=statistic,
        value=float(STATISTICS[statistic](pool, pool.is_new)) / scale,
        p_value=_p_value(statistic, pool, permutations, check_seed(seed)),
        rank_shift=float(_signed_rank_sum(pool, pool.is_new)) / (reference.size * new.size),
        n_reference=reference.size,
        n_new=new.size,
        alpha=alpha,
    )
