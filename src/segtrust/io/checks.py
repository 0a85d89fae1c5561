"""What a file says of itself, held against what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.io.grids import Grid

__all__ = ["check_complete", "check_grid", "check_numbers", "check_shape"]


def check_complete(path: Path, wanted: int, there: int) -> None:
    """Refuse a file that holds fewer bytes than its header announces.

    Examples
    --------
    >>> check_complete(Path("a.nii"), 96, 64)
    Traceback (most recent call last):
    ...
    segtrust.errors.DamagedFileError: a.nii: expected 96 bytes by its own header, got 64. The file is ...
    """
    if there < wanted:
        raise DamagedFileError(
            f"{path}: expected {wanted} bytes by its own header, got {there}. The file is truncated: copy it "
            "again."
        )


def check_grid(path: Path, grid: Grid) -> Grid:
    """Refuse a geometry in which pixels have no extent, or no place."""
    steps = grid.affine[:3, :3]
    if not np.isfinite(grid.affine).all() or not np.linalg.det(steps):
        raise DamagedFileError(
            f"{path}: expected a place in space, got {grid}. Save it again with the geometry of its image."
        )
    return grid


def check_shape(path: Path | str, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse a shape that no array can have, also not an empty one; none of this size is made to find out."""
    try:
        np.broadcast_to(np.empty((), dtype), shape)
    except (ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path}: expected the shape of an array, got {shape} ({error}).") from None


def check_numbers(path: Path | str, dtype: Any) -> Any:
    """Refuse colours and complex numbers; give the type back."""
    found = np.dtype(dtype)
    if found.kind not in "biuf":
        raise WrongContentError(
            f"{path}: expected one real number a pixel, got {found}. Save one channel of it."
        )
    return found
