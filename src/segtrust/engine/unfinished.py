"""The table of a run, finished or not: where it is, and what the diary knows as long as it is not written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from segtrust._files import naming_errors
from segtrust.engine.journal import read_journal
from segtrust.engine.locks import is_taken
from segtrust.engine.score_table import COMMANDS, FOLDER, journal_beside
from segtrust.errors import ParameterError
from segtrust.io import TABLE_ENDINGS, Failure, ScoreRow, Table, read_table

__all__ = ["UnfinishedRun", "find_table", "unfinished_run"]

_NAMES = ("scores.parquet", "scores.csv", "scores.json")
"""Of the tables of a folder, as `evaluate` and `triage` call them."""


@dataclass(frozen=True)
class UnfinishedRun:
    """A run as far as it has come.

    Attributes
    ----------
    table
        What is scored so far.
    failures
        What gave no result so far.
    stopped
        Whether nobody is at it any more: the run was killed, and can go on.
    """

    table: Table
    failures: tuple[Failure, ...]
    stopped: bool


def find_table(path: Path) -> Path:
    """Give the score table of a run: of a folder, or the table itself; a run that goes on may have none yet.

    Raises
    ------
    ParameterError
        If there is neither a table nor the diary of one.
    """
    places = [path / name for name in _NAMES] if path.is_dir() else [path]
    if not path.is_dir() and path.suffix.lower() not in TABLE_ENDINGS:
        got = "another file" if path.exists() else "nothing of that name"
        raise ParameterError(
            f"{path}: expected a folder of `evaluate` or `triage`, or a table of scores, got {got}."
        )
    found = [each for each in places if each.is_file() or journal_beside(each).is_file()]
    if not found:
        listed = ", ".join(each.name for each in places)
        raise ParameterError(f"{path}: expected a table of scores ({listed}), got none. Score cases first.")
    return found[0]


def unfinished_run(path: Path) -> UnfinishedRun | None:
    """Give a run so far, from its diary; ``None`` where the table is whole, or there is no run.

    A table is written at the end of a run, so a diary that is newer tells of one that is not finished, unless
    a copy of both has lost their times: then nobody writes to the diary, and it has the maps of the table.
    """
    journal = journal_beside(path)
    if not journal.is_file() or (path.is_file() and not _is_newer(journal, path)):
        return None
    diary, stopped = read_journal(journal), is_taken(journal) is False
    rows = [row for outcome in diary.outcomes for row in outcome.rows]
    if stopped and path.is_file() and _maps(rows) == _maps(read_table(path).rows):
        return None
    failures = tuple(outcome.failure for outcome in diary.outcomes if outcome.failure is not None)
    begun = {FOLDER: diary.folder, COMMANDS: [list(diary.command)] if diary.command else []}
    with naming_errors(str(journal)):
        table = replace(Table.of(rows, {**diary.made_with, **begun}), source=str(path))
    return UnfinishedRun(table, failures, stopped)


def _is_newer(first: Path, second: Path) -> bool:
    return first.stat().st_mtime_ns > second.stat().st_mtime_ns


def _maps(rows: Sequence[ScoreRow]) -> set[tuple[Any, Any]]:
    """Give which maps of which cases were scored."""
    return {(str(row.get("case")), str(row.get("digest") or "")) for row in rows}
