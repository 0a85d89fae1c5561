"""Cells of conformal prediction: the ranked errors of one kind of case, and the intervals made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.vectors import check_count, check_number

__all__ = ["NO_GROUP", "ConformalCell", "DiceIntervals", "margins", "ranked"]

NO_GROUP = ""
"""The group of all cases where there are no groups."""


@dataclass(frozen=True, eq=False)
class DiceIntervals:
    """Where the Dice of each new case lies, at the level that was asked for.

    Attributes
    ----------
    lower, upper
        One a case, in [0, 1].
    predicted
        The Dice that the curve expects.
    trivial
        Which cases got [0, 1] because their cell has too few labelled cases for anything better.
    n
        Labelled cases whose errors were ranked for each case.
    cases_needed
        Labelled cases that a cell must have been given for an answer better than [0, 1].
    """

    lower: Any
    upper: Any
    predicted: Any
    trivial: Any
    n: Any
    cases_needed: int

    def to_dataframe(self, index: Any = None) -> Any:
        """Give a pandas table of one row a case: lower, predicted, upper, trivial and n.

        Parameters
        ----------
        index
            Of its rows: that of the table whose confidences were given, so that both can be joined.
        """
        from segtrust.optional import require

        names = ("lower", "predicted", "upper", "trivial", "n")
        columns = {name: getattr(self, name) for name in names}
        return require("pandas", extra="tables").DataFrame(columns, index=index)


@dataclass(frozen=True)
class ConformalCell:
    """The errors of one kind of case, ranked.

    Attributes
    ----------
    decision
        ``"accepted"``, ``"deferred"``, or ``"all"`` where there is no threshold.
    group
        Empty where there are no groups.
    n
        Cases whose errors were ranked.
    below
        How far the Dice may lie below the curve, for a lower bound; ``None`` where ``n`` is too small.
    below_of_two, above_of_two
        The same on both sides, for an interval.
    """

    decision: str
    group: str
    n: int
    below: float | None
    below_of_two: float | None
    above_of_two: float | None

    def __post_init__(self) -> None:
        """Check what may come from a file."""
        if self.decision not in ("accepted", "deferred", "all"):
            raise ParameterError(f"decision: expected accepted, deferred or all, got {self.decision!r}.")
        if not isinstance(self.group, str):
            raise ParameterError(f"group: expected text, got {self.group!r}.")
        check_count(self.n, "n", least=0)
        for name in ("below", "below_of_two", "above_of_two"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name)


def ranked(errors: Any, level: Fraction) -> float | None:
    """Give the ⌈(n + 1) level⌉-th smallest error, which the next one exceeds with at most 1 - level."""
    rank = math.ceil((errors.size + 1) * level)
    return float(np.partition(errors, rank - 1)[rank - 1]) if rank <= errors.size else None


def margins(cells: Sequence[ConformalCell | None], side: str | None) -> Any:
    """Give one side's margin of each case; NaN where there is none, and no limit for no side."""
    if side is None:
        return np.full(len(cells), math.inf)
    found = [None if cell is None else getattr(cell, side) for cell in cells]
    return np.array([math.nan if margin is None else margin for margin in found])
