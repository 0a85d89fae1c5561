"""A table that is to be replaced: which cases it has, and which of them the new one lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from segtrust.errors import WrongContentError
from segtrust.io import printable, read_table

__all__ = ["cases_in", "say_lost"]


def cases_in(path: Path) -> set[str]:
    """Name the cases of a table, as far as it can be read; none where there is no table.

    Raises
    ------
    SavedStateError
        If another version of segtrust wrote it: it is not replaced.
    """
    found: set[str] = set()

    def look(row: Mapping[str, Any]) -> bool:
        found.add(printable(str(row.get("case", ""))))
        return False

    if not path.is_file():
        return found
    try:
        read_table(path, keep=look)
    except WrongContentError:
        return found  # as far as it can be read
    return found


def say_lost(path: Path, before: set[str], told: Iterable[str]) -> list[str]:
    """Say how many cases a table had before that nothing is told of any more; nothing where there are none.

    Examples
    --------
    >>> print(*say_lost(Path("scores.csv"), {"a", "b"}, ["b"]))
    scores.csv: it had cases before that are not among those given now, and are no longer in it: 1, as a.
    """
    lost = sorted(before - set(map(printable, told)))
    if not lost:
        return []
    return [
        f"{path}: it had cases before that are not among those given now, and are no longer in it: "
        f"{len(lost)}, as {lost[0]}."
    ]
