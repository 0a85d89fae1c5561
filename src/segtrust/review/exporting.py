"""The log as files for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from segtrust.io import guard_formula

__all__ = ["COLUMNS", "as_csv"]

COLUMNS = (
    *("id", "time", "reviewer", "set", "case", "structure"),
    *("verdict", "comment", "confidence", "decision", "policy", "digest", "undoes", "holds"),
)


def as_csv(entries: Sequence[Mapping[str, Any]]) -> str:
    """Write entries as CSV, text that a spreadsheet would run with an apostrophe before it.

    Examples
    --------
    >>> as_csv([{"id": 1, "case": "=1+1", "holds": True}]).splitlines()[1]
    "1,,,,'=1+1,,,,,,,,,1"
    """
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for entry in entries:
        cells = {name: entry.get(name) for name in COLUMNS}
        writer.writerow(
            {
                name: int(cell) if isinstance(cell, bool) else guard_formula(cell)
                for name, cell in cells.items()
            }
        )
    return file.getvalue()
