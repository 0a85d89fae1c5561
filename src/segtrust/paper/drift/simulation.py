"""What becomes of a certified promise when the cases change, and whether an alarm comes before it breaks.

A policy is certified on cases of the population of `segtrust.paper.validity`; then cases arrive, at
first from the same population, later from one that has changed. What changes is known, so the true selective
risk is, at every moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import check_count
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.evaluation import Part, PartStore, compute_parts, store_of
from segtrust.io import Table
from segtrust.paper.drift.streams import Stream, StreamSource, TrueRisk, Watched, watch_stream
from segtrust.paper.validity import Population, dice_population
from segtrust.selective import CalibrationCases, Target

__all__ = [
    "DRIFTS",
    "ELSEWHERE",
    "Change",
    "Drift",
    "DriftResults",
    "DriftSettings",
    "Recorded",
    "Simulated",
    "parts_of",
    "run_drift",
    "sources_of",
    "store_for",
]

_BLOCK = 20
"""Streams of a part."""
_RAMP_STEPS = 20
_RECORDED_BATCH = 20
_CALIBRATED = 0.75
"""Share of recorded cases that the policy is made with; the others arrive before the change."""
_SCALARS = (
    *("threshold", "martingale", "batch", "quiet_alarms", "broken_now", "broken_since"),
    *("exposed_martingale", "exposed_batch"),
)
_CURVES = ("risk_now", "risk_since", "taken", "lost")


@dataclass(frozen=True)
class Change:
    """How cases differ from those of the calibration.

    Attributes
    ----------
    tilt
        The least confident case is exp(tilt) times as frequent, against the most confident one, as before;
        what a confidence means stays as it was.
    dice_lost
        Share of every Dice that is lost, whatever the confidence.
    logit_shift
        Added to the logit of every confidence.
    """

    tilt: float = 0.0
    dice_lost: float = 0.0
    logit_shift: float = 0.0

    def ranks(self, uniform: Any, level: Any) -> Any:
        """Turn uniform numbers into ranks in [0, 1), the most confident first, at a level of the change."""
        tilt = np.maximum(self.tilt * level, 1e-9)
        return np.log1p(uniform * np.expm1(tilt)) / tilt

    def losses(self, loss: Any, level: Any) -> Any:
        """Give the losses after the change."""
        return 1.0 - (1.0 - self.dice_lost * level) * (1.0 - loss)

    def confidences(self, confidence: Any, level: Any) -> Any:
        """Give the confidences after the change."""
        return 1.0 / (1.0 + (1.0 / confidence - 1.0) * np.exp(-self.logit_shift * level))


@dataclass(frozen=True)
class Drift:
    """A kind of drift, at one strength.

    Attributes
    ----------
    kind, strength
        In words.
    changes
        One, or several that occur equally often.
    ramp
        Cases over which it grows to its full level; 0 is at once.
    """

    kind: str
    strength: str = ""
    changes: tuple[Change, ...] = (Change(),)
    ramp: int = 0

    @property
    def name(self) -> str:
        """Of its parts."""
        return "-".join(f"{self.kind} {self.strength}".replace(",", "").split())

    def levels(self, before: int, after: int) -> Any:
        """Level of the change, from 0 to 1, for each case of a stream; a ramp has 20 steps."""
        if not self.ramp:
            return np.repeat([0.0, 1.0], [before, after])
        steps = np.ceil(np.arange(1, after + 1) * _RAMP_STEPS / self.ramp) / _RAMP_STEPS
        return np.append(np.zeros(before), np.minimum(steps, 1.0))


_STRENGTHS = ("weak", "medium", "strong")
_TILTS, _LOST, _SHIFTS = (1.0, 2.0, 4.0), (0.02, 0.05, 0.10), (0.25, 0.5, 1.0)


def _drifts() -> Iterator[Drift]:
    yield Drift("none")
    for strength, tilt, lost, shift in zip(_STRENGTHS, _TILTS, _LOST, _SHIFTS, strict=True):
        harder, bolder = Change(tilt=tilt), Change(dice_lost=lost, logit_shift=shift)
        yield Drift("harder cases, at once", strength, (harder,))
        yield Drift("harder cases, by and by", strength, (harder,), ramp=400)
        yield Drift("worse masks, as confident", strength, (Change(dice_lost=lost),))
        yield Drift("worse masks, more confident", strength, (bolder,))
        yield Drift("half harder, half more confident", strength, (harder, bolder))


DRIFTS = tuple(sorted(_drifts(), key=lambda drift: drift.kind != "none"))
"""All that is simulated."""
ELSEWHERE = Drift("other data")
"""What real cases are called."""


@dataclass(frozen=True)
class DriftSettings:
    """What the experiment depends on.

    Attributes
    ----------
    runs
        Streams of each drift, every one with calibration cases of its own.
    cases, references
        Labelled calibration cases, and unlabelled ones for candidate thresholds.
    before, after
        Cases that arrive before and after the change begins.
    batch
        Cases that ``triage`` gets at a time.
    target_risk
        Limit on the mean loss that is promised.
    seed
        Of the population and of all draws.
    """

    runs: int = 200
    cases: int = 500
    references: int = 300
    before: int = 200
    after: int = 800
    batch: int = 100
    target_risk: float = 0.10
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, least in (("runs", 1), ("cases", 2), ("references", 10), ("batch", 2), ("seed", 0)):
            check_count(getattr(self, name), name, least=least)
        for name in ("before", "after"):
            check_count(getattr(self, name), name, least=self.batch)
        Target(self.target_risk)

    @property
    def target(self) -> Target:
        """What is promised."""
        return Target(self.target_risk)

    def parameters(self) -> dict[str, Any]:
        """All of them by name, as JSON can hold them."""
        return asdict(self)


@cache
def _population(seed: int) -> Population:
    """Make the population once in each process."""
    return dice_population(seed=seed)


@dataclass(frozen=True)
class Simulated:
    """Streams of made-up cases; a `segtrust.paper.drift.streams.StreamSource`."""

    drift: Drift
    settings: DriftSettings

    @property
    def change(self) -> int:
        """Cases that arrive before anything changes."""
        return self.settings.before

    @property
    def population(self) -> Population:
        """The cases before the change."""
        return _population(self.settings.seed)

    @cached_property
    def levels(self) -> Any:
        """Level of the change for each case of a stream."""
        return self.drift.levels(self.settings.before, self.settings.after)

    def draw(self, rng: np.random.Generator) -> Stream:
        """Give a stream."""
        reference, _ = self.population.draw(rng, self.settings.references)
        labelled = self.population.draw(rng, self.settings.cases)
        uniform, which = (
            rng.random(self.levels.size),
            rng.integers(len(self.drift.changes), size=self.levels.size),
        )
        drawn = [self._changed(change, uniform) for change in self.drift.changes]
        confidence, loss = (np.choose(which, each) for each in zip(*drawn, strict=True))
        return Stream(CalibrationCases(*labelled, reference=reference), confidence, loss)

    def _changed(self, change: Change, uniform: Any) -> tuple[Any, Any]:
        size = self.population.loss.size
        at = np.minimum((change.ranks(uniform, self.levels) * size).astype(int), size - 1)
        confidence, loss = self.population.confidence[at], self.population.loss[at]
        return change.confidences(confidence, self.levels), change.losses(loss, self.levels)

    def true_risk(self, threshold: float) -> TrueRisk:
        """Give what a threshold does to its cases."""
        levels, place = np.unique(self.levels, return_inverse=True)
        found = [
            np.mean([self._moments(each, x, threshold) for each in self.drift.changes], axis=0)
            for x in levels
        ]
        accepted, lost = np.array(found)[place].T
        return TrueRisk(accepted, lost)

    def _moments(self, change: Change, level: float, threshold: float) -> tuple[float, float]:
        """Give the chance of being accepted at a level of a change, and the expected loss of the accepted."""
        lowest = Change(logit_shift=-change.logit_shift).confidences(threshold, level)
        count = self.population.accepted(lowest)
        tilt = change.tilt * level
        ends = np.linspace(0.0, 1.0, self.population.loss.size + 1)[: count + 1]
        shares = np.diff(np.expm1(tilt * ends) / np.expm1(tilt)) if tilt else np.diff(ends)
        return float(shares.sum()), float(shares @ change.losses(self.population.loss[:count], level))


@dataclass(frozen=True, eq=False)
class Recorded:
    """Streams of real cases: in random order some of one kind, then all of another.

    Attributes
    ----------
    inside, outside
        Confidence and loss of each case, of shape (2, cases).
    """

    inside: Any
    outside: Any

    @classmethod
    def of(cls, inside: Sequence[Table], outside: Sequence[Table]) -> Recorded:
        """Take soft Dice confidence and Dice of the cases of score tables whose truth is not empty."""
        kinds = {"inside": inside, "outside": outside}
        return cls(
            **{
                name: np.concatenate([_confidences_and_losses(each, name) for each in tables], axis=1)
                for name, tables in kinds.items()
            }
        )

    def __post_init__(self) -> None:
        """Refuse fewer cases than make a batch on each side of the change."""
        for name, least in (("inside", 4 * _RECORDED_BATCH), ("outside", _RECORDED_BATCH)):
            if getattr(self, name).shape[1] < least:
                found = getattr(self, name).shape[1]
                raise TooFewCasesError(f"{name}: expected at least {least} cases, got {found}.")

    @property
    def digest(self) -> str:
        """Tells these cases from others."""
        return sha256(self.inside.tobytes() + self.outside.tobytes()).hexdigest()[:12]

    @property
    def labelled(self) -> int:
        """Cases that the policy is made with."""
        return round(_CALIBRATED * float(self.inside.shape[1]))

    @property
    def change(self) -> int:
        """Cases that arrive before anything changes."""
        return int(self.inside.shape[1]) - self.labelled

    def draw(self, rng: np.random.Generator) -> Stream:
        """Give a stream."""
        inside, outside = (rng.permutation(each, axis=1) for each in (self.inside, self.outside))
        arrived = np.concatenate([inside[:, self.labelled :], outside], axis=1)
        return Stream(CalibrationCases(*inside[:, : self.labelled]), *arrived)

    def true_risk(self, threshold: float) -> TrueRisk:
        """Give what a threshold does to all cases of a kind."""
        moments = [
            ((confidence >= threshold).mean(), np.mean(loss * (confidence >= threshold)))
            for confidence, loss in (self.inside, self.outside)
        ]
        accepted, lost = np.repeat(moments, [self.change, self.outside.shape[1]], axis=0).T
        return TrueRisk(accepted, lost)


def _confidences_and_losses(table: Table, name: str) -> Any:
    missing = [each for each in ("sdc", "dice", "truth_ratio") if each not in table.columns]
    if missing:
        raise ParameterError(
            f"{name}: expected a score table with the column {missing[0]!r}, got {', '.join(table.columns)}. "
            "Score with --truth, and with sdc among the --estimators."
        )
    rows = [row for row in table.rows if row["truth_ratio"]]
    return np.array([[row["sdc"] for row in rows], [1.0 - row["dice"] for row in rows]])


def _watch_block(source: StreamSource, settings: DriftSettings, name: str, block: range) -> dict[str, Any]:
    """Watch some streams; the seed of each is made of its number and the name of its drift."""
    batch = settings.batch if isinstance(source, Simulated) else _RECORDED_BATCH
    seeds = ([settings.seed, run, *name.encode()] for run in block)
    return _arrays_of(
        [watch_stream(source, settings.target, np.random.default_rng(seed), batch=batch) for seed in seeds]
    )


def _arrays_of(watched: list[Watched]) -> dict[str, Any]:
    """Bring streams together; curves are those of the certified ones alone."""
    certified = [each for each in watched if np.isfinite(each.threshold)]
    scalars = {name: np.array([getattr(each, name) for each in watched]) for name in _SCALARS}
    return scalars | {name: np.array([getattr(each, name) for each in certified]) for name in _CURVES}


def _blocks(runs: int) -> list[range]:
    return [range(first, min(first + _BLOCK, runs)) for first in range(0, runs, _BLOCK)]


def _part_name(drift: Drift, source: StreamSource, block: range) -> str:
    made_of = f"-{source.digest}" if isinstance(source, Recorded) else ""
    return f"{drift.name}{made_of}-{block.start:05d}-{block.stop:05d}"


def sources_of(settings: DriftSettings, recorded: Recorded | None = None) -> dict[Drift, StreamSource]:
    """Give where the streams of each drift come from; real ones too, where there are any."""
    simulated: dict[Drift, StreamSource] = {drift: Simulated(drift, settings) for drift in DRIFTS}
    return simulated if recorded is None else {**simulated, ELSEWHERE: recorded}


def parts_of(settings: DriftSettings, recorded: Recorded | None = None) -> list[Part]:
    """Blocks of streams of every drift; each weighs as many as it has streams."""
    return [
        Part(
            _part_name(drift, source, block),
            partial(_watch_block, source, settings, drift.name, block),
            weight=len(block),
        )
        for block in _blocks(settings.runs)
        for drift, source in sources_of(settings, recorded).items()
    ]


def store_for(settings: DriftSettings, folder: str | Path | None) -> PartStore:
    """Give the store of finished parts, which depend on all settings but the number of runs."""
    every = {name: value for name, value in settings.parameters().items() if name != "runs"}
    return store_of(folder, every)


@dataclass(frozen=True, eq=False)
class DriftResults:
    """All that the streams gave; made by `run_drift`.

    Attributes
    ----------
    settings
        The parameters.
    streams
        Arrays of each drift: those of `segtrust.paper.drift.streams.Watched`, the first axis being streams.
    sources
        Where they came from.
    """

    settings: DriftSettings
    streams: dict[Drift, dict[str, Any]]
    sources: dict[Drift, StreamSource]


def run_drift(
    settings: DriftSettings | None = None,
    *,
    recorded: Recorded | None = None,
    folder: str | Path | None = None,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> DriftResults:
    """Watch streams of every kind of drift.

    Parameters
    ----------
    settings
        Parameters; the usual ones where there are none.
    recorded
        Real cases to be watched as well.
    folder
        Where finished parts are kept, and looked for; ``None`` keeps nothing. More runs go on with those that
        are there.
    workers, advance
        As for `segtrust.evaluation.compute_parts`; weights are streams.

    Examples
    --------
    >>> few = DriftSettings(runs=1, cases=200, before=50, after=50, batch=50)
    >>> results = run_drift(few)
    >>> len(results.streams), results.streams[DRIFTS[0]]["martingale"].shape
    (16, (1,))
    """
    settings = settings or DriftSettings()
    store = store_for(settings, folder)
    parts = compute_parts(parts_of(settings, recorded), store, workers=workers, advance=advance)
    sources = sources_of(settings, recorded)
    streams = {
        drift: _joined([parts[_part_name(drift, source, block)] for block in _blocks(settings.runs)])
        for drift, source in sources.items()
    }
    return DriftResults(settings, streams, sources)


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Put blocks of streams together; a block without a certified stream has no curves."""
    filled = [part for part in parts if part["risk_now"].size] or parts
    scalars = {name: np.concatenate([part[name] for part in parts]) for name in _SCALARS}
    return scalars | {name: np.concatenate([part[name] for part in filled]) for name in _CURVES}
