"""The paper's tuning protocol (section 7.4): what estimators gain with the size of their tuning set.

The cases are split again and again into a tuning set and a test set. Each estimator is fitted on the one and
judged on the other. The maps are looked at once: what an estimator needs of a case is observed, kept, and
used in all splits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import check_whole, describe
from segtrust._files import checksum
from segtrust.confidence import ConfidenceEstimator, Estimators, Observation, get_estimators, loss_of
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.evaluation.parts import Arrays, Part, PartStore, compute_parts
from segtrust.evaluation.tables import REFERENCES
from segtrust.kernels import on_host
from segtrust.maps import Case, EmptyPolicy
from segtrust.selective import RiskCoverageCurve, check_target_risk, trace_curve

Row = dict[str, Any]
Lazy = Case | Callable[[], Case]
"""A case, or a function that loads it."""

HERE, ELSEWHERE = "test", "elsewhere"
"""Names of the two kinds of test cases in the rows."""
_MOST_SIZES = 16
_FEWEST_TESTED = 2
_SEEDS = 2**32
_ADDRESS = " at 0x"
"""In the ``repr`` of what has no other name than its place in memory."""


def tuning_sizes(n: int) -> list[int]:
    """Give up to 16 sizes of a tuning set, from 2 to half of ``n`` cases, each by the same factor larger.

    Examples
    --------
    >>> tuning_sizes(162)
    [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64, 81]
    """
    if not isinstance(n, Integral) or n < 4:
        raise TooFewCasesError(f"n: expected a whole number of at least 4 cases, got {n!r}.")
    half = int(n) // 2
    wanted = points = min(_MOST_SIZES, half - 1)
    while True:
        grid = np.round(np.geomspace(2.0, n / 2.0, points)).astype(int)
        found = sorted({min(int(size), half) for size in grid})
        if len(found) >= wanted:
            return found
        points += 1


def split_cases(n: int, size: int, seed: int) -> tuple[Any, Any]:
    """Give the places of the tuning and of the test cases of a random split.

    It is that of scikit-learn's ``ShuffleSplit(1, train_size=size, random_state=seed)``.

    Examples
    --------
    >>> tuning, test = split_cases(5, 2, seed=0)
    >>> tuning.tolist(), test.tolist()
    ([3, 4], [2, 0, 1])
    """
    if not 0 <= size <= n:
        raise TooFewCasesError(f"size: expected from 0 to {n} of {n} cases, got {size!r}.")
    # The old generator, because the published splits are made with it.
    order = np.random.RandomState(seed).permutation(n)
    return order[n - size :], order[: n - size]


@dataclass(frozen=True)
class TuningOptions:
    """How a tuning curve is computed, and what else is asked of it.

    Attributes
    ----------
    target_risk
        Risk at which the coverage is read off, or ``None`` for no coverage.
    elsewhere
        Cases of another distribution, on which the estimators that were fitted here are tested too.
    folder
        Where finished parts are kept, so that a run that was stopped goes on; ``None`` keeps nothing. Parts
        of other cases are told by their arrays and thresholds, or by the ``fingerprint``, the arguments (of
        ``functools.partial``) or the ``repr`` of what loads a case.
    about
        What else the parts depend on, such as the files of the cases, as values that JSON can hold.
    workers
        Processes at work.
    advance
        Told how many of the steps are done: one for each case, and one for each repeat.
    """

    target_risk: float | None = None
    elsewhere: Sequence[Lazy] = ()
    folder: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    advance: Callable[[int], object] = lambda done: None


@dataclass(frozen=True)
class _Seen:
    """What was observed of some cases: a list for each observer, and the loss of each case."""

    observations: Mapping[str, Sequence[Observation]]
    losses: Any


@dataclass(frozen=True)
class _Study:
    """All that a repeat needs, sent to the process that computes it."""

    estimators: Sequence[ConfidenceEstimator]
    sizes: Sequence[int]
    seed: int
    target_risk: float | None
    here: _Seen
    elsewhere: _Seen | None


def tuning_curve(
    cases: Sequence[Lazy],
    estimators: Estimators,
    sizes: Sequence[float] | None = None,
    *,
    repeats: int = 50,
    seed: int = 0,
    options: TuningOptions | None = None,
) -> list[Row]:
    """Split cases at random, fit each estimator on one part, the tuning set, and judge it on the other.

    Parameters
    ----------
    cases
        Labelled cases, or functions that load one each, which can be sent to other processes.
    estimators
        Names, or estimators with settings of their own. Those that learn nothing are judged all the same.
        All have the same policy for empty masks, which the losses follow too.
    sizes
        Cases of the tuning set: whole numbers, or shares of all cases between 0 and 1, rounded down; those of
        `tuning_sizes` where none are given. At least two cases must be left for the test.
    repeats
        Splits for each size; split ``i`` is that of `split_cases` with the seed ``seed + i``.
    seed
        Of the first split.
    options
        Coverage, cases from elsewhere, and how the work is done.

    Returns
    -------
    list of dict
        A row for each estimator (and ``"oracle"`` and ``"random"``), set of test cases, size and repeat:
        ``estimator``, ``set`` (``"test"`` or ``"elsewhere"``), ``size``, ``repeat``, ``aurc``,
        ``target_risk`` and ``coverage``, which is ``None`` where the target risk is not reached or none is
        given. The same seed gives the same rows, on any number of processes.

    Examples
    --------
    >>> from segtrust.demo import lesion_cases
    >>> rows = tuning_curve(lesion_cases(), ["sdc", "sdc-tuned"], [4], repeats=2)
    >>> [(row["estimator"], row["repeat"]) for row in rows][:3]
    [('sdc', 0), ('sdc-tuned', 0), ('oracle', 0)]
    """
    options = _checked_options(options)
    cases = _checked_cases(cases, "cases")
    chosen = _checked_estimators(estimators)
    counts = _counts(sizes, len(cases))
    _check_repeats(repeats, seed)
    here = _observe("here", cases, chosen, options)
    elsewhere = _observe("elsewhere", options.elsewhere, chosen, options) if options.elsewhere else None
    study = _Study(chosen, counts, seed, options.target_risk, here, elsewhere)
    parts = [Part(f"repeat-{i:04d}", partial(_repeat, study, i)) for i in range(repeats)]
    made_with = _made_with(cases, chosen, options) | {
        "sizes": counts,
        "seed": seed,
        "target_risk": options.target_risk,
    }
    found = compute_parts(
        parts, _store(options, "repeats", made_with), workers=options.workers, advance=options.advance
    )
    return [row for i in range(repeats) for row in _rows(study, i, found[f"repeat-{i:04d}"])]


def _checked_estimators(estimators: Estimators) -> list[ConfidenceEstimator]:
    chosen = get_estimators(estimators)
    if not chosen:
        raise ParameterError("estimators: expected at least one, got none.")
    _policy_of(chosen)
    return chosen


def _policy_of(estimators: Sequence[ConfidenceEstimator]) -> EmptyPolicy:
    """Give what an empty mask is worth to all of them: they are judged by the same losses."""
    policies = {each.name: each.empty for each in estimators if hasattr(each, "empty")}  # pyright: ignore[reportAttributeAccessIssue]
    if len(set(policies.values())) > 1:
        listed = ", ".join(f"{name} {policy}" for name, policy in policies.items())
        raise ParameterError(
            f"estimators: expected one policy for empty masks, got {listed}. Give each the same `empty`."
        )
    return next(iter(policies.values()), EmptyPolicy.PAPER)


def _checked_options(options: TuningOptions | None) -> TuningOptions:
    """Refuse what cannot be judged before hours are spent."""
    if not isinstance(options, TuningOptions | None):
        raise ParameterError(f"options: expected TuningOptions(...), got {describe(options)}.")
    found = TuningOptions() if options is None else options
    if found.target_risk is not None:
        check_target_risk(found.target_risk)
    elsewhere = _checked_cases(found.elsewhere, "elsewhere")
    if 0 < len(elsewhere) < _FEWEST_TESTED:
        raise TooFewCasesError(f"elsewhere: expected none or at least {_FEWEST_TESTED} cases, got 1.")
    return replace(found, elsewhere=elsewhere)


def _checked_cases(cases: Any, name: str) -> list[Lazy]:
    if not isinstance(cases, Iterable):
        raise ParameterError(f"{name}: expected a list of cases, got {describe(cases)}.")
    listed = list(cases)
    for case in listed:
        if not (isinstance(case, Case) or callable(case)):
            raise ParameterError(
                f"{name}: expected Case(prediction, truth), or functions that load it, got {describe(case)}."
            )
    return listed


def _check_repeats(repeats: Any, seed: Any) -> None:
    check_whole(repeats, "repeats", least=1)
    check_whole(seed, "seed")
    if seed + repeats > _SEEDS:
        raise ParameterError(
            f"seed: expected one from which {repeats} seeds stay below {_SEEDS}, which is what NumPy's "
            f"RandomState takes, got {seed!r}."
        )


def _counts(sizes: Sequence[float] | None, n: int) -> list[int]:
    """Give the sizes as numbers of cases, each once, rising."""
    if sizes is None:
        return tuning_sizes(n)
    if not isinstance(sizes, Iterable) or isinstance(sizes, str):
        raise ParameterError(f"sizes: expected a list, got {describe(sizes)}. Put a single one into a list.")
    counts = sorted({_count(size, n) for size in sizes})
    if not counts:
        raise ParameterError("sizes: expected at least one, got none.")
    return counts


def _count(size: Any, n: int) -> int:
    if not isinstance(size, Real) or isinstance(size, bool) or not 0.0 < float(size) < math.inf:
        raise ParameterError(f"sizes: expected whole numbers, or shares between 0 and 1, got {size!r}.")
    is_share = float(size) < 1.0
    count = math.floor(float(size) * n + 1e-9) if is_share else math.floor(float(size))  # 0.29 · 100 = 28.99…
    if count != size and not is_share:
        raise ParameterError(f"sizes: expected whole numbers, or shares between 0 and 1, got {size!r}.")
    if not 1 <= count <= n - _FEWEST_TESTED:
        raise TooFewCasesError(
            f"sizes: {size!r} of {n} cases would leave {count} to learn from and {n - count} to test on; "
            f"expected at least 1 and {_FEWEST_TESTED}."
        )
    return count


def _made_with(
    cases: Sequence[Lazy], estimators: Sequence[ConfidenceEstimator], options: TuningOptions
) -> dict[str, Any]:
    """Say what parts depend on, with the cases by their fingerprint; nothing where no part is kept."""
    if options.folder is None:
        return {}
    prints = [[_fingerprint(each) for each in group] for group in (cases, options.elsewhere)]
    return {
        "estimators": [[each.name, repr(each)] for each in estimators],
        "cases": [len(cases), len(options.elsewhere)],
        "fingerprint": checksum(prints),
        **options.about,
    }


def _fingerprint(case: Any) -> Any:
    """Tell cases apart: by all that scores depend on, or by what a function that loads one says of it."""
    if isinstance(case, Case):
        prediction = case.prediction
        arrays = (prediction.probabilities, prediction.mask, case.truth)
        return [case.id, prediction.threshold, *map(_digest, arrays)]
    if isinstance(case, partial):
        named = [getattr(case.func, name, "") for name in ("__module__", "__qualname__")]
        return [*named, list(map(repr, case.args)), sorted(map(repr, case.keywords.items()))]
    found = getattr(case, "fingerprint", None) or repr(case)
    if _ADDRESS in str(found):
        raise ParameterError(
            f"cases: expected functions that can be told apart in a later run, got {found}. Give functools."
            "partial(load, path), or objects with an attribute `fingerprint`; or no folder."
        )
    return found


def _digest(values: Any) -> list[str] | None:
    if values is None:
        return None
    array = np.ascontiguousarray(on_host(values))
    return [str(array.shape), array.dtype.str, hashlib.sha256(array.tobytes()).hexdigest()]


def _store(options: TuningOptions, name: str, made_with: Mapping[str, Any]) -> PartStore:
    return PartStore(None if options.folder is None else Path(options.folder) / name, made_with)


def _observe(
    name: str, cases: Sequence[Lazy], estimators: Sequence[ConfidenceEstimator], options: TuningOptions
) -> _Seen:
    observers = {each.observer: each for each in estimators}
    parts = [
        Part(f"{name}-{i:05d}", partial(_observe_case, case, list(observers.values())))
        for i, case in enumerate(cases)
    ]
    made_with = _made_with(cases, list(observers.values()), replace(options, elsewhere=()))
    store = _store(options, "observations", made_with)
    found = compute_parts(parts, store, workers=options.workers, advance=options.advance)
    each_case = [found[part.name] for part in parts]
    return _Seen(
        {
            observer: [_unpacked(arrays, index) for arrays in each_case]
            for index, observer in enumerate(observers)
        },
        np.array([float(arrays["loss"]) for arrays in each_case]),
    )


def _observe_case(case: Lazy, observers: Sequence[ConfidenceEstimator]) -> Arrays:
    loaded = case if isinstance(case, Case) else case()
    if not isinstance(loaded, Case):
        raise ParameterError(f"cases: expected functions that load a Case, got {describe(loaded)} from one.")
    if loaded.truth is None:
        raise ParameterError(
            f"{loaded.prediction.source}: expected a case with a truth to judge by, got none."
        )
    arrays: Arrays = {"loss": np.float64(loss_of(loaded, _policy_of(observers)))}
    for index, each in enumerate(observers):
        arrays |= {f"{index}.{name}": np.asarray(value) for name, value in each.observe(loaded).items()}
    return arrays


def _unpacked(arrays: Arrays, index: int) -> dict[str, Any]:
    prefix = f"{index}."
    return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}


def _repeat(study: _Study, repeat: int) -> Arrays:
    """Give the AURC and the coverage by set, size and estimator; NaN where a coverage is not reached."""
    results = [_judge_size(study, size, study.seed + repeat) for size in study.sizes]
    aurc, coverage = np.moveaxis(np.array(results), -1, 0)
    return {"aurc": aurc.swapaxes(0, 1), "coverage": coverage.swapaxes(0, 1)}


def _judge_size(study: _Study, size: int, seed: int) -> list[list[tuple[float, float]]]:
    """Fit on one split and judge on its test cases, and on those from elsewhere."""
    tuning, test = split_cases(study.here.losses.size, size, seed)
    fitted = [_fit(each, study.here, tuning) for each in study.estimators]
    sets = [(study.here, test)]
    if study.elsewhere is not None:
        sets.append((study.elsewhere, np.arange(study.elsewhere.losses.size)))
    return [_judge(fitted, seen, places, study.target_risk) for seen, places in sets]


def _fit(estimator: ConfidenceEstimator, seen: _Seen, places: Any) -> ConfidenceEstimator:
    observations = seen.observations[estimator.observer]
    return estimator.fit_observations([observations[i] for i in places], seen.losses[places])


def _judge(
    fitted: Sequence[ConfidenceEstimator], seen: _Seen, places: Any, target: float | None
) -> list[tuple[float, float]]:
    losses = seen.losses[places]
    curves = []
    for each in fitted:
        observations = seen.observations[each.observer]
        curves.append(trace_curve(each.score_observations([observations[i] for i in places]), losses))
    references = curves[0].oracle, curves[0].random
    return [(curve.aurc, _coverage(curve, target)) for curve in (*curves, *references)]


def _coverage(curve: RiskCoverageCurve, target: float | None) -> float:
    found = None if target is None else curve.coverage_at_risk(target)
    return math.nan if found is None else found


def _rows(study: _Study, repeat: int, arrays: Arrays) -> list[Row]:
    names = [*(each.name for each in study.estimators), *REFERENCES]
    sets = [HERE] if study.elsewhere is None else [HERE, ELSEWHERE]
    return [
        {
            "estimator": name,
            "set": tested,
            "size": size,
            "repeat": repeat,
            "aurc": float(arrays["aurc"][i, j, k]),
            "target_risk": study.target_risk,
            "coverage": _or_none(float(arrays["coverage"][i, j, k])),
        }
        for i, tested in enumerate(sets)
        for j, size in enumerate(study.sizes)
        for k, name in enumerate(names)
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def summarise_tuning(rows: Sequence[Row]) -> list[Row]:
    """Bring the repeats together: mean and standard deviation (ddof 1) by estimator, set and size.

    A coverage that is not reached counts as 0 in the mean, and ``not_reached`` is the share of such repeats;
    without a target risk there is neither. A single repeat has no deviation.

    Examples
    --------
    >>> point = {"estimator": "sdc", "set": "test", "size": 5, "target_risk": 0.2}
    >>> rows = [{**point, "repeat": i, "aurc": 0.1 + i / 10, "coverage": (0.5, None)[i]} for i in (0, 1)]
    >>> found = summarise_tuning(rows)[0]
    >>> round(found["aurc"], 3), round(found["aurc_std"], 4), found["coverage"], found["not_reached"]
    (0.15, 0.0707, 0.25, 0.5)
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["estimator"], row["set"], row["size"]), []).append(row)
    return [_summary(key, group) for key, group in groups.items()]


def _summary(key: tuple[Any, ...], group: Sequence[Row]) -> Row:
    aurc = np.array([row["aurc"] for row in group])
    coverage = np.array([row["coverage"] or 0.0 for row in group])
    missed = sum(row["coverage"] is None for row in group) / len(group)
    is_asked = group[0]["target_risk"] is not None
    return {
        "estimator": key[0],
        "set": key[1],
        "size": key[2],
        "repeats": len(group),
        "aurc": float(aurc.mean()),
        "aurc_std": _deviation(aurc),
        "target_risk": group[0]["target_risk"],
        "coverage": float(coverage.mean()) if is_asked else None,
        "coverage_std": _deviation(coverage) if is_asked else None,
        "not_reached": missed if is_asked else None,
    }


def _deviation(values: Any) -> float | None:
    return float(values.std(ddof=1)) if values.size > 1 else None
