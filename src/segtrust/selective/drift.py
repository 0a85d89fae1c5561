"""Do new, unlabelled cases look like the calibration cases? Two checks on their confidences.

`drift_test` compares one batch of new cases with the calibration cases. Its p-value comes from permutations
of the labels "new" and "reference", so it is valid for any distribution and any number of ties: if nothing
has changed, it is at most α with probability at most α. Repeating the test while cases arrive raises a
false alarm sooner or later.

`ExchangeabilityMartingale` may be looked at after every case. Each arriving confidence gets a conformal
p-value: its rank among the calibration cases and all arrivals before it, ties broken at random. As long as
all cases are exchangeable, these p-values are independent and uniform, so no betting strategy can be
expected to gain on them: the probability that its capital, which starts at 1, ever reaches 1/α is at most α
(Ville's inequality). Growing capital is evidence of a drift. The strategy spreads its capital over seven
densities (no change; lower or higher ranks, mildly or strongly; both ends or the middle), moves a share of
it between them before each case so that it can follow a late change, and averages over four such shares
(the composite of simple jumpers).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, check_fraction, check_seed
from segtrust._display import Displayed
from segtrust._files import check_format, check_keys, naming_errors
from segtrust._optional import require
from segtrust._storage import Storable
from segtrust._types import DriftStatisticName, VectorLike
from segtrust.errors import ParameterError
from segtrust.selective.seen import HashedIds, ids_as_text, reject_seen
from segtrust.selective.vectors import check_confidences, check_vector

if TYPE_CHECKING:
    from pandas import DataFrame

DEFAULT_PERMUTATIONS = 1999
"""Number of permutations of a drift test, unless another is requested."""

_LABELS_AT_A_TIME = 1 << 21
"""Labels permuted in one array: 16 MB as whole numbers."""

_FORMAT = "segtrust-martingale-1"
_KEYS = ("format", "alpha", "seed", "reference", "arrived", "p_values")
_JUMPS = np.array([1e-4, 1e-3, 1e-2, 1e-1])[:, None]
_BETS = 7


@dataclass(frozen=True, repr=False)
class DriftTest(Displayed):
    """Result of a two-sample test on new cases.

    Attributes
    ----------
    statistic
        Name of the statistic.
    value
        Its value.
    p_value
        Probability of this value, or a larger one, if nothing has changed; never below 1 / (permutations +
        1).
    rank_shift
        P(new > reference) - P(new < reference) for one case of each, in [-1, 1]: -1 if all new cases are less
        confident than all reference cases, 0 if neither is more confident.
    n_reference, n_new
        Number of cases compared.
    alpha
        Level of the test.

    Examples
    --------
    >>> calibration, today = [0.9, 0.8, 0.95, 0.85, 0.9], [0.5, 0.6, 0.4, 0.55, 0.3]
    >>> test = drift_test(reference=calibration, new=today)
    >>> test.alarm, test.direction, test.rank_shift
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
        """Whether drift was detected: the p-value is at most ``alpha``."""
        return self.p_value <= self.alpha

    @property
    def direction(self) -> str:
        """Whether the new cases are, on the whole, less or more confident than the reference."""
        if self.rank_shift == 0.0:
            return "as confident"
        return "less confident" if self.rank_shift < 0.0 else "more confident"

    def explain(self) -> str:
        """Return the result in one sentence."""
        result = "Drift detected" if self.alarm else "No drift detected"
        return (
            f"{result} (two-sample test, {self.statistic} {self.value:.3g}, p = {self.p_value:.2g}): "
            f"{self.n_new} new cases compared with {self.n_reference} reference cases; new cases are "
            f"{self.direction} (rank shift {self.rank_shift:+.2f})."
        )

    def _shown(self) -> dict[str, Any]:
        shown = {"alarm": self.alarm, "p_value": self.p_value, self.statistic: self.value}
        shown |= {"rank_shift": self.rank_shift, "alpha": self.alpha}
        return shown | {"n_reference": self.n_reference, "n_new": self.n_new}

    def _caption(self) -> str:
        return self.explain()

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON."""
        return {**asdict(self), "alarm": self.alarm, "direction": self.direction}


def drift_test(
    *,
    reference: VectorLike,
    new: VectorLike,
    statistic: DriftStatisticName = "ks",
    alpha: float = 0.05,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> DriftTest:
    """Test whether new, unlabelled cases have the same confidences as the calibration cases.

    Use it once per batch. If it is repeated while cases arrive, it raises a false alarm sooner or later;
    `ExchangeabilityMartingale` does not.

    Parameters
    ----------
    reference
        Confidences of the calibration cases, which no fitted estimator may have learned from: its confidences
        on cases that it knows are too high, and new cases then seem to have changed. If cases have ids,
        ``reject_seen(ids, used_ids, n)`` checks this.
    new
        Confidences of the new cases.
    statistic
        ``"ks"`` (Kolmogorov-Smirnov: the largest distance between the two distribution functions),
        ``"mann-whitney"`` (absolute rank shift; detects only that cases are more or less confident) or
        ``"energy"`` (squared distance between the distribution functions, integrated; detects differences in
        the tails, and depends on the scale of the confidence).
    alpha
        Probability of a false alarm.
    permutations
        Number of permutations; the smallest possible p-value is 1 / (permutations + 1).
    seed
        Random seed of the permutations.

    See Also
    --------
    reject_seen : Check that nothing has learned from the cases.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drift_test(reference=rng.beta(9, 1, 150), new=rng.beta(9, 1, 150)).alarm
    False
    >>> drift_test(reference=rng.beta(9, 1, 150), new=rng.beta(5, 1, 150)).alarm
    True
    """
    reference, new = check_confidences(reference, fewest=2), check_vector(new, "new confidence", fewest=1)
    check_fraction(alpha, "alpha", open_ends=True)
    if not isinstance(statistic, str) or statistic not in STATISTICS:
        raise ParameterError(f"statistic: expected one of {', '.join(STATISTICS)}, got {statistic!r}.")
    if 1.0 / (1 + check_count(permutations, "permutations")) > alpha:
        raise ParameterError(
            f"permutations: with {permutations} the smallest p-value is {1.0 / (1 + permutations):.2g}, and "
            f"alpha = {alpha:g} is never reached. Use at least {math.ceil(1.0 / alpha) - 1}."
        )
    pool = _Pool.of(reference, new)
    compute = STATISTICS[statistic]
    observed = compute(pool, pool.is_new)
    limit = observed * (1.0 - 1e-9)  # the sums of `energy` may differ in their last digits
    as_large = sum(
        int(np.count_nonzero(compute(pool, labels) >= limit))
        for labels in pool.permutations(permutations, check_seed(seed))
    )
    pairs = float(reference.size * new.size)
    return DriftTest(
        statistic=statistic,
        value=float(observed) / (pairs**2 if statistic == "energy" else pairs),  # as in textbooks
        p_value=(1 + as_large) / (1 + permutations),
        rank_shift=float(_rank_shift(pool, pool.is_new)) / (reference.size * new.size),
        n_reference=reference.size,
        n_new=new.size,
        alpha=alpha,
    )


@dataclass(frozen=True, eq=False)
class _Pool:
    """Both samples in one sorted array, with the positions at which a run of ties ends."""

    values: Any
    is_new: Any
    ends: Any
    n_new: int

    @classmethod
    def of(cls, reference: Any, new: Any) -> _Pool:
        values = np.concatenate([reference, new])
        order = np.argsort(values, kind="stable")
        values = values[order]
        ends = np.flatnonzero(np.append(np.diff(values) > 0.0, True))
        return cls(values, order >= reference.size, ends, new.size)

    def gaps(self, labels: Any) -> Any:
        """Return (F_new − F_reference)·n_new·n_reference at the end of each run of ties.

        These are integers, so they are exact.
        """
        up_to = np.cumsum(labels, axis=-1, dtype=np.int64)[..., self.ends]
        return up_to * self.values.size - self.n_new * (self.ends + 1)

    def permutations(self, count: int, rng: np.random.Generator) -> Iterator[Any]:
        """Permute the labels, several rows at a time."""
        rows = max(1, _LABELS_AT_A_TIME // self.values.size)
        for first in range(0, count, rows):
            labels = np.tile(self.is_new, (min(rows, count - first), 1))
            yield rng.permuted(labels, axis=1, out=labels)


def _largest_gap(pool: _Pool, labels: Any) -> Any:
    return np.abs(pool.gaps(labels)).max(axis=-1)


def _energy(pool: _Pool, labels: Any) -> Any:
    widths = np.diff(pool.values[pool.ends])
    gaps = pool.gaps(labels)[..., :-1].astype(np.float64)
    return 2.0 * (gaps**2 @ widths)


def _rank_shift(pool: _Pool, labels: Any) -> Any:
    """Return the number of (new, reference) pairs in which the new case is more confident.

    The number of pairs in which it is less confident is subtracted.
    """
    firsts = np.append(0, pool.ends[:-1] + 1)
    ranks = np.repeat(firsts + pool.ends + 2, pool.ends - firsts + 1)
    return labels @ ranks - pool.n_new * (pool.values.size + 1)


STATISTICS: dict[str, Callable[[_Pool, Any], Any]] = {
    "ks": _largest_gap,
    "energy": _energy,
    "mann-whitney": lambda pool, labels: np.abs(_rank_shift(pool, labels)),
}
"""Statistics by name; each increases with the distance of the samples."""


@dataclass(frozen=True)
class MartingaleState:
    """State of the running drift check after a case.

    Attributes
    ----------
    n
        Number of cases that have arrived.
    p_value
        Conformal p-value of the last one; small if it is less confident than most.
    log10_capital
        Logarithm of the capital, to base 10; 0 at the start.
    log10_peak
        Its largest value so far: an alarm does not go away.
    alarm
        Whether the capital has ever reached 1/alpha.
    alarmed_at
        Number of cases after which it first did, or ``None``.
    """

    n: int
    p_value: float | None
    log10_capital: float
    log10_peak: float
    alarm: bool
    alarmed_at: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON."""
        return asdict(self)


class ExchangeabilityMartingale(Displayed, Storable):
    """Running drift check: alarms once arriving cases no longer look like the calibration cases.

    Parameters
    ----------
    reference
        Confidences of the calibration cases.
    alpha
        Upper limit on the probability of ever raising an alarm if nothing has changed, however long it runs.
    seed
        Random seed for breaking ties.
    ids
        Ids of the calibration cases.
    used_ids
        Ids of cases that a fitted estimator has learned from; `SeenCasesError` if a calibration case is among
        them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> watch = ExchangeabilityMartingale(rng.beta(9, 1, 100))
    >>> watch.extend(rng.beta(9, 1, 100)).alarm  # the same as before
    False
    >>> state = watch.extend(rng.beta(3, 1, 60))  # less confident
    >>> state.alarm, state.alarmed_at
    (True, 145)
    """

    _format = _FORMAT

    def __init__(
        self,
        reference: VectorLike,
        *,
        alpha: float = 0.05,
        seed: int = 0,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> None:
        ids = ids_as_text(ids)
        reference = check_confidences(reference, ids=ids)
        reject_seen(ids, used_ids, reference.size)
        check_seed(seed)
        self.alpha = check_fraction(alpha, "alpha", open_ends=True)
        self.seed = int(seed)
        self._reference: list[float] = reference.tolist()
        self._sorted = sorted(self._reference)
        self._arrived: list[float] = []
        self._states = [MartingaleState(0, None, 0.0, 0.0, False, None)]
        self._bettor = _Bettor()

    @property
    def state(self) -> MartingaleState:
        """The current state."""
        return self._states[-1]

    @property
    def history(self) -> tuple[MartingaleState, ...]:
        """The state after each case that has arrived."""
        return tuple(self._states[1:])

    @property
    def alarm(self) -> bool:
        """Whether drift was detected: the capital has reached 1/alpha at some time."""
        return self.state.alarm

    def explain(self) -> str:
        """Return the result in one sentence."""
        state, limit = self.state, math.log10(1.0 / self.alpha)
        evidence = f"evidence 10^{state.log10_peak:.1f}, alarm at 10^{limit:.1f}"
        if state.alarm:
            return f"Drift detected after {state.alarmed_at} cases ({evidence})."
        return f"No drift detected in {state.n} cases ({evidence})."

    def _shown(self) -> dict[str, Any]:
        state = self.state
        shown = {"alarm": state.alarm, "n": state.n, "log10_peak": state.log10_peak, "alpha": self.alpha}
        return shown | {"reference": len(self._reference)}

    def _caption(self) -> str:
        return self.explain()

    def to_dataframe(self) -> DataFrame:
        """Return the state after each case that has arrived as a pandas table, one row per case."""
        columns = [attribute.name for attribute in fields(MartingaleState)]
        rows = [asdict(state) for state in self.history]
        return require("pandas", extra="tables").DataFrame(rows, columns=columns)

    def update(self, confidence: float) -> MartingaleState:
        """Add the next case and return the new state; NaN and infinity raise and change nothing."""
        (value,) = check_vector([confidence], "confidence").tolist()
        # Rank among all cases before it and itself, at random among its ties: uniform on (0, 1).
        below = bisect_left(self._sorted, value)
        ties = bisect_right(self._sorted, value) - below
        chance = np.random.default_rng([self.seed, len(self._arrived)]).random()
        p_value = (below + float(chance) * (ties + 1)) / (len(self._sorted) + 1)
        insort(self._sorted, value)
        self._arrived.append(value)
        return self._bet(p_value)

    def extend(self, confidences: VectorLike) -> MartingaleState:
        """Add several cases in the order of their arrival; if one is rejected, none is added."""
        for value in check_vector(confidences, "confidence", fewest=0).tolist():
            self.update(value)
        return self.state

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the check."""
        return {
            "format": _FORMAT,
            "alpha": self.alpha,
            "seed": self.seed,
            "reference": self._reference,
            "arrived": self._arrived,
            "p_values": [state.p_value for state in self.history],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "martingale") -> Self:
        """Rebuild what `to_dict` returned; the next case gets the same state as without the interruption.

        `SavedStateError` names the source and the value that is missing, unknown or out of range.
        """
        check_format(saved, _FORMAT, source)
        values = check_keys(saved, _KEYS, source)
        with naming_errors(source):
            watch = cls(values["reference"], alpha=values["alpha"], seed=values["seed"])
            arrived = check_vector(values["arrived"], "arrived", fewest=0).tolist()
            p_values = check_vector(values["p_values"], "p_values", fewest=0).tolist()
            if len(arrived) != len(p_values):
                raise ParameterError(
                    f"p_values: expected {len(arrived)}, one for each case that has arrived, got "
                    f"{len(p_values)}."
                )
            watch._arrived = arrived
            watch._sorted = sorted([*watch._sorted, *arrived])
            for p_value in p_values:
                watch._bet(check_fraction(p_value, "p_values"))
        return watch

    def _bet(self, p_value: float) -> MartingaleState:
        last, n = self.state, self.state.n + 1
        capital = self._bettor.bet(p_value) / math.log(10.0)
        alarm = last.alarm or capital >= math.log10(1.0 / self.alpha)
        alarmed_at = last.alarmed_at or (n if alarm else None)
        peak = max(last.log10_peak, capital)
        self._states.append(MartingaleState(n, p_value, capital, peak, alarm, alarmed_at))
        return self.state


class _Bettor:
    """Capital of the composite jumper, in logarithms."""

    def __init__(self) -> None:
        self._logs = np.zeros(_JUMPS.size)
        self._shares = np.full((_JUMPS.size, _BETS), 1.0 / _BETS)

    def bet(self, p_value: float) -> float:
        """Return the logarithm of the capital after one more p-value."""
        shares = ((1.0 - _JUMPS) * self._shares + _JUMPS / _BETS) * _densities(p_value)
        totals = shares.sum(axis=1)
        self._shares = shares / totals[:, None]
        self._logs = self._logs + np.log(totals)
        top = float(self._logs.max())
        return top + math.log(float(np.exp(self._logs - top).mean()))


def _densities(p: float) -> Any:
    """Return the value at ``p`` of each density on [0, 1]; each integrates to 1, and none is above 2."""
    slope, spread = 2.0 * p - 1.0, 6.0 * p * p - 6.0 * p + 1.0
    bets = (0.0, slope, -slope, 0.5 * slope, -0.5 * slope, spread, -spread)
    return 1.0 + np.array(bets)
