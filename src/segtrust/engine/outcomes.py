"""What becomes of a case: rows of a table, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from segtrust._files import check_keys, rebuild
from segtrust.errors import SavedStateError
from segtrust.io import Failure

__all__ = ["Failure", "Outcome", "Row"]

Row = dict[str, Any]
_KEYS = ("case", "rows", "failure")


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    case
        Its name.
    rows
        One a structure; none where it failed.
    failure
        Why it failed; ``None`` where it did not.
    """

    case: str
    rows: tuple[Row, ...] = ()
    failure: Failure | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, ready for JSON."""
        failure = None if self.failure is None else self.failure.row()
        return {"case": self.case, "rows": list(self.rows), "failure": failure}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], source: str = "outcome") -> Outcome:
        """Make again what `to_dict` gave; `SavedStateError` for anything else."""
        values = check_keys({name: saved[name] for name in _KEYS if name in saved}, _KEYS, source)
        case, rows = values["case"], values["rows"]
        if not (
            isinstance(case, str) and isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
        ):
            raise SavedStateError(
                f"{source}: expected the name of a case and its rows, got {case!r}, {rows!r}."
            )
        failure = None if values["failure"] is None else rebuild(Failure, values["failure"], source)
        return cls(case, tuple(rows), failure)
