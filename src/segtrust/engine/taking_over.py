"""What a table has and its diary has lost: taken over, or the next table would not have it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust._files import plain_values
from segtrust.engine.journal import Journal, changes_between
from segtrust.engine.outcomes import Outcome
from segtrust.engine.score_table import failures_beside, listed_failures
from segtrust.engine.triage import DECISION_COLUMNS
from segtrust.errors import OtherSettingsError, SavedStateError, WrongContentError
from segtrust.io import Failure, ScoreRow, Table, printable, read_table

__all__ = ["MADE_OF", "take_over"]

_LOG = logging.getLogger(__name__)
MADE_OF = "bytes of the diary"
"""Where a table says how long its diary was: one that is shorter has lost its end, or is older."""
_TOLD = ("file", "kind", "reason")
_FOUND_ANEW = ("Unpaired", "DamagedLine")
"""Kinds of failures that are no outcomes of cases."""
_SHOWN = 5
_REMEDY = "choose another output, or begin anew and without them: --no-resume"


def take_over(path: Path, journal: Journal, about: Mapping[str, Any], told: Collection[str] = ()) -> int:
    """Write down in a diary what only the table knows, and give how many cases that were.

    A case whose files are there is scored again nevertheless: nothing tells whether they have changed. Where
    the diary is shorter than the one that the table was made of, the table is right about every case: what
    it has otherwise is taken, and a case that it lacks had failed since, which is told.

    Parameters
    ----------
    path
        Of the table; where there is none, or one with nothing that the diary lacks, nothing is done.
    journal
        Opened.
    about
        What the run is made with; rows that were made with anything else are refused.
    told
        Names of more that a table may say it was made with, and this run is not.

    Raises
    ------
    SavedStateError
        If rows that would be lost do not say how they were made, or are not whole.
    OtherSettingsError
        If they were made with other settings.
    """
    missing = _missing(path, journal)
    if missing is None:
        return 0
    is_cut = _is_cut(missing, journal)
    if not missing.rows and not is_cut:
        return 0
    _check_settings(missing, about, told)
    found = _cases_of(missing, journal, list(about["estimators"]))
    news = {case: rows for case, rows in found.items() if _times(rows) != _times(journal.rows_of(case))}
    for failure in _failures_since(path, journal, found) if is_cut else ():
        journal.add(Outcome(failure.case, failure=failure), stamp=None)
    for case, rows in news.items():
        journal.add(Outcome(case, tuple(rows)), stamp=None)
    if is_cut:
        _LOG.warning("%s: it has lost its end, or is older than its table.", journal.path)
    if news:
        listed = printable(_listed(list(news)))
        _LOG.warning("%s: what its diary had lost was taken from it. Cases: %s.", path, listed)
    return len(news)


def _is_cut(table: Table, journal: Journal) -> bool:
    made_of = table.about.get(MADE_OF)
    return isinstance(made_of, int) and journal.length_before < made_of


def _cases_of(table: Table, journal: Journal, estimators: Sequence[str]) -> dict[str, list[ScoreRow]]:
    """Give the rows of each case, as a diary has them, by the name that it has there."""
    names = {printable(case): case for case in journal.cases()}
    found: dict[str, list[ScoreRow]] = {}
    for row in table.rows:
        _check_whole(row, table, estimators)
        own = {name: value for name, value in row.items() if name not in DECISION_COLUMNS}
        found.setdefault(names.get(str(row["case"]), str(row["case"])), []).append(own)
    return found


def _failures_since(path: Path, journal: Journal, found: Collection[str]) -> list[Failure]:
    """Give what had failed when a table was written: as the list beside it says, or for lack of a row."""
    names = {printable(case): case for case in journal.cases()}
    rows = [row for row in listed_failures(failures_beside(path, None)) if row.get("table") == path.name]
    told = [
        Failure(names.get(str(row["case"]), str(row["case"])), *(str(row[name]) for name in _TOLD))
        for row in rows
        if row.get("kind") not in _FOUND_ANEW
    ]
    cases = {each.case for each in told} | set(found)
    silent = [_lost(case, journal) for case in journal.scored() if case not in cases]
    return [each for each in told if each.case not in found] + silent


def _lost(case: str, journal: Journal) -> Failure:
    reason = (
        f"{journal.path}: expected what became last of the case {case}, got an end before that: it was cut "
        "off, or is older than its table, which has no row of it. Put its file there, and it is scored again."
    )
    return Failure(case, str(journal.path), "LostLine", reason)


def _listed(names: Sequence[str]) -> str:
    """Name a few, and say how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _times(rows: Sequence[ScoreRow]) -> list[Any]:
    """Give how long each row took: what was scored twice has never taken the same to the last digit."""
    return [row.get("seconds") for row in rows]


def _missing(path: Path, journal: Journal) -> Table | None:
    """Give the rows of cases that the diary does not know; ``None`` where there is no table to speak of."""
    if not path.is_file():
        return None
    known = set(map(printable, journal.cases() - journal.lost()))
    try:
        if _is_cut(read_table(path, keep=lambda row: False), journal):
            return read_table(path)
        return read_table(path, keep=lambda row: printable(str(row.get("case", ""))) not in known)
    except WrongContentError as error:
        if known and not journal.damage():
            return None  # all is in the diary, of which the table is made anew
        raise SavedStateError(
            f"{error} Its diary has not all of it either. Put the table back as it was, {_REMEDY}."
        ) from error


def _check_settings(missing: Table, about: Mapping[str, Any], told: Collection[str]) -> None:
    """Refuse rows that were made with other settings, or do not say with which."""
    lost = f"{missing.source}: it has rows that its diary lacks, such as that of {_first_case(missing.rows)}"
    if missing.about.get("format") != about["format"]:
        raise SavedStateError(
            f"{lost}. Expected rows that say how they were made (beside a CSV lies its .about.json), got "
            f"none that do. Put that file back, {_REMEDY}."
        )
    kept = {name: missing.about[name] for name in (*about, *told) if name in missing.about}
    changes = changes_between(kept, plain_values(dict(about), "made_with"))
    if changes:
        raise OtherSettingsError(
            f"{lost}, and was made with {'; '.join(changes)}. Go on with the same settings, {_REMEDY}."
        )


def _first_case(rows: Sequence[ScoreRow]) -> str:
    return repr(rows[0].get("case"))


def _check_whole(row: ScoreRow, missing: Table, estimators: Sequence[str]) -> None:
    """Refuse a row in which something is missing that each has."""
    lacks = [name for name in ("case", "file") if not row.get(name)]
    lacks += [name for name in ("k", *estimators, "seconds") if not isinstance(row.get(name), int | float)]
    if lacks:
        raise SavedStateError(
            f"{missing.source}: it has a row of {row.get('case')!r} that its diary lacks. Expected a whole "
            f"row, got one without {lacks[0]!r}. Put the table back as it was, {_REMEDY}."
        )
