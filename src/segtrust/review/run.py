"""The table that the desk shows, finished or growing, read again when its file has changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

import numpy as np

from segtrust.engine import (
    Policies,
    check_details,
    check_unique_cases,
    failures_beside,
    is_running,
    log_beside,
    read_failures,
    read_unfinished_run,
)
from segtrust.errors import ParameterError, SegtrustError
from segtrust.io import Failure, Table, about_path, read_table
from segtrust.review.rows import Key, Rows, estimator_for, key_of

__all__ = ["Run", "Snapshot"]

_LOG = logging.getLogger(__name__)
_PATIENCE = 10.0
"""How many times as long as a table takes to be read it is not read again."""
_BREATH_S = 0.5


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run at one moment.

    Attributes
    ----------
    rows
        What is scored so far.
    failures
        What gave no result.
    finished
        Whether the table is written; otherwise the rows are those of the diary.
    stopped
        Whether it is not, and nobody is at it any more: the run was killed, and can go on.
    version
        Grows whenever the run has changed.
    """

    rows: Rows
    failures: tuple[Failure, ...] = ()
    finished: bool = True
    stopped: bool = False
    version: int = 0


@dataclass
class Run:
    """A score table and how it changes.

    Attributes
    ----------
    path
        Of the table, which need not be there yet.
    policies
        That decide, by structure; they choose the confidence.
    """

    path: Path
    policies: Policies = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, init=False)
    _known: dict[Key, int] = field(default_factory=dict, init=False)
    _stamp: Sequence[object] = field(default=(), init=False)
    _not_before: float = field(default=0.0, init=False)
    _snapshot: Snapshot | None = field(default=None, init=False)

    def now(self) -> Snapshot:
        """Give the run as it is, or as it was a moment ago: a table is not read all the time.

        Raises
        ------
        SegtrustError
            If it cannot be read, and never could.
        """
        with self._lock:
            if self._snapshot is None or time.monotonic() >= self._not_before:
                self._look()
            if self._snapshot is None:
                raise ParameterError(f"{self.path}: expected a table of scores, got none that can be read.")
            return self._snapshot

    def _look(self) -> None:
        begin = time.monotonic()
        stamp = _stamp_of(self.path)
        if stamp != self._stamp:
            self._read(stamp)
        taken = time.monotonic() - begin
        self._not_before = begin + max(_BREATH_S, _PATIENCE * taken)

    def _read(self, stamp: Sequence[object]) -> None:
        """Take in what has changed; where it is damaged for a moment, what was there before stays."""
        try:
            found = self._found()
        except (SegtrustError, OSError) as error:
            if self._snapshot is None:
                raise
            _LOG.warning("the table cannot be read now: %s", error)
            return
        version = 0 if self._snapshot is None else self._snapshot.version + 1
        self._snapshot = replace(found, version=version)
        self._stamp = stamp

    def _found(self) -> Snapshot:
        """Read the run as far as it has come, or its table."""
        so_far = read_unfinished_run(self.path)
        if so_far is None:
            return self._read_table()
        table = so_far.table
        if not table.rows:
            table = replace(table, columns=("case", "structure", *table.about.get("estimators", ())))
        printable = Table.of([each.row() for each in so_far.failures]).rows
        failures = tuple(Failure(**row) for row in printable)
        return Snapshot(self._rows(table), failures, finished=False, stopped=so_far.stopped)

    def _read_table(self) -> Snapshot:
        table = read_table(self.path)
        check_details(table)
        table.column("case")  # or say that there is none
        return Snapshot(self._rows(table), read_failures(self.path))

    def _rows(self, table: Table) -> Rows:
        check_unique_cases(table)
        numbers = [self._known.setdefault(key_of(row), len(self._known)) for row in table.rows]
        return Rows(table, estimator_for(table, self.policies), np.array(numbers, np.int64))


def _stamp_of(path: Path) -> list[object]:
    """Give what changes with a run: time and size of its files, and whether somebody is at it."""
    files = (path, about_path(path), log_beside(path), failures_beside(path, None))
    return [*(_changed(each) for each in files), is_running(log_beside(path))]


def _changed(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
