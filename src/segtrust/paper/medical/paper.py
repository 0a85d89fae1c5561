"""What the paper reports, as data: Tables 2 to 5, and the mean losses that its authors printed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["PaperValue", "paper_value", "paper_values"]

_FILE = "paper_values.csv"
Key = tuple[str, str, str, str, float | None]


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper.

    Attributes
    ----------
    value
        ``None`` where the paper has a dash: the risk is not reached; and where it is no number but a size.
    std
        Over splits, where there are any.
    digits
        As printed, which says how many there are. Of volumes of several sizes the smallest and the largest.
    """

    value: float | None
    std: float | None
    digits: str


@cache
def paper_values() -> Mapping[Key, PaperValue]:
    """Give all of them by quantity, task, set, estimator and share of the cases that are tuned on.

    Examples
    --------
    >>> paper_values()["aurc", "polyp", "OOD", "sdc", None].value
    0.076
    """
    text = files("segtrust.paper.medical").joinpath(_FILE).read_text(encoding="utf-8")
    return {_key(row): _value(row) for row in csv.DictReader(text.splitlines())}


def paper_value(
    quantity: str, task: str, tested: str, estimator: str = "", share: float | None = None
) -> PaperValue | None:
    """Give a number of the paper; ``None`` where it has none."""
    return paper_values().get((quantity, task, tested, estimator, share))


def _key(row: Mapping[str, Any]) -> Key:
    share = float(row["share"]) if row["share"] else None
    return row["quantity"], row["task"], row["set"].upper(), row["estimator"], share


def _value(row: Mapping[str, Any]) -> PaperValue:
    return PaperValue(_number(row["value"]), _number(row["std"]), row["value"])


def _number(text: str) -> float | None:
    return float(text) if text and "×" not in text else None
