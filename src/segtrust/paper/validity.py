"""Does a certified threshold keep its guarantee? Simulated, where the truth is known.

A large population of cases is made once. Calibration sets are drawn from it, a threshold is certified on
each, and its true selective risk is read off the population. There are two kinds of populations: models as
one meets them, which show what a guarantee costs, and populations that were built to break it. Draws are kept
in parts of a thousand, so that a run can be resumed, also with more draws than before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from segtrust._types import PValueName, SearchName
from segtrust.errors import SegtrustWarning
from segtrust.evaluation import Part, compute_parts, store_of
from segtrust.report.figures import new_axes
from segtrust.selective import CalibrationCases, Procedure, Target, clopper_pearson, find_threshold

__all__ = [
    "Outcome",
    "Population",
    "Scenario",
    "Setting",
    "dice_population",
    "draw_validity",
    "hostile_population",
    "parts_of",
    "settings",
    "simulate_validity",
]

DELTA = 0.05
CASES = (30, 100, 300, 1000)
"""Numbers of calibration cases for models as one meets them."""
HOSTILE_CASES = (20, 60, 300)
"""Numbers of calibration cases for populations that were built to break a guarantee."""
HOSTILE_RISKS = (0.10, 0.25)
LEVEL = 0.95
"""Level of the intervals of shares."""
_BLOCK = 1000
"""Draws per part."""
_SIZE = 120_000
"""Cases of a population that was built to break a guarantee."""
_ABOVE = 1.01
"""Risk of a population that is just above the target, divided by the target."""


@dataclass(frozen=True, eq=False)
class Population:
    """All the cases there are, the most confident first."""

    confidence: Any
    loss: Any

    def true_risks(self, target: Target) -> Any:
        """Return the risk of accepting the first case, the first two, and so on."""
        losses = target.losses(self.loss)
        return np.cumsum(losses) / np.arange(1, losses.size + 1)

    def accepted(self, threshold: float) -> int:
        """Return the number of cases with at least this confidence."""
        return int(self.confidence.size - np.searchsorted(self.confidence[::-1], threshold))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Draw confidences and losses of ``n`` cases, independent of each other."""
        at = rng.integers(0, self.loss.size, n)
        return self.confidence[at], self.loss[at]

    @cached_property
    def cases(self) -> CalibrationCases:
        """All cases, checked once; parts of them need no further check."""
        with catch_warnings():
            simplefilter("ignore", SegtrustWarning)  # in some populations, confident cases are the worse ones
            return CalibrationCases(self.confidence, self.loss)


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


HOSTILE = {
    "flat": [(1.0, _ABOVE)],
    "two levels": [(0.6, 0.7), (0.1, 2.9), (0.3, _ABOVE)],
    "three levels": [(0.3, 1.3), (0.3, 0.5), (0.4, 1.2)],
    "gap at the start": [(0.45, _ABOVE), (0.10, 0.9), (0.45, 1.05)],
    "wave": [(0.4, 0.9), (0.1, 1.5), (0.1, 0.6), (0.1, 1.5), (0.1, 0.6), (0.2, 1.3)],
    "disaster below": [(0.75, 0.97), (0.25, 4.0)],
}
"""Segments of a population, most confident first: share of the cases, and their risk over the target."""

_ATOMS = {
    "atom at the start": [],
    "atom across the start": [(0.4, 0.8), (0.3, 1.3), (0.3, _ABOVE)],
    "three atoms": [(0.55, 0.9), (0.2, 1.4), (0.25, _ABOVE)],
}
"""The same for populations in which all cases of a segment have the same confidence.

The first one depends on the target: no loss above an atom, a loss of 1 on it, and a risk just above the
target at the atom, which ends just under half of the cases, and below it.
"""

BETWEEN = "start between two targets"
"""Failures are too frequent above the start, and the mean loss is too high below it."""
_BETWEEN_TARGETS = (Target(0.2), Target(0.1, below_dice=0.5))

LOSSES = ("0 or 1", "small", "rare 1")
"""Losses of a segment with a given mean: 0 and 1; spread closely around it; small ones, and few of 1."""


def hostile_population(name: str, risk: float, losses: str = "0 or 1", *, size: int = _SIZE) -> Population:
    """Make a population that was built to break a guarantee.

    Parameters
    ----------
    name
        A key of `HOSTILE`, one of the populations with atoms (many cases of one confidence), or `BETWEEN`.
    risk
        The target.
    losses
        Kind of the losses, one of `LOSSES`.
    size
        Number of cases.

    Examples
    --------
    >>> population = hostile_population("flat", 0.1, size=10_000)
    >>> round(float(population.loss.mean()), 3)
    0.101
    """
    if name == BETWEEN:
        counts = [round(share * size) for share in (0.45, 0.10, 0.45)]
        top = np.where(_losses(0.101, counts[0], "0 or 1") > 0.0, 1.0, 0.05)
        below = np.repeat([0.443, 0.21], counts[1:])
        return Population(np.arange(size, 0, -1) / size, np.concatenate([top, below]))
    segments = HOSTILE.get(name) or _ATOMS[name]
    if name == "atom at the start":
        on_atom = 0.48 * risk * _ABOVE
        segments = [(0.48 - on_atom, 0.0), (on_atom, 1.0 / risk), (0.52, _ABOVE)]
    confidences, all_losses = [], []
    used = 0
    for number, (share, factor) in enumerate(segments):
        count = round(share * size)
        mean = min(1.0, factor * risk)
        ranks = size - used - np.arange(count)
        is_atom = name in _ATOMS and (name != "atom at the start" or number == 1)
        confidences.append(np.full(count, ranks[-1] / size) if is_atom else ranks / size)
        all_losses.append(_losses(mean, count, losses))
        used += count
    return Population(np.concatenate(confidences), np.concatenate(all_losses))


def _losses(mean: float, count: int, kind: str) -> Any:
    """Return losses with this mean, spread evenly over the ranks of a segment."""
    if kind == "small" and 0.0 < mean < 0.5:
        wave = 0.5 * mean * np.cos(np.arange(count) * 2.399963)  # the golden angle: no rhythm in the ranks
        return mean + wave - wave.mean()
    small = min(0.02, 0.5 * mean) if kind == "rare 1" else 0.0
    share = (mean - small) / (1.0 - small)
    steps = np.floor(np.arange(1, count + 1) * share) - np.floor(np.arange(count) * share)
    return np.where(steps > 0.0, 1.0, small)


@dataclass(frozen=True)
class Scenario:
    """A population, and what is asked of it.

    Attributes
    ----------
    name
        Name in the table.
    target
        What is to be guaranteed.
    also
        A second target that is to hold together with it, or ``None``.
    failing
        Share of failures of a model as one meets it; ``None`` for a population built to break a guarantee.
    hostile
        Name and losses of such a population.
    """

    name: str
    target: Target
    failing: float | None = None
    hostile: tuple[str, str] = ("", "")
    also: Target | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """All that is to be guaranteed."""
        return (self.target,) if self.also is None else (self.target, self.also)

    def population(self, seed: int) -> Population:
        """Return the population, which is made once in each process."""
        return _population(self.failing, self.hostile, self.target.risk, seed)


@cache
def _population(failing: float | None, hostile: tuple[str, str], risk: float, seed: int) -> Population:
    name, losses = hostile
    return hostile_population(name, risk, losses) if failing is None else dice_population(failing, seed=seed)


MODELS = (
    Scenario("good model, mean loss", Target(0.10), 1.0 / 6.0),
    Scenario("good model, failures", Target(0.10, below_dice=0.8), 1.0 / 6.0),
    Scenario("poor model, mean loss", Target(0.30), 0.5),
    Scenario("poor model, failures", Target(0.30, below_dice=0.7), 0.5),
)


@dataclass(frozen=True)
class Setting:
    """One row of the table before it is filled."""

    scenario: Scenario
    search: SearchName
    p_value: PValueName
    n: int

    @property
    def name(self) -> str:
        """Name of its parts."""
        target = self.scenario.target
        kind = f"{target.risk:g}" + ("" if target.below_dice is None else "-failures")
        words = [*self.scenario.name.replace(",", "").split(), kind, self.search, self.p_value, str(self.n)]
        return "-".join(words)


@dataclass(frozen=True)
class Outcome:
    """One row of the table.

    Attributes
    ----------
    scenario, target, search, p_value, n
        The setting.
    draws
        Calibration sets drawn.
    broken
        Share of the draws in which the certified threshold's true risk is above the target; at most δ is
        guaranteed.
    broken_low, broken_high
        Exact 95 % interval of its probability (Clopper-Pearson).
    certified
        Share of the draws with a threshold.
    coverage, oracle_coverage
        Mean true coverage, 0 if nothing is certified, and the largest that the target allows.
    """

    scenario: str
    target: str
    search: str
    p_value: str
    n: int
    draws: int
    broken: float
    broken_low: float
    broken_high: float
    certified: float
    coverage: float
    oracle_coverage: float

    def is_kept(self, rows: int = 1) -> bool:
        """Return whether the draws are compatible with a probability of at most δ.

        Parameters
        ----------
        rows
            Number of rows of the table: with many, some are far from δ by chance (Bonferroni correction).
        """
        from scipy.stats import binom

        p_value = float(binom.sf(round(self.broken * self.draws) - 1, self.draws, DELTA))
        return p_value * rows > 1.0 - LEVEL


def settings() -> list[Setting]:
    """Return every row: models by old and new procedure, hostile populations by the new one."""
    rows = []
    for scenario in MODELS:
        tests: list[tuple[SearchName, PValueName]] = [("candidates", "binomial"), ("ranks", "binomial")]
        if scenario.target.below_dice is None:
            tests = [("candidates", "betting"), ("ranks", "betting"), ("ranks", "adaptive-betting")]
        rows += [Setting(scenario, search, test, n) for search, test in tests for n in CASES]
    for name in (*HOSTILE, *_ATOMS):
        for risk in HOSTILE_RISKS:
            for losses in LOSSES:
                scenario = Scenario(f"{name}, losses {losses}", Target(risk), hostile=(name, losses))
                hostile_tests: tuple[PValueName, ...] = ("adaptive-betting",)
                if losses == "0 or 1":
                    hostile_tests = ("adaptive-betting", "betting")
                rows += [Setting(scenario, "ranks", test, n) for test in hostile_tests for n in HOSTILE_CASES]
            scenario = Scenario(f"{name}, failures", Target(risk, below_dice=0.5), hostile=(name, "0 or 1"))
            rows += [Setting(scenario, "ranks", "binomial", n) for n in HOSTILE_CASES]
    mean, failures = _BETWEEN_TARGETS
    scenario = Scenario(BETWEEN, mean, hostile=(BETWEEN, ""), also=failures)
    return [*rows, *(Setting(scenario, "ranks", "suited", n) for n in HOSTILE_CASES)]


def parts_of(draws: int, seed: int) -> list[Part]:
    """Return blocks of draws of every row; each weighs as many as it has draws."""
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
        Random seed of the populations; draw i of n cases has the seed (i, n).
    folder
        Folder for finished parts, which are not computed again; ``None`` keeps nothing.
    workers
        Number of processes.
    advance
        Called with the number of draws of each part when it is done.

    Examples
    --------
    >>> outcomes = simulate_validity(draws=1)
    >>> len(outcomes) == len(settings()), outcomes[0].draws, outcomes[0].is_kept()
    (True, 1, True)
    """
    store = store_of(folder, {"seed": seed, "delta": DELTA})
    parts = compute_parts(parts_of(draws, seed), store, workers=workers, advance=advance)
    return [
        _outcome(
            setting,
            seed,
            np.concatenate([parts[_part_name(setting, block)]["accepted"] for block in _blocks(draws)]),
        )
        for setting in settings()
    ]


def _draw_block(setting: Setting, seed: int, block: range) -> dict[str, Any]:
    population = setting.scenario.population(seed)
    return {"accepted": np.array([_certified_cases(population, setting, draw) for draw in block])}


def _certified_cases(population: Population, setting: Setting, draw: int) -> int:
    """Return how many cases of the population the threshold of one draw accepts; 0 if there is none."""
    rng = np.random.default_rng([draw, setting.n])
    # Where many confidences are equal, the operating system supplies the seed; here, the draw does.
    random_seed = draw if setting.scenario.hostile[0] in _ATOMS else None
    procedure = Procedure(setting.p_value, search=setting.search, seed=random_seed)
    cases = population.cases.part(rng.integers(0, population.loss.size, setting.n))
    if setting.search == "candidates" and setting.n * procedure.set_aside < 10:
        return 0  # too few to set some aside
    found = find_threshold(cases, setting.scenario.targets, DELTA, procedure)
    return 0 if found.threshold is None else population.accepted(found.threshold)


def _outcome(setting: Setting, seed: int, accepted: Any) -> Outcome:
    """Return a row; ``accepted`` is the number of cases of the population that each draw accepts."""
    targets, population = setting.scenario.targets, setting.scenario.population(seed)
    within = np.all([population.true_risks(target) <= target.risk for target in targets], axis=0)
    some = accepted > 0
    broken = some & ~within[accepted - 1]
    # Cases of equal confidence are accepted together.
    ends = np.append(population.confidence[1:] < population.confidence[:-1], True)
    largest = np.flatnonzero(ends & within).max(initial=-1) + 1
    size = population.loss.size
    return Outcome(
        setting.scenario.name,
        " and ".join(map(str, targets)),
        setting.search,
        setting.p_value,
        setting.n,
        accepted.size,
        float(broken.mean()),
        *clopper_pearson(int(broken.sum()), accepted.size, LEVEL),
        float(some.mean()),
        float(accepted.mean() / size),
        float(largest / size),
    )


_TITLES = {
    ("candidates", "betting"): "a fifth set aside, fixed stakes (0.1.0)",
    ("candidates", "binomial"): "a fifth set aside, binomial (0.1.0)",
    ("ranks", "betting"): "every rank, fixed stakes",
    ("ranks", "adaptive-betting"): "every rank, adaptive stakes",
    ("ranks", "binomial"): "every rank, binomial",
}
_COLOURS = dict(zip(_TITLES, ("#999999", "#999999", "#56b4e9", "#0072b2", "#009e73"), strict=True))


def draw_validity(outcomes: Sequence[Outcome], *, delta: float) -> Any:
    """Draw how often the guarantees of models are broken, and their coverage, by the number of cases."""
    models = {scenario.name for scenario in MODELS}
    outcomes = [outcome for outcome in outcomes if outcome.scenario in models]
    scenarios = list(dict.fromkeys(outcome.scenario for outcome in outcomes))
    figure, axes = new_axes(2, len(scenarios), width=2.9 * len(scenarios), height=4.8)
    for column, scenario in enumerate(scenarios):
        chosen = [outcome for outcome in outcomes if outcome.scenario == scenario]
        above, below = axes[:, column]
        above.set_title(f"{scenario}\n{chosen[0].target}", fontsize=7)
        for key in dict.fromkeys((outcome.search, outcome.p_value) for outcome in chosen):
            rows = [outcome for outcome in chosen if (outcome.search, outcome.p_value) == key]
            cases = [row.n for row in rows]
            style = {"marker": "o", "markersize": 3, "color": _COLOURS[key], "label": _TITLES[key]}
            above.plot(cases, [row.broken for row in rows], **style)
            below.plot(cases, [row.coverage for row in rows], **style)
            for row in rows:
                above.vlines(row.n, row.broken_low, row.broken_high, color=_COLOURS[key], linewidth=1)
        above.axhline(delta, color="black", linewidth=0.8, linestyle="--", label="allowed")
        below.axhline(chosen[0].oracle_coverage, color="black", linewidth=0.8, linestyle=":", label="oracle")
        above.set_ylim(0.0, 1.4 * delta)
        below.set_ylim(0.0, 1.0)
        for part in (above, below):
            part.set_xscale("log")
            part.set_xticks(CASES, [str(n) for n in CASES], minor=False)
            part.set_xlabel("calibration cases")
    axes[0, 0].set_ylabel("share of broken guarantees")
    axes[1, 0].set_ylabel("true coverage")
    for part in axes[1, [0, 1]]:
        part.legend(frameon=False, fontsize=6)
    return figure
