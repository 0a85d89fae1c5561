"""How many calibration cases a promise needs, before or after there are any."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.procedure import Procedure
from segtrust.selective.pvalues import get_p_value
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_fraction

__all__ = ["Need", "need_from_losses", "plan_calibration"]

_TRIALS = 200
_MOST = 1 << 17
_POWER = 0.9

Draw = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True)
class Need:
    """Cases that would do.

    Attributes
    ----------
    cases
        Labelled cases with which a promise comes about with probability ``power``; ``None`` where no number
        does.
    power
        See ``cases``.
    reason
        In words.
    """

    cases: int | None
    power: float
    reason: str

    def __str__(self) -> str:
        """Give the reason."""
        return self.reason


def plan_calibration(
    target: Target | float,
    expected_risk: float,
    *,
    spread: float | None = None,
    delta: float = 0.05,
    power: float = _POWER,
    procedure: Procedure | None = None,
) -> Need:
    """Plan a calibration before any data exist: the labelled cases that a certified threshold will take.

    Parameters
    ----------
    target
        Limit on the mean loss, or a `Target` for a failure rate.
    expected_risk
        What the risk of the accepted cases is believed to be where the sequence starts (usually the most
        confident half). The nearer to the target, the more cases.
    spread
        Standard deviation of their losses; as large as their mean where nothing is said. Failures, which are
        0 or 1, have no choice.
    delta, procedure
        As they will be in `certify`.
    power
        Probability with which a threshold shall be found.

    Returns
    -------
    Need
        Found by simulation with a fixed seed; good to a few per cent. Unlabelled reference cases come on
        top, or labelled ones in the share of ``procedure.set_aside``.

    Examples
    --------
    >>> plan_calibration(0.10, 0.04).cases <= plan_calibration(0.10, 0.06).cases
    True
    >>> plan_calibration(0.10, 0.12).cases is None
    True
    """
    target = target if isinstance(target, Target) else Target(target)
    procedure = procedure or Procedure()
    mean = check_fraction(expected_risk, "expected_risk")
    level = check_fraction(delta, "delta", open_ends=True) / len(procedure.start_coverages)
    test = _Test(target.risk, level, procedure.p_value, check_fraction(power, "power", open_ends=True))
    draw = _coin(mean) if target.below_dice is not None else _beta(mean, mean if spread is None else spread)
    return _need(test, draw, mean, max(procedure.start_coverages))


@dataclass(frozen=True)
class _Test:
    target: float
    level: float
    p_value: str
    power: float

    def succeeds(self, draw: Draw, accepted: int) -> bool:
        """Whether a promise comes about often enough with so many accepted cases."""
        p_value, rng = get_p_value(self.p_value), np.random.default_rng(accepted)
        trials = (p_value(draw(rng, accepted), self.target, self.level) for _ in range(_TRIALS))
        return sum(p <= self.level for p in trials) >= self.power * _TRIALS


def _coin(mean: float) -> Draw:
    return lambda rng, n: (rng.random(n) < mean) * 1.0


def _beta(mean: float, spread: float) -> Draw:
    """Losses in [0, 1] with this mean and standard deviation."""
    if not (spread >= 0.0 and (spread**2 < mean * (1.0 - mean) or mean in (0.0, 1.0))):
        most = math.sqrt(mean * (1.0 - mean))
        raise ParameterError(
            f"spread: losses with mean {mean:g} have one in [0, {most:.3g}), got {spread!r}."
        )
    if spread == 0.0 or mean in (0.0, 1.0):
        return lambda rng, n: np.full(n, mean)
    concentration = mean * (1.0 - mean) / spread**2 - 1.0
    return lambda rng, n: rng.beta(mean * concentration, (1.0 - mean) * concentration, n)


def need_from_losses(losses: Any, target: float, *, level: float, p_value: str, coverage: float) -> Need:
    """Cases that would do if all were like the accepted ones seen so far."""
    if losses.size == 0:
        return Need(
            None, _POWER, "No calibration case is as confident as the reference cases: are they alike?"
        )
    test = _Test(target, level, p_value, _POWER)
    return _need(test, lambda rng, n: rng.choice(losses, n), float(losses.mean()), coverage)


def _need(test: _Test, draw: Draw, mean: float, coverage: float) -> Need:
    if mean >= test.target:
        return Need(
            None,
            test.power,
            f"No number of cases would do: the risk of the most confident {coverage:.0%} is {mean:.3g}, not "
            f"below {test.target:g}. Start at a lower coverage, allow a higher risk, or use a better model.",
        )
    accepted = _smallest(lambda n: test.succeeds(draw, n))
    if accepted is None:
        words = f"More than {math.ceil(_MOST / coverage)} cases would be needed: {mean:.3g} is too near."
        return Need(None, test.power, words)
    cases = math.ceil(accepted / coverage)
    words = f"About {cases} cases would do ({test.power:.0%} of the time), if their risk is {mean:.3g}."
    return Need(cases, test.power, words)


def _smallest(succeeds: Callable[[int], bool]) -> int | None:
    """Find the smallest number that succeeds, to a fiftieth of it; ``None`` beyond `_MOST`."""
    high = 1
    while not succeeds(high):
        if high >= _MOST:
            return None
        high *= 2
    low = high // 2
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high
