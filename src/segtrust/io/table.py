"""Tables of results: Parquet, CSV or JSON, by the ending of the file; each keeps full precision.

What a table was made with is stored with it: inside Parquet and JSON files, and beside a CSV file.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import getsizeof
from typing import IO, Any, Self, TypeVar

import numpy as np

from segtrust._display import html_table, short_repr
from segtrust._files import (
    BYTES_PER_CHARACTER,
    atomic_write,
    atomic_write_all,
    check_format,
    check_size,
    format_json,
    max_bytes,
    plain_values,
    read_json,
    sync_files,
)
from segtrust._optional import require
from segtrust.errors import ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.columns import (
    OLD_NAMES,
    OLD_SCORES_FORMAT,
    SCORES_FORMAT,
    ScoreRow,
    is_text_column,
    is_whole_column,
)

__all__ = [
    "TABLE_ENDINGS",
    "Keep",
    "Stream",
    "Table",
    "about_path",
    "check_table_path",
    "guard_formula",
    "map_rows",
    "printable",
    "read_csv_rows",
    "read_parquet_rows",
    "read_table",
    "row_groups",
    "write_table",
]

TABLE_ENDINGS = (".parquet", ".csv", ".json")
_ROWS = "rows"
"""Number of rows of a CSV, in the file beside it: a truncated one has fewer."""
_HIDDEN = "hidden columns"
"""Columns that a CSV does not show, in the file beside it."""
_KEY = ("case", "structure")
"""Columns by which the hidden part of a row is found: the rows of a CSV may have been sorted."""
_ABOUT = b"segtrust"
_OWN_FORMATS = "segtrust-"
_ATTRIBUTE = "segtrust"
_ROWS_SHOWN = 20
"""Rows that a notebook shows."""
_ERRORS = (
    *(ValueError, KeyError, TypeError, AttributeError, NotImplementedError, OSError, RecursionError),
    csv.Error,
)
"""What readers raise over a file that is not a table."""

Keep = Callable[[Mapping[str, Any]], bool]
"""Returns whether a row is wanted."""
_Contents = tuple[tuple[str, ...], Sequence[Mapping[str, Any]], Mapping[str, Any]]
"""Columns, rows and what they were made with."""
T = TypeVar("T")
U = TypeVar("U")


class Stream(Sequence[T]):
    """A sequence that is computed again at each iteration: a long list that is never in memory as a whole.

    Its length and its items are found by iterating.

    Parameters
    ----------
    make
        Starts an iteration.

    Examples
    --------
    >>> numbers = Stream(lambda: iter(range(3)))
    >>> sum(numbers), max(numbers), len(numbers), numbers[1]
    (3, 2, 3, 1)
    """

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T]:
        """Start an iteration."""
        return self._make()

    def __bool__(self) -> bool:
        """Return whether there are any items."""
        return any(True for _ in self)

    def __len__(self) -> int:
        """Count the items."""
        return sum(1 for _ in self)

    def __getitem__(self, at: Any) -> Any:
        """Return one item or a slice; those before are computed, too."""
        if isinstance(at, slice) or at < 0:
            return tuple(self)[at]
        for item in itertools.islice(self, at, None):
            return item
        raise IndexError(f"expected a number below {len(self)}, got {at}.")


def map_rows(rows: Sequence[T], change: Callable[[T], U]) -> Sequence[U]:
    """Return the changed rows; those of a stream are changed when they are iterated.

    Examples
    --------
    >>> map_rows([1, 2], lambda number: -number)
    (-1, -2)
    """
    return Stream(lambda: map(change, rows)) if isinstance(rows, Stream) else tuple(map(change, rows))


def row_groups(rows: Sequence[T], size: int = 2048) -> Iterator[Sequence[T]]:
    """Yield all rows at once, or those of a stream in groups of limited size."""
    if not isinstance(rows, Stream):
        yield rows
        return
    left = iter(rows)
    while group := tuple(itertools.islice(left, size)):
        yield group


@dataclass(frozen=True)
class Table:
    """Rows with the same columns.

    Attributes
    ----------
    columns
        Names of the columns, in order.
    rows
        Text, numbers and ``None``; NaN is ``None``. A tuple, or a `Stream`, which is never in memory.
    about
        What the table was made with, as plain values.
    source
        Name of the table in errors.
    """

    columns: tuple[str, ...]
    rows: Sequence[ScoreRow]
    about: Mapping[str, Any] = field(default_factory=dict)
    source: str = field(default="table", compare=False)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any] | None = None) -> Self:
        """Return a table of rows; a column that some rows lack is empty there.

        Examples
        --------
        >>> Table.of([{"case": "a", "sdc": 0.5}, {"case": "b", "dice": float("nan")}]).rows[1]
        {'case': 'b', 'sdc': None, 'dice': None}
        """
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        return cls(columns, map_rows(rows, lambda row: _plain_row(row, columns)), about or {})

    @property
    def path(self) -> Path | None:
        """The file that the table was read from or written to; ``None`` if it is only in memory."""
        path = Path(self.source)
        return path if path.suffix.lower() in TABLE_ENDINGS and path.is_file() else None

    @classmethod
    def of_dataframe(cls, frame: Any, about: Mapping[str, Any] | None = None) -> Self:
        """Return a table of a pandas data frame, without its index; missing values are ``None``.

        Parameters
        ----------
        frame
            The data frame.
        about
            What it was made with; by default what `to_dataframe` stored in its ``attrs``.
        """
        names = list(frame.columns)
        for name in names:
            if not isinstance(name, str):
                raise ParameterError(f"columns: expected text as names, got {name!r}. Rename them.")
            if names.count(name) > 1:
                raise ParameterError(f"columns: expected each name once, got {name!r} twice. Rename them.")
        stored = frame.attrs.get(_ATTRIBUTE, {}) if about is None else about
        if not len(frame):
            return cls(tuple(names), (), stored)
        return cls.of(frame.astype(object).where(frame.notna(), None).to_dict("records"), stored)

    def to_dataframe(self) -> Any:
        """Return a pandas data frame: text as text, also of a case called 007, and numbers as numbers.

        What the table was made with is in its ``attrs``, under ``"segtrust"``.
        """
        pandas = require("pandas", extra="tables")
        columns = {
            name: pandas.Series(
                [row[name] for row in self.rows], dtype="str" if is_text_column(name) else None
            )
            for name in self.columns
        }
        frame = pandas.DataFrame(columns, columns=list(self.columns))
        frame.attrs[_ATTRIBUTE] = dict(self.about)
        return frame

    def column(self, name: str) -> list[Any]:
        """Return a column; an unknown name raises an error that lists the columns."""
        if name not in self.columns:
            listed = ", ".join(self.columns) or "none"
            raise WrongContentError(f"{self.source}: expected a column {name!r}, got {listed}.")
        return [row[name] for row in self.rows]

    def __repr__(self) -> str:
        """Return the number of rows, the columns and the source in one line."""
        shown = {"rows": len(self.rows), "columns": list(self.columns), "source": self.source}
        return short_repr(self, shown)

    def _repr_html_(self) -> str:
        """Return the first rows as a table for a notebook."""
        first = [[row[name] for name in self.columns] for row in itertools.islice(self.rows, _ROWS_SHOWN)]
        title = f"Table of {len(self.rows)} rows, the first {len(first)} shown"
        return html_table(title, first, header=self.columns)


def _plain_row(row: Mapping[str, Any], columns: Sequence[str]) -> ScoreRow:
    return {name: _plain_value(name, row.get(name)) for name in columns}


def _plain_value(name: str, value: Any) -> Any:
    """Return a value as text, number or ``None``, which all formats keep."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if value is None or value != value:
        return None
    if hasattr(value, "isoformat"):  # times, which only some formats have
        value = value.isoformat()
    if is_text_column(name) or isinstance(value, str):
        return printable(str(value))
    is_whole = is_whole_column(name) and isinstance(value, int | float) and value == value // 1
    return int(value) if is_whole else value


def printable(text: str) -> str:
    r"""Return text with escapes for what no table can hold: undecodable bytes and carriage returns.

    Examples
    --------
    >>> print(printable("case \udcff"))
    case \xff
    """
    try:
        escaped = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a character, as JSON can write it
        escaped = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return escaped.replace("\r", "\\r")


def about_path(path: Path) -> Path:
    """Return the path of the file beside a CSV that says what it was made with."""
    return path.with_name(f"{path.name}.about.json")


def check_table_path(path: Path) -> None:
    """Reject a path that does not end like a table, before hours are spent."""
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise ParameterError(f"{path}: expected a table ending in {', '.join(TABLE_ENDINGS)}.")
    if path.suffix.lower() == ".parquet":
        require("pyarrow", extra="tables")


# Writing


def write_table(path: Path, table: Table, *, hidden: Collection[str] = ()) -> None:
    """Write a table; an existing file is replaced in one step, or stays as it was.

    Columns in ``hidden`` are not shown in CSV: they are kept in the file beside it, and `read_table` returns
    them.

    In CSV, text that a spreadsheet would run as a formula (``=…``, ``+…``, ``-…``, ``@…``) is preceded by an
    apostrophe, which `read_table` removes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> write_table(path, Table.of([{"case": "007", "sdc": 0.1}], {"threshold": 0.5}))
    >>> read_table(path).rows, read_table(path).about
    (({'case': '007', 'sdc': 0.1},), {'threshold': 0.5})
    """
    check_table_path(path)
    table = replace(table, about=plain_values(table.about, f"{path}: about"))
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    if ending != ".csv":
        with atomic_write(path) as draft:
            (_write_parquet if ending == ".parquet" else _write_json)(draft, table)
        return
    # What one table was made with never lies beside another: the old file is removed before the new table
    # comes, and only when everything new is on the disk, so that a full disk costs nothing.
    beside = about_path(path)
    with atomic_write_all(path, *[beside] * bool(table.about)) as drafts:
        shown = [name for name in table.columns if name not in hidden or not drafts[1:]]
        if len(shown) < len(table.columns):
            _write_csv_with_hidden(drafts[0], drafts[1], table, shown)
        else:
            count = _write_csv(drafts[0], table)
            for note in drafts[1:]:
                note.write_text(format_json({**table.about, _ROWS: count}), encoding="utf-8")
        sync_files(*drafts)
        is_unchanged = bool(drafts[1:]) and beside.is_file() and beside.read_bytes() == drafts[1].read_bytes()
        if not is_unchanged:
            beside.unlink(missing_ok=True)


_BEGINS = r"""(^|[\n\r\t;])"""
_FORMULA = r"""(?='*[" ]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*\t)"""
"""Text that a spreadsheet runs as a formula, perhaps already preceded by apostrophes. It begins a cell, or
follows a separator: many spreadsheets separate by semicolons or tabs, and then ignore quotes.
Those of East Asia accept wide signs."""
_UNGUARDED, _GUARDED = re.compile(_BEGINS + _FORMULA), re.compile(_BEGINS + "'" + _FORMULA)


def guard_formula(value: Any) -> Any:
    """Return text with an apostrophe before what a spreadsheet would run; see `_unguarded`."""
    return _UNGUARDED.sub(r"\1'", value) if isinstance(value, str) else value


def _unguarded(text: str) -> str:
    return _GUARDED.sub(r"\1", text) if "'" in text else text


def _write_csv(path: Path, table: Table) -> int:
    """Write rows as text, and return their number."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(guard_formula, table.columns))
        for count, row in enumerate(table.rows, 1):  # noqa: B007 - a stream has no other number of rows
            writer.writerow([guard_formula(row[name]) for name in table.columns])
    return count


def _write_csv_with_hidden(path: Path, note: Path, table: Table, shown: Sequence[str]) -> None:
    """Write some columns as CSV and the others to the file beside it, row by row."""
    hidden = [name for name in table.columns if name not in shown]
    count, between = 0, ""
    with path.open("w", newline="", encoding="utf-8") as file, note.open("w", encoding="utf-8") as beside:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(guard_formula, shown))
        order = {"order": table.columns, "columns": hidden}
        beside.write(f'{{"{_HIDDEN}": {json.dumps(order)[:-1]}, "rows": [')
        for count, row in enumerate(table.rows, 1):  # noqa: B007 - a stream has no other number of rows
            writer.writerow([guard_formula(row[name]) for name in shown])
            values = [*(str(row.get(name) or "") for name in _KEY), *(row[name] for name in hidden)]
            beside.write(f"{between}\n{json.dumps(plain_values(values, 'hidden columns'))}")
            between = ","
        beside.write("]},\n" + format_json({**table.about, _ROWS: count}).lstrip()[1:])


def _write_json(path: Path, table: Table) -> None:
    """Write JSON row by row: a table may be larger than the memory."""
    whole = {"about": table.about, "columns": table.columns, "rows": []}
    head, _, tail = format_json(whole, indent=1).rpartition("]")
    margin, between, end = "  ", "\n", ""
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for row in table.rows:
            text = format_json(plain_values(row, "rows of a JSON table"), indent=1).rstrip("\n")
            file.write(between + margin + text.replace("\n", f"\n{margin}"))
            between, end = ",\n", "\n "
        file.write(f"{end}]{tail}")


def _write_parquet(path: Path, table: Table) -> None:
    arrow, parquet = (require(name, extra="tables") for name in ("pyarrow", "pyarrow.parquet"))
    with_text = {name for row in table.rows for name in row if isinstance(row[name], str)}
    texts = {name for name in table.columns if is_text_column(name) or name in with_text}
    texts -= {name for name in texts if is_whole_column(name)}
    kinds = {
        name: arrow.int64() if is_whole_column(name) else arrow.string() if name in texts else arrow.float64()
        for name in table.columns
    }
    about = {_ABOUT: json.dumps(table.about, ensure_ascii=False).encode()}
    schema = arrow.schema(list(kinds.items()), metadata=about)
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in row_groups(table.rows):
            columns = []
            for name, kind in kinds.items():
                cells = [row[name] for row in rows]
                if name in texts:
                    cells = [None if cell is None else str(cell) for cell in cells]
                columns.append(arrow.array(cells, kind))
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


# Reading


def read_table(path: Path, keep: Keep = lambda row: True) -> Table:
    """Read a table that `write_table` wrote, or any other of these formats; reject another version.

    Parameters
    ----------
    path
        Path of the file.
    keep
        Returns whether a row, as it is in the file, is wanted; the others are not kept in memory.
    """
    check_table_path(path)
    if not path.is_file():
        raise ParameterError(f"{path}: expected a table, got no such file.")
    reader = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}[path.suffix.lower()]
    try:
        columns, rows, about = reader(path, keep)
        plain = tuple(_plain_row(row, columns) for row in rows)
    except (UnsafeFileError, WrongContentError):
        raise
    except _ERRORS as error:
        raise WrongContentError(
            f"{path}: expected a table, got one that cannot be read ({error or type(error).__name__})."
        ) from None
    if not isinstance(about, Mapping):
        raise WrongContentError(
            f"{path}: expected what the table was made with as a mapping, got {type(about).__name__}."
        )
    table = _with_new_names(Table(columns, plain, about, str(path)))
    if str(about.get("format", "")).startswith(_OWN_FORMATS):  # a table from elsewhere has no format
        check_format(table.about, SCORES_FORMAT, str(path))
    return table


def _with_new_names(table: Table) -> Table:
    """Return a table of release 0.1 with the new names of its columns; other tables as they are."""
    is_old = table.about.get("format") == OLD_SCORES_FORMAT
    if not is_old and not ("format" not in table.about and {"k", "lower", "upper"} <= {*table.columns}):
        return table
    rows = tuple({OLD_NAMES.get(name, name): value for name, value in row.items()} for row in table.rows)
    about = {OLD_NAMES.get(name, name): value for name, value in table.about.items()}
    if is_old:
        about["format"] = SCORES_FORMAT
    return replace(
        table, columns=tuple(OLD_NAMES.get(name, name) for name in table.columns), rows=rows, about=about
    )


def _read_csv(path: Path, keep: Keep) -> _Contents:
    count, rows = 0, []
    with path.open(newline="", encoding="utf-8-sig") as file:
        columns, lines = read_csv_rows(path, file)
        for count, row in enumerate(lines, 1):  # noqa: B007 - counts also the rows that are not kept
            if keep(row):
                rows.append({name: _parsed(name, text) for name, text in row.items()})
    beside = about_path(path)
    about = read_json(beside) if beside.exists() else {}
    expected = about.pop(_ROWS, None) if isinstance(about, dict) else None
    if isinstance(expected, int):
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 1, 0))
            is_whole = file.read() == b"\n"
        if count != expected or not is_whole:
            got = f"{count}" if count != expected else "a last row without an end"
            raise WrongContentError(
                f"{path}: expected {expected} rows, as {beside.name} says, got {got}: it was truncated or "
                "changed. Restore it, or create it again; a table that was changed on purpose can be read "
                "under another name."
            )
    kept = about.pop(_HIDDEN, None) if isinstance(about, dict) else None
    if kept is not None:
        columns, rows = _with_hidden(path, rows, kept)
    return columns, rows, about


def _with_hidden(
    path: Path, rows: Sequence[ScoreRow], kept: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[ScoreRow]]:
    """Return all columns, and the rows with the values that the CSV does not show."""
    values = {tuple(row[: len(_KEY)]): row[len(_KEY) :] for row in kept["rows"]}
    if len(values) < len(kept["rows"]):
        raise WrongContentError(f"{about_path(path)}: expected one row per case and structure, got several.")
    whole = []
    for row in rows:
        key = tuple(str(row.get(name) or "") for name in _KEY)
        if key not in values:
            raise WrongContentError(
                f"{path}: expected the cases of {about_path(path).name}, got {row.get('case')!r}: one of the "
                "files was changed. Restore it, or create the table again."
            )
        whole.append({**row, **dict(zip(kept["columns"], values[key], strict=True))})
    return tuple(kept["order"]), whole


def _parsed(name: str | None, text: Any) -> Any:
    """Return a cell as a number if it is one; text columns stay text."""
    if name is None:
        raise ValueError(f"more values than columns: {', '.join(text)}")
    if text is None:
        raise ValueError(f"a row without a value of {name!r}: if it was truncated, create the table again")
    if is_text_column(name):
        return text
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _read_json(path: Path, keep: Keep) -> _Contents:
    whole = read_json(path)
    missing = [name for name in ("columns", "rows", "about") if name not in whole]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    columns, rows, about = (whole[name] for name in ("columns", "rows", "about"))
    has_lists = isinstance(columns, list) and isinstance(rows, list) and isinstance(about, dict)
    if not has_lists or not all(isinstance(row, dict) for row in rows):
        raise ValueError("lists of columns and rows, and what they were made with, were expected")
    return tuple(map(str, columns)), list(filter(keep, rows)), about


def _read_parquet(path: Path, keep: Keep) -> _Contents:
    columns, rows, metadata = read_parquet_rows(path, keep)
    about = json.loads(metadata.get(_ABOUT, b"{}"))
    if not isinstance(about, dict):
        raise ValueError("what it was made with must be a mapping")
    return columns, rows, about


# Rows of any CSV or Parquet file, as many as fit into the memory that is allowed

_CELL = 64
"""Bytes that a cell takes, or a little less."""


def read_csv_rows(
    path: Path, file: IO[str], **how: Any
) -> tuple[tuple[str, ...], Iterator[Mapping[str, Any]]]:
    """Return the columns of a table of text, and its rows, whose memory is counted as they are read.

    Parameters
    ----------
    path
        Name of the file in errors.
    file
        The opened file.
    how
        Options of `csv.DictReader`.
    """
    check_size(path, path.stat().st_size, what="a table")
    characters = 0

    def lines() -> Iterator[str]:
        nonlocal characters
        for line in file:  # a row may have many lines
            characters += len(line)
            size = BYTES_PER_CHARACTER * characters
            check_size(path, size, is_whole=False, what="a row of a table")
            yield line

    def rows() -> Iterator[Mapping[str, Any]]:
        nonlocal characters
        total = 0
        for row in reader:
            characters = 0
            total += max(_CELL * len(columns), sum(map(_memory_of, row.values())))
            check_size(path, total, is_whole=False, what="a table")
            yield {name: _unguarded(cell) if isinstance(cell, str) else cell for name, cell in row.items()}

    reader = csv.DictReader(lines(), **how)
    columns = tuple(map(_unguarded, reader.fieldnames or ()))
    reader.fieldnames = columns or None
    return columns, rows()


def _memory_of(cell: Any) -> int:
    """Return the bytes that a cell takes: text, ``None``, or the list of all cells without a column."""
    return sum(map(_memory_of, cell)) if isinstance(cell, list) else max(_CELL, getsizeof(cell))


def read_parquet_rows(
    path: Path, keep: Keep = lambda row: True
) -> tuple[tuple[str, ...], list[Mapping[str, Any]], Mapping[bytes, bytes]]:
    """Read columns, wanted rows and metadata of a Parquet file, a few rows at a time.

    A text of a few bytes may stand for millions, so the announced size is checked before anything is
    unpacked.
    """
    with require("pyarrow.parquet", extra="tables").ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        check_size(path, _CELL * metadata.num_rows * max(metadata.num_columns, 1), what="a table")
        # The columns of a group are not asked for their size: Arrow ends the process if one is corrupt.
        groups = (metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
        largest = max((int(size) for size in groups), default=0)
        check_size(path, largest, what="a table")
        at_once = min(max(max_bytes() // (16 * max(largest, 1)), 1), 4096)
        rows: list[Mapping[str, Any]] = []
        total = 0
        for batch in file.iter_batches(at_once):
            total += batch.nbytes
            check_size(path, total, is_whole=False, what="a table")
            rows += filter(keep, batch.to_pylist())
        return tuple(schema.names), rows, dict(schema.metadata or {})
