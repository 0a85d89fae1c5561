"""Photographs of the fundus with disc and cup: the files of REFUGE, ORIGA and G1020."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import WrongContentError
from segtrust.tasks.cutting import Box, box_about, cut_to_box
from segtrust.tasks.labels import Labels
from segtrust.tasks.layouts import paired
from segtrust.tasks.task import ID, OOD, Sample

__all__ = ["COLUMNS", "cut_to_disc", "find_fundus", "read_boxes"]

SIDE = 576
"""Of the squares, in pixels of the photograph."""
_SETS = {"REFUGE": ID, "ORIGA": OOD, "G1020": OOD}
_GREYS = Labels({0: 2, 128: 1, 255: 0})
"""Of REFUGE's own masks: cup, disc, background."""
_NUMBERS = Labels({0: 0, 1: 1, 2: 2})
COLUMNS = ("case", "top", "left", "bottom", "right")


def find_fundus(data: Path) -> Iterator[Sample]:
    """Find photographs and masks below the folder of each set, with squares where a table tells them."""
    boxes = read_boxes(data / "boxes.csv") if (data / "boxes.csv").exists() else {}
    for name, part in _SETS.items():
        files = sorted((data / name).rglob("*")) if (data / name).is_dir() else []
        images = [path for path in files if path.suffix.lower() in (".jpg", ".jpeg")]
        for sample in paired(images, [path for path in files if _is_mask(path)]):
            case = f"{name}-{sample.case}"
            greys = any(path.suffix.lower() == ".bmp" for path in sample.masks)
            labels = _GREYS if greys else _NUMBERS
            known = replace(sample, case=case, set=part, labels=labels)
            yield replace(known, box=boxes.get(known.id), split="" if part == ID else "test")


def _is_mask(path: Path) -> bool:
    in_masks = any("mask" in part.lower() for part in path.parent.parts)
    return path.suffix.lower() == ".bmp" or (path.suffix.lower() == ".png" and in_masks)


def cut_to_disc(image: Any, labels: Any, sample: Sample) -> tuple[Any, Any]:
    """Cut a square of 576 pixels about the disc: that of the sample's box, or else of its labels.

    A photograph that is no larger than the square is one already.
    """
    if max(labels.shape) > SIDE:
        about = labels > 0 if sample.box is None else _inside(labels.shape, sample.box)
        image, labels = cut_to_box(image, labels, replace(sample, box=box_about(about, side=SIDE)))
    return half_grey(image), labels


def half_grey(image: Any) -> Any:
    """Blend colours (3, H, W) with their grey, half and half.

    Examples
    --------
    >>> half_grey(np.full((3, 1, 1), 80, np.uint8)).ravel().tolist()
    [80, 80, 80]
    """
    if image.shape[0] == 1:
        return image
    grey = np.tensordot(np.array([0.299, 0.587, 0.114]), image, 1)
    return np.rint(0.5 * image + 0.5 * grey).astype(np.uint8)


def _inside(shape: tuple[int, ...], box: Box) -> Any:
    top, left, bottom, right = box
    mask = np.zeros(shape, bool)
    mask[max(top, 0) : bottom, max(left, 0) : right] = True
    return mask


def read_boxes(path: Path) -> dict[str, Box]:
    """Read a table of squares: case, top, left, bottom and right."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    try:
        return {row["case"]: tuple(int(row[name]) for name in COLUMNS[1:]) for row in rows}  # type: ignore[misc]
    except (KeyError, ValueError, TypeError) as error:
        raise WrongContentError(
            f"{path}: expected whole numbers in the columns {', '.join(COLUMNS)}, got {error}."
        ) from None
