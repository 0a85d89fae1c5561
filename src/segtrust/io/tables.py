"""Tables of results: Parquet, CSV or JSON, told by the ending; full precision in each.

What a table was made with goes with it: inside of Parquet and JSON, beside CSV, which has no place for it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, WrongContentError
from segtrust.optional import require
from segtrust.saved import plain, read_json, replacing, write_json

__all__ = ["ENDINGS", "TEXTS", "Table", "check_ending", "read_table", "write_table"]

Row = dict[str, Any]
_Read = tuple[tuple[str, ...], Sequence[Mapping[str, Any]], Mapping[str, Any]]
"""Columns, rows and what they were made with."""

ENDINGS = (".parquet", ".csv", ".json")
TEXTS = frozenset(
    [
        *("case", "structure", "group", "split", "set", "shape", "spacing_mm", "file", "digest"),
        *("decision", "policy", "kind", "reason", "table", "mask"),
    ]
)
"""Columns that hold text, also where it looks like a number: a case may be called 007."""
_WHOLE = frozenset(["k"])
_ABOUT = b"segtrust"
_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, NotImplementedError, OSError, csv.Error)
"""What readers raise over a file that is no table."""


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
    source
        Names it in errors.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    source: str = field(default="table", compare=False)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any] | None = None) -> Table:
        """Make a table of rows; a column that some lack is empty there.

        Examples
        --------
        >>> Table.of([{"case": "a", "sdc": 0.5}, {"case": "b", "dice": float("nan")}]).rows[1]
        {'case': 'b', 'sdc': None, 'dice': None}
        """
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        filled = tuple({name: _value(name, row.get(name)) for name in columns} for row in rows)
        return cls(columns, filled, about or {})

    def column(self, name: str) -> list[Any]:
        """Give a column, or say which there are."""
        if name not in self.columns:
            listed = ", ".join(self.columns) or "none"
            raise WrongContentError(f"{self.source}: expected a column {name!r}, got {listed}.")
        return [row[name] for row in self.rows]


def _value(name: str, value: Any) -> Any:
    """Give a value of a table as text, number or nothing, which is what all formats keep."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if value is None or value != value:
        return None
    if name in TEXTS or isinstance(value, str):
        return _printable(str(value))
    return int(value) if name in _WHOLE and value == value // 1 else value


def _printable(text: str) -> str:
    """Spell out what no table can hold: bytes of a file's name that are no text, and carriage returns."""
    try:
        spelled = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a character, as JSON can spell it
        spelled = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return spelled.replace("\r", "\\r")


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
    table = replace(table, about=plain(table.about, f"{path}: about"))
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[path.suffix.lower()]
    with replacing(path) as draft:
        writer(draft, table)
    if path.suffix.lower() == ".csv":
        _write_about(_beside(path), table.about)


def _write_about(path: Path, about: Mapping[str, Any]) -> None:
    """Write what a table was made with beside it; what another table was made with does not stay."""
    if about:
        write_json(path, about)
    else:
        path.unlink(missing_ok=True)


def read_table(path: Path) -> Table:
    """Read what `write_table` wrote, or any table of these formats."""
    check_ending(path)
    if not path.is_file():
        raise ParameterError(f"{path}: expected a table, got no such file.")
    reader = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}[path.suffix.lower()]
    try:
        columns, rows, about = reader(path)
        filled = tuple({name: _value(name, row.get(name)) for name in columns} for row in rows)
    except _DAMAGED as error:
        raise WrongContentError(
            f"{path}: expected a table, got one that cannot be read ({error or type(error).__name__})."
        ) from None
    return Table(columns, filled, about, str(path))


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.about.json")


def _write_csv(path: Path, table: Table) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.rows)


def _read_csv(path: Path) -> _Read:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        rows = [{name: _parsed(name, text) for name, text in row.items()} for row in reader]
        columns = tuple(reader.fieldnames or ())
    beside = _beside(path)
    return columns, rows, read_json(beside) if beside.exists() else {}


def _parsed(name: str | None, text: Any) -> Any:
    """Give a number where the column holds numbers; text where it does not."""
    if name is None:
        raise ValueError(f"more values than columns: {', '.join(text)}")
    if name in TEXTS:
        return text or ""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _write_json(path: Path, table: Table) -> None:
    rows = plain(table.rows, "rows of a JSON table")
    write_json(path, {"about": table.about, "columns": table.columns, "rows": rows}, indent=1)


def _read_json(path: Path) -> _Read:
    whole = read_json(path)
    columns, rows, about = (whole[name] for name in ("columns", "rows", "about"))
    kinds = (isinstance(columns, list), isinstance(rows, list), isinstance(about, dict))
    if not all(kinds) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("lists of columns and rows, and what they were made with, were expected")
    return tuple(map(str, columns)), rows, about


def _write_parquet(path: Path, table: Table) -> None:
    arrow, parquet = (require(name, extra="tables") for name in ("pyarrow", "pyarrow.parquet"))
    kinds = {name: _kind(arrow, name, table) for name in table.columns}
    about = {_ABOUT: json.dumps(table.about, ensure_ascii=False).encode()}
    schema = arrow.schema(list(kinds.items()), metadata=about)
    columns = [_cells(table, name, kinds[name] == arrow.string()) for name in table.columns]
    parquet.write_table(
        arrow.Table.from_arrays(list(map(arrow.array, columns, kinds.values())), schema=schema), path
    )


def _cells(table: Table, name: str, is_text: bool) -> list[Any]:
    """Give a column; one that holds text here and there is text everywhere."""
    values = [row[name] for row in table.rows]
    return [None if value is None else str(value) for value in values] if is_text else values


def _kind(arrow: Any, name: str, table: Table) -> Any:
    if name in _WHOLE:
        return arrow.int64()
    values = [row[name] for row in table.rows if row[name] is not None]
    is_text = name in TEXTS or any(isinstance(value, str) for value in values)
    return arrow.string() if is_text else arrow.float64()


def _read_parquet(path: Path) -> _Read:
    found = require("pyarrow.parquet", extra="tables").read_table(path)
    about = json.loads((found.schema.metadata or {}).get(_ABOUT, b"{}"))
    return tuple(found.column_names), found.to_pylist(), about
