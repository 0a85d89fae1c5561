"""The result of one case: rows of a score table, or the reason why there are none; and what rows imply."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from segtrust._files import check_keys, rebuild
from segtrust.errors import SavedStateError
from segtrust.io import Failure, ScoreRow
from segtrust.risks import Overlap

__all__ = ["Outcome", "overlap_of_row"]

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

    def compact(self) -> Outcome:
        """Return the same outcome with names and texts that many outcomes share kept in memory once.

        Rows that come from another process, or from the log, bring their own names of columns: 3 KiB instead
        of 1.
        """
        rows = ({sys.intern(name): _shared(value) for name, value in row.items()} for row in self.rows)
        return replace(self, rows=tuple(rows))

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


def _shared(value: Any) -> Any:
    return sys.intern(value) if type(value) is str else value


def overlap_of_row(row: Mapping[str, Any]) -> Overlap | None:
    """Return how mask and ground truth overlap, by the Dice and the sizes in a row; ``None`` if it has none.

    Examples
    --------
    >>> overlap_of_row({"dice": 0.5, "k": 3, "shape": "2×4", "truth_ratio": 0.125})
    Overlap(true_positives=1, false_positives=2, false_negatives=0, pixels=8)
    """
    sides = str(row.get("shape") or "").split("×")
    numbers = [row.get(name) for name in ("dice", "k", "truth_ratio")]
    if not all(isinstance(number, int | float) for number in numbers) or not all(map(str.isdecimal, sides)):
        return None
    pixels = math.prod(map(int, sides))
    in_mask, in_truth = int(row["k"]), round(row["truth_ratio"] * pixels)
    both = round(row["dice"] * (in_mask + in_truth) / 2.0)
    return Overlap(both, in_mask - both, in_truth - both, pixels)
