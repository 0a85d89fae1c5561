"""Squares about a structure, cut out of pictures: the disc, in which a cup is looked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.paper.tasks.task import Sample

__all__ = ["Box", "box_about", "cut_to_box", "largest_piece"]

Box = tuple[int, int, int, int]
"""Top, left, bottom and right in pixels; the last two are the first outside."""


def largest_piece(mask: Any) -> Any:
    """Give the largest connected piece of a mask: a stray pixel elsewhere must not move a box."""
    from scipy.ndimage import label

    labelled: Any = label(mask)
    pieces, number = labelled
    if number < 2:
        return mask
    return pieces == 1 + int(np.argmax(np.bincount(pieces.ravel())[1:]))


def box_about(mask: Any, *, side: int = 0, times: float = 0.0) -> Box:
    """Give the square about a mask: of a side in pixels, or of a multiple of the mask's own.

    It lies about the middle of what the mask extends over, and may reach beyond the picture. The square of an
    empty mask is in the middle of the picture, and as large as it, or of the side.

    Examples
    --------
    >>> mask = np.zeros((10, 10), bool)
    >>> mask[2:6, 4:6] = True
    >>> box_about(mask, times=2.0)
    (0, 1, 8, 9)
    """
    ends = []
    for axis in (0, 1):
        found = np.flatnonzero(mask.any(1 - axis))
        ends.append((int(found[0]), int(found[-1]) + 1) if len(found) else (0, mask.shape[axis]))
    longest = max(high - low for low, high in ends)
    length = side or round(times * longest if mask.any() else longest)
    top, left = (round((low + high - length) / 2) for low, high in ends)
    return top, left, top + length, left + length


def cut_to_box(image: Any, labels: Any, sample: Sample) -> tuple[Any, Any]:
    """Cut image and labels to the box of a sample, if it has one; beyond the picture pixels are 0."""
    if sample.box is None:
        return image, labels
    return _cut(image, sample.box), _cut(labels[None], sample.box)[0]


def _cut(image: Any, box: Box) -> Any:
    top, left, bottom, right = box
    height, width = image.shape[1:]
    found = np.zeros((image.shape[0], bottom - top, right - left), image.dtype)
    rows = slice(max(top, 0), min(bottom, height))
    columns = slice(max(left, 0), min(right, width))
    if rows.start < rows.stop and columns.start < columns.stop:
        inside = image[:, rows, columns]
        down, across = rows.start - top, columns.start - left
        found[:, down : down + inside.shape[1], across : across + inside.shape[2]] = inside
    return found
