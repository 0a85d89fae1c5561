"""How many calibration cases a promise needs, before or after there are any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.procedure import FEWEST_REFERENCES, Procedure, procedure_of
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_delta, check_fraction

__all__ = ["Accepted", "Need", "need", "nobody_accepted", "plan_calibration"]

_TRIALS = 200
_MOST = 1 << 17
_POWER = 0.9
_REFERENCES = 300
_FEW = 10

Draw = Callable[[np.random.Generator, int], Sequence[Any]]
"""Losses of so many accepted units, once for each target."""


@dataclass(frozen=True)
class Need:
    """Labelled cases that would do.

    Attributes
    ----------
    cases
        With 300 unlabelled reference cases at hand; ``None`` where no number does.
    without_reference
        In all, where a share of the labelled cases has to be set aside instead.
    power
        Probability with which a threshold is then found.
    reason
        In words.
    unit
        What is counted: ``"cases"`` or ``"patients"``.
    """

    cases: int | None
    without_reference: int | None
    power: float
    reason: str
    unit: str = "cases"

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
        Standard deviation of their losses; as large as their mean (or as it can be) where nothing is said.
        Failures, which are 0 or 1, have no choice.
    delta, procedure
        As they will be in `certify`.
    power
        Probability with which a threshold shall be found.

    Returns
    -------
    Need
        Found by simulation with a fixed seed; good to a few per cent.

    Examples
    --------
    >>> plan_calibration(0.10, 0.04).cases <= plan_calibration(0.10, 0.06).cases
    True
    >>> plan_calibration(0.10, 0.12).cases is None
    True
    """
    target = target if isinstance(target, Target) else Target(target)
    procedure = procedure_of(procedure)
    mean = check_fraction(expected_risk, "expected_risk")
    level = check_delta(delta) / len(procedure.start_coverages)
    draw = _coin(mean) if target.below_dice is not None else _beta(mean, spread)
    accepted = Accepted(draw, (mean,), max(procedure.start_coverages))
    return need((target,), accepted, procedure, level, check_fraction(power, "power", open_ends=True))


def _coin(mean: float) -> Draw:
    return lambda rng, n: [(rng.random(n) < mean) * 1.0]


def _beta(mean: float, spread: float | None) -> Draw:
    """Losses in [0, 1] with this mean and standard deviation."""
    most = math.sqrt(mean * (1.0 - mean))
    spread = min(mean, most) if spread is None else check_fraction(spread, "spread")
    if not 0.0 <= spread <= most:
        raise ParameterError(
            f"spread: losses with mean {mean:g} have one in [0, {most:.3g}], got {spread!r}."
        )
    if spread < 1e-9:
        return lambda rng, n: [np.full(n, mean)]
    concentration = (most / spread) ** 2 - 1.0
    if concentration < 1e-9:
        return _coin(mean)
    return lambda rng, n: [rng.beta(mean * concentration, (1.0 - mean) * concentration, n)]


@dataclass(frozen=True)
class Accepted:
    """What the accepted units of the strictest candidate are like.

    Attributes
    ----------
    draw
        Gives losses of new ones.
    risks
        Their selective risk, one a target.
    coverage
        Share of the units that have an accepted case.
    unit
        ``"cases"`` or ``"patients"``.
    seen
        How many of them this is known from; ``None`` for a plan.
    """

    draw: Draw
    risks: tuple[float, ...]
    coverage: float
    unit: str = "cases"
    seen: int | None = None

    @classmethod
    def like(cls, losses: Sequence[Any], risks: tuple[float, ...], coverage: float, unit: str) -> Accepted:
        """Describe those that were seen: new ones are drawn from them, with repetition."""

        def draw(rng: np.random.Generator, n: int) -> list[Any]:
            places = rng.integers(0, losses[0].size, n)
            return [each[places] for each in losses]

        return cls(draw, risks, coverage, unit, losses[0].size)


def need(
    targets: Sequence[Target], accepted: Accepted, procedure: Procedure, level: float, power: float = _POWER
) -> Need:
    """Labelled units that would do if all were like the accepted ones."""
    if all(target.risk == 1.0 for target in targets):
        return Need(0, 0, power, "A limit of 1 holds for all losses: it needs no labelled case.")
    if any(target.risk == 0.0 for target in targets):
        return _none("No finite number of cases shows a risk of 0: allow a little.", power, accepted.unit)
    for target, risk in zip(targets, accepted.risks, strict=True):
        if risk >= target.risk < 1.0:
            return _none(_out_of_reach(target, risk, accepted.coverage), power, accepted.unit)
    study = _Study(targets, accepted, procedure, level, power)
    cases, without = _smallest(study.succeeds), _smallest(study.succeeds_setting_aside)
    if cases is None:
        reason = f"More than {_MOST} {accepted.unit} would be needed: {_gaps(targets, accepted.risks)}."
        return _none(reason, power, accepted.unit)
    aside = f"more than {_MOST}" if without is None else f"{without}"
    return Need(
        cases,
        without,
        power,
        f"About {cases} labelled {accepted.unit} would do, {power:.0%} of the time, together with "
        f"{_REFERENCES} unlabelled reference cases ({aside} without these), if "
        f"{_gaps(targets, accepted.risks)}{_grain_of_salt(accepted)}.",
        accepted.unit,
    )


def nobody_accepted(unit: str) -> Need:
    """Answer where the strictest candidate accepts no calibration case."""
    reason = "No calibration case is as confident as the reference cases: are they of the same kind?"
    return _none(reason, _POWER, unit)


def _none(reason: str, power: float, unit: str) -> Need:
    return Need(None, None, power, reason, unit)


def _out_of_reach(target: Target, risk: float, coverage: float) -> str:
    return (
        f"No number of cases would do: the risk of the most confident {coverage:.0%} is {risk:.4g}, which is "
        f"not below {target.risk:g}. Start at a lower coverage, allow a higher risk, or use a better model."
    )


def _grain_of_salt(accepted: Accepted) -> str:
    if accepted.seen is None or accepted.seen >= _FEW:
        return ""
    return f", which is a guess from only {accepted.seen} accepted {accepted.unit}"


def _gaps(targets: Sequence[Target], risks: Sequence[float]) -> str:
    pairs = zip(targets, risks, strict=True)
    return "the risk is " + " and ".join(
        f"{risk:.3g}, {target.risk - risk:.2g} below the limit" for target, risk in pairs
    )


@dataclass(frozen=True)
class _Study:
    """Calibrations of one size, simulated up to the first candidate."""

    targets: Sequence[Target]
    accepted: Accepted
    procedure: Procedure
    level: float
    power: float

    def succeeds(self, n: int) -> bool:
        """Whether ``n`` labelled units do beside reference cases."""
        return self._often_enough(n, _REFERENCES)

    def succeeds_setting_aside(self, n: int) -> bool:
        """Whether ``n`` labelled units do, some of which only serve for candidates."""
        aside = round(self.procedure.set_aside * n)
        if aside < FEWEST_REFERENCES:
            return False
        return self._often_enough(n - aside, aside)

    def _often_enough(self, n: int, references: int) -> bool:
        """Whether the first candidate passes, its coverage being what so many references make of it."""
        rng = np.random.default_rng(n)
        place = math.ceil(round(self.accepted.coverage * references, 9))
        coverages = rng.beta(place, references - place + 1, _TRIALS)
        failures = 0
        for coverage in coverages:
            failures += not self._succeeds_once(rng, int(rng.binomial(n, coverage)))
            if _TRIALS - failures < self.power * _TRIALS:  # whatever comes now
                return False
        return True

    def _succeeds_once(self, rng: np.random.Generator, accepted: int) -> bool:
        patients = self.accepted.unit == "patients"
        return all(
            target.p_value(losses, self.procedure.p_value_for(target, patients=patients), self.level)
            <= self.level
            for target, losses in zip(self.targets, self.accepted.draw(rng, accepted), strict=True)
        )


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
