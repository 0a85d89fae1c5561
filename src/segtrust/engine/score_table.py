"""The score table of a data set: made, kept, and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from segtrust.engine.decisions import parameters_of
from segtrust.engine.journal import Journal
from segtrust.engine.locks import alone
from segtrust.engine.outcomes import Failure, Row
from segtrust.engine.run import Engine, part_of, run_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import ParameterError, SegtrustError, WrongContentError
from segtrust.io.cases import DataSet
from segtrust.io.nnunet import read_scheme
from segtrust.io.tables import ENDINGS, Table, check_ending, read_table, write_table
from segtrust.saved import checksum, plain

__all__ = [
    "FOLDER",
    "FORMAT",
    "PART",
    "ScoreRun",
    "Scored",
    "failures_beside",
    "read_scores",
    "score_cases",
    "settings_of",
    "write_failures",
]

FORMAT = "segtrust-scores-1"
FOLDER = "folder"
"""Where a table says from which folder on the names of its files are."""
PART = "part"
"""Where a table says that it is a part of one: its number, how many there are, and of which cases."""


def failures_beside(table: Path, part: int | None) -> Path:
    """Give the list of what failed in the runs of a folder, or in one part of a run."""
    return table.with_name("failures.csv" if part is None else f"{table.stem}.failures.csv")


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
    """

    out: Path
    engine: Engine
    resume: bool = True
    part: int = 0
    parts: int = 1
    advance: Callable[[int], object] = lambda done: None

    @property
    def journal_path(self) -> Path:
        """Where the diary is."""
        return self.out.with_name(f".{self.out.name}.journal")

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
        One a case and structure, in the order of the cases.
    failures
        Cases that gave none.
    seconds
        That the run took.
    """

    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]
    seconds: float

    @property
    def cases(self) -> int:
        """How many cases gave rows."""
        return len({row["case"] for row in self.rows})


def score_cases(
    found: DataSet,
    job: ScoreJob,
    run: ScoreRun,
    *,
    finish: Callable[[Sequence[Row]], Sequence[Row]] = lambda rows: rows,
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
    begin = time.perf_counter()
    check_output(run.out)
    cases = part_of(found.cases, run.part, run.parts)
    about = {"format": FORMAT, **settings_of(job)}
    if run.parts > 1:
        about[PART] = [run.part, run.parts, checksum([case.id for case in found.cases])]
    journal = Journal(run.journal_path, about, run.resume)
    outcomes = run_cases(job, cases, engine=run.engine, journal=journal, advance=run.advance)
    rows = tuple(finish([row for outcome in outcomes.values() for row in outcome.rows]))
    failures = _failures(outcomes.values(), found if run.part == 0 else DataSet())
    told = {**about, **_of_sets(job), **(more or {}), FOLDER: str(Path.cwd())}
    write_table(run.out, Table.of(rows, told) if rows else Table(("case", "structure"), (), told))
    write_failures(run.failures_path, failures, run.out.name)
    return Scored(rows, failures, time.perf_counter() - begin)


def read_scores(path: Path) -> Table | None:
    """Read a table of scores; ``None`` for what is none, such as a manifest, which lists files.

    Examples
    --------
    >>> read_scores(Path("predictions")) is None
    True
    """
    if path.suffix.lower() not in ENDINGS or not path.is_file():
        return None
    try:
        table = read_table(path)
    except WrongContentError:
        return None  # told by who reads it as what it is
    return table if {"case", "structure", "k"} <= set(table.columns) else None


def check_output(path: Path) -> None:
    """Refuse a table that could not be written, before hours are spent on it."""
    check_ending(path)
    if path.name.endswith("failures.csv"):
        raise ParameterError(f"{path}: expected another name, got that of the list of failures.")
    if path.is_dir():
        raise ParameterError(f"{path}: expected the name of a table, got a folder.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ParameterError(
            f"{path.parent}: expected a folder that can be written to, got: {error.strerror}."
        ) from None


def _failures(outcomes: Any, found: DataSet) -> tuple[Failure, ...]:
    failed = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    return (*failed, *map(Failure.of_unpaired, found.unpaired))


def write_failures(path: Path, failures: Sequence[Failure], table: str) -> None:
    """List what failed in the making of a table; what failed in that of others in the folder stays.

    Where nothing is left to tell there is no such file. Two runs that end at the same time wait for each
    other.
    """
    own = [{**failure.row(), "table": table} for failure in failures]
    with alone(path.with_name(f".{path.name}.lock")):
        others = [row for row in _listed(path) if (row.get("table") or table) != table]
        kept = [row for row in others if path.with_name(str(row["table"])).exists()]
        if own or kept:
            write_table(path, Table.of([*kept, *own]))
        else:
            path.unlink(missing_ok=True)


def _listed(path: Path) -> Sequence[Row]:
    """Give the rows of a list that is there; one that cannot be read is written anew."""
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
    }
    return dict(plain(settings, "settings"))


def _of_sets(job: ScoreJob) -> dict[str, Any]:
    """Say what was learned from each set; nothing where nothing was."""
    found = [
        each for name in dict.fromkeys(name for name, _ in job.of_sets) for each in job.learned_from(name)
    ]
    return {"of sets": found} if found else {}
