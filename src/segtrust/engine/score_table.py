"""The score table of a data set: scored case by case, kept in a log, written at the end, and resumed."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from segtrust._files import (
    checksum,
    make_writable_folder,
    max_bytes,
    naming_errors,
    plain_values,
    remove_stale_drafts_of,
)
from segtrust._optional import install_hint
from segtrust.confidence import estimator_names, get_estimator, packages_of
from segtrust.engine.executors import Executor, ProcessDiedError, Sandbox, Work
from segtrust.engine.outcomes import Outcome
from segtrust.engine.questions import find_copies, questions_about
from segtrust.engine.run_log import RunLog, is_finished, is_running, lock_folder, mark_of, read_log
from segtrust.engine.scoring import ScoreJob, parameters_of
from segtrust.errors import (
    MissingExtraError,
    OtherSettingsError,
    ParameterError,
    SegtrustError,
    WrongContentError,
)
from segtrust.io import (
    COLUMNS,
    SCORES_FORMAT,
    TABLE_ENDINGS,
    ArrayRef,
    CaseFiles,
    Dataset,
    Failure,
    ReadOptions,
    ScoreRow,
    Stream,
    Table,
    about_path,
    check_table_path,
    group_failures,
    is_hdf5,
    missing_package,
    printable,
    read_scheme,
    read_table,
    stamps_of,
    write_table,
)
from segtrust.policy import Policy
from segtrust.selective import LookLog

__all__ = [
    "COMMANDS",
    "DOUBT",
    "FOLDER",
    "HOW_TO_RESUME",
    "PACKAGES",
    "PART",
    "PREDICTOR",
    "STAMP_SECONDS",
    "RunInterrupted",
    "ScoreRun",
    "ScoreTable",
    "TableWriter",
    "UnfinishedRun",
    "add_columns",
    "check_details",
    "check_output",
    "check_packages",
    "check_replaced",
    "failures_beside",
    "files_in",
    "find_table",
    "log_beside",
    "marks_of",
    "merge_settings",
    "part_of",
    "read_failures",
    "read_scores",
    "read_unfinished_run",
    "run_cases",
    "score_cases",
    "settings_of",
    "unversioned",
    "write_failures",
    "write_scores",
]

_LOG = logging.getLogger(__name__)
COMMANDS = "commands"
"""Where a table keeps the arguments of the commands that made it, in their order."""
DOUBT = "doubt"
"""Where a table says why its cases certify nothing, for example because the model was trained on them."""
FOLDER = "folder"
"""Where a table keeps the folder to which its file names are relative."""
PREDICTOR = "predictor"
"""Where a table keeps the name of the model that made the maps, if the same run did."""
PACKAGES = "packages"
"""Where a table keeps the packages, with versions, of estimators that are not segtrust's own."""
PART = "part"
"""Where a table says that it is a part: its number, the number of parts, and a checksum of all files."""
_OWN_COLUMNS = frozenset(["case", "structure", "k", "checksum"])
_FOLDER_TABLES = ("scores.parquet", "scores.csv", "scores.json")
"""Names of the table in a folder of `evaluate` and `triage`."""
_AT_ONCE = 256
"""Cases whose files are looked at together: all that is kept of each is a checksum."""
STAMP_SECONDS = 120.0
"""Time that a look at the files of a few cases may take."""
_LONGEST = 60
"""Characters of a setting that are shown: what an estimator has learned may be long."""


def failures_beside(table: Path, part: int | None) -> Path:
    """Return the list of failures of the runs of a folder, or of one part of a run."""
    return table.with_name("failures.csv" if part is None else f"{table.stem}.failures.csv")


def log_beside(table: Path) -> Path:
    """Return the log of the run that writes a table."""
    return table.with_name(f".{table.name}.log")


@dataclass(frozen=True)
class ScoreRun:
    """Where results go, and how the work is done.

    Attributes
    ----------
    out
        The table. Its log is beside it, and failures are listed in ``failures.csv``.
    executor
        Where cases are run.
    resume
        Whether to use the log of an earlier run; otherwise everything is scored again.
    part, parts
        Which of how many jobs this is.
    advance
        Called with 1 for each case that is done.
    command
        Arguments of the command; the table keeps them.
    overwrite
        Whether a table of other cases, or made with other settings, may be replaced.
    details
        Whether a CSV table shows its internal columns; otherwise they are kept in the file beside it.
    """

    out: Path
    executor: Executor
    resume: bool = True
    part: int = 0
    parts: int = 1
    advance: Callable[[int], object] = lambda done: None
    command: tuple[str, ...] = ()
    overwrite: bool = False
    details: bool = False

    @property
    def log_path(self) -> Path:
        """The log."""
        return log_beside(self.out)

    @property
    def failures_path(self) -> Path:
        """The list of failures."""
        return failures_beside(self.out, None if self.parts == 1 else self.part)


@dataclass(frozen=True, repr=False)
class ScoreTable(Table):
    """The scores of cases: one row per case and structure, with the settings and what went wrong.

    Attributes
    ----------
    columns, rows
        Names of the columns, and the rows in the order of the cases; the rows of a watch are read when they
        are needed. See `segtrust.io.COLUMNS` for the meaning of each column.
    about
        Settings of the run, as plain values.
    source
        Path of the table, for errors.
    failures
        Cases without rows.
    seconds
        Time that the run took.
    warnings
        What a user should know, and did not make a case fail.
    questions
        What looks wrong about the input, how files were read, and copies: to be read before the results.
    policies
        Policies by structure that decided, as they hold for these cases; empty if none did.
    looks
        What was asked of these cases in calibrations, by structure, if the table is in no file.

    Examples
    --------
    >>> table = ScoreTable.of([{"case": name, "sdc": c} for name, c in (("a", 0.9), ("b", 0.2))])
    >>> table.least_confident(1).column("case")
    ['b']
    """

    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict, compare=False)
    looks: dict[str, LookLog] = field(default_factory=dict, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a score table and its failures: Parquet, CSV or JSON, also of release 0.1."""
        table = read_table(Path(path))
        check_details(table)
        return cls._of_file(table)

    @classmethod
    def _of_file(cls, table: Table) -> Self:
        """Return a table that was read from a file with the failures of its run."""
        part = table.about[PART][0] if PART in table.about else None
        failures = read_failures(Path(table.source), part)
        return cls(table.columns, table.rows, table.about, table.source, failures)

    def save(self, path: str | Path, *, details: bool = False) -> None:
        """Write the table as Parquet, CSV or JSON, by the ending of the path.

        Parameters
        ----------
        path
            Where to.
        details
            Whether a CSV file shows internal columns; otherwise they are kept in the file beside it.
        """
        write_scores(Path(path), self, details=details)

    @property
    def cases(self) -> int:
        """Number of cases with rows."""
        return len({row["case"] for row in self.rows})

    @property
    def estimators(self) -> tuple[str, ...]:
        """Columns that hold confidences."""
        known = self.about.get("estimators") or estimator_names()
        return tuple(name for name in self.columns if name in known)

    def least_confident(self, count: int = 10, estimator: str | None = None) -> Self:
        """Return the rows with the lowest confidence, the lowest first.

        Parameters
        ----------
        count
            Number of rows.
        estimator
            Column of the confidence; by default the first one.
        """
        name = estimator or next(iter(self.estimators), "sdc")
        self.column(name)  # raises if there is none
        rows = sorted(self.rows, key=lambda row: (row[name] is None, row[name]))
        return replace(self, rows=tuple(rows[:count]))

    def __str__(self) -> str:
        """Return the number of cases and failures, and the questions."""
        count = f"{self.cases} case{'' if self.cases == 1 else 's'} scored"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return "\n".join([*self.questions, f"{count}{failed}."])


HOW_TO_RESUME = "Rerun the same command to resume."
"""End of the text of an interrupted run whose log stays."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; the text says what is done and how to resume."""


# Running


def score_cases(
    found: Dataset,
    job: ScoreJob,
    run: ScoreRun,
    *,
    prepare: Callable[[ScoreJob], ScoreJob] = lambda job: job,
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows,
    more: Mapping[str, Any] | None = None,
) -> ScoreTable:
    """Score cases, and write their table and the list of failures.

    Cases that the log has, and whose files have not changed, are not scored again. For estimators that the
    table does not have yet, only these are computed.

    Parameters
    ----------
    found
        The cases, and the files that belong to none.
    job
        What is done with each case.
    run
        Where results go, and how the work is done.
    prepare
        Adds to the job what must be learned from the maps first.
    finish
        Adds what depends on all rows, such as decisions, before they are written.
    more
        What the table says about itself besides its settings, such as the name of the loss.

    Raises
    ------
    OtherSettingsError
        If the table was made with other settings, or has other cases, and may not be overwritten.
    RunInterrupted
        On Ctrl-C.
    """
    check_output(run.out)
    max_bytes()  # a limit that makes no sense is reported once, not per case
    cases = part_of(found.cases, run.part, run.parts)
    about = {"format": SCORES_FORMAT, **settings_of(job)}
    if run.parts > 1:
        places = [(case.id, case.probabilities) for case in found.cases]
        files = [[name, str(replace(ref, path=ref.path.absolute()))] for name, ref in places]
        about[PART] = [run.part, run.parts, checksum(files)]
    before, failed = files_in(run.out), {failure.case for failure in found.failures}
    begun = time.perf_counter()
    log = RunLog(run.log_path, about, command=run.command)
    try:
        with closing(run.executor), log:
            check_replaced(run, before, cases, failed)
            job, about = merge_settings(run, log, job, about)
            if not run.resume:
                log.clear()
            job = prepare(job)
            outcomes = run_cases(job, cases, executor=run.executor, log=log, advance=run.advance)
            rows = [row for outcome in outcomes.values() for row in outcome.rows]
            failures = [outcome.failure for outcome in outcomes.values() if outcome.failure is not None]
            log.sync()
            writer = TableWriter(run, {**about, **_learned(job), **(more or {})}, finish, begun)
            unpaired = found.failures if run.part == 0 else ()
            scored = writer.write(rows, (*failures, *unpaired), before)
            log.finish()
    except KeyboardInterrupt as interrupt:
        asked, done, failed = {case.id for case in cases}, set[str](), set[str]()
        with suppress(SegtrustError, OSError):
            done, failed = (asked & log.cases(failed=each) for each in (False, True))
        also = f", {len(failed)} failed" if failed else ""
        raise RunInterrupted(
            f"Interrupted: {len(done)} of {len(cases)} cases are scored{also}. {HOW_TO_RESUME}"
        ) from interrupt
    scored = replace(scored, questions=tuple(_questions(rows, outcomes.values())))
    given = {case.id for case in cases} | failed
    lost = sorted(set(before) - set(map(printable, given))) if rows else []
    if lost:
        warning = f"{run.out}: {len(lost)} cases that it had are no longer in it, such as {lost[0]}."
        scored = replace(scored, warnings=(*scored.warnings, warning))
    return scored


def _questions(rows: Sequence[ScoreRow], outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield what looks wrong about the input, how files were read, and copies among the cases."""
    outcomes = list(outcomes)
    yield from questions_about(rows, Counter(hint for outcome in outcomes for hint in outcome.hints))
    notes = [Failure(each.case, "", "note", note) for each in outcomes for note in each.notes]
    for group in group_failures(notes):
        yield f"Note: {group}"
    copies = find_copies(rows)
    if copies.groups:
        yield str(copies)


def run_cases(
    job: Work,
    cases: Sequence[CaseFiles],
    *,
    executor: Executor,
    log: RunLog,
    advance: Callable[[int], object] = lambda done: None,
) -> dict[str, Outcome]:
    """Return the outcome of each case by its id, in the order of the cases; the log keeps them as they come.

    Parameters
    ----------
    job
        Returns the outcome of a case: a `ScoreJob`, whose estimators may be more than the log has.
    cases
        With different ids.
    executor
        Where they are run.
    log
        Opened; has what is done already.
    advance
        Called with 1 for each case that is done.
    """
    with Sandbox(seconds=STAMP_SECONDS) as sandbox:
        marks = marks_of(
            job, cases, sandbox
        )  # before: a file that changes while it is scored is scored again
    outcomes: dict[str, Outcome | None] = {case.id: None for case in cases}
    missing: list[CaseFiles] = []
    incomplete: list[CaseFiles] = []
    for case in cases:
        outcome = log.find(case.id, marks[case.id])
        if outcome is None:
            missing.append(case)
        elif _lacking(job, outcome):
            incomplete.append(case)
        else:
            outcomes[case.id] = outcome.compact()
            advance(1)
    if len(missing) == len(cases) and not executor.is_remote:
        check_packages(missing)
    for case, outcome in add_columns(job, incomplete, executor=executor, log=log, marks=marks):
        if outcome is None:
            missing.append(case)
        else:
            outcomes[case.id] = outcome.compact()
            advance(1)
    with closing(executor.run(job, missing)) as finished:
        for case, outcome in finished:
            log.add(outcome, marks[case.id])
            outcomes[case.id] = outcome.compact()
            advance(1)
    return {name: outcome for name, outcome in outcomes.items() if outcome is not None}


def _lacking(job: Work, outcome: Outcome) -> tuple[str, ...]:
    """Return the estimators of a job that an outcome has no columns for."""
    names = [estimator.name for estimator in job.estimators] if isinstance(job, ScoreJob) else []
    return tuple(name for name in names if any(name not in row for row in outcome.rows))


def add_columns(
    job: Work, cases: Sequence[CaseFiles], *, executor: Executor, log: RunLog, marks: Mapping[str, bytes]
) -> Iterator[tuple[CaseFiles, Outcome | None]]:
    """Compute the estimators that the log lacks for some of its cases, and yield their outcomes.

    An outcome is ``None`` if the files of the case are not those that were scored. If the estimators fail, it
    is their failure; the log keeps the rows that it has.
    """
    by_names: dict[tuple[str, ...], list[CaseFiles]] = {}
    for case in cases:
        known = log.find(case.id, marks[case.id])
        if known is not None and (names := _lacking(job, known)):
            by_names.setdefault(names, []).append(case)
    for names, some in by_names.items():
        assert isinstance(job, ScoreJob)
        wanted = tuple(estimator for estimator in job.estimators if estimator.name in names)
        with closing(executor.run(replace(job, estimators=wanted, of_sets={}), some)) as finished:
            for case, added in finished:
                before = log.find(case.id, marks[case.id])
                assert before is not None
                outcome = added if added.failure is not None else _with_columns(before, added, names)
                if outcome is not None and outcome.failure is None:
                    log.add(outcome, marks[case.id])
                yield case, outcome


def _with_columns(before: Outcome, added: Outcome, names: Sequence[str]) -> Outcome | None:
    """Return an outcome with the columns of more estimators; ``None`` if the files are not the same."""
    same = ("structure", "checksum", "mask_checksum")
    if [[row.get(key) for key in same] for row in before.rows] != [
        [row.get(key) for key in same] for row in added.rows
    ]:
        return None
    rows = []
    for row, more in zip(before.rows, added.rows, strict=True):
        columns = list(row)
        at = columns.index("k")  # estimators stand before the counts
        order = [*columns[:at], *(name for name in names if name not in row), *columns[at:]]
        values = {**row, **{name: more[name] for name in names}, "seconds": row["seconds"] + more["seconds"]}
        rows.append({name: values[name] for name in order})
    return replace(before, rows=tuple(rows))


def marks_of(job: Work, cases: Sequence[CaseFiles], sandbox: Sandbox) -> dict[str, bytes]:
    """Return a checksum per case that changes with its files, and with what was learned from its set.

    A sandbox looks into HDF5 files, which may link to others.
    """
    learned_from = getattr(job, "learned_from", None)
    learned: dict[str, Any] = {}
    marks: dict[str, bytes] = {}
    for first in range(0, len(cases), _AT_ONCE):
        some = cases[first : first + _AT_ONCE]
        stamps = _stamps_in(sandbox, some)
        for case in some:
            if learned_from is not None and case.set not in learned:
                learned[case.set] = learned_from(case.set)
            more = {"learned": learned[case.set]} if learned.get(case.set) else {}
            marks[case.id] = mark_of({**stamps[case.id], **more})
    return marks


def _stamps_in(sandbox: Sandbox, cases: Sequence[CaseFiles]) -> dict[str, Any]:
    """Return `stamps_of` cases; links of a file that ends or stops its reader are not followed."""
    refs = (ref for case in cases for ref in (*case.maps, case.mask, case.truth) if ref is not None)
    if not any(is_hdf5(path) for path in {ref.path for ref in refs}):
        return stamps_of(cases)
    try:
        return sandbox.call(stamps_of, cases)
    except ProcessDiedError:
        if len(cases) == 1:
            return stamps_of(cases, follow_links=False)
        return {name: stamp for case in cases for name, stamp in _stamps_in(sandbox, [case]).items()}


def part_of(cases: Sequence[CaseFiles], part: int, parts: int) -> list[CaseFiles]:
    """Return the cases of one job of an array: consecutive ones, so that all parts in order are the whole.

    Examples
    --------
    >>> part_of(["a", "b", "c", "d", "e"], 1, 2)
    ['c', 'd', 'e']
    """
    if not (parts >= 1 and 0 <= part < parts):
        raise ParameterError(f"part-id: expected a number from 0 to {parts - 1}, got {part}.")
    return list(cases[len(cases) * part // parts : len(cases) * (part + 1) // parts])


def check_packages(cases: Sequence[CaseFiles]) -> None:
    """Check that at least one case can be read with the packages that are installed: `MissingExtraError`."""
    lacking: Counter[str] = Counter()
    for case in cases:
        places = (place for place in (*case.maps, case.mask, case.truth) if place is not None)
        missing = next(filter(None, map(missing_package, places)), "")
        if not missing:
            return
        lacking[missing] += 1
    if lacking:
        counts = ", ".join(f"{count} without {name!r}" for name, count in lacking.items())
        raise MissingExtraError(
            f"{cases[0].probabilities}: expected cases that can be read here, got {counts}, and no others. "
            f"Run {install_hint('io')}."
        )


# Settings


def settings_of(job: ScoreJob) -> dict[str, Any]:
    """Return all that rows depend on besides the files, as plain values."""
    from segtrust import __version__

    scheme = read_scheme(job.read.scheme) if isinstance(job.read.scheme, Path) else job.read.scheme
    packages = {each.name: packages_of(each.name) for each in job.estimators}
    packages = {name: found for name, found in packages.items() if found}
    settings: Mapping[str, Any] = {
        "segtrust": __version__,
        "estimators": {each.name: parameters_of(each) for each in job.estimators},
        "read": {**asdict(job.read), "scheme": None if scheme is None else asdict(scheme)},
        "scaling": None if job.scaling is None else job.scaling.to_dict(),
        "with_truth": job.with_truth,
        "checksum": job.digest,
        "empty": str(job.empty),
        **({PREDICTOR: job.predictor} if job.predictor else {}),
        **({PACKAGES: packages} if packages else {}),
    }
    return dict(plain_values(settings, "settings"))


def _learned(job: ScoreJob) -> dict[str, Any]:
    """Return what was learned from each set, for the table; nothing if nothing was."""
    names = dict.fromkeys(name for name, _ in job.of_sets)
    learned = [each for name in names for each in job.learned_from(name)]
    return {"of sets": learned} if learned else {}


def merge_settings(
    run: ScoreRun, log: RunLog, job: ScoreJob, about: Mapping[str, Any]
) -> tuple[ScoreJob, dict[str, Any]]:
    """Return the job and the settings of a run together with the estimators that its table has already.

    Raises
    ------
    OtherSettingsError
        If any other setting has changed, and the table may not be overwritten.
    """
    now = dict(plain_values(dict(about), "settings"))
    before = _previous_settings(run, log)
    if before is None:
        return job, now
    shared = {
        key: {name: value for name, value in before.get(key, {}).items() if name in now["estimators"]}
        for key in ("estimators", PACKAGES)
    }
    added = [name for name in now["estimators"] if name not in shared["estimators"]]
    asked = {key: _without(now.get(key, {}), added) for key in ("estimators", PACKAGES)}
    changes = _changes_between({**before, **shared}, {**now, **asked})
    dropped = [name for name in before.get("estimators", {}) if name not in now["estimators"]]
    if dropped and run.overwrite:  # the table is replaced by one with what is asked for now
        log.clear()
        return job, now
    kept = [
        each for name in dropped if (each := _same_estimator(name, before["estimators"][name])) is not None
    ]
    if len(kept) < len(dropped):
        changes.append(f"estimators {', '.join(before['estimators'])} (now {', '.join(now['estimators'])})")
    if changes:
        if not run.overwrite:
            raise OtherSettingsError(
                f"{run.out}: it was made with {'; '.join(changes)}. Use the same settings, choose another "
                "output, or replace the table: --overwrite."
            )
        log.clear()
        return job, now
    merged = {**now, **{key: {**before.get(key, {}), **now.get(key, {})} for key in ("estimators", PACKAGES)}}
    if not merged[PACKAGES]:
        del merged[PACKAGES]
    log.keep_settings(merged)
    order = list(merged["estimators"])
    estimators = sorted((*job.estimators, *kept), key=lambda each: order.index(each.name))
    return replace(job, estimators=tuple(estimators)), merged


def _previous_settings(run: ScoreRun, log: RunLog) -> dict[str, Any] | None:
    """Return the settings of the rows that are there: as the log says, or the table if there is no log."""
    if log.previous is not None or not run.out.is_file():
        return log.previous
    try:
        about = dict(read_table(run.out, keep=lambda row: False).about)
    except SegtrustError:
        return None
    if about.get("format") != SCORES_FORMAT or not isinstance(about.get("estimators"), dict):
        return None
    known = {**log.settings, PREDICTOR: "", PACKAGES: {}, PART: []}
    settings = {key: about[key] for key in known if key in about}
    if isinstance(settings.get("read"), dict):  # release 0.1 had fewer options, and --resample was a flag
        resample = settings["read"].get("resample")
        given = {**settings["read"], "resample": {True: "truth", False: None}.get(resample, resample)}
        settings["read"] = {**plain_values(asdict(ReadOptions()), "settings"), **given}
    return settings


def _without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _same_estimator(name: str, parameters: Any) -> Any:
    """Return an estimator with the given parameters if its name is enough to make it, else ``None``."""
    try:
        estimator = get_estimator(name)
        return estimator if plain_values(parameters_of(estimator), name) == parameters else None
    except (SegtrustError, ImportError):
        return None


def _changes_between(before: Any, now: Any, name: str = "") -> list[str]:
    """Describe the settings that differ.

    Examples
    --------
    >>> _changes_between({"read": {"key": "p", "channel": None}}, {"read": {"key": "q", "channel": 1}})
    ['key p (now q)', 'channel none (now 1)']
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [
            change
            for key in {**before, **now}
            for change in _changes_between(before.get(key), now.get(key), str(key).replace("_", " "))
        ]
    return [] if before == now else [f"{name} {_format_setting(before)} (now {_format_setting(now)})"]


def _format_setting(value: Any) -> str:
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_format_setting(each)}" for key, each in value.items()) or "none"
    elif isinstance(value, list | tuple):
        text = ", ".join(map(_format_setting, value)) or "none"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = "none" if value in (None, "") else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# Writing


@dataclass(frozen=True)
class TableWriter:
    """Writes the table of a run and its failures, at the end or as often as there is news.

    Attributes
    ----------
    run
        Where they go.
    about
        What the table says about itself.
    finish
        Adds what depends on all rows, such as decisions.
    begun
        When the run began (`time.perf_counter`).
    """

    run: ScoreRun
    about: Mapping[str, Any]
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows
    begun: float = field(default_factory=time.perf_counter)

    def write(
        self,
        rows: Sequence[ScoreRow],
        failed: Iterable[Failure],
        before: Collection[str] = (),
    ) -> ScoreTable:
        """Write rows and failures; a table of ``before`` is not emptied if no case succeeds."""
        out, failures = self.run.out, tuple(failed)
        about = {**self.about, FOLDER: str(Path.cwd())}
        if self.run.command:
            about[COMMANDS] = [list(self.run.command)]
        warnings: tuple[str, ...] = ()
        table = ScoreTable(("case", "structure"), (), about)
        if rows:
            finished = self.finish(rows)
            table = ScoreTable.of(finished if isinstance(finished, Stream) else tuple(finished), about)
        if rows or not before:
            write_scores(out, table, details=self.run.details)
            old_log_beside(out).unlink(missing_ok=True)
        else:
            warnings = (f"{out}: no case could be scored, so the table was not changed.",)
        write_failures(self.run.failures_path, failures, out.name)
        seconds = time.perf_counter() - self.begun
        return replace(table, source=str(out), failures=failures, seconds=seconds, warnings=warnings)


def write_scores(path: Path, table: Table, *, details: bool = False) -> None:
    """Write a score table; a CSV file shows internal columns only with ``details``."""
    internal = [column.name for column in COLUMNS.values() if column.is_internal]
    write_table(path, table, hidden=() if details else internal)


def check_output(path: Path) -> None:
    """Check that a table can be written, before hours are spent on it."""
    check_table_path(path)
    if path.name.endswith("failures.csv"):
        raise ParameterError(f"{path}: expected another name, got that of the list of failures.")
    if path.is_dir():
        raise ParameterError(f"{path}: expected the name of a table, got a folder.")
    make_writable_folder(path.parent)
    remove_stale_drafts_of(path)
    if old_log_beside(path).is_file() and not path.is_file():
        _LOG.warning("%s: an unfinished run of segtrust 0.1 cannot be resumed, so it starts again.", path)


def old_log_beside(table: Path) -> Path:
    """Return the log that version 0.1 wrote."""
    return table.with_name(f".{table.name}.journal")


def files_in(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the cases of a table, as far as it can be read, by their printable ids.

    With each come the absolute paths of its map, its delivered mask and its ground truth; those that are not
    known are empty.
    """
    found: dict[str, tuple[str, ...]] = {}

    def note(row: Mapping[str, Any]) -> bool:
        found[printable(str(row.get("case", "")))] = tuple(str(row.get(name) or "") for name in _FILES)
        return False

    if not path.is_file():
        return found
    try:
        folder = read_table(path, keep=note).about.get(FOLDER)
    except WrongContentError:
        folder = None
    if not isinstance(folder, str):
        return dict.fromkeys(found, ("",) * len(_FILES))
    return {
        case: tuple(str(Path(folder, each)) if each else "" for each in files)
        for case, files in found.items()
    }


def check_replaced(
    run: ScoreRun, before: Mapping[str, Sequence[str]], cases: Iterable[CaseFiles], others: Iterable[str] = ()
) -> None:
    """Check that no case of the table would be lost or come from other files, unless a user asked for that.

    Parameters
    ----------
    run
        The table, and whether it may be overwritten.
    before
        Cases of the table, with their files (`files_in`).
    cases
        Cases that are given now. Ground truth or masks may be added.
    others
        Ids of cases that failed, or that the log keeps.
    """
    if run.overwrite:
        return
    now = {printable(case.id): case for case in cases}
    lost = sorted(set(before) - set(now) - set(map(printable, others)))
    if lost:
        raise OtherSettingsError(
            f"{run.out}: it has {len(lost)} cases that are not among those given now, such as {lost[0]}. "
            "Give them too, choose another output, or replace the table: --overwrite."
        )
    changed = [
        (name, noun, old, ref)
        for name, case in now.items()
        for noun, old, ref in zip(_NOUNS, before.get(name, ()), _refs_of(case), strict=False)
        if before[name][0] and old and not _is_same_file(old, ref)
    ]
    if changed:
        name, noun, old, ref = changed[0]
        count = len({each[0] for each in changed})
        raise OtherSettingsError(
            f"{run.out}: {count} of its cases were scored from other files: the {noun} of {name} was {old}, "
            f"and now it is {ref or 'missing'}. Choose another output, or replace the table: --overwrite."
        )


_FILES, _NOUNS = ("file", "mask_file", "truth_file"), ("map", "mask", "ground truth")


def _refs_of(case: CaseFiles) -> tuple[ArrayRef | None, ...]:
    return (case.probabilities, case.mask, case.truth)


def _is_same_file(old: str, ref: ArrayRef | None) -> bool:
    if ref is None:
        return False
    now = printable(str(Path(str(ref)).absolute()))
    return old == now or Path(old).resolve() == Path(now).resolve()


def write_failures(path: Path, failures: Sequence[Failure], table: str) -> None:
    """List the failures of a table; those of other tables in the folder stay."""
    own = [{**failure.row(), "table": table} for failure in failures]
    with lock_folder(path.parent):  # two runs may end at the same time
        listed: Sequence[ScoreRow] = ()
        with suppress(SegtrustError):  # a list that cannot be read is replaced
            listed = read_table(path).rows if path.exists() else ()
        others = [row for row in listed if (row.get("table") or table) != table]
        kept = [row for row in others if path.with_name(str(row["table"])).exists()]
        if own or kept:
            write_table(path, Table.of([*kept, *own]))
        else:
            path.unlink(missing_ok=True)


def read_failures(table: Path, part: int | None = None) -> tuple[Failure, ...]:
    """Return the failures of the run that wrote a table, or a part of one; none if there is no list."""
    path = failures_beside(table, part)
    rows = read_table(path).rows if path.is_file() else ()
    own = [row for row in rows if (row.get("table") or table.name) == table.name]
    names = ("case", "file", "kind", "reason")
    return tuple(Failure(*(str(row.get(name) or "") for name in names)) for row in own)


# Reading


def read_scores(path: Path) -> ScoreTable | None:
    """Read a table of scores and its failures; ``None`` for another file, such as a manifest.

    Examples
    --------
    >>> read_scores(Path("predictions")) is None
    True
    """
    if path.suffix.lower() not in TABLE_ENDINGS or not path.is_file():
        return None
    try:
        table = read_table(path)
    except WrongContentError:
        if about_path(path).exists():
            raise  # a score table, which is corrupt
        return None  # reported when it is read as what it is
    check_details(table)
    return ScoreTable._of_file(table) if {"case", "structure", "k"} <= set(table.columns) else None


def check_details(table: Table) -> None:
    """Check that a score table has its internal columns: a CSV keeps them in the file beside it."""
    if {"idc_over_sdc_low", "shape"} <= set(table.columns) and "k" not in table.columns:
        name = about_path(Path(table.source)).name
        raise WrongContentError(
            f"{table.source}: expected {name} beside it, which holds the columns that the CSV does not show "
            "(k, checksum …), got no such file. Copy both, or score with --details or to Parquet."
        )


def unversioned(table: Table) -> str:
    """Return a warning if a score table does not say what it was made with; nothing otherwise.

    A table from elsewhere need not. One of `segtrust score` that was separated from the file beside it must
    not be taken for one that was made with the usual settings.
    """
    if not {*table.columns} >= _OWN_COLUMNS or table.about.get("format") == SCORES_FORMAT:
        return ""
    return (
        f"{table.source}: expected a table that says how it was made (format {SCORES_FORMAT!r}; of a CSV in "
        f"{Path(table.source).name}.about.json next to it), got one that does not. The usual settings are "
        "assumed. Bring the two files together, or score again."
    )


def find_table(path: Path) -> Path:
    """Return the score table of a folder, or the table itself; a run that is not finished may have none yet.

    Raises
    ------
    ParameterError
        If there is neither a table nor the log of a run.
    """
    places = [path / name for name in _FOLDER_TABLES] if path.is_dir() else [path]
    if not path.is_dir() and path.suffix.lower() not in TABLE_ENDINGS:
        got = "another file" if path.exists() else "nothing of that name"
        raise ParameterError(
            f"{path}: expected a folder of `evaluate` or `triage`, or a table of scores, got {got}."
        )
    found = [place for place in places if place.is_file() or log_beside(place).is_file()]
    if not found:
        listed = ", ".join(place.name for place in places)
        raise ParameterError(f"{path}: expected a table of scores ({listed}), got none. Score cases first.")
    return found[0]


@dataclass(frozen=True)
class UnfinishedRun:
    """A run whose table is not written yet.

    Attributes
    ----------
    table
        What is scored so far.
    failures
        What failed so far.
    stopped
        Whether no process is at work: the run can be resumed.
    """

    table: Table
    failures: tuple[Failure, ...]
    stopped: bool


def read_unfinished_run(path: Path) -> UnfinishedRun | None:
    """Read what is done of the run that writes a table; ``None`` if it is finished, or there is no run."""
    log_path = log_beside(path)
    if not log_path.is_file() or (path.is_file() and is_finished(log_path)):
        return None
    log, stopped = read_log(log_path), is_running(log_path) is False
    rows = [row for outcome in log.outcomes for row in outcome.rows]
    if stopped and path.is_file() and _maps_in(rows) == _maps_in(read_table(path).rows):
        return None
    failures = tuple(outcome.failure for outcome in log.outcomes if outcome.failure is not None)
    about = {**log.settings, FOLDER: log.folder, COMMANDS: [list(log.command)] if log.command else []}
    with naming_errors(str(log_path)):
        table = replace(Table.of(rows, about), source=str(path))
    return UnfinishedRun(table, failures, stopped)


def _maps_in(rows: Sequence[ScoreRow]) -> set[tuple[str, str]]:
    return {(str(row.get("case")), str(row.get("checksum") or "")) for row in rows}
