"""Squares for `optic-cup` from the maps of `optic-disc`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from segtrust._files import atomic_write
from segtrust.io import read_manifest
from segtrust.paper.tasks.cutting import Box, box_about, largest_piece
from segtrust.paper.tasks.fundus_layout import COLUMNS
from segtrust.paper.tasks.preparing import Prepared
from segtrust.paper.tasks.reading import read_picture
from segtrust.paper.tasks.task import Task

__all__ = ["write_boxes"]


def write_boxes(task: Task, prepared: Prepared, out: Path, path: Path) -> int:
    """Write the box of each predicted disc, in pixels of the photograph; give their number.

    Parameters
    ----------
    task, prepared, out
        Of a run whose maps are predicted.
    path
        Of the table, with the columns case, top, left, bottom and right.
    """
    rows = list(_boxes(task, prepared, out))
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([case, *box] for case, box in rows)
    return len(rows)


def _boxes(task: Task, prepared: Prepared, out: Path) -> Iterator[tuple[str, Box]]:
    images = {case.case: case.image for case in prepared.cases}
    for case in read_manifest(out / "predictions" / "manifest.csv").cases:
        mask = np.load(case.probabilities.path) >= task.threshold
        shape = read_picture(Path(images[case.name])).shape[1:]
        yield case.name, _scaled(box_about(largest_piece(mask), times=1.0), mask.shape, shape)


def _scaled(box: Box, shape: tuple[int, ...], original: tuple[int, ...]) -> Box:
    """Give a box in the pixels of the original."""
    factors = [new / old for new, old in zip(original, shape, strict=True)]
    top, left, bottom, right = (round(each * factors[at % 2]) for at, each in enumerate(box))
    return top, left, bottom, right
