"""The loss of a row of a score table: from a column, from the counts in the row, or from a file.

This is the only place that knows how a loss is found; the engine, the report, the desk and the certificates
all ask here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from segtrust._files import read_json
from segtrust.engine.outcomes import overlap_of_row
from segtrust.engine.score_table import ScoreTable
from segtrust.errors import WrongContentError
from segtrust.io import Failure, LabelScheme, ScoreRow, Table, case_of, read_table
from segtrust.maps import EmptyPolicy
from segtrust.risks import RISKS, find_risk
from segtrust.selective import Target

__all__ = [
    "DICE",
    "LOSS",
    "LossSource",
    "as_loss",
    "check_no_text",
    "check_unique_cases",
    "drop_rows_without_loss",
    "loss_column",
    "loss_name",
    "loss_of_row",
    "loss_of_target",
    "name_without_file",
    "no_loss_message",
    "read_losses",
]

DICE = RISKS["dice_risk"].column
LOSS = "loss"
"""The column of the losses in a table that has them, and the key under which it says what they are."""
Losses = Mapping[tuple[str, str], float | None]
"""Losses by case and structure; the structure is empty if the file does not distinguish structures."""
_HIGHER_IS_BETTER = ("nsd", "surface_dice", "accuracy", "precision", "recall", "sensitivity")
"""Metrics of other programs for which higher is better; `RISKS` says it for those that segtrust computes."""


def as_loss(value: Any, column: str) -> float | None:
    """Return the loss for a value in a column: 1 minus a metric for which higher is better, else itself.

    Return ``None`` for NaN, which nnU-Net writes if truth and mask are both empty.

    Examples
    --------
    >>> as_loss(0.75, "Dice"), as_loss(0.75, "hd95"), as_loss(float("nan"), "Dice")
    (0.25, 0.75, None)
    """
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a whole number too large for a float") from None
    if math.isnan(number):
        return None
    risk = find_risk(column)
    if risk is not None:
        return float(risk.loss(number))
    return 1.0 - number if column.lower() in _HIGHER_IS_BETTER else number


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
    counts = overlap_of_row(row)
    if counts is None:
        return None
    # The row tells which rule it was scored with: two empty masks have a Dice of 1 under 'agree' only.
    empty = EmptyPolicy.AGREE if row[DICE] == 1.0 else EmptyPolicy.PAPER
    return float(risk.loss(risk.from_counts(counts, empty)))


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


def no_loss_message(source: str, column: str) -> str:
    """Return the message for a table whose rows do not hold what a loss takes."""
    risk = find_risk(column)
    if risk is None or column == DICE:
        return f"{source}: expected a table with losses ({column}). Score with --truth, or give --losses."
    return (
        f"{source}: expected what {risk.loss_label} takes (the columns dice, k, truth_ratio and shape, or "
        f"{risk.column}), got a table without it. Score the cases again with --truth."
    )


@dataclass(frozen=True)
class LossSource:
    """Where the losses of rows come from.

    Attributes
    ----------
    column
        A risk or a column of the rows, or the column of the file that ``losses`` was read from.
    losses
        Losses from a file, or ``None``.
    file
        That file.

    Examples
    --------
    >>> LossSource("iou").add_to([{"case": "a", "structure": "organ", "iou": 0.75}])[0]["loss"]
    0.25
    """

    column: str = DICE
    losses: Losses | None = None
    file: str = ""

    @classmethod
    def from_file(cls, path: Path, column: str | None, scheme: LabelScheme | None) -> Self:
        """Read the losses of a file."""
        name, losses = read_losses(path, column, scheme)
        return cls(name, losses, str(path))

    @property
    def about(self) -> dict[str, str]:
        """What a table with these losses says about them."""
        risk = find_risk(self.column)
        if risk is not None:
            return {LOSS: risk.column}
        return {LOSS: f"{self.column} of {self.file}" if self.file else self.column}

    def add_to(self, rows: Sequence[ScoreRow]) -> list[ScoreRow]:
        """Return the rows with their loss, which is ``None`` if there is none."""
        return [{**row, LOSS: self._loss(row)} for row in rows]

    def _loss(self, row: Mapping[str, Any]) -> float | None:
        if self.losses is None:
            return loss_of_row(row, self.column)
        return self.losses.get((row["case"], row["structure"]), self.losses.get((row["case"], "")))


def drop_rows_without_loss(scored: ScoreTable, source: LossSource) -> ScoreTable:
    """Return scored cases without the rows that have no loss, which are listed among the failures instead."""
    known = {failure.case for failure in scored.failures}
    where = f" in {source.file}" if source.file else ""
    failures = [
        Failure(
            row["case"], row["file"], "NoLoss", f"expected its loss ({row['structure']}){where}, got none"
        )
        for row in scored.rows
        if row[LOSS] is None and row["case"] not in known
    ]
    rows = tuple(row for row in scored.rows if row[LOSS] is not None)
    return replace(scored, rows=rows, failures=(*scored.failures, *failures))


def check_unique_cases(table: Table) -> None:
    """Raise an error for a table in which a case comes twice: it would count twice."""
    names = Counter(
        tuple(str(row.get(name) or "") for name in ("set", "case", "structure")) for row in table.rows
    )
    for name, count in names.most_common(1):
        if count > 1:
            named = " ".join(part for part in name if part)
            raise WrongContentError(
                f"{table.source}: expected one row for each case, got {count} of {named!r}."
            )


def check_no_text(table: Table, columns: Sequence[str]) -> None:
    """Raise an error for text where numbers are needed, and for infinite numbers."""
    for name in columns:
        for row in table.rows:
            value = row.get(name)
            if isinstance(value, str) or value in (float("inf"), float("-inf")):
                raise WrongContentError(
                    f"{table.source}: expected numbers in the column {name!r}, got {value!r} for the case "
                    f"{row.get('case')!r}."
                )


def read_losses(path: Path, column: str | None, scheme: LabelScheme | None = None) -> tuple[str, Losses]:
    """Read losses that another program computed; return the name of their column, and the losses.

    Parameters
    ----------
    path
        A table with the columns ``case``, perhaps ``structure``, and the loss; or nnU-Net's ``summary.json``.
    column
        The column of the loss (default ``"loss"``), or the metric of ``summary.json`` (default ``"Dice"``).
        The loss is 1 minus the metric if higher is better.
    scheme
        Names of the structures, for the labels of ``summary.json``.
    """
    if path.suffix.lower() == ".json":
        summary = read_json(path, error=WrongContentError)
        if isinstance(summary, Mapping) and "metric_per_case" in summary:
            metric = column or "Dice"
            return metric, _losses_of_summary(summary["metric_per_case"], metric, path, scheme)
    column = column or LOSS
    table = read_table(path)
    structures = table.column("structure") if "structure" in table.columns else [""] * len(table.rows)
    names = [(str(case), str(name)) for case, name in zip(table.column("case"), structures, strict=True)]
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise WrongContentError(
                f"{path}: expected one loss for each case, got {count} of {' '.join(name).strip()!r}."
            )
    values = table.column(column)
    try:
        losses = [as_loss(value, column) for value in values]
    except (TypeError, ValueError) as error:
        raise WrongContentError(f"{path}: expected numbers as {column!r}, got: {error}.") from None
    return column, dict(zip(names, losses, strict=True))


def _losses_of_summary(cases: Any, metric: str, path: Path, scheme: LabelScheme | None) -> Losses:
    named = {} if scheme is None else {values: name for name, values in scheme.labels}
    losses: dict[tuple[str, str], float | None] = {}
    try:
        for case in cases:
            name = case_of(Path(str(case["prediction_file"]).replace("\\", "/")))
            for label, metrics in case["metrics"].items():  # a label such as 1, or a region such as (1, 2, 3)
                values = tuple(int(part) for part in label.strip("()[] ").split(",") if part.strip())
                structure = str(named.get(values, label))
                if (name, structure) in losses:
                    raise ValueError(f"the case {name!r} comes twice")
                losses[name, structure] = as_loss(metrics[metric], metric)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WrongContentError(
            f"{path}: expected nnU-Net's metrics of each case with {metric!r}, got something else: {error!r}."
        ) from None
    return losses
