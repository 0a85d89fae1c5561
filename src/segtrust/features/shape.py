"""Shape features: of the mask alone, from its surface, its diameters and the spread of its pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust.features.region import Region
from segtrust.kernels.extents import farthest, farthest_in_planes, line_ends, plane_hulls
from segtrust.kernels.regions import spread_of
from segtrust.kernels.surface import (
    count_squares,
    cube_tables,
    measure_cubes,
    square_tables,
)

__all__ = ["shape_features"]


def shape_features(region: Region) -> dict[str, float]:
    """Give the 9 shape features of a mask in an image, or the 14 in a volume."""
    return _shape_2d(region) if region.ndim == 2 else _shape_3d(region)


def _shape_2d(region: Region) -> dict[str, float]:
    counts, tables = count_squares(region.cells), square_tables()
    perimeter, surface = float(counts @ tables.perimeters), float(counts @ tables.surfaces)
    pixels, (minor, major) = _axes(region)
    return {
        "Elongation": _ratio(minor, major),
        "MajorAxisLength": major,
        "MaximumDiameter": _diameter(farthest_in_planes(plane_hulls(line_ends(region.volume)))),
        "MeshSurface": surface,
        "MinorAxisLength": minor,
        "Perimeter": perimeter,
        "PerimeterSurfaceRatio": perimeter / surface,
        "PixelSurface": pixels,
        "Sphericity": 2.0 * math.sqrt(math.pi * surface) / perimeter,
    }


def _shape_3d(region: Region) -> dict[str, float]:
    tables = cube_tables()
    counts, sums = measure_cubes(region.cells, np.array(region.corner), tables.volumes, tables.shifts)
    area, volume = float(counts @ tables.areas), sums / 48.0
    pixels, (least, minor, major) = _axes(region)
    return {
        "Elongation": _ratio(minor, major),
        "Flatness": _ratio(least, major),
        "LeastAxisLength": least,
        "MajorAxisLength": major,
        **_diameters(region.cells),
        "MeshVolume": volume,
        "MinorAxisLength": minor,
        "Sphericity": math.cbrt(36.0 * math.pi * volume**2) / area,
        "SurfaceArea": area,
        "SurfaceVolumeRatio": _ratio(area, volume),
        "VoxelVolume": pixels,
    }


def _diameters(cells: Any) -> dict[str, float]:
    """Largest distance of two vertices in space and in planes across each axis."""
    along_x = line_ends(cells)
    along_y = line_ends(np.ascontiguousarray(cells.swapaxes(1, 2)))
    hulls = plane_hulls(along_x)
    return {
        "Maximum2DDiameterColumn": _planar(along_x),
        "Maximum2DDiameterRow": _planar(along_y),
        "Maximum2DDiameterSlice": _diameter(farthest_in_planes(hulls)),
        "Maximum3DDiameter": _diameter(farthest(hulls)),
    }


def _planar(ends: Any) -> float:
    """Largest distance in the planes that the second axis of ``ends`` numbers."""
    return _diameter(farthest_in_planes(plane_hulls(np.ascontiguousarray(ends.swapaxes(0, 1)))))


def _diameter(doubled_squared: int) -> float:
    return math.sqrt(doubled_squared) / 2.0


def _ratio(one: float, other: float) -> float:
    """Give the ratio, and 0 where PyRadiomics would divide by 0."""
    return one / other if other else 0.0


def _axes(region: Region) -> tuple[float, Any]:
    """Count the pixels and give the lengths of the principal axes, the shortest first."""
    n, *sums = map(int, spread_of(region.volume))
    first, products = np.array(sums[:3], object), iter(sums[3:])
    matrix = np.empty((3, 3), object)
    for i in range(3):
        for j in range(i, 3):
            matrix[i, j] = matrix[j, i] = n * next(products) - first[i] * first[j]
    variances = _eigenvalues(matrix[-region.ndim :, -region.ndim :]) / n**2
    return float(n), (4.0 * np.sqrt(variances)).tolist()


def _eigenvalues(matrix: Any) -> Any:
    """Eigenvalues of a matrix of whole numbers, ascending; exactly 0 where the matrix is singular.

    The number of zeros is decided in whole numbers: with rounding a straight line would get a width of some
    1e-8.
    """
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    values[: len(matrix) - _rank(matrix)] = 0.0
    return np.maximum(values, 0.0)


def _rank(matrix: Any) -> int:
    """Rank of a positive semidefinite matrix of whole numbers, by its principal minors."""
    n = len(matrix)
    minors = [matrix[i, i] * matrix[j, j] - matrix[i, j] * matrix[j, i] for i in range(n) for j in range(i)]
    if n == 3 and _determinant(matrix):
        return 3
    return 2 if any(minors) else int(any(matrix.diagonal()))


def _determinant(m: Any) -> int:
    a, b, c = m
    return int(
        a[0] * (b[1] * c[2] - b[2] * c[1])
        - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )
