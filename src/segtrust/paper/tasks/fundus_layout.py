"""Photographs of the fundus with disc and cup: the files of REFUGE, ORIGA and G1020."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import WrongContentError
from segtrust.paper.tasks.cutting import Box, box_about, cut_to_box
from segtrust.paper.tasks.labels import Labels
from segtrust.paper.tasks.layouts import paired
from segtrust.paper.tasks.task import ID, OOD, Sample

__all__ = ["COLUMNS", "cut_to_disc", "find_fundus", "read_boxes"]

SIDE = 576
"""Of the squares, in pixels of the photograph."""
_SETS = {"REFUGE": ID, "ORIGA": OOD, "G1020": OOD}
GREYS = Labels({0: 2, 128: 1, 255: 0})
"""Of REFUGE's own masks: cup, disc, background."""
NUMBERS = Labels({0: 0, 1: 1, 2: 2})
"""Of the masks of the others: background, disc, cup."""
_COPIES = re.compile(r".*_(cropped|square)|nerveremoved.*", re.IGNORECASE)
"""Folders of the same photographs cut out, made square, or painted over."""
COLUMNS = ("case", "top", "left", "bottom", "right")


def find_fundus(data: Path) -> Iterator[Sample]:
    """Find photographs and masks below the folder of each set, with squares where a table tells them."""
    table = data / "boxes.csv"
    boxes = read_boxes(table) if table.exists() else None
    for name, part in _SETS.items():
        files = _files_below(data / name)
        images = [path for path in files if path.suffix.lower() in (".jpg", ".jpeg")]
        masks = [path for path in files if _is_mask(path.relative_to(data))]
        for sample in paired(images, masks):
            greys = any(path.suffix.lower() == ".bmp" for path in sample.masks)
            labels = GREYS if greys else NUMBERS
            split = "" if part == ID else "test"
            yield _with_box(
                replace(sample, case=f"{name}-{sample.case}", set=part, labels=labels, split=split),
                boxes,
                table,
            )


def _with_box(sample: Sample, boxes: Mapping[str, Box] | None, table: Path) -> Sample:
    """Give the square of a case; where there is a table that does not tell, that is said."""
    if boxes is None:
        return sample
    said = f"expected its square in {table}, got no row of this case. Add it, or remove the table."
    return replace(
        sample, box=boxes.get(sample.id), lacks=sample.lacks or ("" if sample.id in boxes else said)
    )


def _files_below(folder: Path) -> list[Path]:
    """Give all files at any depth, but for hidden ones and copies that were cut out or made square."""
    if not folder.is_dir():
        return []
    inside = ((path, path.relative_to(folder).parts) for path in sorted(folder.rglob("*")))
    return [
        path
        for path, parts in inside
        if not any(part.startswith(".") or _COPIES.fullmatch(part) for part in parts) and path.is_file()
    ]


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
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        return {row["case"]: tuple(int(row[name]) for name in COLUMNS[1:]) for row in rows}  # type: ignore[misc]
    except (KeyError, ValueError, TypeError) as error:
        raise WrongContentError(
            f"{path}: expected whole numbers in the columns {', '.join(COLUMNS)}, got {error}."
        ) from None
