"""Which way up the slices of a volume are shown, by where it lies in the body."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from segtrust.io.grids import Grid

__all__ = ["AS_STORED", "Orientation", "TurnedSlice", "orientation_of", "upright_affine"]

_SIDES = ("LR", "PA", "IS")
"""Where the directions of a grid come from and lead to: right, anterior, superior."""


@dataclass(frozen=True)
class Orientation:
    """How slices along the first axis of an array are turned for the screen.

    Attributes
    ----------
    is_transposed
        Whether rows become columns, before anything else.
    is_flipped
        Whether the rows that are then there run upwards, and whether the columns run to the left.
    letters
        The sides of the body that are left, right, on top and at the bottom; empty where nothing tells.
    """

    is_transposed: bool = False
    is_flipped: tuple[bool, bool] = (False, False)
    letters: str = ""

    def turned(self, plane: Any) -> Any:
        """Turn a slice, (H, W) or (H, W, C), without copying it.

        Examples
        --------
        >>> turned = Orientation(is_transposed=True, is_flipped=(True, False)).turned
        >>> turned(np.array([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]
        """
        upright = plane.swapaxes(0, 1) if self.is_transposed else plane
        return upright[tuple(slice(None, None, -1 if each else 1) for each in self.is_flipped)]

    def ordered(self, pair: Any) -> tuple[Any, Any]:
        """Give what is known of rows and columns of the array, such as lengths, for those of the screen."""
        rows, columns = pair
        return (columns, rows) if self.is_transposed else (rows, columns)

    def aspect(self, spacing_mm: tuple[float, ...] | None) -> float:
        """Give the height of a pixel on the screen for its width; 1 where the spacing is not known."""
        if spacing_mm is None:
            return 1.0
        height, width = self.ordered(spacing_mm[-2:])
        return float(height / width)

    def slice_of(self, values: Any, number: int | None) -> Any:
        """Give a slice of a volume, or a picture (``None``); what is in chunks is not read yet."""
        if isinstance(values, np.ndarray):
            return self.turned(values if number is None else values[number])
        return TurnedSlice(values, self, number)


AS_STORED = Orientation()
"""Row 0 on top, column 0 on the left."""


class TurnedSlice:
    """A slice of an array in chunks, as it is shown; of it only what is asked for is read."""

    def __init__(self, values: Any, orientation: Orientation, number: int | None) -> None:
        self._values, self._orientation, self._number = values, orientation, number
        self.dtype = values.dtype
        self.shape = orientation.ordered(values.shape[-2:])
        self.chunks = orientation.ordered(values.chunks[-2:]) if values.chunks else None

    def __getitem__(self, at: tuple[slice, slice]) -> Any:
        """Read some rows and columns of the screen, without gaps."""
        asked = zip(at, self.shape, self._orientation.is_flipped, strict=True)
        rows, columns = self._orientation.ordered([_mirrored(*each) for each in asked])
        of_volume = () if self._number is None else (self._number,)
        return self._orientation.turned(np.asarray(self._values[(*of_volume, rows, columns)]))


def _mirrored(part: slice, length: int, is_flipped: bool) -> slice:
    start, stop, _ = part.indices(length)
    return slice(length - stop, length - start) if is_flipped else slice(start, stop)


def orientation_of(grid: Grid | None) -> Orientation:
    """Tell how slices are shown as radiologists see them, where a grid lies in the body; else as stored.

    The patient's right is on the left of the screen; anterior is on top of axial slices, superior on top of
    coronal and sagittal ones, and anterior on the left of sagittal ones. Oblique slices are shown as the
    nearest of these.

    Examples
    --------
    >>> orientation_of(Grid((2, 3, 4), np.eye(4)))  # right, anterior, superior
    Orientation(is_transposed=False, is_flipped=(True, True), letters='RLAP')
    >>> orientation_of(Grid.of_itk((2, 3, 4), spacing=(1.0, 1.0, 1.0)))  # as in DICOM
    Orientation(is_transposed=False, is_flipped=(False, False), letters='RLAP')
    """
    if grid is None or not grid.is_oriented:
        return AS_STORED
    columns, rows, _ = _nearest_axes(grid.affine)
    is_transposed = rows[0] < columns[0]
    (down, down_sign), (across, across_sign) = (columns, rows) if is_transposed else (rows, columns)
    letters = _SIDES[across][::-1] + _SIDES[down][::-1]
    return Orientation(is_transposed, (down_sign > 0, across_sign > 0), letters)


def upright_affine(grid: Grid) -> Any:
    """Give the place of a grid, turned to the nearest axes of the body where it is oblique: 4 × 4."""
    found = np.zeros((4, 4))
    found[:, 3] = grid.affine[:, 3]
    steps = np.sqrt((grid.affine[:3, :3] ** 2).sum(0))
    for axis, (direction, sign) in enumerate(_nearest_axes(grid.affine)):
        found[direction, axis] = sign * steps[axis]
    return found


def _nearest_axes(affine: Any) -> list[tuple[int, int]]:
    """Give for x, y and z the direction that is nearest, each taken once, and whether it is along (1) it."""
    steps = affine[:3, :3] / np.sqrt((affine[:3, :3] ** 2).sum(0))
    along = max(permutations(range(3)), key=lambda order: sum(abs(steps[order, range(3)])))
    return [(each, 1 if steps[each, axis] > 0 else -1) for axis, each in enumerate(along)]
