"""Rows of tables: as many as fit into the memory that is allowed, or never all at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from sys import getsizeof
from typing import IO, Any, TypeVar

from segtrust._files import BYTES_PER_CHARACTER, check_size, max_bytes
from segtrust._optional import require

__all__ = ["Keep", "Parquet", "Stream", "changed", "csv_rows", "pieces_of", "read_parquet"]

_CELL = 64
"""Bytes that a cell takes, or a little less."""
_MOST_AT_ONCE = 4096
_PIECE = 2048
"""Rows of a stream that are held at a time: a group of Parquet."""
Row = Mapping[str, Any]
Parquet = tuple[tuple[str, ...], list[Row], Mapping[bytes, bytes]]
"""Columns, rows, and what the file says of itself."""
Keep = Callable[[Row], bool]
"""Tells whether a row is wanted."""
T = TypeVar("T")
U = TypeVar("U")


class Stream(Sequence[T]):
    """Things that are made anew whenever they are gone through: a long list that is never held as a whole.

    To ask for its length, or for one of them by its number, is to go through it.

    Parameters
    ----------
    make
        Begins to go through them.

    Examples
    --------
    >>> numbers = Stream(lambda: iter(range(3)))
    >>> sum(numbers), max(numbers), len(numbers), numbers[1]
    (3, 2, 3, 1)
    """

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[T]:
        """Go through them."""
        return self._make()

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return any(True for _ in self)

    def __len__(self) -> int:
        """Count them."""
        return sum(1 for _ in self)

    def __getitem__(self, at: Any) -> Any:
        """Give one or a stretch of them; those before are made too."""
        if isinstance(at, slice) or at < 0:
            return tuple(self)[at]
        for found in islice(self, at, None):
            return found
        raise IndexError(f"expected a number below {len(self)}, got {at}.")


def changed(rows: Sequence[T], change: Callable[[T], U]) -> Sequence[U]:
    """Change each row: now, or where they are a stream when it is gone through.

    Examples
    --------
    >>> changed([1, 2], lambda number: -number)
    (-1, -2)
    """
    return Stream(lambda: map(change, rows)) if isinstance(rows, Stream) else tuple(map(change, rows))


def pieces_of(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Give rows as they are, a stream in pieces of thousands."""
    if not isinstance(rows, Stream):
        yield rows
        return
    left = iter(rows)
    while piece := tuple(islice(left, _PIECE)):
        yield piece


def csv_rows(path: Path, file: IO[str], **how: Any) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Give the columns of a table of text, and its rows, which are counted as they are read.

    Parameters
    ----------
    path
        Named in errors.
    file
        Opened.
    how
        As for `csv.DictReader`.
    """
    check_size(path, path.stat().st_size, what="a table")
    lines = _Lines(path, file)
    reader = csv.DictReader(lines, **how)
    columns = tuple(reader.fieldnames or ())
    return columns, _counted(path, reader, lines, len(columns))


class _Lines(Iterator[str]):
    """Gives lines, and refuses to go on with a row that would take too much: one may have many lines."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self.letters_of_row = path, 0
        self._file = file

    def __next__(self) -> str:
        line = next(self._file)
        self.letters_of_row += len(line)
        check_size(
            self.path, BYTES_PER_CHARACTER * self.letters_of_row, is_whole=False, what="a row of a table"
        )
        return line


def _counted(path: Path, rows: Iterable[Row], lines: _Lines, columns: int) -> Iterator[Row]:
    """Give rows on, and refuse to go on where they are more than fit into what one array may take."""
    count = 0
    for row in rows:
        lines.letters_of_row = 0
        count += max(_CELL * columns, sum(map(_memory_of, row.values())))
        check_size(path, count, is_whole=False, what="a table")
        yield row


def _memory_of(cell: Any) -> int:
    """Give the bytes that a cell takes: a text, nothing, or all the texts for which there is no column."""
    return sum(map(_memory_of, cell)) if isinstance(cell, list) else max(_CELL, getsizeof(cell))


def read_parquet(path: Path, keep: Keep = lambda row: True) -> Parquet:
    """Read a Parquet file, few rows at a time: a text of a few bytes may stand for millions.

    What it announces is looked at before any of it is unpacked. Rows that are not wanted are not held.
    """
    with require("pyarrow.parquet", extra="tables").ParquetFile(path) as file:
        about, schema = file.metadata, file.schema_arrow
        check_size(path, _CELL * about.num_rows * max(about.num_columns, 1), what="a table")
        largest = max(_group_sizes(about), default=0)
        check_size(path, largest, what="a table")
        at_once = min(max(max_bytes() // (16 * max(largest, 1)), 1), _MOST_AT_ONCE)
        rows: list[Row] = []
        count = 0
        for batch in file.iter_batches(at_once):
            count += batch.nbytes
            check_size(path, count, is_whole=False, what="a table")
            rows += filter(keep, batch.to_pylist())
        return tuple(schema.names), rows, dict(schema.metadata or {})


def _group_sizes(about: Any) -> Iterator[int]:
    """Give how many bytes each group of rows says that it unpacks to.

    Columns are not asked for theirs: where one is damaged, Arrow ends the process.
    """
    return (int(about.row_group(at).total_byte_size) for at in range(about.num_row_groups))
