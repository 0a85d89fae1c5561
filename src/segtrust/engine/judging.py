"""The loss of a row: from a column, from the counts in the row, or from a file; one rule for everything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from segtrust.engine.outcomes import Failure, Row
from segtrust.engine.score_table import Scored
from segtrust.errors import WrongContentError
from segtrust.io.losses import Losses, as_loss, read_losses
from segtrust.io.structures import LabelScheme
from segtrust.io.tables import Table
from segtrust.maps import EmptyPolicy
from segtrust.risks import RISKS, Overlap, find_risk
from segtrust.selective import Target

__all__ = [
    "DICE",
    "LOSS",
    "Judge",
    "loss_column",
    "loss_name",
    "loss_of_row",
    "loss_of_target",
    "no_loss",
    "refuse_doubles",
    "refuse_text",
    "with_losses",
]

DICE = RISKS["dice_risk"].column
LOSS = "loss"
"""The column of the losses in a table that has them, and the key under which it says what they are."""


def loss_of_row(row: Mapping[str, Any], column: str = LOSS) -> float | None:
    """Return the loss of a row; ``None`` if the row does not hold what it takes.

    Parameters
    ----------
    row
        A row of a score table.
    column
        A column, or the name of a risk. A risk without a column is computed from the number of pixels in
        mask and truth, which the Dice and the sizes in the row determine: a table of any release will do.

    Examples
    --------
    >>> row = {"dice": 0.5, "k": 3, "shape": "2×4", "truth_ratio": 0.125}
    >>> loss_of_row(row, "dice"), loss_of_row(row, "hamming"), loss_of_row(row)
    (0.5, 0.25, None)
    """
    risk = find_risk(column)
    name = column if risk is None or column in row else risk.column
    if row.get(name) is not None:
        return as_loss(row[name], name)
    if risk is None or risk.from_counts is None:
        return None
    counts = _counts_of_row(row)
    if counts is None:
        return None
    # The row tells which rule it was scored with: two empty masks have a Dice of 1 under 'agree' only.
    empty = EmptyPolicy.AGREE if row[DICE] == 1.0 else EmptyPolicy.PAPER
    return float(risk.loss(risk.from_counts(counts, empty)))


def _counts_of_row(row: Mapping[str, Any]) -> Overlap | None:
    """Return the numbers of pixels that a row was scored with; ``None`` if it does not say them."""
    sides = str(row.get("shape") or "").split("×")
    numbers = [row.get(name) for name in (DICE, "k", "truth_ratio")]
    if not all(isinstance(each, int | float) for each in numbers) or not all(map(str.isdecimal, sides)):
        return None
    pixels = math.prod(map(int, sides))
    in_mask, in_truth = int(row["k"]), round(row["truth_ratio"] * pixels)
    both = round(row[DICE] * (in_mask + in_truth) / 2.0)
    return Overlap(both, in_mask - both, in_truth - both, pixels)


def loss_column(columns: Collection[str], asked: str = LOSS) -> str:
    """Return which column or risk all rows of a table take their loss from: one for all, never a mixture.

    Examples
    --------
    >>> loss_column(["case", "dice"]), loss_column(["case", "dice", "loss"]), loss_column(["dice"], "f2")
    ('dice', 'loss', 'f2')
    """
    return DICE if asked == LOSS and LOSS not in columns else asked


def loss_name(table: Table, column: str = LOSS) -> str | None:
    """Return what the losses of a table are: the short name of a risk, or a column; ``None`` if unknown."""
    name = loss_column(table.columns, column)
    if name == LOSS:
        if table.about.get(LOSS) is None:
            return None
        name = str(table.about[LOSS])
    risk = find_risk(name)
    return name if risk is None else risk.column


def name_without_file(name: str) -> str:
    """Return the name of a loss without the file that it was read from, which tables state after it.

    Examples
    --------
    >>> name_without_file("hd of losses.csv"), name_without_file("share of missed voxels")
    ('hd', 'share of missed voxels')
    """
    column, _, file = name.rpartition(" of ")
    return column if column and Path(file).suffix else name


def loss_of_target(target: Target, name: str | None) -> str | None:
    """Return the column or risk from which a limit is checked on the rows of a table.

    A limit is never checked with losses of another kind. One that does not name its loss, as in release 0.1,
    is checked if the rows are judged by the Dice or by losses without a name, and else not at all.

    Parameters
    ----------
    target
        The limit.
    name
        What the losses of the table are, see `loss_name`.

    Examples
    --------
    >>> [loss_of_target(Target(0.1, loss="f2"), name) for name in ("f2", "iou")]
    ['loss', 'f2']
    >>> [loss_of_target(Target(0.1), name) for name in ("dice", "iou")]
    ['loss', None]
    """
    wanted = DICE if target.below_dice is not None else target.loss
    if name is None or name_without_file(name) == (wanted or DICE):
        return LOSS
    return wanted or None


def no_loss(source: str, column: str) -> str:
    """Return the message for a table whose rows do not hold what a loss takes."""
    risk = find_risk(column)
    if risk is None or column == DICE:
        return f"{source}: expected a table with losses ({column}). Score with --truth, or give --losses."
    return (
        f"{source}: expected what {risk.loss_label} takes (the columns dice, k, truth_ratio and shape, or "
        f"{risk.column}), got a table without it. Score the cases again with --truth."
    )


@dataclass(frozen=True)
class Judge:
    """Where the losses of rows come from.

    Attributes
    ----------
    column
        A risk or a column of the rows, or the column of the file that ``given`` was read from.
    given
        Losses from a file, or ``None``.
    source
        That file.

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
        """What a table with these losses says about them."""
        risk = find_risk(self.column)
        if risk is not None:
            return {LOSS: risk.column}
        return {LOSS: f"{self.column} of {self.source}" if self.source else self.column}

    def judged(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows with a loss, which is ``None`` if there is none."""
        return [{**row, LOSS: self._loss(row)} for row in rows]

    def _loss(self, row: Mapping[str, Any]) -> float | None:
        if self.given is None:
            return loss_of_row(row, self.column)
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
