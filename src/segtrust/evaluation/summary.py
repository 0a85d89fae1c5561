"""What a person reads about an evaluation: one block per set, in words and familiar column names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.confidence import label_of
from segtrust.evaluation.tables import ALL_STRUCTURES, EvaluatedSet
from segtrust.io import Failure, ScoreRow

__all__ = ["Counts", "SetSummary", "compare_mean_confidence", "summarise_evaluated"]

_ESTIMATES_OF_DICE = ("sdc", "idc")
"""Estimators whose mean can be compared with the mean Dice."""
_AGREES = 0.0005
"""Difference up to which means agree to the digits that are shown."""


@dataclass(frozen=True)
class Counts:
    """How many cases were evaluated, and why the others were not.

    Examples
    --------
    >>> str(Counts(62, 100)), str(Counts(162))
    ('62 of 162 evaluated: 100 without ground truth.', '162 of 162 evaluated.')
    """

    evaluated: int
    without_truth: int = 0
    failed: int = 0
    left_out: int = 0
    """Cases with empty ground truth that were left out on request, or of sets with too few cases."""

    @classmethod
    def of(
        cls, sets: Sequence[EvaluatedSet], rows: Sequence[ScoreRow], failures: Sequence[Failure]
    ) -> Counts:
        """Count the cases of the sets, those of rows that are in none of them, and failures by reason."""
        evaluated = {row["case"] for each in sets for row in each.rows}
        scored = {row["case"] for row in rows}
        others = {failure.case: failure for failure in failures if failure.case not in scored}
        bare = sum(each.kind == "NoLoss" or "ground truth" in each.reason for each in others.values())
        return cls(len(evaluated), bare, len(others) - bare, len(scored - evaluated))

    @property
    def total(self) -> int:
        """Number of all cases."""
        return self.evaluated + self.without_truth + self.failed + self.left_out

    @property
    def is_complete(self) -> bool:
        """Whether no case is missing, except those left out on request."""
        return not (self.without_truth or self.failed)

    def __str__(self) -> str:
        """Return the numbers in one line."""
        parts = {
            "without ground truth": self.without_truth,
            "failed": self.failed,
            "left out": self.left_out,
        }
        reasons = ", ".join(f"{number} {what}" for what, number in parts.items() if number)
        return f"{self.evaluated} of {self.total} evaluated{f': {reasons}' if reasons else ''}."


@dataclass(frozen=True)
class SetSummary:
    """What a person reads about one set, or one structure of it.

    Attributes
    ----------
    title
        Name of the set, number of cases and mean loss or Dice.
    lines
        Sentences: mean confidence compared with the mean Dice, and what the table leaves out.
    heads, cells
        A table with one row per confidence.
    """

    title: str
    lines: tuple[str, ...]
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """Return the block as text, with aligned columns."""
        table = [[head.replace("\n", " ") for head in self.heads], *self.cells]
        widths = [max(len(row[place]) for row in table) for place in range(len(self.heads))]
        rows = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table
        )
        return "\n".join([self.title, *self.lines, *(row.rstrip() for row in rows)])


def compare_mean_confidence(sets: Sequence[EvaluatedSet], loss: str) -> list[dict[str, Any]]:
    """Return by set how much the mean SDC (or IDC) exceeds the mean Dice; nothing for other losses."""
    rows = []
    for each in sets if loss == "dice" else ():
        name = next((name for name in _ESTIMATES_OF_DICE if name in each.confidences), None)
        if name is not None:
            confidence, dice = float(np.mean(each.confidences[name])), 1.0 - each.full_risk
            rows.append(
                {
                    "set": each.name,
                    "structure": each.structure,
                    "estimator": name,
                    "mean_confidence": confidence,
                    "mean_dice": dice,
                    "difference": confidence - dice,
                }
            )
    return rows


def summarise_evaluated(
    sets: Sequence[EvaluatedSet], tables: Mapping[str, Sequence[Mapping[str, Any]]], loss: str
) -> list[SetSummary]:
    """Return one block per set and structure.

    Parameters
    ----------
    sets, tables
        The sets, and the tables of `evaluate_sets`.
    loss
        Short name of the loss, such as ``"dice"``.
    """
    structures = {each.structure for each in sets} - {ALL_STRUCTURES}
    means = {(row["set"], row["structure"]): row for row in compare_mean_confidence(sets, loss)}
    return [
        _summarise(each, tables, means.get((each.name, each.structure)), sets[0].name, len(structures) > 1)
        for each in sets
    ]


def _summarise(
    found: EvaluatedSet,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    mean: Mapping[str, Any] | None,
    first: str,
    has_structures: bool,
) -> SetSummary:
    areas, coverages, comparisons = (
        {
            row["against" if name == "comparisons" else "estimator"]: row
            for row in tables[name]
            if (row["set"], row["structure"]) == (found.name, found.structure)
        }
        for name in ("areas", "coverages", "comparisons")
    )
    risk = next((row["target_risk"] for row in coverages.values()), None)
    is_tautology = found.name == first or risk is None  # all cases have the risk of all cases
    reference = next((row["estimator"] for row in comparisons.values()), None)
    columns: dict[str, Callable[[str], str]] = {
        "confidence": label_of,
        "AURC": lambda name: f"{areas[name]['aurc']:.3f}",
        "95 %\ninterval": lambda name: _interval(areas[name]),
        "gap\nclosed": lambda name: _percent(_gap_closed(areas[name])),
    }
    if reference is not None:
        columns[f"AURC −\n{label_of(reference)}'s"] = lambda name: _difference(comparisons.get(name))
    if not is_tautology:
        columns[f"coverage at\nrisk {risk:.3f}"] = lambda name: _coverage(coverages[name])
    cells: dict[str, tuple[str, ...]] = {}
    lines: list[str] = []
    for name in areas:
        values = tuple(column(name) for column in columns.values())
        same = next((other for other, told in cells.items() if told[1:4] == values[1:4]), None)
        if same == "sdc" and name == "idc":
            lines.append("The IDC equals the SDC to the digits shown.")
        else:
            cells[name] = values
    count = f"{found.name}: {len(found.rows)} cases"
    title = f"{count}, {found.structure}" if has_structures else count
    if mean is None:
        title += f", mean loss {found.full_risk:.3f}"
    else:
        title += f", mean Dice {mean['mean_dice']:.3f}"
        lines.insert(0, _describe_means(mean, found.name))
    empty = sum(row.get("k") == 0 for row in found.rows)
    if empty:
        lines.append(f"{empty} of them have an empty mask.")
    if found.left_out:
        lines.append(f"{found.left_out} more have empty ground truth and are left out.")
    return SetSummary(title, tuple(lines), tuple(columns), tuple(cells.values()))


def _describe_means(mean: Mapping[str, Any], name: str) -> str:
    label, difference = label_of(mean["estimator"]), mean["difference"]
    text = f"Mean {label} {mean['mean_confidence']:.3f}:"
    if abs(difference) < _AGREES:
        return f"{text} equal to the mean Dice on {name}."
    return f"{text} {'over' if difference > 0 else 'under'}confident by {abs(difference):.2g} on {name}."


def _interval(row: Mapping[str, Any]) -> str:
    return "–" if row["low"] is None else f"{row['low']:.3f}–{row['high']:.3f}"


def _gap_closed(row: Mapping[str, Any]) -> float | None:
    return None if row["normalised_aurc"] is None else 1.0 - row["normalised_aurc"]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100.0 * value:.0f} %".replace("-", "−")


def _difference(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{-row['difference']:+.3f}, p {row['p_value']:.2g}".replace("-", "−", 1)


def _coverage(row: Mapping[str, Any]) -> str:
    if row["coverage"] is None:
        return "not reached"
    interval = "" if row["low"] is None else f" ({100.0 * row['low']:.0f}–{100.0 * row['high']:.0f})"
    return f"{100.0 * row['coverage']:.1f} %{interval}"
