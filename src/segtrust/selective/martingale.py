"""An alarm that may be looked at after every case: a martingale that bets against exchangeability.

Each arriving confidence gets a conformal p-value: its rank among the calibration cases and all arrivals
before it, ties broken at random. As long as all cases are exchangeable these are independent and uniform,
so no betting system can be expected to gain on them: the chance that its capital, which starts at 1, ever
reaches 1/α is at most α (Ville's inequality). Capital that grows is evidence of a shift.

The betting system spreads its capital over seven densities (nothing has changed; lower or higher ranks,
mildly or strongly; both ends or the middle), moves a share of it between them before each case so that it
can follow a change that comes late, and averages over four such shares (the composite of simple jumpers).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from segtrust.errors import ParameterError
from segtrust.saved import check_format, check_keys, read_json, reading, write_json
from segtrust.selective.seen import HashedIds, ids_of, refuse_seen
from segtrust.selective.vectors import check_fraction, check_seed, confidences_of, vector

__all__ = ["ExchangeabilityMartingale", "MartingaleState"]

_FORMAT = "segtrust-martingale-1"
_KEYS = ("format", "alpha", "seed", "reference", "arrived", "p_values")
_JUMPS = np.array([1e-4, 1e-3, 1e-2, 1e-1])[:, None]
_BETS = 7


@dataclass(frozen=True)
class MartingaleState:
    """What is known after a case.

    Attributes
    ----------
    n
        Cases that have arrived.
    p_value
        Conformal p-value of the last one; small where it is less confident than most.
    log10_capital
        Logarithm of the capital, to base 10; 0 at the start.
    log10_peak
        Its largest value so far: an alarm does not go away.
    alarm
        Whether the capital has ever reached 1/alpha.
    alarmed_at
        After how many cases it first did, or ``None``.
    """

    n: int
    p_value: float | None
    log10_capital: float
    log10_peak: float
    alarm: bool
    alarmed_at: int | None

    def to_dict(self) -> dict[str, Any]:
        """Give all values, ready for JSON."""
        return asdict(self)


class _Bettor:
    """Capital of the composite jumper, in logarithms."""

    def __init__(self) -> None:
        self._logs = np.zeros(_JUMPS.size)
        self._shares = np.full((_JUMPS.size, _BETS), 1.0 / _BETS)

    def bet(self, p: float) -> float:
        """Give the logarithm of the capital after one more p-value."""
        shares = ((1.0 - _JUMPS) * self._shares + _JUMPS / _BETS) * _densities(p)
        totals = shares.sum(axis=1)
        self._shares = shares / totals[:, None]
        self._logs = self._logs + np.log(totals)
        top = float(self._logs.max())
        return top + math.log(float(np.exp(self._logs - top).mean()))


def _densities(p: float) -> Any:
    """Give the value at ``p`` of each density on [0, 1]; their mean is 1, and none is above 2."""
    slope, spread = 2.0 * p - 1.0, 6.0 * p * p - 6.0 * p + 1.0
    bets = (0.0, slope, -slope, 0.5 * slope, -0.5 * slope, spread, -spread)
    return 1.0 + np.array(bets)


class ExchangeabilityMartingale:
    """Watch confidences as they arrive, and alarm once they no longer look like the calibration cases.

    Parameters
    ----------
    reference
        Confidences of the calibration cases.
    alpha
        Chance, at most, of ever alarming while nothing has changed, however long the watch.
    seed
        Breaks ties.
    ids, used_ids
        Names of the calibration cases, and of those that a fitted estimator has learned from;
        `SeenCasesError` where a case is in both.

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

    def __init__(
        self,
        reference: Any,
        *,
        alpha: float = 0.05,
        seed: int = 0,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> None:
        ids = ids_of(ids)
        reference = confidences_of(reference, ids=ids)
        refuse_seen(ids, used_ids, reference.size)
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
        """What is known now."""
        return self._states[-1]

    @property
    def history(self) -> tuple[MartingaleState, ...]:
        """The state after each case that has arrived."""
        return tuple(self._states[1:])

    @property
    def alarm(self) -> bool:
        """Whether the capital has ever reached 1/alpha."""
        return self.state.alarm

    def explain(self) -> str:
        """Say in one sentence what was found."""
        state, limit = self.state, math.log10(1.0 / self.alpha)
        peak = f"capital at most 10^{state.log10_peak:.1f} in {state.n} cases, alarm at 10^{limit:.1f}"
        if state.alarm:
            told = f"alarm after {state.alarmed_at} cases ({peak})"
            return f"The arriving cases are no longer exchangeable with the reference cases: {told}."
        return f"Nothing speaks against exchangeability with the reference cases ({peak})."

    def update(self, confidence: float) -> MartingaleState:
        """Take in the next case; NaN and infinity are refused and leave everything as it was."""
        (value,) = vector([confidence], "confidence").tolist()
        p = self._p_value(value)
        insort(self._sorted, value)
        self._arrived.append(value)
        return self._take(p)

    def extend(self, confidences: Any) -> MartingaleState:
        """Take in several cases in the order of their arrival; all or, if one is refused, none."""
        for value in vector(confidences, "confidence", fewest=0).tolist():
            self.update(value)
        return self.state

    def to_dict(self) -> dict[str, Any]:
        """Give what `from_dict` takes, ready for JSON."""
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
        """Make again what `to_dict` gave; the next case gets the state it would have got then.

        `SavedStateError` names the source and what in it is missing, unknown or out of range.
        """
        check_format(saved, _FORMAT, source)
        values = check_keys(saved, _KEYS, source)
        with reading(source):
            watch = cls(values["reference"], alpha=values["alpha"], seed=values["seed"])
            watch._go_on(values["arrived"], values["p_values"])
        return watch

    def _go_on(self, arrived: Any, p_values: Any) -> None:
        """Take in cases whose p-values are known."""
        arrived, p_values = (
            vector(each, name, fewest=0).tolist()
            for each, name in ((arrived, "arrived"), (p_values, "p_values"))
        )
        if len(arrived) != len(p_values):
            raise ParameterError(
                f"p_values: expected {len(arrived)}, one for each case that has arrived, got {len(p_values)}."
            )
        self._arrived = arrived
        self._sorted = sorted([*self._sorted, *arrived])
        for p in p_values:
            self._take(check_fraction(p, "p_values"))

    def save(self, path: str | Path) -> None:
        """Write a JSON file; a file that is there is replaced in one step, or left as it was."""
        write_json(path, self.to_dict(), indent=None)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; `SavedStateError` for anything else."""
        return cls.from_dict(read_json(path), source=str(path))

    def _p_value(self, value: float) -> float:
        """Rank a value among all before it and itself, at random among its ties; uniform on (0, 1)."""
        below = bisect_left(self._sorted, value)
        ties = bisect_right(self._sorted, value) - below
        chance = np.random.default_rng([self.seed, len(self._arrived)]).random()
        return (below + float(chance) * (ties + 1)) / (len(self._sorted) + 1)

    def _take(self, p: float) -> MartingaleState:
        last, n = self.state, self.state.n + 1
        capital = self._bettor.bet(p) / math.log(10.0)
        rings = last.alarm or capital >= math.log10(1.0 / self.alpha)
        first = last.alarmed_at or (n if rings else None)
        self._states.append(MartingaleState(n, p, capital, max(last.log10_peak, capital), rings, first))
        return self.state
