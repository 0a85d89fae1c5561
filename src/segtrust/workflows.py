"""The main jobs, from files to answers: score, evaluate, calibrate, triage, report.

The command line, nnU-Net, the demo and notebooks call these functions; nothing else puts the steps together.
Options have the names that they have on the command line; ``model`` is ``--predictor`` there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Required, TypedDict, Unpack, cast

from segtrust._arguments import check_fraction, check_whole, suggestion
from segtrust._progress import Progress, count_steps
from segtrust.calibration import Scaling
from segtrust.confidence import (
    ESTIMATORS,
    ConfidenceEstimator,
    estimator_names,
    get_estimator,
    get_estimators,
    learns,
    needs_members,
    usable_names,
)
from segtrust.engine import (
    CASE_SECONDS,
    DICE,
    DOUBT,
    HOW_TO_RESUME,
    LOSS,
    PART,
    UNLABELLED,
    Calibration,
    Executor,
    Limits,
    LossSource,
    Policies,
    Rhythm,
    RunInterrupted,
    ScoreJob,
    ScoreRun,
    ScoreTable,
    SetReader,
    Triage,
    WatchStatus,
    calibrate_table,
    check_details,
    check_no_text,
    check_output,
    check_policies,
    check_reading,
    check_structures,
    check_unique_cases,
    decide_rows,
    drop_rows_without_loss,
    failures_beside,
    find_copies,
    find_table,
    fit_to_sets,
    fusion_of,
    limits_within_reach,
    load_policies,
    looks_path,
    make_executor,
    make_policy,
    no_loss_message,
    part_of,
    policies_for_rows,
    questions_about,
    read_looks,
    read_scores,
    risk_of_all,
    score_cases as run_score_job,
    split_table,
    structures_of,
    unversioned,
    watch_cases,
    write_failures,
    write_looks,
    write_masks,
)
from segtrust.errors import NotCertifiableError, ParameterError, PolicyError
from segtrust.io import (
    FOREGROUND,
    ArrayRef,
    CaseFiles,
    Dataset,
    Decoding,
    MaskKind,
    ReadOptions,
    Resample,
    ScoreRow,
    Table,
    find_cases,
    find_scheme,
    group_failures,
    may_hold_arrays,
    only_with_truth,
    read_scheme,
    read_table,
    without_duplicates,
    write_table,
)
from segtrust.maps import EmptyPolicy
from segtrust.policy import Policy, Scoring, StructurePolicies
from segtrust.risks import RISKS, find_risk
from segtrust.selective import Bootstrap, Certificate, RiskCoverageCurve, Target

if TYPE_CHECKING:
    from segtrust.ensembles import Fusion
    from segtrust.evaluation import Counts, EvaluatedSet, EvaluationSettings, FileCase, SetSummary

__all__ = [
    "FIRST",
    "USUAL",
    "CalibrationResult",
    "Evaluation",
    "RunOptions",
    "ScoreOptions",
    "calibrate",
    "certify_table",
    "check_loss",
    "check_truth",
    "evaluate",
    "find_cases",
    "find_score_table",
    "join_sets",
    "reject_map_options",
    "score_cases",
    "triage",
    "watch_folders",
    "write_report",
]

USUAL = ("sdc", "idc", "amsp")
"""Estimators that are computed unless others are asked for."""
ALL = "all"
FIRST = "ID"
"""Name of the set in distribution."""
TUNABLE = ("sdc-tuned", "pla-tuned", "aef", "aef-sdc")
"""Estimators that learn from cases with ground truth."""

Data = str | Path | Sequence[str | Path] | Dataset
"""Cases that were found, or paths in which to find them."""
AnyPolicy = str | Path | Policy | StructurePolicies
Estimators = str | Sequence[str | ConfidenceEstimator]
"""Names, separated by commas or in a list, or estimators; ``"all"`` for all that need no ground truth."""
_MOST_REASONS = 5


class RunOptions(TypedDict, total=False):
    """How cases are run.

    Attributes
    ----------
    workers
        Number of worker processes (1); 0 scores in this process, without limits on memory and time.
    dask
        ``"local"`` for a Dask cluster of ``workers`` processes, or the address of a scheduler. A script that
        starts a local cluster must guard what it runs by ``if __name__ == "__main__":``.
    memory
        Bytes that all workers may take together; most of what is free by default.
    timeout
        Seconds that one case may take (30 minutes); ``None`` for no limit.
    resume
        Whether to resume a run that was stopped (yes), or to score all cases again.
    overwrite
        Whether a table of other cases, or made with other settings, may be replaced (no).
    details
        Whether a CSV table shows its internal columns (no).
    part_id, num_parts
        Which of how many jobs of a job array this is.
    progress
        ``True`` (default) for a bar in a terminal or notebook, ``False`` for none, or a function that is
        called with what is counted, the number that is done and the number of all.
    on_start
        Called when all options have been checked, before the first case is scored.
    command
        Arguments of the command, which the table keeps.
    executor
        Where cases are run, instead of ``workers`` or ``dask``.
    """

    workers: int
    dask: str
    memory: int | None
    timeout: float | None
    resume: bool
    overwrite: bool
    details: bool
    part_id: int | None
    num_parts: int
    progress: Progress | bool
    on_start: Callable[[], object]
    command: Sequence[str]
    executor: Executor


class ScoreOptions(RunOptions, total=False):
    """How cases are read and scored, and how they are run (`RunOptions`).

    Attributes
    ----------
    threshold
        Threshold of the map where no mask was delivered (0.5).
    region
        Names of structures of ``dataset.json``; ``["each"]`` for all of them.
    channel
        Number of the channel instead.
    label
        Labels of masks and ground truth that are foreground.
    mask
        ``"delivered"`` (default), or ``"threshold"`` to ignore delivered masks.
    decode
        Mask where none was delivered: ``"threshold"``, or ``"dice-optimal"``; that of the policy by default.
    names
        A ``dataset.json`` that names the structures, or a task such as ``totalsegmentator:total``.
    key
        Name of the array in files that hold several.
    fuse
        How the maps of members are fused: ``"mean-probability"`` (default) or ``"mean-logit"``.
    resample
        If sizes or grids differ: ``"truth"`` brings masks and ground truth to the map, ``"map"`` the map to
        the ground truth; by default such a case fails.
    truth_threshold
        Grey level from which on a pixel of the ground truth is foreground; below 1 a share of white.
    fill_missing
        Whether chunks that were never written are read as fill values (no).
    reading
        All of these as `segtrust.io.ReadOptions`, instead of single ones.
    calibrate_maps
        Recalibration of the maps, or its path.
    empty
        Dice of two empty masks: ``"paper"`` 0 (default), ``"agree"`` 1.
    digest
        Kind of checksum of the files: ``"quick"`` (default) or ``"sha256"``.
    """

    threshold: float
    region: str | Sequence[str] | None
    channel: int | None
    label: int | Sequence[int] | None
    mask: str
    decode: str | None
    names: str | Path | None
    key: str | None
    fuse: str | None
    resample: str | None
    truth_threshold: float | None
    fill_missing: bool
    reading: ReadOptions
    calibrate_maps: Scaling | str | Path | None
    empty: str
    digest: str


# Scoring


def score_cases(
    data: Data,
    estimators: Estimators = USUAL,
    *,
    output: str | Path | None = None,
    policy: AnyPolicy | None = None,
    model: str = "",
    write_masks_to: str | Path | None = None,
    with_truth: bool = True,
    made_by: str = "",
    doubt: str = "",
    **options: Unpack[ScoreOptions],
) -> ScoreTable:
    """Score cases: one row per case and structure, with its confidences.

    Each case is read in a worker process. One that cannot be read never stops the others.

    Parameters
    ----------
    data
        Cases that were found (`find_cases`), or paths in which to find them.
    estimators
        Names, or estimators with settings of their own; ``"all"`` for all that need no ground truth.
    output
        Path of the table (``.parquet``, ``.csv`` or ``.json``), whose log allows to resume a run; ``None`` to
        keep the table in memory only.
    policy
        A policy, or its path, that decides on each case.
    model
        Name of the model that made the maps; the guarantee of a policy holds for its own model.
    write_masks_to
        Folder for the mask of each case that was scored.
    with_truth
        Whether masks are compared with the ground truth of the cases, if they have it.
    made_by, doubt
        For runs that make the maps themselves: the name of the model, and why these cases certify nothing.
    **options
        See `ScoreOptions` and `RunOptions`.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, p in (("a", 0.9), ("b", 0.6)):
    ...     np.save(folder / f"{name}.npy", np.full((8, 8), p))
    >>> table = score_cases(folder, ["sdc"])
    >>> [(row["case"], round(row["sdc"], 2)) for row in table.least_confident(1).rows]
    [('b', 0.75)]
    """
    if model and policy is None:
        raise ParameterError("predictor: expected with --policy only; without it, it would be ignored.")
    dataset = data if isinstance(data, Dataset) else find_cases(data)
    plan = _plan_scoring(dataset.cases, estimators, policy, model, options)
    plan = replace(plan, job=replace(plan.job, predictor=made_by, with_truth=with_truth))
    with _output_path(output) as path:
        table = _run(dataset, plan, path, options, more={DOUBT: doubt} if doubt else {})
        if write_masks_to is not None:
            progress = options.get("progress", True)
            with count_steps(progress, "masks", len(table.rows)) as advance:
                files = {case.id: case for case in dataset.cases}
                failures = write_masks(Path(write_masks_to), table.rows, table.about, files, advance)
            table = replace(table, failures=(*table.failures, *failures))
            part, parts = _part(options)
            listed = failures_beside(path, part if parts > 1 else None)
            write_failures(listed, table.failures, path.name)
    return table if output is not None else replace(table, source="table")


def watch_folders(
    find: Callable[[], Dataset],
    output: str | Path,
    estimators: Estimators = USUAL,
    *,
    policy: AnyPolicy | None = None,
    model: str = "",
    members: int = 0,
    settle: float = 2.0,
    idle: float | None = None,
    tell: Callable[[WatchStatus], object] = lambda status: None,
    **options: Unpack[ScoreOptions],
) -> ScoreTable:
    """Score cases as their files arrive, until Ctrl-C.

    Parameters
    ----------
    find
        Returns the cases that are there; called again and again.
    output
        Path of the table.
    estimators, policy, model
        As for `score_cases`.
    members
        Number of other members of an ensemble that each case will have.
    settle
        Seconds without a change after which a case is complete.
    idle
        Seconds without anything new after which the watch ends; ``None`` for never.
    tell
        Called with the status of the watch.
    **options
        See `ScoreOptions` and `RunOptions`.
    """
    path = Path(output)
    expected = CaseFiles("", ArrayRef(path), members=(ArrayRef(path),) * members)
    plan = _plan_scoring([expected], estimators, policy, model, options)
    run = _score_run(path, options, lambda steps: None)
    rhythm = Rhythm(settle_s=settle, idle_s=idle)
    table = watch_cases(find, plan.job, run, rhythm=rhythm, finish=plan.decide, tell=tell)
    return replace(table, policies=policies_for_rows(plan.policies, table.rows))


@dataclass(frozen=True)
class _Plan:
    """What is done with each case, and the policies that decide on it."""

    job: ScoreJob
    policies: Policies = field(default_factory=dict)
    learners: tuple[ConfidenceEstimator, ...] = ()
    """Estimators that learn from the maps of each set, before its cases are scored."""
    drop_empty: bool = False
    """Whether they learn from cases with ground truth that is not empty only."""

    def decide(self, rows: Sequence[ScoreRow]) -> Sequence[ScoreRow]:
        """Return the rows with decisions, if there are policies."""
        return decide_rows(self.policies)(rows) if self.policies else rows


def _run(
    dataset: Dataset,
    plan: _Plan,
    path: Path,
    options: ScoreOptions,
    *,
    judge: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows,
    more: Mapping[str, Any] | None = None,
) -> ScoreTable:
    """Run the plan for all cases, and return the table with the policies as they hold for it."""
    if "executor" not in options:  # a network in the same run may still make the maps
        _check_used(options, dataset.cases, has_policies=bool(plan.policies))
    part, parts = _part(options)
    total = len(part_of(dataset.cases, part, parts))
    with count_steps(options.get("progress", True), "cases", total) as advance:
        run = _score_run(path, options, advance)
        options.get("on_start", lambda: None)()
        reader = SetReader(plan.job.read, plan.job.scaling, plan.drop_empty)
        limits = Limits(options.get("memory"), options.get("timeout", CASE_SECONDS))
        table = run_score_job(
            dataset,
            plan.job,
            run,
            prepare=lambda job: replace(job, of_sets=fit_to_sets(plan.learners, dataset, reader, limits)),
            finish=lambda rows: plan.decide(judge(rows)),
            more=more or {},
        )
    return replace(table, policies=policies_for_rows(plan.policies, table.rows))


def _check_used(options: ScoreOptions, cases: Sequence[CaseFiles], *, has_policies: bool) -> None:
    """Raise an error for an option that would be ignored, because no case has the files that it is about."""
    if not cases:
        return
    has_truth = any(case.truth for case in cases)
    is_compared = has_truth or any(case.mask or case.image for case in cases)
    has_others = is_compared or any(case.members for case in cases)
    decodes = any(case.mask is None for case in cases) or options.get("mask", "delivered") == "threshold"
    maps = [ref.path for case in cases for ref in case.maps]
    reasons = {
        "truth_threshold": "" if has_truth else "no case has ground truth",
        "label": "" if is_compared or has_policies else "no case has masks or ground truth",  # the policy may
        "resample": "" if has_others else "no case has a mask, ground truth, image or other member",
        "decode": "" if decodes else "all cases have delivered masks (--mask threshold ignores these)",
        "key": "" if any(map(may_hold_arrays, maps)) else "no map is in a format with named arrays",
    }
    for name, reason in reasons.items():
        if options.get(name) and reason:
            raise ParameterError(f"{name.replace('_', '-')}: {reason}, so it would be ignored.")


def _score_run(path: Path, options: ScoreOptions, advance: Callable[[int], object]) -> ScoreRun:
    part, parts = _part(options)
    if "executor" in options:
        unused = [name for name in ("workers", "dask", "memory", "timeout") if name in options]
        if unused:
            raise ParameterError(f"{unused[0]}: expected without an executor, which has limits of its own.")
    executor = options.get("executor") or make_executor(
        options.get("workers", 1),
        options.get("dask", ""),
        options.get("memory"),
        options.get("timeout", CASE_SECONDS),
    )
    return ScoreRun(
        path,
        executor,
        options.get("resume", True),
        part,
        parts,
        advance,
        tuple(options.get("command", ())),
        options.get("overwrite", False),
        options.get("details", False),
    )


def _part(options: ScoreOptions) -> tuple[int, int]:
    part, parts = options.get("part_id"), options.get("num_parts", 1)
    if part is not None and "num_parts" not in options:
        raise ParameterError("part-id: expected with --num-parts only.")
    if parts < 1:
        raise ParameterError(f"num-parts: expected at least 1, got {parts}.")
    if part is None and parts > 1:
        raise ParameterError(f"part-id: expected a number from 0 to {parts - 1}, got none.")
    return part or 0, parts


@contextmanager
def _output_path(output: str | Path | None) -> Iterator[Path]:
    """Yield the path of a table; one in a temporary folder if none is wanted."""
    if output is not None:
        yield Path(output)
        return
    with TemporaryDirectory(prefix="segtrust-") as folder:
        try:
            yield Path(folder) / "scores.csv"
        except RunInterrupted as interrupt:
            lost = "They are lost: pass output= to be able to resume."
            raise RunInterrupted(str(interrupt).replace(HOW_TO_RESUME, lost)) from interrupt


# How cases are scored


def _plan_scoring(
    cases: Sequence[CaseFiles],
    estimators: Estimators,
    policy: AnyPolicy | None,
    model: str,
    options: ScoreOptions,
    *,
    by_set: bool = False,
    drop_empty: bool = False,
) -> _Plan:
    """Return what is done with each case: as the policies state, or as asked.

    Parameters
    ----------
    cases
        Cases that will be scored: some estimators need several members.
    estimators, policy, model, options
        What was asked for.
    by_set
        Whether estimators may learn from the maps of each set, without ground truth.
    drop_empty
        Whether cases with empty ground truth do not count there.
    """
    _check_options(options)
    policies: Policies = {}
    if policy is not None:
        policies = {name: each.for_predictor(model) for name, each in load_policies(policy).items()}
    empty = options.get("empty", "paper")
    reading = _read_options(options, policies, empty)
    scaling = _scaling(options.get("calibrate_maps"), policies)
    has_members = any(case.members for case in cases) or not cases
    if options.get("fuse") is not None and not has_members:
        raise ParameterError("fuse: expected several maps per case (--member), got one of each.")
    ready, unlabelled = _choose_estimators(estimators, policies, empty, has_members, by_set)
    digest = cast(Literal["quick", "sha256"], str(options.get("digest", "quick")))
    job = ScoreJob(ready, reading, scaling, digest=digest, empty=EmptyPolicy(empty))
    return _Plan(job, policies, tuple(get_estimators(unlabelled)), drop_empty)


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise an error for an unknown option, which would be ignored."""
    for name in options:
        if name in ("truth", "masks", "images", "members"):
            raise TypeError(f"{name}: pass it to find_cases, and what that returns to this function.")
        if name not in ScoreOptions.__annotations__ and name not in RunOptions.__annotations__:
            known = [*ScoreOptions.__annotations__, *RunOptions.__annotations__]
            other = " Use model=." if name == "predictor" else suggestion(name, known)
            raise TypeError(f"{name}: no such option.{other}")


def _read_options(options: ScoreOptions, policies: Policies, empty: str) -> ReadOptions:
    """Return how cases are read: as the policies were made with, unless asked otherwise, or an error."""
    reads = {item.name for item in fields(ReadOptions)} | {"region", "label", "names"}
    if "reading" in options and (others := sorted(reads & {*options})):
        raise ParameterError(f"{others[0]}: expected in reading=ReadOptions(...), or without it; got both.")
    decode, fuse = options.get("decode"), options.get("fuse")
    region, label = options.get("region") or (), options.get("label")
    regions = (region,) if isinstance(region, str) else tuple(region)
    labels = (label,) if isinstance(label, int) else tuple(label or ()) or None
    if not all(isinstance(each, int) for each in labels or ()):
        raise ParameterError(f"label: expected whole numbers, got {label!r}.")
    if policies:
        decodings = {policy.scoring.decode for policy in policies.values()}
        if len(decodings) > 1:
            raise ParameterError("policy: expected one way to make masks (decode) for all structures.")
        if decode is not None and decodings - {decode}:
            raise PolicyError(
                f"decode: the policy was made with {min(decodings)!r} masks, got {decode!r}. Leave --decode "
                "out, or calibrate again."
            )
        decode, fuse = min(decodings), fuse or fusion_of(policies)
        if regions and "each" not in regions:
            check_structures(policies, regions)
        if not regions and options.get("channel") is None:
            regions = tuple(name for name in policies if name not in ("", FOREGROUND))
    reading = options.get("reading") or ReadOptions(
        regions=regions,
        channel=options.get("channel"),
        labels=labels,
        mask=cast(MaskKind, options.get("mask", "delivered")),  # checked there, as are the others
        threshold=options.get("threshold", 0.5),
        key=options.get("key"),
        resample=cast("Resample | None", options.get("resample")),
        scheme=Path(options["names"]) if options.get("names") else None,  # type: ignore[arg-type]
        decode=cast(Decoding, decode or Decoding.THRESHOLD),
        fuse=cast("Fusion | None", fuse),
        truth_threshold=options.get("truth_threshold"),
        fill_missing=options.get("fill_missing", False),
    )
    if reading.decode is not Decoding.THRESHOLD and reading.decode_empty is None:
        rules = {policy.scoring.empty for policy in policies.values()}
        reading = replace(reading, decode_empty=EmptyPolicy(min(rules) if len(rules) == 1 else empty))
    check_reading(policies, asdict(reading))
    return reading


def _scaling(asked: Scaling | str | Path | None, policies: Policies) -> Scaling | None:
    """Return the recalibration of the maps: the one that was asked for, or that of the policies."""
    of_policies = [policy.scoring.make_scaling() for policy in policies.values()]
    if asked is not None:
        scaling = asked if isinstance(asked, Scaling) else Scaling.load(asked)
        if any(each != replace(scaling, used_ids=frozenset()) for each in of_policies):
            raise ParameterError(
                f"calibrate-maps: expected the recalibration of the policy, got another ({asked})."
            )
        return scaling
    if any(each != of_policies[0] for each in of_policies):
        raise ParameterError("policy: expected one recalibration of the maps for all structures.")
    return of_policies[0] if of_policies else None


def _choose_estimators(
    asked: Estimators, policies: Policies, empty: str, has_members: bool, has_sets: bool
) -> tuple[tuple[ConfidenceEstimator, ...], list[str]]:
    """Return the estimators that are ready, and the names of those that learn from a set."""
    listed = asked.split(",") if isinstance(asked, str) else [*asked]
    texts = [each.strip() for each in listed if isinstance(each, str) and each.strip()]
    objects = {each.name: each for each in listed if not isinstance(each, str)}
    needed = {policy.scoring.estimator: policy.estimator() for policy in policies.values()}
    unlabelled = [name for name in UNLABELLED if has_sets and name not in needed]
    known = usable_names() if ALL in texts else list(ESTIMATORS)
    every = [
        name
        for name in dict.fromkeys([*known, *texts])
        if name != ALL and (name in unlabelled or not learns(name))
    ]
    names = expand_names(texts, every) if texts or not (needed or objects) else []
    for name in names:
        if name not in {*every, *needed}:
            raise ParameterError(
                f"estimators: {get_estimator(name).name} learns from cases and has learned nothing here. "
                f"Pass a policy that holds it (--policy), or one of {', '.join(every)}."
            )
    unusable = [] if has_members else [name for name in names if needs_members(name)]
    if unusable and ALL not in texts:
        raise ParameterError(
            f"estimators: {unusable[0]} compares the members of an ensemble, and the cases have one map "
            "each. Pass the others: --member, or the column 'members' of a manifest."
        )
    ready = {
        name: Scoring(name, empty=empty).make_estimator()  # type: ignore[arg-type]
        for name in names
        if name not in unusable and name not in unlabelled
    }
    return tuple({**ready, **objects, **needed}.values()), [name for name in unlabelled if name in names]


def expand_names(asked: str | Sequence[str], every: Sequence[str]) -> list[str]:
    """Return names, each once; ``"all"`` stands for those of ``every``.

    Examples
    --------
    >>> expand_names("idc, all", ["sdc", "idc"])
    ['idc', 'sdc']
    """
    texts = asked.split(",") if isinstance(asked, str) else asked
    names = [name.strip() for name in texts if name.strip()]
    if not names:
        raise ParameterError("estimators: expected at least one name, got none.")
    return list(dict.fromkeys(each for name in names for each in (every if name == ALL else [name])))


# Evaluation


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well confidences rank the errors of sets of cases.

    Attributes
    ----------
    scores
        Score table with losses; cases without one are among its failures.
    sets
        Structures of each set that were ranked.
    tables
        Results by name: ``"sets"``, ``"areas"``, ``"coverages"``, ``"comparisons"``, ``"bounds"``.
    settings
        How cases were evaluated.
    unranked
        Structures of sets that have too few cases, with the reason.
    tuning, splits
        Estimators that learn: means over random splits, and each split.
    files_of
        Returns the files of the cases of a set; ``None`` if a score table was evaluated.
    parameters
        What ``run.json`` says about the evaluation.
    """

    scores: ScoreTable
    sets: tuple[EvaluatedSet, ...]
    tables: Mapping[str, Sequence[ScoreRow]]
    settings: EvaluationSettings
    unranked: tuple[str, ...] = ()
    tuning: tuple[ScoreRow, ...] = ()
    splits: tuple[ScoreRow, ...] = ()
    files_of: Callable[[EvaluatedSet], list[FileCase]] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def areas(self) -> Table:
        """AURC with its interval, AUGRC and normalised AURC, by set, structure and estimator."""
        return Table.of(self.tables["areas"])

    @property
    def coverages(self) -> Table:
        """Largest coverage at the risk of the first set."""
        return Table.of(self.tables["coverages"])

    @property
    def comparisons(self) -> Table:
        """Paired comparisons of estimators."""
        return Table.of(self.tables["comparisons"])

    @property
    def curves(self) -> dict[tuple[str, str], dict[str, RiskCoverageCurve]]:
        """Risk-coverage curves by set and structure, and in it by estimator."""
        return {(each.name, each.structure): each.curves for each in self.sets}

    @property
    def loss(self) -> str:
        """Short name of the loss, such as ``"dice"``."""
        return str(self.scores.about.get(LOSS) or DICE)

    @property
    def counts(self) -> Counts:
        """How many cases were evaluated, and why others were not."""
        from segtrust.evaluation import Counts

        return Counts.of(self.sets, self.scores.rows, self.scores.failures)

    @property
    def calibration(self) -> Table:
        """Mean confidence compared with the mean Dice, by set and structure."""
        from segtrust.evaluation import compare_mean_confidence

        return Table.of(compare_mean_confidence(self.sets, self.loss))

    @property
    def summaries(self) -> list[SetSummary]:
        """What a person reads about each set."""
        from segtrust.evaluation import summarise_evaluated

        return summarise_evaluated(self.sets, self.tables, self.loss)

    def __str__(self) -> str:
        """Return how many cases were evaluated, and a block of text for each set."""
        return "\n\n".join([*self.scores.questions, str(self.counts), *map(str, self.summaries)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def report(
        self,
        folder: str | Path,
        *,
        policy: AnyPolicy | None = None,
        model: str = "",
        command: str = "evaluate",
    ) -> Path:
        """Write the score table, tables, figures and the report into a folder; return the page.

        Parameters
        ----------
        folder
            A new folder, or one of an earlier evaluation.
        policy, model
            What decides on the cases of the report, and which model made the maps.
        command
            Name of the command in ``run.json``.
        """
        from segtrust.report.evaluation import write_evaluated
        from segtrust.report.examples import save_examples
        from segtrust.report.html.page import write_report as write_page
        from segtrust.report.runs import fresh_results, open_run, write_run
        from segtrust.report.tuned_sets import write_tuning

        out = Path(folder)
        open_run(out, command=command)
        path = out / "scores.parquet"
        if self.scores.path is None or self.scores.path.resolve().parent != out.resolve():
            write_table(path, self.scores)
        write_failures(failures_beside(path, None), self.scores.failures, path.name)
        with fresh_results(out):
            write_evaluated(out, self.sets, self.tables, self.settings)
            if self.files_of is not None:
                save_examples(self.sets, self.files_of, out / "figures" / "examples")
            if self.splits:
                write_tuning(out, self.splits)
            write_run(out, command=command, parameters=self.parameters, seconds=self.scores.seconds)
            return write_page(out, policy=policy, predictor=model)


def join_sets(data: Data, ood: Mapping[str, Data] | None = None, *, needs_truth: bool = True) -> Dataset:
    """Return the cases of all sets; the ids of the cases of other sets begin with the name of their set.

    Parameters
    ----------
    data
        The set in distribution.
    ood
        Other sets by name.
    needs_truth
        Whether cases without ground truth are failures.
    """
    joined = Dataset()
    for name, given in {FIRST: data, **(ood or {})}.items():
        found = given if isinstance(given, Dataset) else find_cases(given, needs_truth=needs_truth or None)
        if needs_truth:
            check_truth(found, str(given) if isinstance(given, str | Path) else f"set {name}")
            option = "--truth" if name == FIRST else f"--ood-truth {name}=DIR"
            found = only_with_truth(found, f"Pass its folder: {option}")
        named = replace(found, cases=tuple(replace(case, set=case.set or name) for case in found.cases))
        joined += named if name == FIRST else named.with_prefix(name)
    return without_duplicates(joined)


def check_truth(dataset: Dataset, source: str, option: str = "--truth DIR") -> None:
    """Raise an error if no case has ground truth: with the reasons, or how to pass it."""
    if any(case.truth for case in dataset.cases):
        return
    reasons = "; ".join(map(str, group_failures(dataset.failures)[:_MOST_REASONS]))
    remedy = " ".join([f"{reasons}." if reasons else f"Pass its folder: {option}.", *dataset.notes])
    raise ParameterError(f"{source}: expected the ground truth of its cases, got none. {remedy}")


def evaluate(
    data: Data | ScoreTable,
    *,
    ood: Mapping[str, Data] | None = None,
    output: str | Path | None = None,
    estimators: Estimators = USUAL,
    loss: str | None = None,
    losses: str | Path | None = None,
    loss_column: str | None = None,
    drop_empty_truth: bool = False,
    patients: bool = False,
    resamples: int = 2000,
    tune: str | Sequence[str] = (),
    repeats: int = 50,
    seed: int = 0,
    policy: AnyPolicy | None = None,
    model: str = "",
    **options: Unpack[ScoreOptions],
) -> Evaluation:
    """Score cases with ground truth, and compute how well each confidence ranks the errors.

    Parameters
    ----------
    data
        Cases that were found, paths in which to find them, or a score table.
    ood
        Other sets by name, evaluated in addition to the first.
    output
        Folder for score table, tables, figures and report; ``None`` for none (`Evaluation.report` writes it).
    estimators
        As for `score_cases`.
    loss
        What the cases are evaluated by: ``"dice"`` (default), ``"iou"``, ``"f2"`` or ``"hamming"``.
    losses, loss_column
        Losses of another program: a table with ``case`` and this column, or nnU-Net's ``summary.json``. For a
        score table, ``loss_column`` alone is one of its columns.
    drop_empty_truth
        Whether cases with empty ground truth are left out, as in the paper.
    patients
        Whether the column ``group`` names patients, who are the units of intervals.
    resamples
        Number of bootstrap resamples.
    tune, repeats, seed
        Estimators that learn from parts of each set, the number of random splits per size, and the seed of
        the first.
    policy, model
        As for `score_cases`.
    **options
        See `ScoreOptions` and `RunOptions`.

    Examples
    --------
    >>> rows = [
    ...     {"case": str(i), "structure": "organ", "k": 5, "sdc": i / 20, "dice": 0.5 + i / 40}
    ...     for i in range(20)
    ... ]
    >>> evaluation = evaluate(ScoreTable.of(rows), estimators=["sdc"], resamples=100)
    >>> [(row["estimator"], round(row["normalised_aurc"], 3)) for row in evaluation.areas.rows]
    [('sdc', 0.0), ('oracle', 0.0), ('random', 1.0)]
    """
    from segtrust.evaluation import EvaluationSettings
    from segtrust.report.runs import mark_running, open_run

    _check_options(options)
    _check_tuning(tune, repeats, seed, loss)
    judge, bootstrap = _Judge(loss, losses, loss_column), Bootstrap(resamples=resamples)
    table = find_score_table(data)
    scores: ScoreTable | None = None
    if table is not None:
        reject_map_options({**options, "ood": ood, "policy": policy, "predictor": model, "tune": tune})
        scores = judge.judge_table(table, estimators, options.get("names"))
    folder = None if output is None else Path(output)
    if folder is not None:
        open_run(folder, command="evaluate")
        mark_running(folder, command="evaluate")
    files_of: Callable[[EvaluatedSet], list[FileCase]] | None = None
    if scores is None:
        dataset = join_sets(cast(Data, data), ood, needs_truth=losses is None)
        bare = [case.id for case in dataset.cases if case.truth is None]
        if tune and bare:
            raise ParameterError(
                f"--tune: expected ground truth of each case to learn from, got none of {bare[0]}. Pass it: "
                "--truth."
            )
        scores, plan = judge.score_and_judge(
            dataset, folder, estimators, policy, model, options, drop_empty=drop_empty_truth
        )
        files_of = _files_by_set(dataset, plan)
        if not isinstance(data, Dataset):  # who found the cases has read the notes
            scores = replace(scores, questions=(*dataset.notes, *scores.questions))
    if not scores.rows or (ood and all(row["set"] != FIRST for row in scores.rows)):
        _fail_without_cases(scores, folder, data)
    settings = EvaluationSettings(
        tuple(_estimators_in(scores.rows[0], estimators)),
        drop_empty=drop_empty_truth,
        by_patient=patients,
        bootstrap=bootstrap,
    )
    evaluation = replace(_rank(scores, settings, options.get("command", ())), files_of=files_of)
    if tune and evaluation.sets:
        evaluation = _tune(evaluation, tune, repeats, seed, folder, options)
    if folder is not None:
        evaluation.report(folder, policy=policy, model=model)
    return evaluation


def _check_tuning(tune: str | Sequence[str], repeats: int, seed: int, loss: str | None) -> None:
    if not tune and (repeats, seed) != (50, 0):
        raise ParameterError("repeats, seed: expected with --tune only; without it they would be ignored.")
    if tune and loss is not None and check_loss(loss) != DICE:
        raise ParameterError(
            f"--tune: estimators learn from the Dice and are judged by it, got --loss {loss}. Leave out one "
            "of them."
        )


def reject_map_options(options: Mapping[str, Any]) -> None:
    """Raise an error for options about maps if a score table was passed, which is not scored again."""
    for name, value in options.items():
        is_given = not (value is None or value is False or value in ((), [], {}, ""))
        if is_given and name not in RunOptions.__annotations__ and name != "names":
            option = name.replace("_", "-")
            raise ParameterError(
                f"--{option} applies to maps, and a score table was given, which is not scored again. Leave "
                "the option out."
            )


def _rank(scores: ScoreTable, settings: EvaluationSettings, command: Sequence[str]) -> Evaluation:
    """Evaluate the rows of each set; what has too few cases is listed instead."""
    from segtrust.evaluation import evaluate_sets, rankable_sets

    unknown = [row["case"] for row in scores.rows if row.get("truth_ratio") is None]
    if settings.drop_empty and unknown:
        raise ParameterError(
            f"drop-empty-truth: expected ground truth, which shows what is empty, got none of {unknown[0]}. "
            "Pass it (--truth); losses may come from elsewhere all the same."
        )
    by_set: dict[str, list[ScoreRow]] = {}
    for row in sorted(scores.rows, key=lambda row: row["set"] != FIRST):
        by_set.setdefault(row["set"], []).append(row)
    sets, unranked = rankable_sets(by_set, settings)
    parameters = {
        "sets": {name: len(rows) for name, rows in by_set.items()},
        "failed": len(scores.failures),
        "estimators": list(settings.estimators),
        "drop_empty_truth": settings.drop_empty,
        "patients": settings.by_patient,
        "resamples": settings.bootstrap.resamples,
        "seed": settings.bootstrap.seed,
        "arguments": list(command),
    }
    tables = evaluate_sets(sets, settings)
    return Evaluation(scores, tuple(sets), tables, settings, tuple(unranked), parameters=parameters)


def check_loss(name: str) -> str:
    """Return the short name of a risk; raise an error that lists the known ones if there is none."""
    risk = find_risk(name)
    if risk is None:
        listed = ", ".join(each.column for each in RISKS.values())
        raise ParameterError(f"loss: expected one of {listed}, got {name!r}.")
    return risk.column


@dataclass(frozen=True)
class _Judge:
    """Which losses cases are evaluated by."""

    loss: str | None
    losses: str | Path | None
    column: str | None

    def __post_init__(self) -> None:
        if self.loss is None:
            return
        check_loss(self.loss)
        if self.losses is not None or self.column is not None:
            raise ParameterError("loss: expected --loss, or --losses and --loss-column; got both.")

    def source(self, names: str | Path | None, dataset: Dataset | None = None) -> LossSource:
        """Return where losses come from; labels in a file of losses go by the names of structures."""
        if self.losses is None:
            return LossSource(self.column or (check_loss(self.loss) if self.loss else DICE))
        scheme = read_scheme(Path(names)) if names else None
        if scheme is None and dataset is not None and dataset.cases:
            scheme = find_scheme(dataset.cases[0].probabilities.path)
        return LossSource.from_file(Path(self.losses), self.column, scheme)

    def score_and_judge(
        self,
        dataset: Dataset,
        folder: Path | None,
        estimators: Estimators,
        policy: AnyPolicy | None,
        model: str,
        options: ScoreOptions,
        *,
        drop_empty: bool,
    ) -> tuple[ScoreTable, _Plan]:
        """Score the cases of all sets; those without a loss are failures."""
        if self.column is not None and self.losses is None:
            raise ParameterError("loss-column: expected with --losses, which has it, or with a score table.")
        if options.get("mask", "delivered") != "threshold":
            _check_same_masks(dataset)
        source = self.source(options.get("names"), dataset)
        plan = _plan_scoring(
            dataset.cases, estimators, policy, model, options, by_set=True, drop_empty=drop_empty
        )
        with _output_path(None if folder is None else folder / "scores.parquet") as path:
            scores = _run(dataset, plan, path, options, judge=source.add_to, more=source.about)
        return drop_rows_without_loss(scores, source), plan

    def judge_table(self, table: Table, estimators: Estimators, names: str | Path | None) -> ScoreTable:
        """Return the rows of a score table with their losses; those without one are failures."""
        if PART in table.about:
            raise ParameterError("expected a whole run, got a part of one. Merge the parts: segtrust merge.")
        check_unique_cases(table)
        source = self.source(names)
        metrics = [risk.column for risk in RISKS.values()]
        asked = _estimators_in(table.columns, estimators)
        check_no_text(table, [*asked, *metrics, source.column, LOSS, "k", "truth_ratio"])
        has_losses = (
            self.loss is None and self.losses is None and self.column is None and LOSS in table.columns
        )
        usual = {"file": "", "group": "", "shape": ""}
        rows: Sequence[ScoreRow] = [{**usual, **row, "set": row.get("set") or FIRST} for row in table.rows]
        if not has_losses:
            rows = source.add_to(rows)
            if self.losses is None and all(row[LOSS] is None for row in rows):
                raise ParameterError(no_loss_message(table.source, source.column))
        about = table.about if has_losses else {**table.about, **source.about}
        copies = find_copies(rows)
        scores = replace(
            ScoreTable.of(rows, about),
            source=table.source,
            failures=table.failures if isinstance(table, ScoreTable) else (),
            warnings=(warning,) if (warning := unversioned(table)) else (),
            questions=(*questions_about(rows), *([str(copies)] if copies.groups else [])),
        )
        return drop_rows_without_loss(scores, source)


def find_score_table(data: Data | Table) -> ScoreTable | None:
    """Return a score table that was passed, or whose path was; else ``None``."""
    if isinstance(data, Table):
        check_details(data)
        if isinstance(data, ScoreTable):
            return data
        return ScoreTable(data.columns, data.rows, data.about, data.source)
    if isinstance(data, Dataset):
        return None
    paths = [data] if isinstance(data, str | Path) else [*data]
    return read_scores(Path(paths[0])) if len(paths) == 1 else None


def _check_same_masks(dataset: Dataset) -> None:
    """Raise an error if the delivered masks of one set would be compared with the maps of another."""
    sets = {case.set for case in dataset.cases}
    bare = sorted(sets - {case.set for case in dataset.cases if case.mask is not None})
    if bare and len(bare) < len(sets):
        raise ParameterError(
            f"ood-mask-dir: expected delivered masks of all sets or of none, got none of {bare[0]}. Pass "
            "them (--mask-dir, --ood-mask-dir NAME=DIR), or threshold all maps: --mask threshold."
        )


def _estimators_in(columns: Iterable[str], asked: Estimators) -> list[str]:
    """Return the estimators that were asked for, as far as rows have them; all of them must be there."""
    present = list(columns)
    texts = [text.strip() for text in asked.split(",")] if isinstance(asked, str) else asked
    names = [each if isinstance(each, str) else each.name for each in texts]
    wanted = expand_names(names, [name for name in estimator_names() if name in present])
    missing = [name for name in wanted if name not in present]
    scored = [name for name in wanted if name in present]
    if not scored or (missing and tuple(names) != USUAL):
        raise ParameterError(f"estimators: expected some that were scored, got {', '.join(missing)}.")
    return scored


def _files_by_set(dataset: Dataset, plan: _Plan) -> Callable[[EvaluatedSet], list[FileCase]]:
    from segtrust.evaluation import cases_of_set

    files = {case.id: case for case in dataset.cases}
    return lambda evaluated: cases_of_set(evaluated, files, plan.job.read, plan.job.scaling)


def _fail_without_cases(scores: ScoreTable, folder: Path | None, data: Any) -> NoReturn:
    """Raise an error with the reasons why no case can be evaluated, and list them in a file."""
    if folder is not None:
        path = folder / "scores.parquet"
        write_failures(failures_beside(path, None), scores.failures, path.name)
    source = f"{data}: " if isinstance(data, str | Path) else ""
    reasons = "; ".join(map(str, group_failures(scores.failures)[:_MOST_REASONS]))
    raise ParameterError(f"{source}no case could be evaluated. {reasons}.")


def _tune(
    evaluation: Evaluation,
    tune: str | Sequence[str],
    repeats: int,
    seed: int,
    folder: Path | None,
    options: ScoreOptions,
) -> Evaluation:
    """Return an evaluation with the tuning curves of estimators that learn; finished parts are kept."""
    from segtrust.evaluation import TunedSets, TuningPlan, summarise_sets, tune_sets

    sets, files_of = evaluation.sets, evaluation.files_of
    assert files_of is not None
    cases = [(each, files_of(each)) for each in sets]
    targets = {each.structure: each.full_risk for each in sets if each.name == sets[0].name}
    plan = TuningPlan(("sdc", *expand_names(tune, TUNABLE)), repeats=repeats, seed=seed)
    steps = sum(len(each) + repeats for _, each in cases)
    try:
        with count_steps(options.get("progress", True), "cases and splits", steps) as advance:
            parts = None if folder is None else folder / "parts"
            splits = tune_sets(cases, targets, plan, TunedSets(parts, options.get("workers", 1), advance))
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(
            "Interrupted: finished parts are kept. Rerun the same command to resume."
        ) from interrupt
    return replace(evaluation, splits=tuple(splits), tuning=tuple(summarise_sets(splits)))


# Calibration

Scores = Table | Evaluation | str | Path
"""A score table, an evaluation, or the path of either."""


@dataclass(frozen=True)
class CalibrationResult:
    """What came of a calibration.

    Attributes
    ----------
    certificates
        By structure; one without a threshold says what is missing.
    policy
        The policy, or the policies of several structures; ``None`` if some structure has no threshold.
    doubt
        Why the policy is estimated only, whatever the certificates say; else empty.
    warnings
        What a user should know besides.
    cases
        Number of calibration cases by structure. A certificate may be tested on fewer: copies count once, and
        with patients or reference cases some are set aside.
    within_reach
        For a structure without a threshold: limits that as many new cases would certify (90 % chance).
    rest
        With ``fraction``: the cases that were not used, as a score table.
    rest_path
        Where that table was written, next to the policy; ``None`` without an output.
    """

    certificates: Mapping[str, Certificate]
    policy: Policy | StructurePolicies | None
    doubt: str = ""
    warnings: tuple[str, ...] = ()
    cases: Mapping[str, int] = field(default_factory=dict)
    within_reach: Mapping[str, Sequence[Target]] = field(default_factory=dict)
    rest: ScoreTable | None = None
    rest_path: Path | None = None


def calibrate(
    table: Scores,
    *,
    output: str | Path | None = None,
    **question: Unpack[CalibrationOptions],
) -> Policy | StructurePolicies:
    """Certify an acceptance threshold on cases with known losses, and return the policy.

    Parameters
    ----------
    table
        Score table with losses, an evaluation, or the path of either. What is asked of its cases is
        remembered: next to the file, or in the table itself if it is in no file.
    output
        Path of the policy; ``None`` to keep it in memory only.
    **question
        See `CalibrationOptions`; ``target_risk`` is required.

    Raises
    ------
    NotCertifiableError
        If these cases certify no threshold; the text says how many are needed.

    Examples
    --------
    >>> rows = [
    ...     {"case": str(i), "structure": "organ", "sdc": i / 400, "dice": 0.5 + i / 800} for i in range(400)
    ... ]
    >>> policy = calibrate(ScoreTable.of(rows), target_risk=0.2, model="fold 0")
    >>> str(policy.decide(0.9)), policy.targets[0].risk
    ('accept', 0.2)
    """
    result = certify_table(table, output=output, **question)
    if result.policy is None:
        uncertified = {name: each for name, each in result.certificates.items() if not each.certified}
        texts = (f"{name}: {each}" if name else str(each) for name, each in uncertified.items())
        raise NotCertifiableError("\n".join(texts))
    return result.policy


class CalibrationOptions(TypedDict, total=False):
    """What is to be guaranteed, and for which rows.

    Attributes
    ----------
    target_risk
        Limit on the mean loss of the accepted cases.
    below_dice
        Limit the share of accepted cases whose Dice is below this instead.
    delta
        Probability that the guarantee does not hold (0.05).
    estimator
        Column of the confidence (``"sdc"``).
    start_coverage
        Coverage at which the search for a threshold begins (0.5), fixed before a loss is seen.
    loss
        Loss to limit: ``"dice"``, ``"iou"``, ``"f2"`` or ``"hamming"``; by default that of the table.
    loss_column
        Column of the loss; else one minus ``dice``.
    patients
        Whether the column ``group`` is the patient, who is then the unit (no).
    model
        Name of the model that made the maps.
    drop_unjudged
        Whether rows without a loss are left out (no); the guarantee is about cases that have one.
    chosen_set, split
        Rows of this set (those in distribution by default), and of this split only.
    reference
        Scores of other, unlabelled cases, or their path, for candidate thresholds.
    fraction, seed
        Calibrate with this share of the cases only, drawn at random with this seed (0). Copies and the
        structures of a case stay together.
    """

    target_risk: Required[float]
    below_dice: float | None
    delta: float
    estimator: str
    start_coverage: float
    loss: str | None
    loss_column: str
    patients: bool
    model: str
    drop_unjudged: bool
    chosen_set: str | None
    split: str | None
    reference: Table | str | Path | None
    fraction: float | None
    seed: int


def certify_table(
    table: Scores,
    *,
    output: str | Path | None = None,
    **question: Unpack[CalibrationOptions],
) -> CalibrationResult:
    """Certify a threshold as `calibrate` does, and return the certificates, whether or not there is one."""
    how = _check_question(question)
    source = _score_table_of(table)
    chosen, rest = _choose_cases(source, how, question)
    in_memory = source.looks if isinstance(source, ScoreTable) else {}
    looks = in_memory if source.path is None else read_looks(source.path)
    found = calibrate_table(chosen, how, looks)
    warnings = [warning] if (warning := unversioned(chosen)) else []
    if source.path is not None:
        try:
            write_looks(source.path, looks)  # before anybody sees the answer
        except OSError as error:
            warnings.append(
                f"{looks_path(source.path)}: this look at the cases could not be recorded "
                f"({error.strerror}). Count it yourself before you ask them again."
            )
    certificates = {name: certificate for name, (certificate, _) in found.items()}
    policy, rest_path = None, None
    if all(certificate.certified for certificate in certificates.values()):
        policy = make_policy(found, chosen)
        if output is not None:
            policy.save(output)
        if output is not None and rest is not None:
            suffix = ".csv" if source.path is None else source.path.suffix
            rest_path = Path(output).with_name(f"{Path(output).stem}.rest{suffix}")
            rest.save(rest_path)
    refused = [name for name, certificate in certificates.items() if not certificate.certified]
    return CalibrationResult(
        certificates,
        policy,
        str(chosen.about.get(DOUBT) or ""),
        (*warnings, *_warn_of_high_limits(chosen, how, {*certificates} - {*refused})),
        Counter(structures_of(chosen)),
        {name: limits_within_reach(chosen, name, how) for name in refused},
        rest,
        rest_path,
    )


def _check_question(question: CalibrationOptions) -> Calibration:
    """Return what is to be guaranteed; raise an error for options that contradict each other."""
    known = CalibrationOptions.__annotations__
    for name in question:
        if name not in known:
            raise TypeError(f"{name}: no such option.{suggestion(name, known)}")
    if "target_risk" not in question:
        raise TypeError("target_risk: expected the limit on the risk of the accepted cases, such as 0.1.")
    loss, column = question.get("loss"), question.get("loss_column", LOSS)
    if loss is not None and column != LOSS:
        raise ParameterError("loss: expected --loss or --loss-column; got both.")
    if question.get("fraction") is None and question.get("seed", 0):
        raise ParameterError("seed: expected with --fraction only; without it, it would be ignored.")
    estimator = question.get("estimator", "sdc")
    return Calibration(
        estimator,
        (Target(question["target_risk"], question.get("below_dice")),),
        delta=question.get("delta", 0.05),
        loss=column if loss is None else check_loss(loss),
        by_patient=question.get("patients", False),
        predictor=question.get("model", ""),
        reference=_confidences_by_structure(question.get("reference"), estimator),
        start_coverage=question.get("start_coverage", 0.5),
        drop_unjudged=question.get("drop_unjudged", False),
    )


def _choose_cases(
    source: Table, how: Calibration, question: CalibrationOptions
) -> tuple[Table, ScoreTable | None]:
    """Return the rows to calibrate with, and with ``fraction`` those that are left."""
    chosen = _choose_rows(source, question.get("chosen_set"), question.get("split"))
    fraction = question.get("fraction")
    if fraction is None:
        return chosen, None
    check_fraction(fraction, "fraction", open_ends=True)
    seed = check_whole(question.get("seed", 0), "seed")
    chosen, rest = split_table(chosen, fraction, seed, by_patient=how.by_patient)
    about = {**rest.about, "split": {"fraction": fraction, "seed": seed, "calibration": len(chosen.rows)}}
    return chosen, ScoreTable(rest.columns, rest.rows, about, rest.source)


def _warn_of_high_limits(table: Table, how: Calibration, structures: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each structure whose limit is kept even if every case is accepted."""
    (target,) = how.targets
    for name in sorted(structures):
        everything = risk_of_all(table, name, how)
        if everything is not None and target.risk >= everything:
            yield (
                f"{name}: the limit {target.risk:g} is not below the risk of accepting every case "
                f"({everything:.3g}), so hardly any case will be deferred. A lower limit makes review useful."
            )


def _score_table_of(table: Scores) -> Table:
    """Return a score table, that of an evaluation, or the one at a path or in a folder of results."""
    if isinstance(table, Evaluation):
        return table.scores
    return table if isinstance(table, Table) else ScoreTable.load(find_table(Path(table)))


def _choose_rows(table: Table, chosen_set: str | None, split: str | None) -> Table:
    """Return the rows of one set and one split; the guarantee is about cases like these."""
    if PART in table.about:
        raise ParameterError(f"{table.source}: expected a whole run, got a part of one: segtrust merge.")
    sets = list(dict.fromkeys(row.get("set") or "" for row in table.rows))
    if chosen_set is None and any(sets):
        if FIRST not in sets:
            raise ParameterError(
                f"{table.source}: expected cases in distribution (set {FIRST}), got only {', '.join(sets)}. "
                "Say which set is meant: --set."
            )
        chosen_set = FIRST
    splits = sorted({row.get("split") or "" for row in table.rows})
    if split is None and len(splits) > 1:
        raise ParameterError(
            f"{table.source}: expected cases of one split, got {', '.join(map(repr, splits))}. Cases that a "
            "model was trained on certify nothing: say which to use with --split."
        )
    wanted = {"set": chosen_set, "split": split}
    rows = table.rows
    for column, value in wanted.items():
        if value is not None:
            rows = tuple(row for row in rows if row.get(column, "") == value)
    if not rows:
        raise ParameterError(f"{table.source}: expected rows with {wanted}, got none.")
    return replace(table, rows=rows)


def _confidences_by_structure(reference: Table | str | Path | None, estimator: str) -> dict[str, list[float]]:
    if reference is None:
        return {}
    table = reference if isinstance(reference, Table) else read_table(Path(reference))
    confidences: dict[str, list[float]] = {}
    for name, confidence in zip(structures_of(table), table.column(estimator), strict=True):
        confidences.setdefault(name, []).append(confidence)
    return confidences


# Triage and reports


def triage(
    data: Data | ScoreTable,
    policy: AnyPolicy,
    *,
    output: str | Path | None = None,
    model: str = "",
    link: bool = False,
    alpha: float = 0.05,
    **options: Unpack[ScoreOptions],
) -> Triage:
    """Decide on new cases by a policy: accept, or defer to a person; and check for drift.

    Parameters
    ----------
    data
        Cases that were found, paths in which to find them, or a score table.
    policy
        The policy, or its path.
    output
        Folder for the score table and the lists of cases; ``None`` for none.
    model
        Name of the model that made the maps; the guarantee holds for the policy's own model.
    link
        Whether folders ``accept`` and ``defer`` are filled with links to the maps.
    alpha
        Probability of a false drift alarm.
    **options
        See `ScoreOptions` and `RunOptions`.

    Returns
    -------
    Triage
        Decisions, drift tests, and the score table. Cases that failed are deferred.

    Examples
    --------
    >>> rows = [
    ...     {"case": str(i), "structure": "organ", "k": 9, "sdc": i / 400, "dice": 0.5 + i / 800}
    ...     for i in range(400)
    ... ]
    >>> policy = calibrate(ScoreTable.of(rows), target_risk=0.2, model="fold 0")
    >>> new = [{"case": name, "structure": "organ", "k": 9, "sdc": c} for name, c in (("a", 0.9), ("b", 0.1))]
    >>> triage(ScoreTable.of(new), policy, model="fold 0").accepted.column("case")
    ['a']
    """
    folder = None if output is None else Path(output)
    scores, path = find_score_table(data), None if folder is None else folder / "scores.csv"
    if scores is not None:
        reject_map_options(options)
        table = _decide_table(scores, policy, model)
        if path is not None and (scores.path is None or path.resolve() != scores.path.resolve()):
            check_output(path)
            table.save(path, details=options.get("details", False))
            write_failures(failures_beside(path, None), table.failures, path.name)
    else:
        dataset = cast(Dataset, data)
        if not isinstance(data, Dataset):
            dataset = find_cases(cast("str | Path | Sequence[str | Path]", data), needs_truth=False)
        table = score_cases(dataset, (), output=path, policy=policy, model=model, with_truth=False, **options)
    result = Triage.of(table, alpha=alpha, model=model)
    if folder is not None:
        result.write(folder, link=link)
    return result


def _decide_table(table: ScoreTable, policy: AnyPolicy, model: str) -> ScoreTable:
    """Return a score table with the decisions of a policy, which must have been made with such scores."""
    policies = {name: each.for_predictor(model) for name, each in load_policies(policy).items()}
    check_policies(policies, table)
    decided = ScoreTable.of(tuple(decide_rows(policies)(table.rows)))
    held = policies_for_rows(policies, table.rows)
    return replace(table, columns=decided.columns, rows=decided.rows, policies=held)


def write_report(
    run: str | Path,
    *,
    output: str | Path | None = None,
    policy: AnyPolicy | None = None,
    model: str = "",
) -> Path:
    """Write the report of a run as one HTML file, with its figures; return its path.

    Parameters
    ----------
    run
        Folder of an evaluation or a triage, or a score table.
    output
        The page; ``report.html`` next to the score table by default.
    policy, model
        What decides on the cases, and which model made the maps.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> rows = [{"case": name, "structure": "organ", "k": 9, "sdc": 0.9} for name in ("a", "b")]
    >>> ScoreTable.of(rows).save(path, details=True)
    >>> write_report(path).name
    'report.html'
    """
    from segtrust.report.html.page import write_page
    from segtrust.report.html.run import open_run_folder

    opened = open_run_folder(Path(run), policy, model)
    return write_page(opened, None if output is None else Path(output), with_figures=True)
