"""The log as files for other programs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["COLUMNS", "as_csv"]

COLUMNS = (
    *("id", "time", "reviewer", "set", "case", "structure"),
    *("verdict", "comment", "confidence", "decision", "policy", "digest", "undoes", "holds"),
)
_FORMULA = re.compile(r"""(^|[\n\r\t;])(?=["\s]*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r])""")
"""Where a cell begins that a spreadsheet would run as a formula: at the beginning of a text, and within it
where one begins for a spreadsheet that separates by semicolons or tabs, as in many countries, and so does not
heed the quotes of this file. Those of East Asia take wide signs for the usual ones."""


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
    writer.writerows({name: _cell(entry.get(name)) for name in COLUMNS} for entry in entries)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value
