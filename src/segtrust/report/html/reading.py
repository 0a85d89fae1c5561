"""The score table that a report is made of: of a folder or a file, whole or as far as a run has come."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from segtrust.engine import PART, check_details, find_table, read_unfinished_run
from segtrust.errors import MissingExtraError, ParameterError, SegtrustError
from segtrust.io import Table, read_table

__all__ = ["read_run_table"]

_NEEDED = ("case", "structure", "k")
_GIVE = (
    "Give a folder of `segtrust evaluate` or `triage`, or a table that `segtrust score` wrote; a policy is "
    "given by --policy."
)


def read_run_table(path: Path) -> tuple[Table, bool]:
    """Read the score table of a run, and tell whether it is finished; its source is the table's path."""
    source = path if path.is_file() else find_table(path)
    so_far = read_unfinished_run(source)
    table = _read(source) if so_far is None else so_far.table
    return replace(_checked(table, is_finished=so_far is None), source=str(source)), so_far is None


def _read(source: Path) -> Table:
    try:
        table = read_table(source)
        check_details(table)
        return table
    except MissingExtraError:
        raise
    except SegtrustError as error:
        why = str(error).removeprefix(f"{source}: ").removesuffix(".")
        raise ParameterError(f"{source}: this is no table of scores ({why}). {_GIVE}") from None


def _checked(table: Table, *, is_finished: bool) -> Table:
    if PART in table.about:
        raise ParameterError(f"{table.source}: expected a whole run, got a part of one: segtrust merge.")
    if not table.rows:
        more = "" if is_finished else " yet: its run has only begun"
        raise ParameterError(f"{table.source}: expected a score table, got one with no rows{more}.")
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise ParameterError(
            f"{table.source}: expected a table of scores, got one with no column {missing[0]!r}. {_GIVE}"
        )
    return table
