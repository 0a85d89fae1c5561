"""Names of files that come by a pipe, and tables that go on by one: ``-`` stands for both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from segtrust.errors import ParameterError

__all__ = ["is_pipe", "paths_of", "table_place"]

_PIPE = "-"
_MOST_BYTES = 1 << 30
_OF_DATA = (b"PK\x03\x04", b"\x93NUMPY", b"\x1f\x8b", b"\x89PNG", b"\x89HDF", b"II*\0", b"MM\0*", b"RIFF")
"""With which maps begin, so that somebody who sends one itself is told so."""


def is_pipe(path: Path) -> bool:
    """Tell whether a path stands for standard input or output.

    Examples
    --------
    >>> is_pipe(Path("-")), is_pipe(Path("a.csv"))
    (True, False)
    """
    return str(path) == _PIPE


def paths_of(given: Sequence[Path]) -> list[Path]:
    """Give paths as they are, and for ``-`` those on standard input, one a line, or with a NUL between."""
    return [path for each in given for path in (_from_input() if is_pipe(each) else [each])]


def _from_input() -> list[Path]:
    text = sys.stdin.buffer.read(_MOST_BYTES + 1) if sys.stdin is not None else b""
    if len(text) > _MOST_BYTES or text.startswith(_OF_DATA):
        raise ParameterError(
            "-: expected names of files on standard input, one a line, got what is in one. Give its name."
        )
    lines = text.split(b"\0") if b"\0" in text else text.splitlines()
    paths = [Path(os.fsdecode(line)) for line in lines if line.strip()]
    if not paths:
        raise ParameterError("-: expected names of files on standard input, one a line, got none.")
    return paths


@contextmanager
def table_place(output: Path) -> Iterator[Path]:
    """Give where a table is to be written; one for ``-`` is printed as CSV, also where some cases failed."""
    if not is_pipe(output):
        yield output
        return
    with TemporaryDirectory(prefix="segtrust-") as folder:
        table = Path(folder) / "scores.csv"
        try:
            yield table
        finally:
            if table.is_file():
                sys.stdout.write(table.read_text(encoding="utf-8"))
                sys.stdout.flush()
