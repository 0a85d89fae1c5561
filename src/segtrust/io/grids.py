"""Where the pixels of an array lie in the world."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np

from segtrust.errors import GeometryError

__all__ = ["Grid", "Turning", "check_same_grid", "is_same_grid"]

_TOLERANCE = 0.05
"""Pixels by which two grids may be apart at a corner: headers keep single floats, and quaternions round."""

_TO_RAS = np.diag([-1.0, -1.0, 1.0])
"""From the axes of DICOM and ITK (left, posterior, superior) to those of NIfTI (right, anterior, superior).
"""


@dataclass(frozen=True)
class Turning:
    """How the axes of a volume are exchanged, and which of them are then turned around.

    Examples
    --------
    >>> Turning((0, 2, 1), (2,)).applied(np.array([[[1, 2], [3, 4]]])).tolist()
    [[[3, 1], [4, 2]]]
    """

    order: tuple[int, ...]
    backwards: tuple[int, ...]

    def applied(self, values: Any) -> Any:
        """Turn the last three axes of an array, without copying it."""
        leading = values.ndim - 3
        order = (*range(leading), *(leading + axis for axis in self.order))
        return np.flip(values.transpose(order), tuple(leading + axis for axis in self.backwards))


@dataclass(frozen=True, eq=False)
class Grid:
    """A box of pixels in space.

    Attributes
    ----------
    shape
        Pixels along each axis of the array: (z, y, x) or (y, x).
    affine
        From the index (x, y, z) to millimetres, right, anterior and superior: 4 × 4, as in NIfTI.
    is_oriented
        Whether the file says where in the body the axes lead; some tell distances alone.

    Examples
    --------
    >>> Grid.of_itk((2, 3, 4), spacing=(0.5, 0.5, 3.0)).spacing_mm
    (3.0, 0.5, 0.5)
    """

    shape: tuple[int, ...]
    affine: Any
    is_oriented: bool = True

    @classmethod
    def of_itk(
        cls,
        shape: tuple[int, ...],
        *,
        spacing: Any,
        origin: Any = (0.0, 0.0, 0.0),
        direction: Any = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        is_oriented: bool = True,
    ) -> Grid:
        """Make a grid of what ITK says of an image: for (x, y, z), left, posterior and superior."""
        steps = _TO_RAS @ np.reshape(direction, (3, 3)) @ np.diag(np.asarray(spacing, np.float64))
        return cls(shape, _affine(steps, _TO_RAS @ np.asarray(origin, np.float64)), is_oriented)

    @property
    def spacing_mm(self) -> tuple[float, ...]:
        """Distance of neighbouring pixels along each axis of the array, in millimetres."""
        lengths = np.sqrt((self.affine[:3, :3] ** 2).sum(0))
        return tuple(float(each) for each in lengths[: len(self.shape)][::-1])

    def itk(self) -> dict[str, tuple[float, ...]]:
        """Give spacing, origin and direction as ITK takes them, for (x, y, z)."""
        spacing = np.sqrt((self.affine[:3, :3] ** 2).sum(0))
        direction = _TO_RAS @ (self.affine[:3, :3] / spacing)
        origin = _TO_RAS @ self.affine[:3, 3]
        named = {"spacing": spacing, "origin": origin, "direction": direction.reshape(-1)}
        return {name: tuple(map(float, values)) for name, values in named.items()}

    def distance_to(self, other: Grid) -> float:
        """Largest distance between corners of two grids of one shape, in steps of the first."""
        corners = np.array(list(product(*([0.0, length - 1.0] for length in self.lengths))))
        apart = corners @ (self.affine - other.affine)[:3, :3].T + (self.affine - other.affine)[:3, 3]
        finest = np.sqrt((self.affine[:3, :3] ** 2).sum(0)).min()
        return float(np.sqrt((apart**2).sum(1)).max() / finest)

    def shares_pixels_with(self, other: Grid) -> bool:
        """Tell whether two grids are parts of one: their pixels coincide where they overlap."""
        step = np.linalg.inv(self.affine) @ other.affine
        apart = step[:3, 3] - np.round(step[:3, 3])
        return bool(np.abs(step[:3, :3] - np.eye(3)).max() < 1e-3 and np.abs(apart).max() < _TOLERANCE)

    def turning_to(self, other: Grid) -> Turning:
        """Tell how the axes of an array are exchanged and turned around to run as those of another grid."""
        step = np.linalg.inv(other.affine[:3, :3]) @ self.affine[:3, :3]
        order = max(permutations(range(3)), key=lambda axes: np.abs(step[range(3), axes]).sum())
        along = tuple(bool(step[place, axis] > 0.0) for place, axis in enumerate(order))
        axes = tuple(2 - axis for axis in order[::-1])
        return Turning(axes, tuple(place for place, each in enumerate(along[::-1]) if not each))

    def turned(self, turning: Turning) -> Grid:
        """Give the grid of an array of three axes after it was turned: no pixel has left its place."""
        shape = tuple(self.shape[axis] for axis in turning.order)
        steps = np.column_stack([self.affine[:3, 2 - axis] for axis in turning.order[::-1]])
        origin = self.affine[:3, 3].copy()
        for axis in turning.backwards:
            origin += (shape[axis] - 1) * steps[:, 2 - axis]
            steps[:, 2 - axis] *= -1.0
        return Grid(shape, _affine(steps, origin), self.is_oriented)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Pixels along x, y and z; a slice has one along z."""
        return (*self.shape[::-1], 1, 1)[:3]

    def __str__(self) -> str:
        """Say where it lies, for an error."""
        spacing = "×".join(f"{each:g}" for each in self.spacing_mm)
        origin = ", ".join(f"{each:g}" for each in self.affine[:3, 3])
        axes = "; ".join(" ".join(f"{each:.3g}" for each in row) for row in self.affine[:3, :3])
        return f"spacing {spacing} mm, origin ({origin}), axes [{axes}]"


def _affine(steps: Any, origin: Any) -> Any:
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = steps, origin
    return found


def is_same_grid(grid: Grid, other: Grid) -> bool:
    """Tell whether pixels of one index lie in one place, but for the rounding of headers."""
    return grid.lengths == other.lengths and grid.distance_to(other) <= _TOLERANCE


def check_same_grid(grid: Grid | None, other: Grid | None, names: tuple[str, str]) -> None:
    """Refuse two arrays that lie in different places; where one of the files does not say, nothing is known.

    Examples
    --------
    >>> first = Grid.of_itk((2, 3, 4), spacing=(1.0, 1.0, 1.0))
    >>> check_same_grid(first, Grid.of_itk((2, 3, 4), spacing=(1.0, 1.0, 2.0)), ("a.npz", "b.nii.gz"))
    Traceback (most recent call last):
    ...
    segtrust.errors.GeometryError: b.nii.gz: expected the grid of a.npz, spacing 1×1×1 mm, ...
    """
    if grid is None or other is None or is_same_grid(grid, other):
        return
    is_of_one_shape = grid.lengths == other.lengths
    first, second = (str(each) if is_of_one_shape else f"shape {each.shape}" for each in (grid, other))
    raise GeometryError(
        f"{names[1]}: expected the grid of {names[0]}, {first}, got {second}. "
        "Look whether they belong together, or let one be resampled (--resample)."
    )
