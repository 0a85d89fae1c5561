"""A run's diary: each outcome is written down when it is there, so that a killed run goes on where it was.

One JSON object a line, with its checksum. The first says what the run was made with, each start adds one with
its process and the folder that names of files are from; a line that was being written when the run was killed
does not count, nor does one that was damaged since, which is told: its case is scored again, if its files are
still there.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from segtrust._files import check_format, plain_values
from segtrust.engine.damage import DamagedLine
from segtrust.engine.locks import take
from segtrust.engine.outcomes import Outcome
from segtrust.engine.sealed_lines import open_line, seal, sealed_lines
from segtrust.errors import OtherSettingsError, ParameterError, SavedStateError
from segtrust.io import Failure, ScoreRow, printable

__all__ = ["FORMAT", "Diary", "Journal", "changes_between", "mark_of", "read_journal"]

_LOG = logging.getLogger(__name__)
FORMAT = "segtrust-journal-2"
_BEGINNING = b'{"format": "segtrust-journal-'
_OWN_BEGINNING = f'{{"format": "{FORMAT}"'.encode()
_SHOWN = 60
"""Characters of a setting that are shown: what an estimator has learned may be long."""


@dataclass(frozen=True, slots=True)
class _Note:
    """Where the outcome of a case is written down, and a mark of the files that it is of."""

    mark: bytes
    at: int
    has_failed: bool


def mark_of(stamp: Any) -> bytes:
    """Give a fingerprint of what tells of a change: a run may last for months, and keeps one a case.

    Examples
    --------
    >>> mark_of(["a.npy", (1, 2)]) == mark_of(["a.npy", [1, 2]])
    True
    """
    return blake2b(json.dumps(stamp, sort_keys=True).encode(), digest_size=16).digest()


@dataclass
class Journal:
    """The diary of a run; of two that are opened at the same time the second is refused.

    Outcomes stay on the disk, and are read again when they are asked for.

    Attributes
    ----------
    path
        Of the file; ``None`` keeps nothing.
    made_with
        All that the outcomes depend on beside the files, as plain values.
    resume
        Whether what is there counts; otherwise it is thrown away.
    command
        Arguments with which the run was begun, for who looks at the diary.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "diary.jsonl"
    >>> with Journal(path, {"threshold": 0.5}) as journal:
    ...     journal.add(Outcome("a", ({"sdc": 0.9},)), stamp=["a.npy", 12])
    >>> with Journal(path, {"threshold": 0.5}) as journal:
    ...     journal.find("a", stamp=["a.npy", 12]).rows
    ({'sdc': 0.9},)
    """

    path: Path | None
    made_with: Mapping[str, Any]
    resume: bool = True
    command: tuple[str, ...] = ()
    _notes: dict[str, _Note] = field(default_factory=dict, init=False)
    _failed_before: dict[str, _Note] = field(default_factory=dict, init=False)
    _damaged: list[DamagedLine] = field(default_factory=list, init=False)
    _file: IO[bytes] | None = field(default=None, init=False)
    _end: int | None = field(default=None, init=False)
    length_before: int = field(default=0, init=False)
    """Bytes that could be gone on with when it was opened."""

    def __enter__(self) -> Journal:
        """Read what is there, and open the file for more."""
        if self.path is not None:
            self._file = self.path.open("a+b")
            try:
                self._begin(self._file)
            except BaseException:
                with suppress(OSError):  # of a disk that is full, which is being told already
                    self._file.close()
                raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the file, with all of it on the disk; what has gone wrong before is not told twice."""
        if self._file is not None:
            with suppress(*[OSError] if kind else []), self._file as file:
                os.fsync(file.fileno())

    def bring_to_disk(self) -> None:
        """Let nothing that is written down be lost with the power: a table that is made of it is not."""
        self.check_place()
        self.sync()

    def sync(self) -> None:
        """Have all of it on the disk, wherever that is by now."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def check_place(self) -> None:
        """Refuse to go on with a file that no longer has its name: nobody would find what is in it.

        Nor would it keep another run out. A run that keeps its outcomes until it writes its table needs no
        such check: it loses nothing with its diary.
        """
        if self._file is None or self.path is None:
            return
        try:
            has_its_name = os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            raise self._is_away("none") from None
        except OSError:
            return  # a drive that cannot tell now
        if not has_its_name:
            raise self._is_away("another file")

    def _is_away(self, found: str) -> SavedStateError:
        return SavedStateError(
            f"{self.path}: expected the diary of this run, got {found}: it was deleted or replaced while the "
            "run went on. Give the same command again: what the table has is taken over, and cases whose "
            "files are there are scored again."
        )

    def add(self, outcome: Outcome, stamp: Any) -> None:
        """Write an outcome down; ``stamp`` tells when its files have changed."""
        if self._file is not None:
            at = self._write({"stamp": stamp, **outcome.to_dict()})
            self._notes[outcome.case] = _Note(mark_of(stamp), at, outcome.failure is not None)

    def find(self, case: str, stamp: Any) -> Outcome | None:
        """Give the outcome of a case whose files are as they were; failures are tried again."""
        note = self._notes.get(case)
        if note is None or note.has_failed or note.mark != mark_of(stamp):
            return None
        with self._opened() as file:
            return self._outcome(file, note)

    def knows(self, case: str, stamp: Any) -> bool:
        """Tell whether a case has been tried with its files as they are; before this run, with success."""
        note = self._notes.get(case)
        return note is not None and note.mark == mark_of(stamp) and case not in self.lost()

    def cases(self) -> set[str]:
        """Give all cases that lines tell of which can be read, also those that failed in earlier runs."""
        return {*self._failed_before, *self._notes}

    def scored(self) -> list[str]:
        """Give the cases that have rows, as far as can be told."""
        lost = self.lost()
        return [case for case, note in self._notes.items() if not note.has_failed and case not in lost]

    def damage(self) -> list[Failure]:
        """Give the lines that cannot be read, but for those whose cases are all told of later."""
        places = self._places()
        return [each.failure(str(self.path)) for each in self._damaged if not each.is_made_good(places)]

    def lost(self) -> set[str]:
        """Give the cases whose last outcome was in a line that cannot be read, as far as that can be told."""
        places = self._places()
        return {case for each in self._damaged for case in each.lost(places)}

    def rows_of(self, case: str) -> tuple[ScoreRow, ...]:
        """Give the rows of a case as they were written down last; none of one that failed or is unknown."""
        note = self._notes.get(case)
        if note is None:
            return ()
        with self._opened() as file:
            return self._outcome(file, note).rows

    def _places(self) -> dict[str, int]:
        """Give where the last outcome of each case is, if anybody needs to know."""
        if not self._damaged:
            return {}
        return {case: note.at for case, note in self._all().items()}

    def _all(self) -> dict[str, _Note]:
        """Give the last note of each case, also where it failed in an earlier run and has not come since."""
        return self._failed_before | self._notes

    def rows(self) -> Iterator[ScoreRow]:
        """Give the rows of all cases in the order in which they came, also of files that are gone.

        Those of a case whose last outcome is lost are out of date, and left out.
        """
        with self._opened() as file:
            for case in self.scored():
                yield from self._outcome(file, self._notes[case]).rows

    def failures(self) -> list[Failure]:
        """Give what has failed and not gone well since, also in earlier runs: its file may be gone by now."""
        with self._opened() as file:
            found = [self._outcome(file, note).failure for note in self._all().values() if note.has_failed]
        return [each for each in found if each is not None]

    def counts(self) -> tuple[int, int]:
        """Give how many cases have rows, and how many have failed."""
        notes = self._all().values()
        failed = sum(note.has_failed for note in notes)
        return len(notes) - failed, failed

    @property
    def size(self) -> int:
        """How many bytes have been written down; as many as there were when it was opened, at first."""
        return self._end or 0

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Give the file to read from, also after the run."""
        if self._file is not None and not self._file.closed:
            yield self._file
        else:
            assert self.path is not None  # or there would be nothing to read
            try:
                file = self.path.open("rb")
            except FileNotFoundError:
                raise self._is_away("none") from None
            with file:
                yield file

    def _outcome(self, file: IO[bytes], note: _Note) -> Outcome:
        file.seek(note.at)
        values = open_line(file.readline())
        if values:
            return Outcome.from_dict(values, str(self.path))
        raise SavedStateError(
            f"{self.path}: expected what was written down at byte {note.at}, got something else: it was "
            "changed during the run. Begin anew: --no-resume."
        )

    def _begin(self, file: IO[bytes]) -> None:
        if not take(file):
            raise ParameterError(
                f"{self.path}: expected an output that no other run writes, got one of {_owner(file)}. Wait "
                "for its end, or choose another output."
            )
        self._end = None
        whole = self._read(file) if self.resume and _has_rows(file) else 0
        for failure in self.damage():
            _LOG.warning("%s", printable(failure.reason))
        file.truncate(whole)
        self.length_before = whole
        if not whole:
            self._write({"format": FORMAT, "made_with": plain_values(dict(self.made_with), "made_with")})
        here = {"pid": os.getpid(), "host": socket.gethostname()}
        self._write({**here, "folder": str(Path.cwd()), "command": list(self.command)})

    def _write(self, values: Mapping[str, Any]) -> int:
        """Write a line in one piece, and give where."""
        assert self._file is not None  # who writes has opened it
        line = seal(values)
        try:
            at = self._file.seek(0, os.SEEK_END)
            self._check_end(at)
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._end = at + len(line)
        return at

    def _check_end(self, at: int) -> None:
        """Refuse to write where somebody else has: some drives do not tell one machine of another's locks."""
        if self._end not in (None, at):
            raise SavedStateError(
                f"{self.path}: expected a diary that ends where this run has left it, at byte {self._end}, "
                f"got one of {at} bytes: another run writes it too, perhaps on another machine. Stop one of "
                "them, and give the same command again."
            )

    def _read(self, file: IO[bytes]) -> int:
        """Note what went well in the whole lines of the file, and give how many bytes they are."""
        file.seek(0)
        self._check(file.readline())
        file.seek(0)
        whole = 0
        for number, (line, values) in enumerate(sealed_lines(file), 1):
            if "case" in values:
                outcome = Outcome.from_dict(values, str(self.path))
                mark = mark_of(values.get("stamp"))
                self._notes[outcome.case] = _Note(mark, whole, outcome.failure is not None)
            elif _is_damaged(values):
                self._damaged.append(DamagedLine.of(line, number, whole))
            whole += len(line)
        self._failed_before = {case: note for case, note in self._notes.items() if note.has_failed}
        self._notes = {case: note for case, note in self._notes.items() if not note.has_failed}
        return whole

    def _check(self, line: bytes) -> None:
        """Refuse a file of another kind, which would be lost, and settings that are not those of the run."""
        if not line.startswith(_BEGINNING[: len(line)]):
            raise SavedStateError(
                f"{self.path}: expected the diary of a run, got another file. Choose another output."
            )
        if not line.endswith(b"\n"):
            return  # it was being written when the run was killed
        _check_version(line, self.path)
        head = open_line(line)
        if not head:
            raise SavedStateError(
                f"{self.path}, line 1: expected what the run was made with, got a damaged line. Put the "
                "diary back as it was, choose another output, or begin anew: --no-resume."
            )
        changes = changes_between(_settings(head, self.path), plain_values(dict(self.made_with), "made_with"))
        if changes:
            raise OtherSettingsError(
                f"{self.path}: this run was begun with {'; '.join(changes)}. Go on with the same settings, "
                "choose another output, or begin anew: --no-resume."
            )


@dataclass(frozen=True)
class Diary:
    """What the diary of a run, which may still be going on, says.

    Attributes
    ----------
    made_with
        What the run was begun with.
    folder
        From which on the names of its files are; empty where an older release wrote the diary.
    command
        Arguments with which it was begun last.
    outcomes
        Of each case the last one.
    """

    made_with: Mapping[str, Any]
    folder: str
    command: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def read_journal(path: Path) -> Diary:
    """Read the diary of a run without disturbing it; a line that is being written does not count yet.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "diary.jsonl"
    >>> with Journal(path, {"threshold": 0.5}) as journal:
    ...     journal.add(Outcome("a", ({"sdc": 0.9},)), stamp=["a.npy", 12])
    >>> read_journal(path).outcomes[0].rows
    ({'sdc': 0.9},)
    """
    made_with: Mapping[str, Any] = {}
    last, outcomes = {}, {}
    with path.open("rb") as file:
        _check_version(file.readline(), path)
        file.seek(0)
        for _, values in sealed_lines(file):
            if "made_with" in values:
                made_with = _settings(values, path)
            elif "case" in values:
                outcome = Outcome.from_dict(values, str(path))
                outcomes[outcome.case] = outcome
            elif "pid" in values:
                last = values
    begun_in, given = str(last.get("folder", "")), last.get("command")
    command = tuple(map(str, given)) if isinstance(given, list) else ()
    return Diary(made_with, begun_in, command, tuple(outcomes.values()))


def _settings(values: Mapping[str, Any], path: Path | None) -> Mapping[str, Any]:
    """Give what a run was made with, as the first line of its diary says."""
    found = values.get("made_with", {})
    if not isinstance(found, dict):
        raise SavedStateError(f"{path}: expected what the run was made with, by name, got {found!r}.")
    return found


def _check_version(line: bytes, path: Path | None) -> None:
    """Refuse a diary whose first line names another version; what cannot be read names none."""
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(head, dict) and "format" in head:
        check_format(head, FORMAT, str(path), error=SavedStateError)


def _is_damaged(values: Mapping[str, Any]) -> bool:
    """Tell whether a line is none of those that are written."""
    return not any(name in values for name in ("format", "pid", "case"))


def _has_rows(file: IO[bytes]) -> bool:
    """Tell whether a file may hold results: a diary without any may be begun anew, whatever its settings.

    What cannot be read may have been some.
    """
    file.seek(0)
    first = file.readline()
    if not first.startswith(_OWN_BEGINNING[: len(first)]):
        return True  # another file, or one of another version, which is refused
    return any(values.get("rows") or _is_damaged(values) for _, values in sealed_lines(file))


def _owner(file: IO[bytes]) -> str:
    """Name the process that has a diary open, and its machine."""
    file.seek(0)
    starts = [values for _, values in sealed_lines(file) if "pid" in values]
    if not starts:
        return "another process"
    host = starts[-1].get("host")
    return f"the process {starts[-1]['pid']}" + (f" on {host}" if host else "")


def changes_between(kept: Any, asked: Any, name: str = "") -> list[str]:
    """Name the settings that differ, those within settings by both names.

    Examples
    --------
    >>> changes_between({"read": {"key": "p"}, "digest": "all"}, {"read": {"key": "q"}, "digest": "all"})
    ["read.key 'p', not 'q'"]
    """
    if isinstance(kept, Mapping) and isinstance(asked, Mapping):
        return [
            change
            for key in {**kept, **asked}
            for change in changes_between(kept.get(key), asked.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if kept == asked else [f"{name} {_short(kept)}, not {_short(asked)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
