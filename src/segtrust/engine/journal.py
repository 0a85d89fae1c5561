"""A run's diary: each outcome is written down when it is there, so that a killed run goes on where it was.

One JSON object a line. The first says what the run was made with, each start adds one with its process and
the folder that names of files are from; a line that was being written when the run was killed does not count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from segtrust.engine.locks import take
from segtrust.engine.outcomes import Outcome
from segtrust.errors import OtherSettingsError, ParameterError, SavedStateError
from segtrust.saved import check_format, plain

__all__ = ["Diary", "Journal", "read_journal"]

_FORMAT = "segtrust-journal-1"
_BEGINNING = b'{"format": "segtrust-journal-'
_SHOWN = 60
"""Characters of a setting that are shown: what an estimator has learned may be long."""


@dataclass
class Journal:
    """The diary of a run; of two that are opened at the same time the second is refused.

    Attributes
    ----------
    path
        Of the file; ``None`` keeps nothing.
    made_with
        All that the outcomes depend on beside the files, as plain values.
    resume
        Whether what is there counts; otherwise it is thrown away.

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
    _known: dict[str, tuple[Any, Outcome]] = field(default_factory=dict, init=False)
    _file: IO[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Journal:
        """Read what is there, and open the file for more."""
        if self.path is not None:
            self._file = self.path.open("a+b")
            try:
                self._begin(self._file)
            except BaseException:
                self._file.close()
                raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the file, with all of it on the disk; what has gone wrong before is not told twice."""
        if self._file is not None:
            with suppress(*[OSError] if kind else []), self._file as file:
                os.fsync(file.fileno())

    def add(self, outcome: Outcome, stamp: Any) -> None:
        """Write an outcome down; ``stamp`` tells when its files have changed."""
        self._write({"stamp": stamp, **outcome.to_dict()})

    def find(self, case: str, stamp: Any) -> Outcome | None:
        """Give the outcome of a case whose files are as they were; failures are tried again."""
        known, outcome = self._known.get(case, (None, None))
        if outcome is None or outcome.failure is not None or known != plain(stamp, "stamp"):
            return None
        return outcome

    def _begin(self, file: IO[bytes]) -> None:
        if not take(file):
            raise ParameterError(
                f"{self.path}: expected an output that no other run writes, got one of {_owner(file)}. Wait "
                "for its end, or choose another output."
            )
        whole = self._read(file) if self.resume and _has_rows(file) else 0
        file.truncate(whole)
        if not whole:
            self._write({"format": _FORMAT, "made_with": plain(dict(self.made_with), "made_with")})
        self._write({"pid": os.getpid(), "folder": str(Path.cwd())})

    def _write(self, values: Mapping[str, Any]) -> None:
        """Write a line in one piece; no name of a file is too strange for the escapes of JSON."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(values).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def _read(self, file: IO[bytes]) -> int:
        """Take in the whole lines of the file, and give how many bytes they are."""
        file.seek(0)
        self._check(file.readline())
        file.seek(0)
        whole = 0
        for line, values in _lines(file):
            if "case" in values:
                self._known[values["case"]] = values["stamp"], Outcome.from_dict(values)
            whole += len(line)
        return whole

    def _check(self, line: bytes) -> None:
        """Refuse a file of another kind, which would be lost, and settings that are not those of the run."""
        if not line.startswith(_BEGINNING[: len(line)]):
            raise SavedStateError(
                f"{self.path}: expected the diary of a run, got another file. Choose another output."
            )
        try:
            head = json.loads(line)
        except ValueError:
            return  # it was being written when the run was killed
        check_format(head, _FORMAT, str(self.path), error=SavedStateError)
        changes = _changes(head.get("made_with", {}), plain(dict(self.made_with), "made_with"))
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
    outcomes
        Of each case the last one.
    """

    made_with: Mapping[str, Any]
    folder: str
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
    folder, outcomes = "", {}
    with path.open("rb") as file:
        for _, values in _lines(file):
            if "made_with" in values:
                check_format(values, _FORMAT, str(path), error=SavedStateError)
                made_with = values["made_with"]
            elif "case" in values:
                outcomes[values["case"]] = Outcome.from_dict(values)
            else:
                folder = values.get("folder", folder)
    return Diary(made_with, folder, tuple(outcomes.values()))


def _lines(file: IO[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Give the lines up to the first that is not whole, each with what it says."""
    for line in file:
        try:
            values = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            return
        if not isinstance(values, dict):
            return
        yield line, values


def _has_rows(file: IO[bytes]) -> bool:
    """Tell whether a file may hold results: a diary without any may be begun anew, whatever its settings."""
    file.seek(0)
    first = file.readline()
    if not first.startswith(_BEGINNING[: len(first)]):
        return True  # another file, which is refused
    return any(values.get("rows") for _, values in _lines(file))


def _owner(file: IO[bytes]) -> str:
    """Name the process that has a diary open."""
    file.seek(0)
    pids = [values["pid"] for _, values in _lines(file) if "pid" in values]
    return f"the process {pids[-1]}" if pids else "another process"


def _changes(kept: Any, asked: Any, name: str = "") -> list[str]:
    """Name the settings that differ, those within settings by both names."""
    if isinstance(kept, Mapping) and isinstance(asked, Mapping):
        return [
            change
            for key in {**kept, **asked}
            for change in _changes(kept.get(key), asked.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if kept == asked else [f"{name} {_short(kept)}, not {_short(asked)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
