"""What cases are judged by: overlaps with their truths, or losses that somebody else computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from segtrust.engine.outcomes import Failure, Row
from segtrust.engine.score_table import Scored
from segtrust.errors import WrongContentError
from segtrust.io.losses import Losses, as_loss, is_dice, read_losses
from segtrust.io.structures import LabelScheme
from segtrust.io.tables import Table

__all__ = ["DICE", "METRICS", "Judge", "loss_name", "refuse_doubles", "refuse_text", "with_losses"]

DICE = "dice"
METRICS = (DICE, "iou")
"""Columns of a score table that are better the higher they are: the loss is one minus them."""
_ABOUT = "loss"


@dataclass(frozen=True)
class Judge:
    """Gives each row its loss.

    Attributes
    ----------
    column
        Where the loss comes from: a column of the rows, or of the file that ``given`` was read from.
    given
        Losses from elsewhere, or ``None``.
    source
        The file that they are in.

    Examples
    --------
    >>> Judge("iou").judged([{"case": "a", "structure": "organ", "iou": 0.75}])[0]["loss"]
    0.25
    """

    column: str = DICE
    given: Losses | None = None
    source: str = ""

    @classmethod
    def of_file(cls, path: Path, column: str | None, scheme: LabelScheme | None) -> Self:
        """Judge by the losses of a file."""
        name, losses = read_losses(path, column, scheme)
        return cls(name, losses, str(path))

    @property
    def about(self) -> dict[str, str]:
        """What a table of such rows says of itself."""
        return {
            _ABOUT: self.column
            if is_dice(self.column) or not self.source
            else f"{self.column} of {self.source}"
        }

    def judged(self, rows: Sequence[Row]) -> list[Row]:
        """Give the rows with a loss; ``None`` where there is none."""
        return [{**row, "loss": self._loss(row)} for row in rows]

    def _loss(self, row: Mapping[str, Any]) -> float | None:
        if self.given is None:
            return as_loss(row.get(self.column), self.column)
        return self.given.get((row["case"], row["structure"]), self.given.get((row["case"], "")))

    def lost(self, rows: Sequence[Row], told: Sequence[Failure]) -> list[Failure]:
        """Say which rows have no loss, of cases of which nothing has been said yet."""
        known = {failure.case for failure in told}
        where = f" in {self.source}" if self.source else ""
        return [
            Failure(
                row["case"], row["file"], "NoLoss", f"expected its loss ({row['structure']}){where}, got none"
            )
            for row in rows
            if row["loss"] is None and row["case"] not in known
        ]


def with_losses(scored: Scored, judge: Judge) -> Scored:
    """List cases without a loss among those that failed, and leave out their rows."""
    lost = judge.lost(scored.rows, scored.failures)
    rows = tuple(row for row in scored.rows if row["loss"] is not None)
    return replace(scored, rows=rows, failures=(*scored.failures, *lost))


def loss_name(table: Table, column: str) -> str | None:
    """Say what a loss is one minus, as far as a table tells: ``"dice"``; ``None`` where it is not known."""
    if column in table.columns and column != "loss":
        return DICE if is_dice(column) else column
    told = table.about.get(_ABOUT)
    return str(told) if told is not None else DICE if "loss" not in table.columns else None


def refuse_doubles(table: Table) -> None:
    """Refuse a table in which a case comes twice: it would count twice."""
    names = Counter(
        tuple(str(row.get(name) or "") for name in ("set", "case", "structure")) for row in table.rows
    )
    (often, times), *_ = [*names.most_common(1), (("",), 0)]
    if times > 1:
        named = " ".join(part for part in often if part)
        raise WrongContentError(f"{table.source}: expected one row for each case, got {times} of {named!r}.")


def refuse_text(table: Table, columns: Sequence[str]) -> None:
    """Refuse text where numbers are needed, and infinite numbers."""
    for name in columns:
        for row in table.rows:
            value = row.get(name)
            if isinstance(value, str) or value in (float("inf"), float("-inf")):
                raise WrongContentError(
                    f"{table.source}: expected numbers in the column {name!r}, got {value!r} for the case "
                    f"{row.get('case')!r}."
                )
