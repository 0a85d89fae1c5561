"""Where the pixels of an array lie: grids in space, orientation on the screen, resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._optional import require
from segtrust.errors import GeometryError

__all__ = [
    "AS_STORED",
    "Grid",
    "Orientation",
    "Planes",
    "Resample",
    "TurnedSlice",
    "Turning",
    "check_same_grid",
    "is_same_grid",
    "orientation_of",
    "resample_in_space",
    "resize_linear",
    "resize_nearest",
    "stack_planes",
    "upright_affine",
]

_TOLERANCE = 0.05
"""Pixels by which two grids may differ at a corner: headers store single floats and round quaternions."""
_TO_RAS = np.diag([-1.0, -1.0, 1.0])
"""From the axes of DICOM and ITK (left, posterior, superior) to NIfTI's (right, anterior, superior)."""


class Resample(StrEnum):
    """Which array moves if a map and its ground truth have different sizes or lie on different grids.

    Attributes
    ----------
    TRUTH
        Ground truth and delivered mask are brought to the map by the nearest neighbour.
    MAP
        The map is brought to the ground truth by linear interpolation, a delivered mask by the nearest
        neighbour.
    TRUTH_OPENCV
        Like ``TRUTH``, but without geometry the nearest neighbour is that of OpenCV (the corner of a pixel,
        rounded down, instead of its centre), as in the published evaluation of polyp segmentation.
    """

    TRUTH = "truth"
    MAP = "map"
    TRUTH_OPENCV = "truth-opencv"


@dataclass(frozen=True)
class Turning:
    """How the axes of a volume are permuted, and which of them are then reversed.

    Examples
    --------
    >>> Turning((0, 2, 1), (2,)).applied(np.array([[[1, 2], [3, 4]]])).tolist()
    [[[3, 1], [4, 2]]]
    """

    order: tuple[int, ...]
    backwards: tuple[int, ...]

    def applied(self, values: Any) -> Any:
        """Return the array with its last three axes turned, without copying it."""
        leading = values.ndim - 3
        order = (*range(leading), *(leading + axis for axis in self.order))
        return np.flip(values.transpose(order), tuple(leading + axis for axis in self.backwards))


@dataclass(frozen=True, eq=False)
class Grid:
    """A box of pixels in space.

    Attributes
    ----------
    shape
        Number of pixels along each axis of the array: (z, y, x) or (y, x).
    affine
        From the index (x, y, z) to millimetres, right, anterior and superior: 4 × 4, as in NIfTI.
    is_oriented
        Whether the file says how the axes lie in the body; some files only have distances.

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
        """Return the grid of an image from ITK's values for (x, y, z): left, posterior and superior."""
        steps = _TO_RAS @ np.reshape(direction, (3, 3)) @ np.diag(np.asarray(spacing, np.float64))
        return cls(shape, _affine(steps, _TO_RAS @ np.asarray(origin, np.float64)), is_oriented)

    @property
    def spacing_mm(self) -> tuple[float, ...]:
        """Distance between neighbouring pixels along each axis of the array, in millimetres."""
        return tuple(map(float, self._steps[: len(self.shape)][::-1]))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of pixels along x, y and z; 1 along z for a slice."""
        return (*self.shape[::-1], 1, 1)[:3]

    @property
    def _steps(self) -> Any:
        """Distance between neighbouring pixels along x, y and z."""
        return np.sqrt((self.affine[:3, :3] ** 2).sum(0))

    def itk(self) -> dict[str, tuple[float, ...]]:
        """Return spacing, origin and direction in ITK's convention, for (x, y, z)."""
        direction = _TO_RAS @ (self.affine[:3, :3] / self._steps)
        origin = _TO_RAS @ self.affine[:3, 3]
        named = {"spacing": self._steps, "origin": origin, "direction": direction.reshape(-1)}
        return {name: tuple(map(float, values)) for name, values in named.items()}

    def distance_to(self, other: Grid) -> float:
        """Return the largest distance between corners of two grids of one shape, in pixels of the first."""
        corners = np.array(list(product(*([0.0, length - 1.0] for length in self.lengths))))
        difference = self.affine - other.affine
        distances = corners @ difference[:3, :3].T + difference[:3, 3]
        return float(np.sqrt((distances**2).sum(1)).max() / self._steps.min())

    def shares_pixels_with(self, other: Grid) -> bool:
        """Return whether both grids are parts of one: their pixels coincide where they overlap."""
        step = np.linalg.inv(self.affine) @ other.affine
        offset = step[:3, 3] - np.round(step[:3, 3])
        return bool(np.abs(step[:3, :3] - np.eye(3)).max() < 1e-3 and np.abs(offset).max() < _TOLERANCE)

    def turning_to(self, other: Grid) -> Turning:
        """Return how the axes of an array are permuted and reversed to run like those of another grid."""
        step = np.linalg.inv(other.affine[:3, :3]) @ self.affine[:3, :3]
        order = max(permutations(range(3)), key=lambda axes: np.abs(step[range(3), axes]).sum())
        backwards = [not step[place, axis] > 0.0 for place, axis in enumerate(order)][::-1]
        axes = tuple(2 - axis for axis in order[::-1])
        return Turning(axes, tuple(place for place, is_backwards in enumerate(backwards) if is_backwards))

    def turned(self, turning: Turning) -> Grid:
        """Return the grid of an array of three axes after turning it: every pixel stays where it is."""
        shape = tuple(self.shape[axis] for axis in turning.order)
        steps = np.column_stack([self.affine[:3, 2 - axis] for axis in turning.order[::-1]])
        origin = self.affine[:3, 3].copy()
        for axis in turning.backwards:
            origin += (shape[axis] - 1) * steps[:, 2 - axis]
            steps[:, 2 - axis] *= -1.0
        return Grid(shape, _affine(steps, origin), self.is_oriented)

    def __str__(self) -> str:
        """Return spacing, origin and axes, for an error."""
        spacing = "×".join(f"{step:g}" for step in self.spacing_mm)
        origin = ", ".join(f"{value:g}" for value in self.affine[:3, 3])
        axes = "; ".join(" ".join(f"{value:.3g}" for value in row) for row in self.affine[:3, :3])
        return f"spacing {spacing} mm, origin ({origin}), axes [{axes}]"


def _affine(steps: Any, origin: Any) -> Any:
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = steps, origin
    return affine


def is_same_grid(grid: Grid, other: Grid) -> bool:
    """Return whether pixels of one index lie in one place, apart from the rounding of headers."""
    return grid.lengths == other.lengths and grid.distance_to(other) <= _TOLERANCE


def check_same_grid(grid: Grid | None, other: Grid | None, names: tuple[str, str], remedy: str = "") -> None:
    """Reject two arrays that lie in different places; nothing is checked if one file has no geometry.

    Parameters
    ----------
    grid, other
        The grids.
    names
        Names of both files in the error.
    remedy
        What to do if they belong together nevertheless.

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
    has_one_shape = grid.lengths == other.lengths
    first, second = (str(each) if has_one_shape else f"shape {each.shape}" for each in (grid, other))
    raise GeometryError(
        f"{names[1]}: expected the grid of {names[0]}, {first}, got {second}. Check that both belong to one "
        f"case{f'; if they do, {remedy}' if remedy else ''}."
    )


# Orientation on the screen

_SIDES = ("LR", "PA", "IS")
"""Ends of the axes of a grid: right, anterior, superior."""


@dataclass(frozen=True)
class Orientation:
    """How slices along the first axis of an array are turned for the screen.

    Attributes
    ----------
    is_transposed
        Whether rows become columns, before anything else.
    is_flipped
        Whether the resulting rows run upwards, and whether the columns run to the left.
    letters
        Sides of the body on the left, on the right, at the top and at the bottom; empty if unknown.
    """

    is_transposed: bool = False
    is_flipped: tuple[bool, bool] = (False, False)
    letters: str = ""

    def turned(self, plane: Any) -> Any:
        """Return a slice, (H, W) or (H, W, C), turned for the screen without copying it.

        Examples
        --------
        >>> turned = Orientation(is_transposed=True, is_flipped=(True, False)).turned
        >>> turned(np.array([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]
        """
        upright = plane.swapaxes(0, 1) if self.is_transposed else plane
        return upright[tuple(slice(None, None, -1 if flip else 1) for flip in self.is_flipped)]

    def ordered(self, pair: Any) -> tuple[Any, Any]:
        """Return a property of the array's rows and columns, such as lengths, for those of the screen."""
        rows, columns = pair
        return (columns, rows) if self.is_transposed else (rows, columns)

    def aspect(self, spacing_mm: tuple[float, ...] | None) -> float:
        """Return height divided by width of a pixel on the screen; 1 if the spacing is unknown."""
        if spacing_mm is None:
            return 1.0
        height, width = self.ordered(spacing_mm[-2:])
        return float(height / width)

    def slice_of(self, values: Any, number: int | None) -> Any:
        """Return a slice of a volume, or a picture (``None``); a chunked array is not read yet."""
        if isinstance(values, np.ndarray):
            return self.turned(values if number is None else values[number])
        return TurnedSlice(values, self, number)


AS_STORED = Orientation()
"""Row 0 at the top, column 0 on the left."""


class TurnedSlice:
    """A slice of a chunked array, turned for the screen; only the requested part is read."""

    def __init__(self, values: Any, orientation: Orientation, number: int | None) -> None:
        self._values, self._orientation, self._number = values, orientation, number
        self.dtype = values.dtype
        self.shape = orientation.ordered(values.shape[-2:])
        self.chunks = orientation.ordered(values.chunks[-2:]) if values.chunks else None

    def __getitem__(self, at: tuple[slice, slice]) -> Any:
        """Read contiguous rows and columns of the screen."""
        parts = []
        for part, length, is_flipped in zip(at, self.shape, self._orientation.is_flipped, strict=True):
            start, stop, _ = part.indices(length)
            parts.append(slice(length - stop, length - start) if is_flipped else slice(start, stop))
        rows, columns = self._orientation.ordered(parts)
        number = () if self._number is None else (self._number,)
        return self._orientation.turned(np.asarray(self._values[(*number, rows, columns)]))


def orientation_of(grid: Grid | None) -> Orientation:
    """Return how slices are shown as radiologists see them; as stored if the grid is not oriented.

    The patient's right is on the left of the screen; anterior is at the top of axial slices, superior at the
    top of coronal and sagittal ones, and anterior on the left of sagittal ones. Oblique slices are shown as
    the nearest of these.

    Examples
    --------
    >>> orientation_of(Grid((2, 3, 4), np.eye(4)))  # right, anterior, superior
    Orientation(is_transposed=False, is_flipped=(True, True), letters='RLAP')
    >>> orientation_of(Grid.of_itk((2, 3, 4), spacing=(1.0, 1.0, 1.0)))  # as in DICOM
    Orientation(is_transposed=False, is_flipped=(False, False), letters='RLAP')
    """
    if grid is None or not grid.is_oriented:
        return AS_STORED
    columns, rows, _ = _nearest_axes(grid)
    is_transposed = rows[0] < columns[0]
    (down, down_sign), (across, across_sign) = (columns, rows) if is_transposed else (rows, columns)
    letters = _SIDES[across][::-1] + _SIDES[down][::-1]
    return Orientation(is_transposed, (down_sign > 0, across_sign > 0), letters)


def upright_affine(grid: Grid) -> Any:
    """Return the affine of a grid; that of an oblique one is turned to the nearest axes of the body."""
    affine = np.zeros((4, 4))
    affine[:, 3] = grid.affine[:, 3]
    steps = np.sqrt((grid.affine[:3, :3] ** 2).sum(0))
    for axis, (direction, sign) in enumerate(_nearest_axes(grid)):
        affine[direction, axis] = sign * steps[axis]
    return affine


def _nearest_axes(grid: Grid) -> list[tuple[int, int]]:
    """Return for x, y and z the nearest axis of the body, each taken once, and the sign along it."""
    steps = grid.affine[:3, :3] / np.sqrt((grid.affine[:3, :3] ** 2).sum(0))
    along = max(permutations(range(3)), key=lambda order: sum(abs(steps[order, range(3)])))
    return [(direction, 1 if steps[direction, axis] > 0 else -1) for axis, direction in enumerate(along)]


# Resampling


def resample_in_space(
    values: Any, grid: Grid, target: Grid, *, linear: bool = False, fill: float = 0.0, source: str = ""
) -> Any:
    """Return an array on another grid, by ITK.

    Parameters
    ----------
    values, grid
        The array and its grid.
    target
        The grid of the result.
    linear
        Whether values are interpolated linearly; labels take the nearest neighbour.
    fill
        Value outside the array.
    source
        Name of a file of labels: labels outside the target would be lost, and are an error.
    """
    if source:
        _check_inside(values, grid, target, source)
    sitk = require("SimpleITK", extra="io")
    image, place = _itk_image(sitk, values, grid), _itk_image(sitk, np.zeros(target.shape, np.uint8), target)
    kind = sitk.sitkLinear if linear else sitk.sitkNearestNeighbor
    moved = sitk.Resample(image, place, sitk.Transform(3, sitk.sitkIdentity), kind, fill)
    return sitk.GetArrayFromImage(moved).reshape(target.shape)


def _check_inside(labels: Any, grid: Grid, target: Grid, source: str) -> None:
    """Reject labels that lie outside the target by more than half a pixel."""
    places = np.argwhere(labels.reshape(grid.lengths[::-1]) != 0)[:, ::-1]
    step = np.linalg.inv(target.affine) @ grid.affine
    inside = places @ step[:3, :3].T + step[:3, 3]
    pixel = np.maximum(np.abs(step[:3, :3]).sum(axis=1), 1.0)  # the larger of the two
    margin = 0.5 * pixel + _TOLERANCE
    outside = (inside < -margin) | (inside > np.array(target.lengths) - 1 + margin)
    count = int(np.count_nonzero(outside.any(axis=1)))
    if count:
        raise GeometryError(
            f"{source}: expected labels inside the map, {target}, got {count} of {len(places)} labelled "
            f"pixels outside it; they lie on {grid}. Do both belong to one case?"
        )


def _itk_image(sitk: Any, values: Any, grid: Grid) -> Any:
    """Return an ITK image in space, also of a slice, with a pixel type that ITK has."""
    kind = {"b": "u1", "f": "f4"}.get(values.dtype.kind, values.dtype.newbyteorder("="))
    image = sitk.GetImageFromArray(np.ascontiguousarray(values, kind).reshape(grid.lengths[::-1]))
    for name, value in grid.itk().items():
        getattr(image, f"Set{name.capitalize()}")(value)
    return image


def resize_nearest(values: Any, shape: Sequence[int], *, corner: bool = False) -> Any:
    """Return an array without geometry in another shape, by the nearest pixel.

    Parameters
    ----------
    values
        Array; axes beyond those of ``shape`` stay as they are.
    shape
        New lengths of the first axes.
    corner
        Whether corners of pixels are compared, as OpenCV does, instead of their centres.

    Examples
    --------
    >>> resize_nearest(np.arange(6), [3]).tolist(), resize_nearest(np.arange(6), [3], corner=True).tolist()
    ([1, 3, 5], [0, 2, 4])
    """
    for axis, new in enumerate(shape):
        old = values.shape[axis]
        if new != old:
            pixels = np.arange(new)
            index = (2 * pixels + 1) * old // (2 * new)
            if corner:  # with the rounding of OpenCV
                index = np.minimum((pixels * (1.0 / (new / old))).astype(np.intp), old - 1)
            values = values.take(index, axis)
    return values


def resize_linear(values: Any, shape: Sequence[int]) -> Any:
    """Return an array of floats without geometry in another shape: linear interpolation by pixel centres.

    Examples
    --------
    >>> resize_linear(np.array([0.0, 1.0]), [4]).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    for axis, new in enumerate(shape):
        old = values.shape[axis]
        if new != old:
            at = ((np.arange(new) + 0.5) * (old / new) - 0.5).clip(0, old - 1)
            before = at.astype(np.intp)
            weight = (at - before).astype(values.dtype).reshape(-1, *[1] * (values.ndim - axis - 1))
            low, high = values.take(before, axis), values.take(np.minimum(before + 1, old - 1), axis)
            values = low + (high - low) * weight
    return values


# Planes of DICOM

_FARTHEST_MM = 1e6
_SAME_MM = 1e-3
"""Planes closer to each other than this are one."""
_SKIPPED = range(1, 6)
"""If no step is announced, the smallest distance may be this many steps; smaller steps would fit anything."""


@dataclass(frozen=True)
class Planes:
    """Positions of planes in DICOM's axes: left, posterior and superior, in millimetres.

    Attributes
    ----------
    positions
        First pixel of each plane, n × 3.
    orientation
        Direction along a row of pixels, then along a column: 6 numbers.
    spacing
        Distance between rows, then between columns.
    step
        Distance between neighbouring planes, if the file says it.
    thickness
        Thickness of a plane; the step if there is only one.
    """

    positions: Any
    orientation: Any
    spacing: Any
    step: float | None = None
    thickness: float | None = None


def stack_planes(path: Path, planes: Planes, size: tuple[int, int]) -> tuple[Any, Grid]:
    """Return the number of each plane in the volume, and the grid of the volume; planes may be absent.

    Parameters
    ----------
    path
        Name of the file in errors.
    planes
        Planes in any order; several may lie in one place.
    size
        Number of rows and columns.

    Examples
    --------
    >>> places = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0], [0.0, 0.0, 15.0]])
    >>> planes = Planes(places, orientation=(1, 0, 0, 0, 1, 0), spacing=(0.5, 0.7))
    >>> numbers, grid = stack_planes(Path("a.dcm"), planes, (4, 5))
    >>> numbers.tolist(), grid.shape, grid.spacing_mm
    ([2, 0, 1, 4], (5, 4, 5), (3.0, 0.5, 0.7))
    """
    x, y = np.reshape(np.asarray(planes.orientation, np.float64), (2, 3))
    is_right_angled = all(abs(error) < _TOLERANCE for error in (x @ x - 1.0, y @ y - 1.0, x @ y))
    is_near = (np.abs(planes.positions) < _FARTHEST_MM).all() and max(planes.spacing) < _FARTHEST_MM
    if not (is_right_angled and is_near and min(planes.spacing) > 0.0):
        raise GeometryError(
            f"{path}: expected directions at right angles, pixels of a size above 0, and places in a room, "
            f"got {x.tolist()} and {y.tolist()}, {list(planes.spacing)} mm, and a place "
            f"{np.abs(planes.positions).max():g} mm away. Correct the header."
        )
    normal = np.cross(x, y)
    axes = np.column_stack([x, y, normal / np.sqrt(normal @ normal)])
    places = planes.positions @ axes
    shift = float(np.ptp(places[:, :2], axis=0).max())
    if shift > _TOLERANCE * min(planes.spacing) + _SAME_MM:
        raise GeometryError(
            f"{path}: expected planes that begin above each other, got some that are {shift:g} mm aside, "
            f"with pixels of {min(planes.spacing):g} mm. Resample the image to a box first."
        )
    heights = places[:, 2] - places[:, 2].min()
    numbers, step = _number_planes(path, heights, planes)
    grid = Grid.of_itk(
        (int(numbers.max()) + 1, *size),
        spacing=(planes.spacing[1], planes.spacing[0], step),
        origin=planes.positions[np.argmin(heights)],
        direction=axes.reshape(-1),
    )
    return numbers, grid


def _number_planes(path: Path, heights: Any, planes: Planes) -> tuple[Any, float]:
    """Return the number of each plane and the step: as announced if that fits, else from the distances."""
    order = np.argsort(heights, kind="stable")
    between = np.diff(heights[order], prepend=heights.min())
    distances = between[between > _SAME_MM]
    if not distances.size:
        return np.zeros(len(heights), np.int64), planes.step or planes.thickness or 1.0
    smallest = float(distances.min())
    parts = [planes.step / smallest, 1.0] if planes.step else [1.0 / count for count in _SKIPPED]
    for part in parts:
        allowed = _TOLERANCE if planes.step else _TOLERANCE * part
        numbers = np.empty(len(heights), np.int64)
        numbers[order] = np.cumsum(np.rint(np.where(between > _SAME_MM, between, 0.0) / (smallest * part)))
        step = float(heights.max()) / max(int(numbers.max()), 1)  # small errors of the guess would add up
        if np.abs(heights - numbers * step).max() <= allowed * step:
            return numbers, step
    odd = distances[np.argmax(np.abs(distances / smallest - np.rint(distances / smallest)))]
    announced = f", and {planes.step:g} mm announced" if planes.step else ""
    raise GeometryError(
        f"{path}: expected planes at equal distances, got some {smallest:g} mm and some {odd:g} mm apart"
        f"{announced}. Resample the image to equal steps first."
    )
