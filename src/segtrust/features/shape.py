"""Shape features of a mask, from its surface, its diameters and the second moments of its pixels.

**Surface.** The surface is made of triangles by marching cubes; in 2-D the outline is made by marching
squares. Vertices lie halfway between a pixel inside and a neighbour outside the mask, so there are only 256
different cubes, and each contributes a fixed area and volume. The tables of these contributions follow from
geometry:

* On each face of the cube the outline runs between the edges that it crosses. Where two opposite corners of a
  face are inside and the other two are outside, it could run in two ways; it separates the corners that are
  on the other side than the corner (1, 1, 0) of the cube. This is the convention of PyRadiomics. It depends
  on the cube and not on the face alone, so the surface is not closed at such faces, and the volume of a
  ragged mask depends slightly on the position of the mask in its array.
* The outlines of the six faces join to loops of three to seven vertices. Each loop is cut into triangles that
  share one vertex: the vertex that makes the area largest or, in a loop of seven, the cuts shortest. No cut
  may lie in a face of the cube, where it would meet the next cube.

**Diameters.** Only vertices of the convex hull can be farthest apart. Of each line of the grid the two ends
remain, of these the hull in each plane, of these the hull in space. The last one is computed by Qhull, whose
error of about 1e-13 is far below the distance of a grid point from a hull to which it does not belong. In
doubled coordinates all vertices are integers.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import entry, plain
from segtrust.features.region import Region


def shape_features(region: Region) -> dict[str, float]:
    """Return the 9 shape features of a 2-D mask or the 14 of a 3-D mask."""
    return _shape_2d(region) if region.ndim == 2 else _shape_3d(region)


def _shape_2d(region: Region) -> dict[str, float]:
    counts, (perimeters, surfaces) = count_squares(region.padded), square_tables()
    perimeter, surface = float(counts @ perimeters), float(counts @ surfaces)
    pixels, (minor, major) = _principal_axes(region)
    return {
        "Elongation": _ratio(minor, major),
        "MajorAxisLength": major,
        "MaximumDiameter": _diameter(largest_distance_in_planes(plane_hulls(line_ends(region.volume)))),
        "MeshSurface": surface,
        "MinorAxisLength": minor,
        "Perimeter": perimeter,
        "PerimeterSurfaceRatio": perimeter / surface,
        "PixelSurface": pixels,
        "Sphericity": 2.0 * math.sqrt(math.pi * surface) / perimeter,
    }


def _shape_3d(region: Region) -> dict[str, float]:
    tables = cube_tables()
    counts, sums = measure_cubes(region.padded, np.array(region.corner), tables.volumes, tables.shifts)
    area, volume = float(counts @ tables.areas), sums / 48.0
    pixels, (least, minor, major) = _principal_axes(region)
    along_x = line_ends(region.padded)
    along_y = line_ends(np.ascontiguousarray(region.padded.swapaxes(1, 2)))
    hulls = plane_hulls(along_x)
    return {
        "Elongation": _ratio(minor, major),
        "Flatness": _ratio(least, major),
        "LeastAxisLength": least,
        "MajorAxisLength": major,
        "Maximum2DDiameterColumn": _diameter_across(along_x),
        "Maximum2DDiameterRow": _diameter_across(along_y),
        "Maximum2DDiameterSlice": _diameter(largest_distance_in_planes(hulls)),
        "Maximum3DDiameter": _diameter(largest_distance(hulls)),
        "MeshVolume": volume,
        "MinorAxisLength": minor,
        "Sphericity": math.cbrt(36.0 * math.pi * volume**2) / area,
        "SurfaceArea": area,
        "SurfaceVolumeRatio": _ratio(area, volume),
        "VoxelVolume": pixels,
    }


def _diameter_across(ends: Any) -> float:
    """Return the largest distance within the planes that the second axis of ``ends`` numbers."""
    planes = np.ascontiguousarray(ends.swapaxes(0, 1))
    return _diameter(largest_distance_in_planes(plane_hulls(planes)))


def _diameter(squared_distance: int) -> float:
    """Return the distance for a squared distance in doubled coordinates."""
    return math.sqrt(squared_distance) / 2.0


def _ratio(numerator: float, denominator: float) -> float:
    """Return the ratio, or 0 where PyRadiomics would divide by 0."""
    return numerator / denominator if denominator else 0.0


def _principal_axes(region: Region) -> tuple[float, Any]:
    """Return the number of pixels and the lengths of the principal axes, shortest first.

    The covariance matrix is computed in Python integers, and its rank from them: with rounding a straight
    line would get a width of about 1e-8.
    """
    n, *sums = map(int, second_moments(region.volume))
    first, products = sums[:3], iter(sums[3:])
    covariance = np.empty((3, 3), object)
    for i in range(3):
        for j in range(i, 3):
            covariance[i, j] = covariance[j, i] = n * next(products) - first[i] * first[j]
    covariance = covariance[-region.ndim :, -region.ndim :]
    eigenvalues = np.linalg.eigvalsh(covariance.astype(np.float64))
    eigenvalues[: region.ndim - _rank(covariance)] = 0.0
    return float(n), (4.0 * np.sqrt(np.maximum(eigenvalues, 0.0) / n**2)).tolist()


def _rank(matrix: Any) -> int:
    """Return the rank of a positive semidefinite matrix of integers, from its principal minors."""
    n = len(matrix)
    if n == 3:
        a, b, c = matrix
        determinant = (
            a[0] * (b[1] * c[2] - b[2] * c[1])
            - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
        )
        if determinant:
            return 3
    minors = [matrix[i, i] * matrix[j, j] - matrix[i, j] * matrix[j, i] for i in range(n) for j in range(i)]
    return 2 if any(minors) else int(any(matrix.diagonal()))


@entry
def second_moments(volume: Any) -> Any:
    """Sum 1, the coordinates and their products over the pixels of a 3-D mask, in exact integers.

    In the order 1, z, y, x, zz, zy, zx, yy, yx, xx.
    """
    sums = np.zeros(10, np.int64)
    for z in range(volume.shape[0]):
        for y in range(volume.shape[1]):
            n, s, q = np.int64(0), np.int64(0), np.int64(0)
            row = volume[z, y]
            for x in range(row.size):
                inside = np.int64(row[x])
                n += inside
                s += inside * x
                q += inside * x * x
            if n:
                terms = (n, n * z, n * y, s, n * z * z, n * z * y, s * z, n * y * y, s * y, q)
                for i in range(10):
                    sums[i] += terms[i]
    return sums


# Surface: marching cubes and squares

_CORNERS = list(product((0, 1), (0, 1), (0, 1)))
"""Corner i of a cube by its bits: 4 for z, 2 for y, 1 for x."""
_DECIDING_CORNER = 6
"""The corner (1, 1, 0)."""
_LONGEST_BY_AREA = 6
"""Vertices of the longest loop whose triangles are chosen by their area."""

Edge = tuple[int, int]
Vector = tuple[int, int, int]
Triangle = tuple[Vector, Vector, Vector]
Loop = list[Vector]


class CubeTables(NamedTuple):
    """Contribution of each of the 256 cubes.

    Attributes
    ----------
    areas
        Area of the surface in the cube.
    volumes
        48 times the signed volume between the surface and the first corner of the cube.
    shifts
        48 times the gain in volume when that corner moves by 1 along each axis.
    """

    areas: Any
    volumes: Any
    shifts: Any


def _face(axis: int, side: int) -> list[int]:
    """Return the corners of a face, counter-clockwise when seen from outside the cube."""
    first, second = (other for other in range(3) if other != axis)
    around = [(0, 0), (1, 0), (1, 1), (0, 1)]
    if (side == 1) == (axis == 1):
        around.reverse()
    weights = (4, 2, 1)
    return [side * weights[axis] + a * weights[first] + b * weights[second] for a, b in around]


_FACES = [_face(axis, side) for axis in range(3) for side in (0, 1)]


def _outline(corners: list[int], inside: list[bool]) -> dict[Edge, Edge]:
    """Return the outline on a face, from edge to edge with the inside on its left.

    Two opposite corners inside are separated.
    """
    edges = [(min(pair), max(pair)) for pair in zip(corners, corners[1:] + corners[:1], strict=True)]
    sections = {}
    for i, corner in enumerate(corners):
        if inside[corner] and not inside[corners[i - 1]]:
            end = i
            while inside[corners[(end + 1) % 4]]:
                end += 1
            sections[edges[i - 1]] = edges[end % 4]
    return sections


def _loops(inside: list[bool]) -> list[Loop]:
    """Join the outlines of the faces to closed loops of vertices in doubled coordinates."""
    sections = {start: end for corners in _FACES for start, end in _outline(corners, inside).items()}
    loops = []
    while sections:
        edges = [next(iter(sections))]
        while edges[-1] in sections:
            edges.append(sections.pop(edges[-1]))
        loops.append([_sum(_CORNERS[a], _CORNERS[b]) for a, b in edges[:-1]])
    return loops


def _sum(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _difference(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: Vector, b: Vector) -> int:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _normal(triangle: Triangle) -> Vector:
    """Return the normal of a triangle, whose length is twice the area."""
    a, b, c = triangle
    return _cross(_difference(b, a), _difference(c, a))


def _area(triangles: list[Triangle]) -> float:
    """Return the area, rounded so that equal areas compare equal."""
    normals = map(_normal, triangles)
    return round(sum(math.sqrt(_dot(normal, normal)) for normal in normals) / 2, 9)


def _fan(loop: Loop) -> list[Triangle]:
    """Cut a loop into triangles that share one vertex, which is chosen as the module docstring says."""

    def in_a_face(a: Vector, b: Vector) -> bool:  # in doubled coordinates the faces are at 0 and 2
        return any(i == j != 1 for i, j in zip(a, b, strict=True))

    def squared_cuts(rotated: Loop) -> int:
        cuts = (_difference(vertex, rotated[0]) for vertex in rotated[2:-1])
        return sum(_dot(cut, cut) for cut in cuts)

    def triangles(rotated: Loop) -> list[Triangle]:
        return [(rotated[0], rotated[i], rotated[i + 1]) for i in range(1, len(rotated) - 1)]

    rotations = [loop[start:] + loop[:start] for start in range(len(loop))]
    allowed = [each for each in rotations if not any(in_a_face(each[0], vertex) for vertex in each[2:-1])]
    if len(loop) > _LONGEST_BY_AREA:
        return triangles(min(allowed, key=squared_cuts))
    return max(map(triangles, allowed), key=_area)


def triangles_of_cube(code: int) -> list[Triangle]:
    """Return the triangles of a cube in doubled coordinates, oriented so that their normals point outwards.

    Bit i of the code tells whether corner i is inside the mask.
    """
    inside = [bool(code >> corner & 1) for corner in range(8)]
    if inside[_DECIDING_CORNER]:
        return [(c, b, a) for a, b, c in triangles_of_cube(255 - code)]
    return [triangle for loop in _loops(inside) for triangle in _fan(loop)]


@cache
def cube_tables() -> CubeTables:
    """Compute the tables of marching cubes; this takes a few milliseconds, once."""
    areas, volumes, shifts = np.zeros(256), np.zeros(256, np.int64), np.zeros((256, 3), np.int64)
    for code in range(256):
        triangles = triangles_of_cube(code)
        normals = [_normal(triangle) for triangle in triangles]
        areas[code] = sum(math.sqrt(_dot(normal, normal)) for normal in normals) / 8.0
        volumes[code] = sum(_dot(a, _cross(b, c)) for a, b, c in triangles)
        shifts[code] = [2 * sum(normal[axis] for normal in normals) for axis in range(3)]
    return CubeTables(areas, volumes, shifts)


@cache
def square_tables() -> tuple[Any, Any]:
    """Return what each of the 16 squares adds to the perimeter and to the surface.

    Corner i of a square is (i // 2, i % 2). Opposite corners are separated.
    """
    perimeters, surfaces = np.zeros(16), np.zeros(16)
    cut = np.sqrt(0.5)
    for code in range(16):
        match code.bit_count(), code in (0b0110, 0b1001):
            case 1, _:
                perimeters[code], surfaces[code] = cut, 1 / 8
            case 2, True:
                perimeters[code], surfaces[code] = 2 * cut, 2 / 8
            case 2, False:
                perimeters[code], surfaces[code] = 1.0, 1 / 2
            case 3, _:
                perimeters[code], surfaces[code] = cut, 7 / 8
            case 4, _:
                surfaces[code] = 1.0
    return perimeters, surfaces


@entry
def measure_cubes(padded: Any, origin: Any, volumes: Any, shifts: Any) -> Any:
    """Count the cubes of a padded 3-D mask that the surface crosses, and sum 48 times the volume.

    ``origin`` is the index of the mask's first pixel in the array in whose frame the volume is computed.
    """
    counts, volume = np.zeros(256, np.int64), np.int64(0)
    for z in range(padded.shape[0] - 1):
        for y in range(padded.shape[1] - 1):
            column = np.int64(0)  # the border
            for x in range(padded.shape[2] - 1):
                code = column
                column = (
                    np.int64(padded[z, y, x + 1])
                    | np.int64(padded[z, y + 1, x + 1]) << 2
                    | np.int64(padded[z + 1, y, x + 1]) << 4
                    | np.int64(padded[z + 1, y + 1, x + 1]) << 6
                )
                code |= column << 1
                if code in (0, 255):
                    continue
                counts[code] += 1
                volume += volumes[code] + shifts[code, 0] * (origin[0] + z)
                volume += shifts[code, 1] * (origin[1] + y) + shifts[code, 2] * (origin[2] + x)
    return counts, volume


@entry
def count_squares(padded: Any) -> Any:
    """Count the 16 kinds of squares of a padded 2-D mask."""
    counts = np.zeros(16, np.int64)
    for y in range(padded.shape[0] - 1):
        for x in range(padded.shape[1] - 1):
            code = padded[y, x] | padded[y, x + 1] << 1 | padded[y + 1, x] << 2 | padded[y + 1, x + 1] << 3
            counts[code] += 1
    return counts


# Diameters: vertices that can be farthest apart, in doubled coordinates

_NO_VERTEX = -1


@plain
def _ends(row: Any, next_row: Any, shift: int, ends: Any) -> None:
    """Find the first and the last index at which two rows differ, doubled, plus a shift."""
    first, last = 0, row.size - 1
    while first <= last and row[first] == next_row[first]:
        first += 1
    if first > last:
        ends[0] = _NO_VERTEX
        return
    while row[last] == next_row[last]:
        last -= 1
    ends[0], ends[1] = 2 * first + shift, 2 * last + shift


@entry
def line_ends(padded: Any) -> Any:
    """Find the first and the last vertex on each line along x of a padded 3-D mask.

    Returns an array of planes x lines x 2 in doubled coordinates, -1 where a line has no vertex.
    """
    depth, height, _ = padded.shape
    ends = np.full((2 * depth - 1, 2 * height - 1, 2), _NO_VERTEX)
    for z in range(depth):
        for y in range(height):
            row = padded[z, y]
            _ends(row[:-1], row[1:], 1, ends[2 * z, 2 * y])
            if y + 1 < height:
                _ends(row, padded[z, y + 1], 0, ends[2 * z, 2 * y + 1])
            if z + 1 < depth:
                _ends(row, padded[z + 1, y], 0, ends[2 * z + 1, 2 * y])
    return ends


@plain
def _chain(lines: Any, side: int, sign: int, hull: Any) -> int:
    """Fill ``hull`` with the lines whose ends on one side are corners of the convex hull.

    Returns their number; ``sign`` is 1 for the side of small values.
    """
    n = 0
    for line in range(lines.shape[0]):
        if lines[line, 0] == _NO_VERTEX:
            continue
        while n >= 2:
            a, b = hull[n - 2], hull[n - 1]
            ahead = (b - a) * (lines[line, side] - lines[a, side])
            across = (line - a) * (lines[b, side] - lines[a, side])
            if sign * (ahead - across) > 0:
                break
            n -= 1
        hull[n] = line
        n += 1
    return n


@entry
def plane_hulls(ends: Any) -> Any:
    """Return the corners of the convex hull in each plane as rows of (plane, line, position)."""
    hull = np.empty(ends.shape[1], np.int64)
    points = np.empty((2 * ends.shape[0] * ends.shape[1], 3), np.int64)
    n = 0
    for plane in range(ends.shape[0]):
        for side in range(2):
            for i in range(_chain(ends[plane], side, 1 - 2 * side, hull)):
                points[n, 0], points[n, 1], points[n, 2] = plane, hull[i], ends[plane, hull[i], side]
                n += 1
    return points[:n].copy()


@plain
def _larger_distance(point: Any, other: Any, largest: int) -> int:
    squared = 0
    for axis in range(3):
        squared += (point[axis] - other[axis]) ** 2
    return max(squared, largest)


@entry
def largest_distance_in_planes(points: Any) -> int:
    """Return the largest squared distance of two points in the same plane; points are sorted by plane."""
    largest = 0
    for i in range(points.shape[0]):
        j = i + 1
        while j < points.shape[0] and points[j, 0] == points[i, 0]:
            largest = _larger_distance(points[i], points[j], largest)
            j += 1
    return largest


@entry
def _largest_distance(points: Any) -> int:
    largest = 0
    for i in range(points.shape[0]):
        for j in range(i):
            largest = _larger_distance(points[i], points[j], largest)
    return largest


def largest_distance(points: Any) -> int:
    """Return the largest squared distance of points in space that do not all lie in one plane."""
    from scipy.spatial import ConvexHull  # slow to import

    return int(_largest_distance(points[ConvexHull(points).vertices]))
