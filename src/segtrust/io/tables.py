"""Tables of results: Parquet, CSV or JSON, told by the ending; full precision in each.

What a table was made with goes with it: inside of Parquet and JSON, beside CSV, which has no place for it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust.errors import ParameterError, WrongContentError
from segtrust.optional import require
from segtrust.saved import replacing

__all__ = ["ENDINGS", "TEXTS", "Table", "check_ending", "read_table", "write_table"]

Row = dict[str, Any]

ENDINGS = (".parquet", ".csv", ".json")
TEXTS = frozenset(
    [
        *("case", "structure", "group", "split", "set", "shape", "spacing_mm", "file", "digest"),
        *("decision", "policy", "kind", "reason"),
    ]
)
"""Columns that hold text, also where it looks like a number: a case may be called 007."""
_WHOLE = frozenset(["k"])
_ABOUT = b"segtrust"


@dataclass(frozen=True)
class Table:
    """Rows with the same columns.

    Attributes
    ----------
    columns
        Their names, in order.
    rows
        Text, numbers and ``None``; NaN is ``None``.
    about
        What the table was made with, as plain values.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any] | None = None) -> Table:
        """Make a table of rows; a column that some lack is empty there.

        Examples
        --------
        >>> Table.of([{"case": "a", "sdc": 0.5}, {"case": "b", "dice": float("nan")}]).rows[1]
        {'case': 'b', 'sdc': None, 'dice': None}
        """
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        filled = tuple({name: _value(row.get(name)) for name in columns} for row in rows)
        return cls(columns, filled, about or {})

    def column(self, name: str) -> list[Any]:
        """Give a column, or say which there are."""
        if name not in self.columns:
            raise WrongContentError(f"table: expected a column {name!r}, got {', '.join(self.columns)}.")
        return [row[name] for row in self.rows]


def _value(value: Any) -> Any:
    """Give a value as tables hold it; bytes of a file's name that are no text are spelled out."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return None if isinstance(value, float) and math.isnan(value) else value


def check_ending(path: Path) -> None:
    """Refuse an ending that no table has, before hours are spent."""
    if path.suffix.lower() not in ENDINGS:
        raise ParameterError(f"{path}: expected a table ending in {', '.join(ENDINGS)}.")
    if path.suffix.lower() == ".parquet":
        require("pyarrow", extra="tables")


def write_table(path: Path, table: Table) -> None:
    """Write a table; a file that is there is replaced in one step, or left as it was.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> write_table(path, Table.of([{"case": "007", "sdc": 0.1}], {"threshold": 0.5}))
    >>> read_table(path).rows, read_table(path).about
    (({'case': '007', 'sdc': 0.1},), {'threshold': 0.5})
    """
    check_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[path.suffix.lower()]
    with replacing(path) as draft:
        writer(draft, table)
    if path.suffix.lower() == ".csv" and table.about:
        with replacing(_beside(path)) as draft:
            draft.write_text(json.dumps(table.about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_table(path: Path) -> Table:
    """Read what `write_table` wrote, or any table of these formats."""
    check_ending(path)
    if not path.exists():
        raise ParameterError(f"{path}: expected a table, got no such file.")
    reader = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}[path.suffix.lower()]
    try:
        return reader(path)
    except (ValueError, KeyError, TypeError, OSError, csv.Error) as error:
        raise WrongContentError(f"{path}: expected a table, got one that cannot be read ({error}).") from None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.about.json")


def _write_csv(path: Path, table: Table) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.rows)


def _read_csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        rows = [{name: _parsed(name, text) for name, text in row.items()} for row in reader]
        columns = tuple(reader.fieldnames or ())
    beside = _beside(path)
    about = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    return Table(columns, tuple(rows), about)


def _parsed(name: str, text: str | None) -> Any:
    """Give a number where the column holds numbers; text where it does not."""
    if name in TEXTS:
        return text or ""
    if not text:
        return None
    try:
        return int(text) if name in _WHOLE else _value(float(text))
    except ValueError:
        return text


def _write_json(path: Path, table: Table) -> None:
    whole = {"about": table.about, "columns": table.columns, "rows": table.rows}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _read_json(path: Path) -> Table:
    whole = json.loads(path.read_text(encoding="utf-8"))
    return Table(tuple(whole["columns"]), tuple(whole["rows"]), whole["about"])


def _write_parquet(path: Path, table: Table) -> None:
    arrow, parquet = (require(name, extra="tables") for name in ("pyarrow", "pyarrow.parquet"))
    kinds = {name: _kind(arrow, name, table) for name in table.columns}
    about = {_ABOUT: json.dumps(table.about, ensure_ascii=False).encode()}
    schema = arrow.schema(list(kinds.items()), metadata=about)
    parquet.write_table(arrow.Table.from_pylist(list(table.rows), schema=schema), path)


def _kind(arrow: Any, name: str, table: Table) -> Any:
    if name in _WHOLE:
        return arrow.int64()
    values = [row[name] for row in table.rows if row[name] is not None]
    is_text = name in TEXTS or any(isinstance(value, str) for value in values)
    return arrow.string() if is_text else arrow.float64()


def _read_parquet(path: Path) -> Table:
    found = require("pyarrow.parquet", extra="tables").read_table(path)
    about = json.loads((found.schema.metadata or {}).get(_ABOUT, b"{}"))
    rows = tuple({name: _value(value) for name, value in row.items()} for row in found.to_pylist())
    return Table(tuple(found.column_names), rows, about)
