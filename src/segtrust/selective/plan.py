"""How many calibration cases a guarantee needs, before or after a calibration was tried.

The number is found by simulation. A calibration succeeds if the start of its search passes (see
`segtrust.selective.certify`), so only that is simulated, with losses like those of the cases that the start
is expected to accept, or did accept. The share of all cases that it accepts varies from draw to draw, and
with it the risk: a start that happens to accept more cases includes worse ones.
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

_MARGINAL_LOSS, _MARGINAL_FAILURES = 2.5, 5.0
"""Expected loss of the cases close to the start over that of all accepted cases, unless it is known.

On polyps, breast ultrasound and simulated models it is 1.3 to 2.4 for mean losses, and up to 5 for failures.
"""

Draw = Callable[[np.random.Generator, int], Sequence[Any]]
"""Draws the losses of a number of units, one array per target."""

DrawAccepted = Callable[[np.random.Generator, int, float], Sequence[Any]]
"""Draws losses of accepted units, given their number and the share of all units that is accepted."""


@dataclass(frozen=True, repr=False)
class CalibrationPlan(Displayed):
    """Number of labelled cases required.

    Attributes
    ----------
    cases
        Number if 300 unlabelled reference cases are available; ``None`` if no number is enough.
    without_reference
        Number without reference cases: every rank of the cases is tested then. For patients with several
        cases, the number in total, of which a share is set aside.
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
    marginal_risk: float | Sequence[float] | None = None,
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
        is less. State it if a pilot shows more: a larger spread needs more cases. Not used for failures,
        which are 0 or 1.
    marginal_risk
        Expected risk of the cases with a confidence close to the start, where the worst accepted cases are:
        the steeper the risk rises there, the more cases are needed. By default 2.5 times the expected mean
        loss, or 5 times the expected share of failures. With several targets one per target.
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
    listed_margins: Any = marginal_risk
    if marginal_risk is None:
        listed_margins = [
            min(1.0, mean * (_MARGINAL_LOSS if target.below_dice is None else _MARGINAL_FAILURES))
            for target, mean in zip(targets, means, strict=True)
        ]
    elif not _is_list(marginal_risk):
        listed_margins = [marginal_risk]
    margins = tuple(check_fraction(margin, "marginal_risk") for margin in listed_margins)
    if len(margins) != len(targets):
        raise ParameterError(
            f"marginal_risk: expected {len(targets)} numbers, one per target, got {len(margins)}."
        )
    level = check_delta(delta) / len(procedure.start_coverages)
    start = max(procedure.start_coverages)

    def draw_kind(target: Target, mean: float, spread: float | None) -> Draw:
        return draw_failures(mean) if target.below_dice is not None else draw_losses(mean, spread)

    inside = [draw_kind(target, mean, spread) for target, mean in zip(targets, means, strict=True)]
    at_start = [draw_kind(target, margin, None) for target, margin in zip(targets, margins, strict=True)]

    def draw(rng: np.random.Generator, n: int, share: float) -> list[Any]:
        """Draw cases from the expected start, and those beyond it from the cases close to it."""
        is_beyond = rng.random(n) < 1.0 - start / max(share, start)
        return [
            np.where(is_beyond, beyond(rng, n)[0], usual(rng, n)[0])
            for usual, beyond in zip(inside, at_start, strict=True)
        ]

    accepted = Accepted(draw, means, start)
    return compute_need(targets, accepted, procedure, level, check_fraction(power, "power", open_ends=True))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def draw_failures(rate: float) -> Draw:
    """Draw losses of 1 at this rate, and 0 otherwise."""
    return lambda rng, n: [(rng.random(n) < rate) * 1.0]


def draw_losses(mean: float, spread: float | None) -> Draw:
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
        return draw_failures(mean)
    return lambda rng, n: [rng.beta(mean * concentration, (1.0 - mean) * concentration, n)]


@dataclass(frozen=True)
class Accepted:
    """The units that the start accepts, expected or observed.

    Attributes
    ----------
    draw
        Draws losses of new units, given the share of all units that is accepted.
    risks
        Their selective risk, one per target.
    coverage
        Share of the units that have an accepted case.
    unit
        ``"cases"`` or ``"patients"``.
    observed
        Number of accepted units that this is known from; ``None`` for a plan.
    """

    draw: DrawAccepted
    risks: tuple[float, ...]
    coverage: float
    unit: str = "cases"
    observed: int | None = None

    @classmethod
    def like(cls, losses: Sequence[Any], risks: tuple[float, ...], coverage: float, unit: str) -> Accepted:
        """Describe observed units: new ones are drawn from them, with replacement."""

        def draw(rng: np.random.Generator, n: int, share: float) -> list[Any]:
            positions = rng.integers(0, losses[0].size, n)
            return [values[positions] for values in losses]

        return cls(draw, risks, coverage, unit, losses[0].size)

    @classmethod
    def by_confidence(
        cls, confidence: Any, losses: Sequence[Any], risks: tuple[float, ...], coverage: float
    ) -> Accepted:
        """Describe observed cases: new ones are drawn from the share of them that is most confident."""
        order = np.argsort(-confidence, kind="stable")
        ranked = [values[order] for values in losses]

        def draw(rng: np.random.Generator, n: int, share: float) -> list[Any]:
            positions = rng.integers(0, max(1, round(share * order.size)), n)
            return [values[positions] for values in ranked]

        return cls(draw, risks, coverage, "cases", round(coverage * confidence.size))


@dataclass(frozen=True)
class _Simulation:
    """Simulated calibrations, which show whether their start passes often enough."""

    targets: Sequence[Target]
    accepted: Accepted
    procedure: Procedure
    level: float
    power: float

    def is_enough_alone(self, n: int) -> bool:
        """Return whether ``n`` units are enough without reference cases."""
        grouped = self.accepted.unit == "patients"
        if self.procedure.search_for(self.targets, grouped=grouped, has_reference=False) == "candidates":
            aside = round(self.procedure.set_aside * n)
            return aside >= FEWEST_REFERENCES and self.is_enough_with_references(n - aside, aside)
        first = math.ceil(round(self.accepted.coverage * n, 9))
        names = self.procedure.tests_for(self.targets, n, grouped=False, by_rank=True)

        def passes(rng: np.random.Generator) -> bool:
            share = float(rng.beta(first, n - first + 1))  # of the cases above the one that marks the start
            losses = self.accepted.draw(rng, first, share)
            return self._passes([values[:-1] for values in losses], names) and self._passes(losses, names)

        return self._is_often_enough(passes, n)

    def is_enough_with_references(self, n: int, references: int) -> bool:
        """Return whether ``n`` units to test are enough if the start is a quantile of reference cases."""
        rank = math.ceil(round(self.accepted.coverage * references, 9))
        grouped = self.accepted.unit == "patients"
        names = self.procedure.tests_for(self.targets, n, grouped=grouped, by_rank=False)

        def passes(rng: np.random.Generator) -> bool:
            share = float(rng.beta(rank, references - rank + 1))
            return self._passes(self.accepted.draw(rng, int(rng.binomial(n, share)), share), names)

        return self._is_often_enough(passes, n)

    def _passes(self, losses: Sequence[Any], names: Sequence[str]) -> bool:
        return all(
            target.p_value(values, name, self.level) <= self.level
            for target, values, name in zip(self.targets, losses, names, strict=True)
        )

    def _is_often_enough(self, passes: Callable[[np.random.Generator], bool], n: int) -> bool:
        rng = np.random.default_rng(n)
        failures = 0
        for _ in range(_TRIALS):
            failures += not passes(rng)
            if _TRIALS - failures < self.power * _TRIALS:  # whatever the remaining trials give
                return False
        return True


def compute_need(
    targets: Sequence[Target], accepted: Accepted, procedure: Procedure, level: float, power: float = POWER
) -> CalibrationPlan:
    """Return how many labelled units would be needed if all were like the accepted ones."""
    unit = accepted.unit
    need = _need_without_simulation(targets, accepted, power)
    if need is not None:
        return need
    simulation = _Simulation(targets, accepted, procedure, level, power)
    cases = _smallest(lambda n: simulation.is_enough_with_references(n, _REFERENCES))
    in_total = _smallest(simulation.is_enough_alone)
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
        f"About {in_total or f'more than {_MOST_CASES}'} new labelled {unit} would give a "
        f"{100.0 * power:g} % chance of success ({cases} with {_REFERENCES} unlabelled reference cases), if "
        f"{margins}{caveat}."
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
                f"No number of {unit} is enough: the risk at the start, which accepts "
                f"{100.0 * accepted.coverage:.0f} % of the {unit}, is {risk:.4g}, not below {target.risk:g}. "
                f"With new {unit}, start at a lower coverage, allow a higher risk, or use a better model."
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
