"""The result of one case: rows of a score table, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from segtrust._files import check_keys, rebuild
from segtrust.errors import SavedStateError
from segtrust.io import Failure, ScoreRow

__all__ = ["Outcome"]

_KEYS = ("case", "rows", "failure", "hints", "notes")


@dataclass(frozen=True)
class Outcome:
    """The result of one case.

    Attributes
    ----------
    case
        Name of the case.
    rows
        One row per structure; none if the case failed.
    failure
        Why it failed, or ``None``.
    hints
        What looks unusual about its map, see `segtrust.engine.questions`.
    notes
        What a reader of the results should know about how its files were read.
    """

    case: str
    rows: tuple[ScoreRow, ...] = ()
    failure: Failure | None = None
    hints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        failure = None if self.failure is None else self.failure.row()
        texts = {"hints": list(self.hints), "notes": list(self.notes)}
        return {"case": self.case, "rows": list(self.rows), "failure": failure, **texts}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], source: str = "outcome") -> Outcome:
        """Return the outcome that `to_dict` described; `SavedStateError` for anything else."""
        values = check_keys({name: saved[name] for name in _KEYS if name in saved}, _KEYS, source)
        case, rows = values["case"], values["rows"]
        texts = [values["hints"], values["notes"]]
        if not (
            isinstance(case, str)
            and isinstance(rows, list)
            and all(isinstance(row, dict) for row in rows)
            and all(isinstance(text, list) for text in texts)
        ):
            raise SavedStateError(
                f"{source}: expected the name of a case and its rows, got {case!r}, {rows!r}."
            )
        failure = None if values["failure"] is None else rebuild(Failure, values["failure"], source)
        hints, notes = (tuple(map(str, text)) for text in texts)
        return cls(case, tuple(rows), failure, hints, notes)
