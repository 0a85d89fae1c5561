"""Tables of the parts of one run, put together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust.engine.score_table import (
    COMMANDS,
    FOLDER,
    PART,
    failures_beside,
    read_failures,
    write_failures,
    write_scores,
)
from segtrust.errors import ParameterError
from segtrust.io import MEMBER_SEPARATOR, Failure, ScoreRow, Table, read_table

__all__ = ["merge_tables"]

_FILE_COLUMNS = ("file", "mask_file", "truth_file", "image_file", "member_files")


def merge_tables(
    paths: Sequence[Path], output: Path, *, command: Sequence[str] = (), details: bool = False
) -> tuple[Table, list[Failure]]:
    """Put the parts of a run together, in the order of an unbroken one; and the lists of what failed.

    Parameters
    ----------
    paths
        Tables of the parts, in any order.
    output
        The table.
    command
        Arguments of the command; the table keeps them after those of its parts.
    details
        Whether a CSV table shows its internal columns.

    Raises
    ------
    ParameterError
        If a part is missing, comes twice, or was made with other settings.
    """
    tables = [path for path in paths if not path.name.endswith("failures.csv")]  # `part-*.csv` has both
    if not tables:
        raise ParameterError("parts: expected the tables of `segtrust score --num-parts`, got none.")
    read = [(path, read_table(path)) for path in tables]
    parts = sorted(((_part(path, table), path, table) for path, table in read), key=lambda each: each[0])
    _check_complete([number for number, _, _ in parts], parts[0][2].about[PART][1])
    _check_settings([(path, table) for _, path, table in parts])
    settings = {name: value for name, value in parts[0][2].about.items() if name != PART}
    commands = [each for _, _, table in parts for each in table.about.get(COMMANDS, ())]
    if commands or command:
        settings[COMMANDS] = [*commands, *([list(command)] if command else [])]
    home = parts[0][2].about.get(FOLDER)
    merged = Table.of(
        [_with_paths(row, table, home) for _, _, table in parts for row in table.rows], settings
    )
    write_scores(output, merged, details=details)
    failures = [failure for number, path, _ in parts for failure in read_failures(path, number)]
    write_failures(failures_beside(output, None), failures, output.name)
    return merged, failures


def _with_paths(row: ScoreRow, table: Table, home: str | None) -> ScoreRow:
    """Return a row whose files are found from the folder of the first part, ``home``."""
    folder = table.about.get(FOLDER)
    if folder in (None, home):
        return row
    found = dict(row)
    for column in _FILE_COLUMNS:
        texts = str(row.get(column) or "").split(MEMBER_SEPARATOR)
        if any(texts):
            found[column] = MEMBER_SEPARATOR.join(os.path.normpath(Path(folder, text)) for text in texts)
    return found


def _part(path: Path, table: Table) -> int:
    if PART not in table.about:
        raise ParameterError(
            f"{path}: expected a table of `segtrust score --num-parts`, got one that does not say which part "
            "it is."
        )
    return int(table.about[PART][0])


def _check_complete(numbers: Sequence[int], count: int) -> None:
    missing = sorted(set(range(count)) - set(numbers))
    if missing:
        raise ParameterError(f"parts: expected all {count}, got none for {', '.join(map(str, missing))}.")
    if len(numbers) != count:
        raise ParameterError(f"parts: expected each of {count} once, got {', '.join(map(str, numbers))}.")


def _settings(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name not in (PART, FOLDER, COMMANDS)}


def _check_settings(tables: Sequence[tuple[Path, Table]]) -> None:
    first, usual = tables[0]
    for path, table in tables:
        if _settings(table.about) != _settings(usual.about) or table.about[PART][1:] != usual.about[PART][1:]:
            raise ParameterError(
                f"{path}: expected a part made with the cases and settings of {first}, got one with others. "
                "Score all parts of the same folder with the same options and version."
            )
