"""The log as files for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["COLUMNS", "as_csv"]

COLUMNS = (
    *("id", "time", "reviewer", "set", "case", "structure"),
    *("verdict", "comment", "policy", "undoes", "holds"),
)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""With what a text begins that a spreadsheet would run as a formula."""


def as_csv(entries: Sequence[Mapping[str, Any]]) -> str:
    """Write entries as CSV, text that a spreadsheet would run with an apostrophe before it.

    Examples
    --------
    >>> as_csv([{"id": 1, "case": "=1+1", "holds": True}]).splitlines()[1]
    "1,,,,'=1+1,,,,,,1"
    """
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _cell(entry.get(name)) for name in COLUMNS} for entry in entries)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
