"""Tables as files: full precision for machines, rounded for people."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust.errors import EmptyArrayError
from segtrust.saved import replacing

__all__ = ["markdown_table", "write_csv", "write_markdown"]

Row = Mapping[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows with the same columns, numbers to their last digit.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> write_csv(path, [{"n": 1, "risk": 0.1}])
    >>> path.read_text().split()
    ['n,risk', '1,0.1']
    """
    _check_rows(rows, path)
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _check_rows(rows: Sequence[Row], path: Path) -> None:
    if not rows:
        raise EmptyArrayError(f"{path}: expected at least one row to write, got none.")


def markdown_table(rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> str:
    """Give a Markdown table; ``formats`` by column are those of `format`.

    Examples
    --------
    >>> print(markdown_table([{"n": 30, "risk": 0.123456}], {"risk": ".3f"}))
    | n | risk |
    |---|---|
    | 30 | 0.123 |
    """
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns)]
    lines += [[format(row[name], (formats or {}).get(name, "")) for name in columns] for row in rows]
    return "\n".join(_line(cells) for cells in lines)


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(cells) + "|" if set(cells) == {"---"} else "| " + " | ".join(cells) + " |"


def write_markdown(path: Path, rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> None:
    """Write a Markdown table."""
    _check_rows(rows, path)
    with replacing(path) as draft:
        draft.write_text(markdown_table(rows, formats) + "\n", encoding="utf-8")
