"""The score table of a data set: made, kept, and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from segtrust._files import checksum, make_writable_folder, plain_values, remove_stale_drafts_of
from segtrust.confidence import packages_of
from segtrust.engine.journal import Journal
from segtrust.engine.locks import alone
from segtrust.engine.replaced import cases_in, say_lost
from segtrust.engine.run import Engine, part_of, run_cases
from segtrust.engine.scoring import ScoreJob, parameters_of
from segtrust.errors import ParameterError, SegtrustError, WrongContentError
from segtrust.io import (
    SCORES_FORMAT,
    TABLE_ENDINGS,
    Dataset,
    Failure,
    ScoreRow,
    Stream,
    Table,
    about_path,
    check_table_path,
    read_scheme,
    read_table,
    write_table,
)

__all__ = [
    "COMMANDS",
    "DOUBT",
    "FOLDER",
    "FORMAT",
    "PACKAGES",
    "PART",
    "PREDICTOR",
    "ScoreRun",
    "Scored",
    "TableOfRun",
    "check_output",
    "failures_beside",
    "journal_beside",
    "listed_failures",
    "read_scores",
    "score_cases",
    "settings_of",
    "unversioned",
    "write_failures",
]

FORMAT = SCORES_FORMAT
COMMANDS = "commands"
"""Where a table says with which commands it was made: the arguments of each, in their order."""
DOUBT = "doubt"
"""Where a table says why its cases certify nothing: such as that the model was trained with them."""
FOLDER = "folder"
"""Where a table says from which folder on the names of its files are."""
PREDICTOR = "predictor"
"""Where a table says which model made the maps, if the same run did."""
PACKAGES = "packages"
"""Where a table says from which packages estimators are that are not segtrust's own, and their versions."""
_OWN_COLUMNS = frozenset(["case", "structure", "k", "digest"])
PART = "part"
"""Where a table says that it is a part of one: its number, how many there are, and of which cases."""


def failures_beside(table: Path, part: int | None) -> Path:
    """Give the list of what failed in the runs of a folder, or in one part of a run."""
    return table.with_name("failures.csv" if part is None else f"{table.stem}.failures.csv")


def journal_beside(table: Path) -> Path:
    """Give the diary of the run that writes a table."""
    return table.with_name(f".{table.name}.journal")


@dataclass(frozen=True)
class ScoreRun:
    """Where results go, and how the work is done.

    Attributes
    ----------
    out
        The table. Its diary lies beside it, and what failed in ``failures.csv``.
    engine
        Where cases are run.
    resume
        Whether to go on with the diary of an earlier run.
    part, parts
        Which of so many jobs this is.
    advance
        Told of each case that is done.
    command
        Arguments with which the run was begun; the table keeps them.
    """

    out: Path
    engine: Engine
    resume: bool = True
    part: int = 0
    parts: int = 1
    advance: Callable[[int], object] = lambda done: None
    command: tuple[str, ...] = ()

    @property
    def journal_path(self) -> Path:
        """Where the diary is."""
        return journal_beside(self.out)

    @property
    def failures_path(self) -> Path:
        """Where the failures are listed."""
        return failures_beside(self.out, None if self.parts == 1 else self.part)


@dataclass(frozen=True)
class Scored:
    """What came of a run.

    Attributes
    ----------
    rows
        One a case and structure, in the order of the cases; those of a watch are read again when asked for.
    failures
        Cases that gave none.
    seconds
        That the run took.
    warnings
        What was found on the way, and has cost no case of this run its row.
    """

    rows: Sequence[ScoreRow]
    failures: tuple[Failure, ...]
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def cases(self) -> int:
        """How many cases gave rows."""
        return len({row["case"] for row in self.rows})


def score_cases(
    found: Dataset,
    job: ScoreJob,
    run: ScoreRun,
    *,
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows,
    more: Mapping[str, Any] | None = None,
) -> Scored:
    """Score cases and write their table, and beside it what failed and why.

    Parameters
    ----------
    found
        The cases, and the files that belong to none.
    job
        What is done with each.
    run
        Where results go, and how the work is done.
    finish
        Adds what depends on all rows, such as decisions, before they are written.
    more
        What the table says of itself beside what it was scored with, such as the name of the loss.
    """
    check_output(run.out)
    before = cases_in(run.out)
    cases = part_of(found.cases, run.part, run.parts)
    about = {"format": FORMAT, **settings_of(job)}
    if run.parts > 1:
        about[PART] = [run.part, run.parts, checksum([case.id for case in found.cases])]
    table = TableOfRun(run, {**about, **_of_sets(job), **(more or {})}, finish)
    with Journal(run.journal_path, about, run.resume, run.command) as journal:  # until the table is written
        outcomes = run_cases(job, cases, engine=run.engine, journal=journal, advance=run.advance)
        rows = [row for outcome in outcomes.values() for row in outcome.rows]
        failures = [outcome.failure for outcome in outcomes.values() if outcome.failure is not None]
        journal.sync()
        scored = table.write(rows, failures, found if run.part == 0 else Dataset(), before)
    told = [*(str(row["case"]) for row in rows), *(each.case for each in scored.failures)]
    lost = say_lost(run.out, before, told) if rows else ()
    return replace(scored, warnings=(*(each.reason for each in journal.damage()), *scored.warnings, *lost))


@dataclass(frozen=True)
class TableOfRun:
    """The table that a run writes, at its end or as often as there is news.

    Attributes
    ----------
    run
        Where it goes.
    about
        What it says of itself.
    finish
        Adds what depends on all rows, such as decisions.
    begun
        When the run began, by the clock that counts seconds.
    """

    run: ScoreRun
    about: Mapping[str, Any]
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows
    begun: float = field(default_factory=time.perf_counter)

    def write(
        self,
        rows: Sequence[ScoreRow],
        failed: Iterable[Failure],
        found: Dataset,
        before: Collection[str] = (),
    ) -> Scored:
        """Write rows, and beside them what failed, with what belongs to no case.

        A table of ``before`` is not emptied where no case could be scored.
        """
        if before and not rows:
            warning = f"{self.run.out}: no case could be scored, so that the table is left as it was."
            return replace(self._keep(failed, found), warnings=(warning,))
        run, told = self.run, {**self.about, FOLDER: str(Path.cwd())}
        finished = self.finish(rows)
        rows = finished if isinstance(finished, Stream) else tuple(finished)
        if run.command:
            told[COMMANDS] = [list(run.command)]
        write_table(run.out, Table.of(rows, told) if rows else Table(("case", "structure"), (), told))
        return replace(self._keep(failed, found), rows=rows)

    def _keep(self, failed: Iterable[Failure], found: Dataset) -> Scored:
        """Leave the table as it is, and write down what failed."""
        failures = (*failed, *found.failures)
        write_failures(self.run.failures_path, failures, self.run.out.name)
        return Scored((), failures, time.perf_counter() - self.begun)


def read_scores(path: Path) -> Table | None:
    """Read a table of scores; ``None`` for what is none, such as a manifest, which lists files.

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
            raise  # one of ours, which is damaged
        return None  # told by who reads it as what it is
    return table if {"case", "structure", "k"} <= set(table.columns) else None


def unversioned(table: Table) -> str:
    """Say that a table has all that a score table has, but not what it was made with; nothing otherwise.

    A table from elsewhere need not say so. One of `segtrust score` that was parted from what lies beside it
    must not be taken for one that was made in the usual way.
    """
    if not {*table.columns} >= _OWN_COLUMNS or table.about.get("format") == FORMAT:
        return ""
    return (
        f"{table.source}: expected a table that says how it was made (format {FORMAT!r}; beside a CSV lies "
        f"{Path(table.source).name}.about.json), got one that does not. It is taken as it stands, with the "
        "usual settings. Bring the two files together, or score anew."
    )


def check_output(path: Path) -> None:
    """Refuse a table that could not be written, before hours are spent on it."""
    check_table_path(path)
    if path.name.endswith("failures.csv"):
        raise ParameterError(f"{path}: expected another name, got that of the list of failures.")
    if path.is_dir():
        raise ParameterError(f"{path}: expected the name of a table, got a folder.")
    make_writable_folder(path.parent)
    remove_stale_drafts_of(path)


def write_failures(path: Path, failures: Sequence[Failure], table: str) -> None:
    """List what failed in the making of a table; what failed in that of others in the folder stays.

    Where nothing is left to tell there is no such file. Two runs that end at the same time wait for each
    other.
    """
    own = [{**failure.row(), "table": table} for failure in failures]
    with alone(path.with_name(f".{path.name}.lock")):
        others = [row for row in listed_failures(path) if (row.get("table") or table) != table]
        kept = [row for row in others if path.with_name(str(row["table"])).exists()]
        if own or kept:
            write_table(path, Table.of([*kept, *own]))
        else:
            path.unlink(missing_ok=True)


def listed_failures(path: Path) -> Sequence[ScoreRow]:
    """Give the rows of a list of failures; none where there is none that can be read."""
    try:
        return read_table(path).rows if path.exists() else ()
    except SegtrustError:
        return ()


def settings_of(job: ScoreJob) -> dict[str, Any]:
    """Give all that rows depend on beside the files, as plain values."""
    from segtrust import __version__

    scheme = read_scheme(job.read.scheme) if isinstance(job.read.scheme, Path) else job.read.scheme
    read = {**asdict(job.read), "scheme": None if scheme is None else asdict(scheme)}
    settings: Mapping[str, Any] = {
        "segtrust": __version__,
        "estimators": {each.name: parameters_of(each) for each in job.estimators},
        "read": read,
        "scaling": None if job.scaling is None else job.scaling.to_dict(),
        "with_truth": job.with_truth,
        "digest": job.digest,
        "empty": str(job.empty),
        **({PREDICTOR: job.predictor} if job.predictor else {}),
        **_packages(job),
    }
    return dict(plain_values(settings, "settings"))


def _packages(job: ScoreJob) -> dict[str, Any]:
    """Say which packages gave estimators; nothing where all are segtrust's own."""
    found = {each.name: packages_of(each.name) for each in job.estimators}
    told = {name: packages for name, packages in found.items() if packages}
    return {PACKAGES: told} if told else {}


def _of_sets(job: ScoreJob) -> dict[str, Any]:
    """Say what was learned from each set; nothing where nothing was."""
    found = [
        each for name in dict.fromkeys(name for name, _ in job.of_sets) for each in job.learned_from(name)
    ]
    return {"of sets": found} if found else {}
