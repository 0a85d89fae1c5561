"""The log of a training: a row an epoch."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust._files import atomic_write
from segtrust.errors import ParameterError

__all__ = ["COLUMNS", "read_log", "write_log"]

COLUMNS: tuple[str, ...] = ("epoch", "rate", "loss", "val_dice", "seconds")
"""Number from 1 on, learning rate, mean training loss, mean Dice of the validation cases, duration."""


def write_log(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write all epochs, numbers to their last digit."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_log(path: Path) -> list[dict[str, float | None]]:
    """Read the epochs of a log; no validation Dice is ``None``."""
    if not path.is_file():
        raise ParameterError(f"{path}: expected the log of a training, got no such file.")
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: float(row[name]) if row[name] else None for name in COLUMNS}
            for row in csv.DictReader(file)
        ]
