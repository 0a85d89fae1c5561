"""How many calibration cases a guarantee needs, before or after a calibration was tried.

The number is found by simulation. A calibration succeeds if its first candidate passes the test (see
`segtrust.selective.certify`), so only that test is simulated, with losses like those of the cases that the
first candidate is expected to accept, or did accept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust._arguments import check_delta, check_fraction
from segtrust._display import Displayed
from segtrust.errors import ParameterError
from segtrust.selective.targets import Procedure, Target, check_procedure, check_targets
from segtrust.selective.vectors import FEWEST_REFERENCES

_TRIALS = 200
"""Simulated calibrations per number of cases."""

_MOST_CASES = 1 << 17
"""Largest number of cases that is tried."""

POWER = 0.9
"""Default probability of finding a threshold."""

_REFERENCES = 300
"""Number of unlabelled reference cases that are assumed to be available."""

_FEW = 10
"""Number of accepted units below which the estimate of their risk is rough."""

Draw = Callable[[np.random.Generator, int], Sequence[Any]]
"""Draws the losses of a number of accepted units, one array per target."""


@dataclass(frozen=True, repr=False)
class CalibrationPlan(Displayed):
    """Number of labelled cases required.

    Attributes
    ----------
    cases
        Number if 300 unlabelled reference cases are available; ``None`` if no number is enough.
    without_reference
        Number in total if a share of the labelled cases has to be set aside instead.
    power
        Probability of then finding a threshold.
    reason
        The result in words.
    unit
        What is counted: ``"cases"`` or ``"patients"``.
    """

    cases: int | None
    without_reference: int | None
    power: float
    reason: str
    unit: str = "cases"

    def _shown(self) -> dict[str, Any]:
        shown = {"cases": self.cases, "without_reference": self.without_reference, "power": self.power}
        return shown | ({"unit": self.unit} if self.unit != "cases" else {})

    def _caption(self) -> str:
        return self.reason

    def __str__(self) -> str:
        """Return the result in words."""
        return self.reason


def plan_calibration(
    target: Target | float | Sequence[Target],
    expected_risk: float | Sequence[float],
    *,
    spread: float | None = None,
    delta: float = 0.05,
    power: float = POWER,
    procedure: Procedure | None = None,
) -> CalibrationPlan:
    """Return how many labelled cases a certified threshold will need, before any data exist.

    Parameters
    ----------
    target
        Limit on the mean loss, a `Target` for a failure rate, or several targets that shall hold together.
    expected_risk
        Expected risk of the accepted cases at the largest start coverage (by default the most confident
        half). The closer to the target, the more cases are needed. With several targets one per target;
        their losses are then simulated as if they were independent.
    spread
        Standard deviation of their losses; by default equal to their mean, or as large as possible if that
        is less. Not used for failures, which are 0 or 1.
    delta
        Probability that the guarantee does not hold, as it will be passed to `certify`.
    power
        Probability of finding a threshold.
    procedure
        Procedure that will be passed to `certify`.

    Returns
    -------
    CalibrationPlan
        Found by simulation with a fixed seed; accurate to a few per cent.

    Examples
    --------
    >>> plan_calibration(0.10, 0.04).cases <= plan_calibration(0.10, 0.06).cases
    True
    >>> plan_calibration(0.10, 0.12).cases is None
    True
    """
    listed: Any = target if isinstance(target, Target) or _is_list(target) else Target(target)  # type: ignore[arg-type]
    targets = check_targets(listed, "target")
    procedure = check_procedure(procedure)
    expected: Any = expected_risk if _is_list(expected_risk) else [expected_risk]
    means = tuple(check_fraction(mean, "expected_risk") for mean in expected)
    if len(means) != len(targets):
        raise ParameterError(
            f"expected_risk: expected {len(targets)} numbers, one per target, got {len(means)}."
        )
    level = check_delta(delta) / len(procedure.start_coverages)
    draws = [
        _draw_failures(mean) if target.below_dice is not None else _draw_losses(mean, spread)
        for target, mean in zip(targets, means, strict=True)
    ]

    def draw_all(rng: np.random.Generator, n: int) -> list[Any]:
        return [losses for draw in draws for losses in draw(rng, n)]

    accepted = Accepted(draw_all, means, max(procedure.start_coverages))
    return compute_need(targets, accepted, procedure, level, check_fraction(power, "power", open_ends=True))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _draw_failures(rate: float) -> Draw:
    return lambda rng, n: [(rng.random(n) < rate) * 1.0]


def _draw_losses(mean: float, spread: float | None) -> Draw:
    """Draw losses in [0, 1] with this mean and standard deviation: beta-distributed, constant, or 0 and 1."""
    most = math.sqrt(mean * (1.0 - mean))
    spread = min(mean, most) if spread is None else check_fraction(spread, "spread")
    if not 0.0 <= spread <= most:
        raise ParameterError(
            f"spread: losses with mean {mean:g} have a standard deviation in [0, {most:.3g}], got {spread!r}."
        )
    if spread < 1e-9:
        return lambda rng, n: [np.full(n, mean)]
    concentration = (most / spread) ** 2 - 1.0
    if concentration < 1e-9:
        return _draw_failures(mean)
    return lambda rng, n: [rng.beta(mean * concentration, (1.0 - mean) * concentration, n)]


@dataclass(frozen=True)
class Accepted:
    """The units that the first candidate accepts, expected or observed.

    Attributes
    ----------
    draw
        Draws losses of new units.
    risks
        Their selective risk, one per target.
    coverage
        Share of the units that have an accepted case.
    unit
        ``"cases"`` or ``"patients"``.
    observed
        Number of units that this is known from; ``None`` for a plan.
    """

    draw: Draw
    risks: tuple[float, ...]
    coverage: float
    unit: str = "cases"
    observed: int | None = None

    @classmethod
    def like(cls, losses: Sequence[Any], risks: tuple[float, ...], coverage: float, unit: str) -> Accepted:
        """Describe observed units: new ones are drawn from them, with replacement."""

        def draw(rng: np.random.Generator, n: int) -> list[Any]:
            positions = rng.integers(0, losses[0].size, n)
            return [values[positions] for values in losses]

        return cls(draw, risks, coverage, unit, losses[0].size)


def compute_need(
    targets: Sequence[Target], accepted: Accepted, procedure: Procedure, level: float, power: float = POWER
) -> CalibrationPlan:
    """Return how many labelled units would be needed if all were like the accepted ones."""
    unit = accepted.unit
    need = _need_without_simulation(targets, accepted, power)
    if need is not None:
        return need
    names = [procedure.p_value_for(target, grouped=unit == "patients") for target in targets]

    def is_enough(n: int, references: int) -> bool:
        """Simulate calibrations with ``n`` units; return whether the first candidate passes often enough.

        The coverage of the first candidate is random too: it is a quantile of so many reference cases.
        """
        rng = np.random.default_rng(n)
        rank = math.ceil(round(accepted.coverage * references, 9))
        failures = 0
        for coverage in rng.beta(rank, references - rank + 1, _TRIALS):
            drawn = accepted.draw(rng, int(rng.binomial(n, coverage)))
            failures += not all(
                target.p_value(losses, name, level) <= level
                for target, losses, name in zip(targets, drawn, names, strict=True)
            )
            if _TRIALS - failures < power * _TRIALS:  # whatever the remaining trials give
                return False
        return True

    def is_enough_in_total(n: int) -> bool:
        aside = round(procedure.set_aside * n)
        return aside >= FEWEST_REFERENCES and is_enough(n - aside, aside)

    cases = _smallest(lambda n: is_enough(n, _REFERENCES))
    in_total = _smallest(is_enough_in_total)
    margins = "the risk is " + " and ".join(
        f"{risk:.3g}, {target.risk - risk:.2g} below the limit"
        for target, risk in zip(targets, accepted.risks, strict=True)
    )
    if cases is None:
        reason = f"More than {_MOST_CASES} {unit} would be needed: {margins}."
        return CalibrationPlan(None, None, power, reason, unit)
    caveat = ""
    if accepted.observed is not None and accepted.observed < _FEW:
        caveat = f"; this is a rough estimate from only {accepted.observed} accepted {unit}"
    reason = (
        f"About {cases} labelled {unit} would give a {100.0 * power:g} % chance of success, with "
        f"{_REFERENCES} unlabelled reference cases ({in_total or f'more than {_MOST_CASES}'} without them), "
        f"if {margins}{caveat}."
    )
    return CalibrationPlan(cases, in_total, power, reason, unit)


def _need_without_simulation(
    targets: Sequence[Target], accepted: Accepted, power: float
) -> CalibrationPlan | None:
    """Return the result if no case is needed or no number is enough; else ``None``."""
    unit = accepted.unit
    if all(target.risk == 1.0 for target in targets):
        return CalibrationPlan(0, 0, power, f"A limit of 1 always holds; no labelled {unit} are needed.")
    if any(target.risk == 0.0 for target in targets):
        reason = f"No number of {unit} can prove a risk of 0. Choose a target above 0."
        return CalibrationPlan(None, None, power, reason, unit)
    for target, risk in zip(targets, accepted.risks, strict=True):
        if risk >= target.risk < 1.0:
            reason = (
                f"No number of {unit} is enough: the risk at the highest candidate threshold, which accepts "
                f"{100.0 * accepted.coverage:.0f} % of the {unit}, is {risk:.4g}, not below {target.risk:g}. "
                "Start at a lower coverage, allow a higher risk, or use a better model."
            )
            return CalibrationPlan(None, None, power, reason, unit)
    return None


def _smallest(is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest number that is enough, to within 2 %; ``None`` beyond the largest number tried."""
    high = 1
    while not is_enough(high):
        if high >= _MOST_CASES:
            return None
        high *= 2
    low = high // 2
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
