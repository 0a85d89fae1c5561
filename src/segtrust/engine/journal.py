"""A run's diary: each outcome is written down when it is there, so that a killed run goes on where it was.

One JSON object a line. The first says what the run was made with; a line that was being written when the run
was killed does not count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from segtrust.engine.outcomes import Outcome
from segtrust.errors import ParameterError, SavedStateError
from segtrust.saved import check_format, plain

__all__ = ["Journal"]

_FORMAT = "segtrust-journal-1"


@dataclass
class Journal:
    """The diary of a run.

    Attributes
    ----------
    path
        Of the file; ``None`` keeps nothing.
    made_with
        All that the outcomes depend on beside the files, as plain values.

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
    _known: dict[str, tuple[Any, Outcome]] = field(default_factory=dict, init=False)
    _file: TextIO | None = field(default=None, init=False)

    def __enter__(self) -> Journal:
        """Read what is there, and open the file for more."""
        if self.path is None:
            return self
        whole = self._read()
        self._file = self.path.open("a", encoding="utf-8")
        self._file.truncate(whole)
        if not whole:
            self._write({"format": _FORMAT, "made_with": plain(dict(self.made_with), "made_with")})
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, with all of it on the disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def add(self, outcome: Outcome, stamp: Any) -> None:
        """Write an outcome down; ``stamp`` tells when its files have changed."""
        if self._file is not None:
            self._write({"stamp": stamp, **outcome.to_dict()})

    def find(self, case: str, stamp: Any) -> Outcome | None:
        """Give the outcome of a case whose files are as they were; failures are tried again."""
        known, outcome = self._known.get(case, (None, None))
        if outcome is None or outcome.failure is not None or known != plain(stamp, "stamp"):
            return None
        return outcome

    def _write(self, values: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(values, ensure_ascii=False) + "\n")
            self._file.flush()

    def _read(self) -> int:
        """Take in the whole lines of the file, and give how many bytes they are."""
        if self.path is None or not self.path.exists():
            return 0
        whole = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n") or not self._take(line, number):
                    break
                whole += len(line)
        return whole

    def _take(self, line: bytes, number: int) -> bool:
        """Take in one line; tell whether it could be read."""
        try:
            values = json.loads(line)
        except ValueError:
            return False
        if number == 0:
            self._check(values)
        else:
            self._known[values["case"]] = values["stamp"], Outcome.from_dict(values)
        return True

    def _check(self, head: Any) -> None:
        check_format(head, _FORMAT, str(self.path), error=SavedStateError)
        asked, kept = plain(dict(self.made_with), "made_with"), head.get("made_with", {})
        names = [name for name in {**asked, **kept} if asked.get(name) != kept.get(name)]
        if names:
            listed = "; ".join(f"{name} {kept.get(name)!r}, not {asked.get(name)!r}" for name in names)
            raise ParameterError(
                f"{self.path}: this run was begun with {listed}. Go on with the same settings, choose "
                "another output, or begin anew: --no-resume."
            )
