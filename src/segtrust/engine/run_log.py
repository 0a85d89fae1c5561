"""The log of a run: each outcome is kept as soon as it is there, so that a run that was stopped can resume.

One SQLite file beside the table holds the settings of the run, the command, and one row per case. It can be
deleted at any time: the cases are then scored again.

How it is written. The writer keeps a transaction open (``BEGIN IMMEDIATE``) from one commit to the next. That
keeps other writers out, on this and on other machines, for as long as the process lives, and lets readers in.
Outcomes are committed together, 5 ms after the first of them was added (on a slow drive after twice as long
as a commit takes), with SQLite's rollback journal and ``synchronous=FULL``: what was committed
survives a kill and a power cut. There is no write-ahead log, because it does not work on network drives.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psutil

from segtrust._files import check_format, plain_values
from segtrust.engine.outcomes import Outcome
from segtrust.errors import ParameterError, SavedStateError, SegtrustError
from segtrust.io import Failure, ScoreRow

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "FORMAT",
    "LoggedRun",
    "RunLog",
    "is_finished",
    "is_running",
    "lock_folder",
    "mark_of",
    "read_log",
]

FORMAT = "segtrust-log-1"
_COMMIT_S, _TIMES_COMMIT = 0.005, 2.0
"""A commit comes so many seconds after an outcome, and so many times as long as the last one took."""
_BUSY_S = 60.0
"""How long a commit waits for readers."""
_TRIES, _PAUSE_S = 5, 0.05
"""Attempts to take the log: a process that only checks whether it is locked holds the lock for a moment."""
_ROWS = 256
"""Rows that are read at a time."""
_SCHEMA = {
    "run": "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "cases": (
        "CREATE TABLE cases (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, stamp BLOB NOT NULL, "
        "failed INTEGER NOT NULL, start INTEGER NOT NULL, outcome TEXT NOT NULL, checksum INTEGER NOT NULL)"
    ),
}
_KEEP = (
    "INSERT INTO cases (id, stamp, failed, start, outcome, checksum) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET stamp = excluded.stamp, failed = excluded.failed, "
    "start = excluded.start, outcome = excluded.outcome, checksum = excluded.checksum"
)


def mark_of(stamp: Any) -> bytes:
    """Return a checksum of a stamp, which changes when the files of a case do.

    Examples
    --------
    >>> mark_of(["a.npy", (1, 2)]) == mark_of(["a.npy", [1, 2]])
    True
    """
    return blake2b(json.dumps(stamp, sort_keys=True).encode(), digest_size=16).digest()


class RunLog:
    """The log of a run, opened for writing; a second run that opens it at the same time is rejected.

    Parameters
    ----------
    path
        The file.
    settings
        All that outcomes depend on besides the files, as plain values.
    command
        Arguments of the command.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / ".scores.csv.log"
    >>> with RunLog(path, {"threshold": 0.5}) as log:
    ...     log.add(Outcome("a", ({"sdc": 0.9},)), mark_of(["a.npy", 12]))
    >>> with RunLog(path, {"threshold": 0.5}) as log:
    ...     log.find("a", mark_of(["a.npy", 12])).rows
    ({'sdc': 0.9},)
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, command: Sequence[str] = ()) -> None:
        self.path, self.command = path, tuple(command)
        self.settings = dict(plain_values(dict(settings), "settings"))
        self.previous: dict[str, Any] | None = None
        """Settings of the outcomes that are there; ``None`` if there are none."""
        self._start = 0
        self._connection: sqlite3.Connection | None = None
        self._place: os.stat_result | None = None
        self._lock = threading.RLock()
        self._fault: Exception | None = None
        self._is_new, self._is_closed = threading.Event(), threading.Event()

    def __enter__(self) -> RunLog:
        """Open the file and take it; read the settings of the outcomes that are there."""
        with _explain(self.path):
            self._connection = _connect(self.path, "rwc", _BUSY_S)
        try:
            with _explain(self.path):
                self._open(self._connection)
        except BaseException:
            self._connection.close()
            raise
        threading.Thread(target=self._commit_soon, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit everything and close the file; a fault of the disk does not hide an earlier error."""
        self._is_closed.set()
        self._is_new.set()
        try:
            with suppress(*[OSError, SegtrustError] if kind else []):
                with self._writing():
                    self._set(owner=None)
                self.sync()
        finally:
            with self._lock:
                assert self._connection is not None
                for statement in ("ROLLBACK", "PRAGMA journal_mode = DELETE"):  # leaves no other file behind
                    with suppress(sqlite3.Error):
                        self._connection.execute(statement)
                self._connection.close()
                self._connection = None

    def _open(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = TRUNCATE")  # faster than to delete it with each commit
        self._take(connection)
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY_S)}")
        if not _check_schema(connection, self.path):
            for statement in _SCHEMA.values():
                connection.execute(statement)
        head = _read_head(connection)
        if _is_alive(head.get("owner")):  # it holds no lock just between two transactions
            raise self._is_taken(connection)
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise _corrupt(self.path)
        self._start = int(head.get("start", 0)) + 1
        has_rows = connection.execute("SELECT 1 FROM cases WHERE NOT failed LIMIT 1").fetchone()
        self.previous = head.get("settings", {}) if has_rows else None
        process = psutil.Process()
        owner = {"pid": process.pid, "host": socket.gethostname(), "since": process.create_time()}
        begun = {"owner": owner, "folder": str(Path.cwd()), "command": list(self.command), "finished": False}
        self._set(format=FORMAT, start=self._start, **begun)
        if self.previous is None:
            self._set(settings=self.settings)
        self._place = self.path.stat()
        self._commit()
        if self._fault is not None:
            raise self._fault

    def _take(self, connection: sqlite3.Connection) -> None:
        """Start the write transaction, or raise an error that names the process that has one."""
        connection.execute("PRAGMA busy_timeout = 0")
        for attempt in range(_TRIES):
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code_of(error) != sqlite3.SQLITE_BUSY:
                    raise
                if attempt == _TRIES - 1:
                    raise self._is_taken(connection) from None
                time.sleep(_PAUSE_S)
            else:
                return

    def _is_taken(self, connection: sqlite3.Connection) -> ParameterError:
        owner: Any = None
        with suppress(sqlite3.Error, ValueError):
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY_S)}")  # for its commits
            owner = _read_head(connection).get("owner")
        name = f"process {owner['pid']} on {owner['host']}" if isinstance(owner, dict) else "another process"
        return ParameterError(
            f"{self.path}: another run ({name}) writes this output. Wait for its end, or choose another "
            "output."
        )

    def keep_settings(self, settings: Mapping[str, Any]) -> None:
        """Replace the settings, as when an estimator is added."""
        self.settings = dict(plain_values(dict(settings), "settings"))
        with self._writing():
            self._set(settings=self.settings)

    def clear(self) -> None:
        """Remove all outcomes."""
        with self._writing() as connection:
            connection.execute("DELETE FROM cases")
            self._set(settings=self.settings)
        self.previous = None

    def finish(self) -> None:
        """Note that the table of the run is written."""
        with self._writing():
            self._set(finished=True)

    def _set(self, **values: Any) -> None:
        assert self._connection is not None
        for key, value in values.items():
            self._connection.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))

    def add(self, outcome: Outcome, mark: bytes) -> None:
        """Keep an outcome; ``mark`` changes when the files of its case do."""
        text = json.dumps(outcome.to_dict())
        values = (_encode(outcome.case), mark, outcome.failure is not None, self._start, text, _sum(text))
        with self._writing() as connection:
            connection.execute(_KEEP, values)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to write to, and have it committed soon; nothing is kept in a deleted file."""
        with self._lock:
            if self._fault is not None and not isinstance(self._fault, _LogDeletedError):
                raise self._fault
            assert self._connection is not None
            try:
                with _explain(self.path):
                    yield self._connection
            except _LogDeletedError as error:
                self._fault = error
        self._is_new.set()

    def find(self, case: str, mark: bytes) -> Outcome | None:
        """Return the outcome of a case whose files have not changed; failures are tried again."""
        found = self._query(
            "SELECT outcome, checksum FROM cases WHERE id = ? AND stamp = ? AND NOT failed", case, mark
        )
        return self._outcome(*found[0]) if found else None

    def knows(self, case: str, mark: bytes) -> bool:
        """Return whether a case was tried with its files as they are: with success, or in this run."""
        sql = "SELECT 1 FROM cases WHERE id = ? AND stamp = ? AND (NOT failed OR start = ?)"
        return bool(self._query(sql, case, mark, self._start))

    def cases(self, *, failed: bool | None = None) -> set[str]:
        """Return the ids of all cases, or only of those that failed or did not."""
        found = self._query("SELECT id FROM cases WHERE ? IS NULL OR failed = ?", failed, failed)
        return {_decode(case) for (case,) in found}

    def rows(self) -> Iterator[ScoreRow]:
        """Yield the rows of all cases in the order in which they came, a few hundred in memory at a time."""
        for outcome in self._outcomes(failed=False):
            yield from outcome.rows

    def failures(self) -> list[Failure]:
        """Return what failed last time, also in earlier runs."""
        return [outcome.failure for outcome in self._outcomes(failed=True) if outcome.failure is not None]

    def counts(self) -> tuple[int, int]:
        """Return how many cases have rows, and how many have failed."""
        ((scored, failed),) = self._query("SELECT count(*) - total(failed), total(failed) FROM cases")
        return int(scored), int(failed)

    def _outcomes(self, *, failed: bool) -> Iterator[Outcome]:
        sql, last = (
            "SELECT number, outcome, checksum FROM cases WHERE number > ? AND failed = ? ORDER BY number",
            0,
        )
        while some := self._query(f"{sql} LIMIT {_ROWS}", last, failed):
            for last, text, checksum in some:  # noqa: B007 - the last one is used
                yield self._outcome(text, checksum)

    def _query(self, sql: str, *values: Any) -> list[Any]:
        """Read from the log, also after the run."""
        encoded = [_encode(each) if isinstance(each, str) else each for each in values]
        with self._lock, _explain(self.path):
            if self._connection is not None:
                return self._connection.execute(sql, encoded).fetchall()
            with closing(_connect(self.path, "rw")) as connection:
                return connection.execute(sql, encoded).fetchall()

    def _outcome(self, text: str, checksum: int) -> Outcome:
        return _outcome_of(self.path, text, checksum)

    def sync(self) -> None:
        """Commit everything to the disk."""
        with self._lock:
            self._commit()
            if self._fault is not None and not isinstance(self._fault, _LogDeletedError):
                raise self._fault

    def check_place(self) -> None:
        """Check that the file still has its name: what is written to a deleted one is lost.

        A run that keeps its outcomes until it writes its table needs no such check.
        """
        try:
            is_there = self._place is not None and os.path.samestat(self._place, self.path.stat())
        except FileNotFoundError:
            is_there = False
        except OSError:
            return  # a drive that cannot tell now
        if not is_there or isinstance(self._fault, _LogDeletedError):
            raise _LogDeletedError(
                f"{self.path}: the log of this run was deleted or replaced while the run was at work. Rerun "
                "the same command: the cases whose files are there are scored again."
            )

    def _commit(self) -> None:
        """Commit, and keep other writers out from then on."""
        with self._lock:
            self._is_new.clear()
            if self._connection is None or self._fault is not None:
                return
            try:
                with _explain(self.path):
                    self._connection.execute("COMMIT")
                    self._connection.execute("BEGIN IMMEDIATE")
            except (OSError, SegtrustError) as error:
                self._fault = error  # raised by who writes next

    def _commit_soon(self) -> None:
        took_s = 0.0
        while not self._is_closed.is_set():
            self._is_new.wait()
            self._is_closed.wait(max(_COMMIT_S, _TIMES_COMMIT * took_s))
            begin = time.monotonic()
            self._commit()
            took_s = time.monotonic() - begin


@dataclass(frozen=True)
class LoggedRun:
    """What the log of a run says; the run may still be at work.

    Attributes
    ----------
    settings
        What the outcomes depend on besides the files.
    folder
        Folder in which the command was started; file names are relative to it.
    command
        Its arguments.
    outcomes
        The last one of each case.
    """

    settings: Mapping[str, Any]
    folder: str
    command: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def read_log(path: Path) -> LoggedRun:
    """Read the log of a run without disturbing it.

    Raises
    ------
    SavedStateError
        If it is corrupt, or of another version.
    """
    with _explain(path), closing(_connect(path, "rw")) as connection:
        connection.execute("BEGIN")
        if not _check_schema(connection, path):
            return LoggedRun({}, "", (), ())
        head = _read_head(connection)
        kept = connection.execute("SELECT outcome, checksum FROM cases ORDER BY number").fetchall()
    outcomes = tuple(_outcome_of(path, *each) for each in kept)
    settings, command = head.get("settings"), head.get("command")
    if not (isinstance(settings, dict) and isinstance(command, list)):
        raise _corrupt(path)
    return LoggedRun(settings, str(head.get("folder", "")), tuple(map(str, command)), outcomes)


def is_finished(path: Path) -> bool:
    """Return whether the table of the run with this log was written."""
    with _explain(path), closing(_connect(path, "rw")) as connection:
        return _check_schema(connection, path) and _read_head(connection).get("finished") is True


def is_running(path: Path) -> bool | None:
    """Return whether a process writes to a log; ``None`` if that cannot be determined."""
    if not path.is_file():
        return None
    try:
        with closing(_connect(path, "rw", timeout=0.0)) as connection:
            for _ in range(2):
                connection.execute("BEGIN IMMEDIATE")
                owner = _read_head(connection).get("owner") if _check_schema(connection, path) else None
                connection.execute("ROLLBACK")
                if owner is None:
                    return False
                if _is_alive(owner):
                    return True
                time.sleep(_PAUSE_S)  # its writer may be between two transactions
    except sqlite3.OperationalError as error:
        return True if _code_of(error) == sqlite3.SQLITE_BUSY else None
    except (sqlite3.Error, SegtrustError, ValueError):
        return None
    return False


def _connect(path: Path, mode: str, timeout: float = _BUSY_S) -> sqlite3.Connection:
    place = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(
        place, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        for setting in ("synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection, path: Path) -> bool:
    """Check that a file is a log of this version; return whether there is anything in it."""
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    if not found:
        return False
    if "run" not in found:
        raise SavedStateError(f"{path}: expected the log of a run, got another file. Choose another output.")
    head = _read_head(connection)
    if "format" in head:
        check_format(head, FORMAT, str(path), error=SavedStateError)
    if found != _SCHEMA:
        raise _corrupt(path)
    return True


def _read_head(connection: sqlite3.Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM run")}


def _is_alive(owner: Any) -> bool:
    """Return whether the process that took a log last is another one on this machine, and still there."""
    if not isinstance(owner, dict) or owner.get("host") != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(owner["pid"]))
        return bool(process.pid != os.getpid() and process.create_time() == owner["since"])
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


def _outcome_of(path: Path, text: Any, checksum: Any) -> Outcome:
    try:
        if _sum(text) == checksum:
            return Outcome.from_dict(json.loads(text), str(path))
    except (TypeError, AttributeError, ValueError, RecursionError):
        pass
    raise _corrupt(path)


def _sum(text: str) -> int:
    return zlib.crc32(text.encode())


def _encode(case: str) -> bytes:
    return case.encode("utf-8", "surrogatepass")  # a name of a file need not be valid text


def _decode(case: bytes) -> str:
    return case.decode("utf-8", "surrogatepass")


class _LogDeletedError(SavedStateError):
    """The log was deleted or replaced while its run was at work."""


def _corrupt(path: Path) -> SavedStateError:
    return SavedStateError(f"{path}: the log of this run is corrupt. Delete it: the cases are scored again.")


def _code_of(error: sqlite3.Error) -> int:
    """Return the error code of SQLite, without its details."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


_SYSTEM = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of the system, or of a corrupt log."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
            raise _LogDeletedError(f"{path}: the log of this run was deleted or replaced.") from error
        number = _SYSTEM.get(_code_of(error))
        if number is not None:
            raise OSError(number, os.strerror(number), str(path)) from error
        if _code_of(error) == sqlite3.SQLITE_BUSY:
            raise SavedStateError(
                f"{path}: another process, perhaps another run, has held the lock on this log for too long. "
                "Stop it, and rerun the same command."
            ) from error
        raise _corrupt(path) from error
    except (ValueError, TypeError, UnicodeDecodeError, RecursionError) as error:  # invalid JSON
        if isinstance(error, SegtrustError):
            raise
        raise _corrupt(path) from error


# Locks of folders


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for the same folder; nothing is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with lock_folder(Path(tempfile.mkdtemp())):
    ...     pass
    """
    if fcntl is None:
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a drive without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
