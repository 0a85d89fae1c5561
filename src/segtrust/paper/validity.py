"""Does a certified threshold keep its promise? Simulated, where the truth is known.

A large population of cases is made once; calibration sets are drawn from it, a threshold is certified on
each, and its true selective risk is read off the population. Draws are kept in parts of a thousand, so that a
run can go on, also with more draws than it was begun with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._types import PValueName
from segtrust.evaluation import Part, compute_parts, store_of
from segtrust.report.figures import new_axes
from segtrust.selective import CalibrationCases, Procedure, Target, clopper_pearson, walk_candidates

__all__ = [
    "Outcome",
    "Population",
    "Scenario",
    "Setting",
    "dice_population",
    "draw_validity",
    "parts_of",
    "settings",
    "simulate_validity",
]

DELTA = 0.05
CASES = (30, 100, 300, 1000)
REFERENCES = 300
LEVEL = 0.95
"""Of the intervals of shares."""
_BLOCK = 1000
"""Draws of a part."""
P_VALUES: tuple[PValueName, ...] = ("betting", "hoeffding-bentkus")
_COLOURS = {"betting": "#0072b2", "hoeffding-bentkus": "#d55e00", "binomial": "#009e73"}


@dataclass(frozen=True)
class Scenario:
    """A model, by the share of its failures, and what is asked of it."""

    name: str
    failing: float
    target: Target

    @property
    def p_values(self) -> tuple[PValueName, ...]:
        """The p-values that can be compared."""
        return P_VALUES if self.target.below_dice is None else (*P_VALUES, "binomial")


SCENARIOS = (
    Scenario("good model, mean loss", 1.0 / 6.0, Target(0.10)),
    Scenario("good model, failures", 1.0 / 6.0, Target(0.10, below_dice=0.8)),
    Scenario("poor model, mean loss", 0.5, Target(0.30)),
    Scenario("poor model, failures", 0.5, Target(0.30, below_dice=0.7)),
)


@dataclass(frozen=True, eq=False)
class Population:
    """All the cases there are, the most confident first."""

    confidence: Any
    loss: Any

    def true_risks(self, target: Target) -> Any:
        """Risk of accepting the first case, the first two, and so on."""
        losses = target.losses(self.loss)
        return np.cumsum(losses) / np.arange(1, losses.size + 1)

    def accepted(self, threshold: float) -> int:
        """Cases with at least this confidence."""
        return int(self.confidence.size - np.searchsorted(self.confidence[::-1], threshold))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Confidences and losses of ``n`` cases, independent of each other."""
        at = rng.integers(0, self.loss.size, n)
        return self.confidence[at], self.loss[at]


def dice_population(failing: float = 1.0 / 6.0, *, size: int = 400_000, seed: int = 0) -> Population:
    """Make cases of a model: most Dice scores near 0.9, and a share of failures of all degrees.

    The confidence is the Dice with noise on the logit, and too high by half a unit of it.

    Examples
    --------
    >>> population = dice_population(size=10_000)
    >>> bool(0.15 < population.loss.mean() < 0.2)
    True
    """
    rng = np.random.default_rng(seed)
    fails = rng.random(size) < failing
    dice = np.where(fails, rng.beta(2.0, 2.5, size), rng.beta(18.0, 2.0, size))
    logit = np.log(dice) - np.log1p(-dice) + rng.normal(0.5, 0.8, size)
    order = np.argsort(-logit)
    return Population(1.0 / (1.0 + np.exp(-logit[order])), 1.0 - dice[order])


@dataclass(frozen=True)
class Setting:
    """One row of the table before it is filled."""

    scenario: Scenario
    p_value: PValueName
    n: int

    @property
    def name(self) -> str:
        """Of its parts."""
        return "-".join([*self.scenario.name.replace(",", "").split(), self.p_value, str(self.n)])


@dataclass(frozen=True)
class Outcome:
    """One row of the table.

    Attributes
    ----------
    scenario, target, p_value, n
        The setting.
    draws
        Calibration sets drawn.
    broken
        Share of the draws in which the certified threshold's true risk is above the target; at most δ is
        promised.
    broken_low, broken_high
        Exact 95 % interval of the chance of it (Clopper-Pearson).
    certified
        Share of the draws with a threshold.
    coverage, oracle_coverage
        Mean true coverage, 0 where nothing is certified, and the most that the target allows.
    """

    scenario: str
    target: str
    p_value: str
    n: int
    draws: int
    broken: float
    broken_low: float
    broken_high: float
    certified: float
    coverage: float
    oracle_coverage: float

    @property
    def is_kept(self) -> bool:
        """Whether the draws allow that the promise is broken with a chance of at most δ."""
        return self.broken_low <= DELTA


def settings() -> list[Setting]:
    """Every combination of scenario, p-value and number of cases."""
    return [
        Setting(scenario, p_value, n)
        for scenario in SCENARIOS
        for p_value, n in product(scenario.p_values, CASES)
    ]


def parts_of(draws: int, seed: int) -> list[Part]:
    """Blocks of draws of every row; each weighs as many as it has draws."""
    return [
        Part(_part_name(setting, block), partial(_draw_block, setting, seed, block), weight=len(block))
        for setting in settings()
        for block in _blocks(draws)
    ]


def _blocks(draws: int) -> list[range]:
    return [range(first, min(first + _BLOCK, draws)) for first in range(0, draws, _BLOCK)]


def _part_name(setting: Setting, block: range) -> str:
    return f"{setting.name}-{block.start:05d}-{block.stop:05d}"


def simulate_validity(
    *,
    draws: int = 2000,
    seed: int = 0,
    folder: str | Path | None = None,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> list[Outcome]:
    """Fill the table.

    Parameters
    ----------
    draws
        Calibration sets of each row.
    seed
        Of the population; draw i of n cases has the seed (i, n).
    folder
        Where finished parts are kept, and looked for; ``None`` keeps nothing.
    workers, advance
        As for `segtrust.evaluation.compute_parts`; weights are draws.

    Examples
    --------
    >>> outcomes = simulate_validity(draws=2)
    >>> len(outcomes), outcomes[0].draws, outcomes[0].is_kept
    (40, 2, True)
    """
    store = store_of(folder, {"seed": seed, "delta": DELTA, "references": REFERENCES})
    parts = compute_parts(parts_of(draws, seed), store, workers=workers, advance=advance)
    taken = {
        each: np.concatenate([parts[_part_name(each, block)]["accepted"] for block in _blocks(draws)])
        for each in settings()
    }
    return [_outcome(setting, seed, accepted) for setting, accepted in taken.items()]


@cache
def _population(failing: float, seed: int) -> Population:
    """Make a population once in each process."""
    return dice_population(failing, seed=seed)


def _draw_block(setting: Setting, seed: int, block: range) -> dict[str, Any]:
    population = _population(setting.scenario.failing, seed)
    return {"accepted": np.array([_certified_cases(population, setting, draw) for draw in block])}


def _outcome(setting: Setting, seed: int, accepted: Any) -> Outcome:
    """Sum a row up; ``accepted`` are cases of the population, one number a draw."""
    target, population = setting.scenario.target, _population(setting.scenario.failing, seed)
    risks = population.true_risks(target)
    some = accepted > 0
    broken = some & (risks[accepted - 1] > target.risk)
    largest = np.flatnonzero(risks <= target.risk).max(initial=-1) + 1
    size = population.loss.size
    return Outcome(
        setting.scenario.name,
        str(target),
        setting.p_value,
        setting.n,
        accepted.size,
        float(broken.mean()),
        *clopper_pearson(int(broken.sum()), accepted.size, LEVEL),
        float(some.mean()),
        float(accepted.mean() / size),
        float(largest / size),
    )


def _certified_cases(population: Population, setting: Setting, draw: int) -> int:
    """Cases of the population that the threshold of one calibration draw accepts; 0 where there is none."""
    rng = np.random.default_rng([draw, setting.n])
    reference, _ = population.draw(rng, REFERENCES)
    cases = CalibrationCases(*population.draw(rng, setting.n), reference=reference)
    procedure = Procedure(p_value=setting.p_value)
    _, steps = walk_candidates(cases, [setting.scenario.target], DELTA, procedure)
    passed = [step.threshold for step in steps if step.passed]
    return population.accepted(min(passed)) if passed else 0


def draw_validity(outcomes: Sequence[Any], *, delta: float) -> Any:
    """Draw how often promises are broken, and the coverage that they cost, against the number of cases."""
    scenarios = list(dict.fromkeys(outcome.scenario for outcome in outcomes))
    figure, axes = new_axes(2, len(scenarios), width=2.9 * len(scenarios), height=4.8)
    for column, scenario in enumerate(scenarios):
        chosen = [outcome for outcome in outcomes if outcome.scenario == scenario]
        axes[0, column].set_title(f"{scenario}\n{chosen[0].target}", fontsize=8)
        _draw_broken(axes[0, column], chosen, delta)
        _draw_coverage(axes[1, column], chosen)
    axes[0, 0].set_ylabel("share of broken promises")
    axes[1, 0].set_ylabel("true coverage")
    for row in axes:
        row[-1].legend(frameon=False, fontsize=7)
    return figure


def _lines(axes: Any, outcomes: Sequence[Any], value: str) -> None:
    for name in dict.fromkeys(outcome.p_value for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.p_value == name]
        cases, values = [each.n for each in chosen], [getattr(each, value) for each in chosen]
        axes.plot(cases, values, marker="o", markersize=3, color=_COLOURS.get(name), label=name)
    axes.set_xscale("log")
    axes.set_xticks([each.n for each in outcomes], [str(each.n) for each in outcomes], minor=False)
    axes.set_xlabel("calibration cases")


def _draw_broken(axes: Any, outcomes: Sequence[Any], delta: float) -> None:
    _lines(axes, outcomes, "broken")
    for each in outcomes:
        axes.vlines(each.n, each.broken_low, each.broken_high, color=_COLOURS.get(each.p_value), linewidth=1)
    axes.axhline(delta, color="black", linewidth=0.8, linestyle="--", label="promised")
    axes.set_ylim(0.0, 1.4 * delta)


def _draw_coverage(axes: Any, outcomes: Sequence[Any]) -> None:
    _lines(axes, outcomes, "coverage")
    axes.axhline(outcomes[0].oracle_coverage, color="black", linewidth=0.8, linestyle=":", label="oracle")
    axes.set_ylim(0.0, 1.0)
