"""Tables of results: Parquet, CSV or JSON, told by the ending; full precision in each.

What a table was made with goes with it: inside of Parquet and JSON, beside CSV, which has no place for it.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._display import html_table, short_repr
from segtrust._files import (
    atomic_write,
    atomic_write_all,
    check_format,
    format_json,
    plain_values,
    read_json,
    sync_files,
)
from segtrust._optional import require
from segtrust.errors import ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.rows import Keep, changed, csv_rows, pieces_of, read_parquet

__all__ = [
    "ENDINGS",
    "SCORES",
    "TEXTS",
    "Table",
    "about_beside",
    "check_ending",
    "printable",
    "read_table",
    "write_table",
]

Row = dict[str, Any]
_Read = tuple[tuple[str, ...], Sequence[Mapping[str, Any]], Mapping[str, Any]]
"""Columns, rows and what they were made with."""

ENDINGS = (".parquet", ".csv", ".json")
SCORES = "segtrust-scores-1"
"""Format of a table of scores, under ``"format"`` of what it says of itself."""
TEXTS = frozenset(
    [
        *("case", "structure", "group", "split", "set", "shape", "spacing_mm", "file", "digest"),
        *("mask_digest", "decision", "policy", "kind", "reason", "table", "mask"),
    ]
)
"""Columns that hold text, also where it looks like a number: a case may be called 007."""
_WHOLE = frozenset(["k"])
_ROWS = "rows"
"""Where it is told beside a CSV how many rows it has: one that was cut off has fewer."""
_JSON_MARGIN = "  "
"""Before each line of a row: it stands within two others."""
_ABOUT = b"segtrust"
_OWN_FORMATS = "segtrust-"
_ATTRIBUTE = "segtrust"
_DAMAGED = (
    *(ValueError, KeyError, TypeError, AttributeError, NotImplementedError, OSError, RecursionError),
    csv.Error,
)
"""What readers raise over a file that is no table."""


_ROWS_SHOWN = 20
"""Rows that a notebook shows."""


@dataclass(frozen=True)
class Table:
    """Rows with the same columns.

    Attributes
    ----------
    columns
        Their names, in order.
    rows
        Text, numbers and ``None``; NaN is ``None``. A tuple, or a stream that is written without being held.
    about
        What the table was made with, as plain values.
    source
        Names it in errors.
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]
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
        return cls(columns, changed(rows, lambda row: _filled(row, columns)), about or {})

    def __repr__(self) -> str:
        """Return the number of rows, the columns and the source in one line."""
        shown = {"rows": len(self.rows), "columns": list(self.columns), "source": self.source}
        return short_repr(self, shown)

    def _repr_html_(self) -> str:
        """Return the first rows as a table for a notebook."""
        first = [[row[name] for name in self.columns] for row in itertools.islice(self.rows, _ROWS_SHOWN)]
        title = f"Table of {len(self.rows)} rows, the first {len(first)} shown"
        return html_table(title, first, header=self.columns)

    @classmethod
    def of_dataframe(cls, frame: Any, about: Mapping[str, Any] | None = None) -> Table:
        """Make a table of a pandas one; its index is left aside, and what it lacks is ``None``.

        Parameters
        ----------
        frame
            The pandas table.
        about
            What it was made with; that which `to_dataframe` gave along, where nothing is given.
        """
        _check_names(frame.columns)
        plain_values = frame.astype(object).where(frame.notna(), None)
        told = frame.attrs.get(_ATTRIBUTE, {}) if about is None else about
        if not len(frame):
            return cls(tuple(frame.columns), (), told)
        return cls.of(plain_values.to_dict("records"), told)

    def to_dataframe(self) -> Any:
        """Give a pandas table: text as text, also that of a case called 007, and numbers as numbers.

        What the table was made with comes along in its ``attrs``, under ``"segtrust"``.
        """
        pandas = require("pandas", extra="tables")
        kinds = {name: "str" if name in TEXTS else None for name in self.columns}
        columns = {
            name: pandas.Series([row[name] for row in self.rows], dtype=kind) for name, kind in kinds.items()
        }
        frame = pandas.DataFrame(columns, columns=list(self.columns))
        frame.attrs[_ATTRIBUTE] = dict(self.about)
        return frame

    def column(self, name: str) -> list[Any]:
        """Give a column, or say which there are."""
        if name not in self.columns:
            listed = ", ".join(self.columns) or "none"
            raise WrongContentError(f"{self.source}: expected a column {name!r}, got {listed}.")
        return [row[name] for row in self.rows]


def _check_names(columns: Any) -> None:
    """Refuse columns of a pandas table that could not be told apart, or have no names."""
    names = list(columns)
    wrong = [name for name in names if not isinstance(name, str)]
    twice = [name for name in names if names.count(name) > 1]
    if wrong:
        raise ParameterError(f"columns: expected text as names, got {wrong[0]!r}. Rename them.")
    if twice:
        raise ParameterError(f"columns: expected each name once, got {twice[0]!r} twice. Rename them.")


def _filled(row: Mapping[str, Any], columns: Sequence[str]) -> Row:
    return {name: _value(name, row.get(name)) for name in columns}


def _value(name: str, value: Any) -> Any:
    """Give a value of a table as text, number or nothing, which is what all formats keep."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if value is None or value != value:
        return None
    if hasattr(value, "isoformat"):  # times, which only some formats know
        value = value.isoformat()
    if name in TEXTS or isinstance(value, str):
        return printable(str(value))
    is_whole = name in _WHOLE and isinstance(value, int | float) and value == value // 1
    return int(value) if is_whole else value


def printable(text: str) -> str:
    r"""Spell out what no table can hold: bytes of a file's name that are no text, and carriage returns.

    Examples
    --------
    >>> print(printable("case \udcff"))
    case \xff
    """
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
    table = replace(table, about=plain_values(table.about, f"{path}: about"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".csv":
        _write_pair(path, table)
        return
    writer = {".parquet": _write_parquet, ".json": _write_json}[path.suffix.lower()]
    with atomic_write(path) as draft:
        writer(draft, table)


def _write_pair(path: Path, table: Table) -> None:
    """Write a table as CSV, and what it was made with beside it.

    At no moment does what one table was made with lie beside another: what is there goes before the new table
    comes, and only when all that is new is on the disk, so that a disk that is full costs nothing.
    """
    beside = about_beside(path)
    with atomic_write_all(path, *[beside] * bool(table.about)) as drafts:
        count = _write_csv(drafts[0], table)
        for note in drafts[1:]:
            note.write_text(format_json({**table.about, _ROWS: count}), encoding="utf-8")
        sync_files(*drafts)
        if not drafts[1:] or not _says(beside, drafts[1]):
            beside.unlink(missing_ok=True)


def _says(path: Path, draft: Path) -> bool:
    """Tell whether a file is already what its draft would make it."""
    return path.is_file() and path.read_bytes() == draft.read_bytes()


def read_table(path: Path, keep: Keep = lambda row: True) -> Table:
    """Read what `write_table` wrote, or any table of these formats; one of another version is refused.

    Parameters
    ----------
    path
        Of the file.
    keep
        Tells of a row, as it is in the file, whether it is wanted: others are not held in memory.
    """
    check_ending(path)
    if not path.is_file():
        raise ParameterError(f"{path}: expected a table, got no such file.")
    reader = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}[path.suffix.lower()]
    try:
        columns, rows, about = reader(path, keep)
        filled = tuple(_filled(row, columns) for row in rows)
    except (UnsafeFileError, WrongContentError):
        raise
    except _DAMAGED as error:
        raise WrongContentError(
            f"{path}: expected a table, got one that cannot be read ({error or type(error).__name__})."
        ) from None
    _check_version(path, about)
    return Table(columns, filled, about, str(path))


def _check_version(path: Path, about: Any) -> None:
    """Refuse a table that another version wrote; one from elsewhere says nothing of a format."""
    if not isinstance(about, Mapping):
        raise WrongContentError(
            f"{path}: expected what the table was made with as a mapping, got {type(about).__name__}."
        )
    if str(about.get("format", "")).startswith(_OWN_FORMATS):
        check_format(about, SCORES, str(path))


def about_beside(path: Path) -> Path:
    """Give the file beside a CSV that says what it was made with."""
    return path.with_name(f"{path.name}.about.json")


def _write_csv(path: Path, table: Table) -> int:
    """Write rows as text, and give how many they are."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table.columns, lineterminator="\n")
        writer.writeheader()
        for count, row in enumerate(table.rows, 1):  # noqa: B007 - of a stream nothing else tells it
            writer.writerow(row)
    return count


def _read_csv(path: Path, keep: Keep) -> _Read:
    numbers = itertools.count()
    with path.open(newline="", encoding="utf-8-sig") as file:
        columns, found = csv_rows(path, file)
        wanted = (row for row, _ in zip(found, numbers, strict=False) if keep(row))
        rows = [{name: _parsed(name, text) for name, text in row.items()} for row in wanted]
    beside = about_beside(path)
    about = read_json(beside) if beside.exists() else {}
    if isinstance(about, dict) and isinstance(told := about.pop(_ROWS, None), int):
        _check_end(path, told, next(numbers))
    return columns, rows, about


def _check_end(path: Path, told: int, found: int) -> None:
    """Refuse a table that has lost its end: what is left would look like any other."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 1, 0))
        ends = file.read() == b"\n"
    if found != told or not ends:
        got = f"{found}" if found != told else "a last row without an end"
        raise WrongContentError(
            f"{path}: expected {told} rows, as {about_beside(path).name} says, got {got}: it was cut off, or "
            "changed since. Put it back as it was, or make it anew; what was changed on purpose can be read "
            "under another name."
        )


def _parsed(name: str | None, text: Any) -> Any:
    """Give a number where the column holds numbers; text where it does not."""
    if name is None:
        raise ValueError(f"more values than columns: {', '.join(text)}")
    if text is None:
        raise ValueError(f"a row without a value of {name!r}: if it was cut off, make the table anew")
    if name in TEXTS:
        return text or ""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _write_json(path: Path, table: Table) -> None:
    """Write row by row what the whole would give: a table may be longer than the memory is large."""
    whole = {"about": table.about, "columns": table.columns, "rows": []}
    head, _, tail = format_json(whole, indent=1).rpartition("]")
    between, end = "\n", ""
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for row in table.rows:
            text = format_json(plain_values(row, "rows of a JSON table"), indent=1).rstrip("\n")
            file.write(between + _JSON_MARGIN + text.replace("\n", f"\n{_JSON_MARGIN}"))
            between, end = ",\n", "\n "
        file.write(f"{end}]{tail}")


def _read_json(path: Path, keep: Keep) -> _Read:
    whole = read_json(path)
    missing = [name for name in ("columns", "rows", "about") if name not in whole]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    columns, rows, about = (whole[name] for name in ("columns", "rows", "about"))
    kinds = (isinstance(columns, list), isinstance(rows, list), isinstance(about, dict))
    if not all(kinds) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("lists of columns and rows, and what they were made with, were expected")
    return tuple(map(str, columns)), list(filter(keep, rows)), about


def _write_parquet(path: Path, table: Table) -> None:
    arrow, parquet = (require(name, extra="tables") for name in ("pyarrow", "pyarrow.parquet"))
    spelled = {name for row in table.rows for name in row if isinstance(row[name], str)}
    texts = (TEXTS | spelled) - _WHOLE
    kinds = {name: _kind(arrow, name, texts) for name in table.columns}
    about = {_ABOUT: json.dumps(table.about, ensure_ascii=False).encode()}
    schema = arrow.schema(list(kinds.items()), metadata=about)
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in pieces_of(table.rows):
            columns = [arrow.array(_cells(rows, name, texts), kind) for name, kind in kinds.items()]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _cells(rows: Sequence[Row], name: str, texts: Collection[str]) -> list[Any]:
    """Give a column; one that holds text here and there is text everywhere."""
    values = [row[name] for row in rows]
    return [None if value is None else str(value) for value in values] if name in texts else values


def _kind(arrow: Any, name: str, texts: Collection[str]) -> Any:
    if name in _WHOLE:
        return arrow.int64()
    return arrow.string() if name in texts else arrow.float64()


def _read_parquet(path: Path, keep: Keep) -> _Read:
    columns, rows, said = read_parquet(path, keep)
    about = json.loads(said.get(_ABOUT, b"{}"))
    if not isinstance(about, dict):
        raise ValueError("what it was made with is told by name")
    return columns, rows, about
