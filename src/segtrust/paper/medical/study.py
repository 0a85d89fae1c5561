"""One task: its score table, its evaluation and its tuning curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from segtrust.confidence import ConfidenceEstimator, Estimators, get_estimator
from segtrust.engine import (
    LossSource,
    ScoreJob,
    ScoreRun,
    SetReader,
    drop_rows_without_loss,
    fit_to_sets,
    make_executor,
    score_cases,
)
from segtrust.errors import TooFewCasesError
from segtrust.evaluation import (
    EvaluatedSet,
    EvaluationSettings,
    FileCase,
    TunedSets,
    TuningPlan,
    cases_of_set,
    evaluate_sets,
    evaluated_sets,
    tune_sets,
)
from segtrust.io import Failure, ReadOptions, ScoreRow
from segtrust.paper.medical.published import (
    PublishedFeatureAggregation,
    PublishedMedianMinMax,
    PublishedSoftDiceFeatureAggregation,
    PublishedThresholdLevel,
    Stretched,
    published_sizes,
)
from segtrust.paper.medical.sources import ID, TaskMaps
from segtrust.selective import Bootstrap

__all__ = ["MedicalSettings", "TaskResult", "WorkPlan", "study_task"]

_PLAIN = ("amsp", "ane", "mmmc", "pla", "tla", "sdc", "idc")
_PUBLISHED: dict[str, Callable[[], ConfidenceEstimator]] = {
    "mmmc": PublishedMedianMinMax,
    "tla": PublishedThresholdLevel,
    "aef": PublishedFeatureAggregation,
    "aef-sdc": PublishedSoftDiceFeatureAggregation,
}


@dataclass(frozen=True)
class MedicalSettings:
    """What is computed of each task.

    Attributes
    ----------
    plain
        Estimators that need no truths.
    tuned
        Estimators that learn from truths, and those that are drawn beside them.
    repeats, seed
        Splits for each size of a tuning set, and the seed of the first; 0 for no tuning curves.
    resamples
        Of the bootstrap.
    deviations
        Of the authors' notebooks, by their names in `segtrust.paper.medical.published.DEVIATIONS`.
    """

    plain: tuple[str, ...] = _PLAIN
    tuned: tuple[str, ...] = ("sdc", "sdc-tuned", "pla-tuned", "aef", "aef-sdc")
    repeats: int = 50
    seed: int = 0
    resamples: int = 2000
    deviations: frozenset[str] = frozenset()

    def estimators(self, names: Sequence[str]) -> list[ConfidenceEstimator]:
        """Make estimators, those of the notebooks where that is asked for."""
        return [self._estimator(name) for name in names]

    def _estimator(self, name: str) -> ConfidenceEstimator:
        is_published = name.removesuffix("-sdc") in self.deviations and name in _PUBLISHED
        return _PUBLISHED[name]() if is_published else get_estimator(name)

    @property
    def recalibration(self) -> Any:
        """What is done with the maps before anything else."""
        return Stretched() if "stretched" in self.deviations else None

    @property
    def evaluation(self) -> EvaluationSettings:
        """How cases are judged: those with an empty truth are left out, as in the paper."""
        return EvaluationSettings(self.plain, drop_empty=True, bootstrap=Bootstrap(resamples=self.resamples))

    @property
    def tuning(self) -> TuningPlan:
        """How sets are split."""
        learning: Estimators = self.estimators(self.tuned)
        kind = PublishedPlan if self.interpolates else TuningPlan
        return kind(learning, repeats=self.repeats, seed=self.seed)

    @property
    def interpolates(self) -> bool:
        """Whether the columns of the tables lie between sizes."""
        return "interpolated" in self.deviations


@dataclass(frozen=True)
class PublishedPlan(TuningPlan):
    """Splits sets at the sizes of the authors' notebooks, which are none of the shares."""

    shares: tuple[float, ...] = ()

    def sizes(self, n: int) -> list[int]:
        """Give the sizes for so many cases."""
        return sorted({size for _, size in published_sizes(n)})


@dataclass(frozen=True)
class WorkPlan:
    """Where results of a task are kept, and how the work is done.

    Attributes
    ----------
    out
        Folder of the task.
    workers
        Processes at work.
    advance
        Told of each case, and of each split.
    """

    out: Path
    workers: int = 1
    advance: Callable[[int], object] = field(default=lambda done: None)


@dataclass(frozen=True)
class TaskResult:
    """What came of a task.

    Attributes
    ----------
    task
        Which.
    sets
        With confidences and losses of each case.
    tables
        Of `segtrust.evaluation.evaluate_sets`.
    tuning
        A row for each estimator, set, size and split.
    failures
        Cases that gave no result.
    timings
        Seconds of each step.
    """

    task: TaskMaps
    sets: tuple[EvaluatedSet, ...]
    tables: Mapping[str, list[ScoreRow]]
    tuning: tuple[ScoreRow, ...]
    failures: tuple[Failure, ...]
    timings: dict[str, float]

    def cases(self, found: EvaluatedSet) -> list[FileCase]:
        """Give the cases of one of its sets that count, in the order of its rows."""
        files = {case.id: case for case in self.task.cases.cases}
        return cases_of_set(found, files, ReadOptions(threshold=self.task.threshold))


def study_task(task: TaskMaps, settings: MedicalSettings, work: WorkPlan) -> TaskResult:
    """Score the cases of a task, judge them, and draw tuning curves of each of its sets."""
    read = ReadOptions(threshold=task.threshold)
    begin = perf_counter()
    rows, failures = _scored(task, settings, work, read)
    if not rows:
        raise TooFewCasesError(
            f"{task.name}: expected cases to judge, got none that can be read; "
            f"{work.out / 'failures.csv'} tells why."
        )
    scored = perf_counter()
    sets = _evaluated(rows, settings.evaluation)
    tables = evaluate_sets(sets, settings.evaluation)
    evaluated = perf_counter()
    tuning = _tuned(task, sets, settings, work, read) if settings.repeats else []
    seconds = (scored - begin, evaluated - scored, perf_counter() - evaluated)
    timings: dict[str, float] = dict(zip(("scoring", "intervals and tests", "tuning"), seconds, strict=True))
    return TaskResult(task, tuple(sets), tables, tuple(tuning), failures, timings)


def _scored(
    task: TaskMaps, settings: MedicalSettings, work: WorkPlan, read: ReadOptions
) -> tuple[Sequence[ScoreRow], tuple[Failure, ...]]:
    """Make the score table of a task, or go on with it."""
    plain = [each for each in settings.estimators(settings.plain) if each.name != "tla"]
    unlabelled = [each for each in settings.estimators(settings.plain) if each.name == "tla"]
    reader = SetReader(read, settings.recalibration, drop_empty=True)
    job = ScoreJob(
        tuple(plain),
        read,
        settings.recalibration,
        of_sets=fit_to_sets(unlabelled, task.cases, reader),
    )
    judge = LossSource()
    executor = make_executor(work.workers)
    run = ScoreRun(work.out / "scores.parquet", executor, advance=work.advance, overwrite=True)
    found = score_cases(task.cases, job, run, finish=judge.add_to, more=judge.about)
    scored = drop_rows_without_loss(found, judge)
    return scored.rows, scored.failures


def _evaluated(rows: Sequence[ScoreRow], how: EvaluationSettings) -> list[EvaluatedSet]:
    by_set: dict[str, list[ScoreRow]] = {}
    for row in sorted(rows, key=lambda row: row["set"] != ID):
        by_set.setdefault(row["set"], []).append(row)
    return evaluated_sets(by_set, how)


def _tuned(
    task: TaskMaps,
    sets: Sequence[EvaluatedSet],
    settings: MedicalSettings,
    work: WorkPlan,
    read: ReadOptions,
) -> list[ScoreRow]:
    files = {case.id: case for case in task.cases.cases}
    cases = [(found, cases_of_set(found, files, read, settings.recalibration)) for found in sets]
    targets = {each.structure: each.full_risk for each in sets if each.name == ID}
    how = TunedSets(work.out / "parts", work.workers, work.advance)
    return tune_sets(cases, targets, settings.tuning, how)
