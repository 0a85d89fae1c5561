"""Planes in space that together are a volume: in which order, how far apart, and which are absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import GeometryError
from segtrust.io.grids import Grid

__all__ = ["Planes", "stacked"]

_TOLERANCE = 0.05
"""Part of a step, or of a pixel, by which a plane may miss its place: headers round to a few digits."""
_FARTHEST_MM = 1e6
_SAME_MM = 1e-3
"""Planes nearer to each other than this are one."""
_SKIPPED = range(1, 6)
"""Where no step is given, the smallest distance may be this many steps; a smaller part would fit anything."""


@dataclass(frozen=True)
class Planes:
    """Where planes lie, as DICOM says it: left, posterior and superior, in millimetres.

    Attributes
    ----------
    positions
        Of the first pixel of each plane, n × 3.
    orientation
        Direction along a row of pixels, then along a column: 6 numbers.
    spacing
        Distance of the rows, then of the columns.
    step
        Distance of neighbouring planes, where the file says it.
    thickness
        Of a plane; the step of a single one.
    """

    positions: Any
    orientation: Any
    spacing: Any
    step: float | None = None
    thickness: float | None = None


def stacked(path: Path, planes: Planes, size: tuple[int, int]) -> tuple[Any, Grid]:
    """Give the number of each plane in the volume, and the grid of the volume; planes may be absent.

    Parameters
    ----------
    path
        Named in errors.
    planes
        In any order; several may lie in one place.
    size
        Rows and columns.

    Examples
    --------
    >>> places = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0], [0.0, 0.0, 15.0]])
    >>> planes = Planes(places, orientation=(1, 0, 0, 0, 1, 0), spacing=(0.5, 0.7))
    >>> numbers, grid = stacked(Path("a.dcm"), planes, (4, 5))
    >>> numbers.tolist(), grid.shape, grid.spacing_mm
    ([2, 0, 1, 4], (5, 4, 5), (3.0, 0.5, 0.7))
    """
    axes = _axes(path, planes)
    places = planes.positions @ axes
    _check_aligned(path, places[:, :2], planes.spacing)
    heights = places[:, 2] - places[:, 2].min()
    numbers, step = _numbered(path, heights, planes)
    grid = Grid.of_itk(
        (int(numbers.max()) + 1, *size),
        spacing=(planes.spacing[1], planes.spacing[0], step),
        origin=planes.positions[np.argmin(heights)],
        direction=axes.reshape(-1),
    )
    return numbers, grid


def _axes(path: Path, planes: Planes) -> Any:
    """Give the directions of x, y and z as columns, z along the normal of the planes."""
    x, y = np.reshape(np.asarray(planes.orientation, np.float64), (2, 3))
    good = abs(x @ x - 1.0) < _TOLERANCE and abs(y @ y - 1.0) < _TOLERANCE and abs(x @ y) < _TOLERANCE
    near = (np.abs(planes.positions) < _FARTHEST_MM).all() and max(planes.spacing) < _FARTHEST_MM
    if not (good and near and min(planes.spacing) > 0.0):
        raise GeometryError(
            f"{path}: expected directions at right angles, pixels of a size above 0, and places in a room, "
            f"got {x.tolist()} and {y.tolist()}, {list(planes.spacing)} mm, and a place "
            f"{np.abs(planes.positions).max():g} mm away. Correct the header."
        )
    normal = np.cross(x, y)
    return np.column_stack([x, y, normal / np.sqrt(normal @ normal)])


def _check_aligned(path: Path, places: Any, spacing: Any) -> None:
    """Refuse planes that are shifted against each other: they are no box."""
    shift = float(np.ptp(places, axis=0).max())
    if shift > _TOLERANCE * min(spacing) + _SAME_MM:
        raise GeometryError(
            f"{path}: expected planes that begin above each other, got some that are {shift:g} mm aside, "
            f"with pixels of {min(spacing):g} mm. Resample the image to a box first."
        )


def _numbered(path: Path, heights: Any, planes: Planes) -> tuple[Any, float]:
    """Give the number of each plane and the step: as the file says, if they fit, else as they lie."""
    order = np.argsort(heights, kind="stable")
    between = np.diff(heights[order], prepend=heights.min())
    apart = between[between > _SAME_MM]
    if not apart.size:
        return np.zeros(len(heights), np.int64), planes.step or planes.thickness or 1.0
    smallest = float(apart.min())
    parts = [planes.step / smallest, 1.0] if planes.step else [1.0 / count for count in _SKIPPED]
    for part in parts:
        allowed = _TOLERANCE if planes.step else _TOLERANCE * part
        numbers = np.empty(len(heights), np.int64)
        numbers[order] = np.cumsum(np.rint(np.where(between > _SAME_MM, between, 0.0) / (smallest * part)))
        step = float(heights.max()) / max(int(numbers.max()), 1)  # small errors of the guess would add up
        if np.abs(heights - numbers * step).max() <= allowed * step:
            return numbers, step
    raise _uneven(path, apart, planes.step)


def _uneven(path: Path, apart: Any, announced: float | None) -> GeometryError:
    smallest = apart.min()
    odd = apart[np.argmax(np.abs(apart / smallest - np.rint(apart / smallest)))]
    said = f", and {announced:g} mm announced" if announced else ""
    return GeometryError(
        f"{path}: expected planes at equal distances, got some {smallest:g} mm and some {odd:g} mm apart"
        f"{said}. Resample the image to equal steps first."
    )
