"""The surface of a mask as triangles, by marching cubes, and its outline by marching squares.

The vertices lie halfway between a pixel inside and a neighbour outside, so there are only 256 cubes and each
adds a fixed area. The tables are made here from the geometry alone:

* On each face of the cube the outline runs between the crossed edges. Where two opposite corners of a face
  are inside and the other two are not, it could run in two ways; it parts the corners that are on the other
  side than the corner (1, 1, 0) of the cube. This is the convention of PyRadiomics. It depends on the cube
  and not on the face alone, so at such faces the surface is not closed, and the volume of a ragged mask
  depends a little on where the mask lies in its array.
* The outlines of the six faces join to loops of three to seven vertices, and each loop is cut into triangles
  that share one vertex: the vertex for which the area is largest, and in a loop of seven the one for which
  the cuts are shortest. No cut may lie in a face of the cube, where it would meet the next cube.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import entry

__all__ = ["CubeTables", "SquareTables", "count_squares", "cube_tables", "measure_cubes", "square_tables"]

_CORNERS = list(product((0, 1), (0, 1), (0, 1)))
"""Corner i of a cube by its bits: 4 for z, 2 for y, 1 for x."""
_DECIDING = 6
"""The corner (1, 1, 0)."""
_LONGEST_BY_AREA = 6

Edge = tuple[int, int]
Vector = tuple[int, int, int]
Triangle = tuple[Vector, Vector, Vector]
Loop = list[Vector]


class CubeTables(NamedTuple):
    """What each of the 256 cubes adds.

    Attributes
    ----------
    areas
        Area of the surface in the cube.
    volumes
        48 times the signed volume between the surface and the cube's first corner.
    shifts
        48 times what the volume gains when that corner moves by 1 along each axis.
    """

    areas: Any
    volumes: Any
    shifts: Any


class SquareTables(NamedTuple):
    """What each of the 16 squares adds to the perimeter and to the surface."""

    perimeters: Any
    surfaces: Any


def _face(axis: int, side: int) -> list[int]:
    """Corners of a face, counter-clockwise for one who looks at the cube from outside."""
    first, second = (other for other in range(3) if other != axis)
    around = [(0, 0), (1, 0), (1, 1), (0, 1)]
    if (side == 1) == (axis == 1):
        around.reverse()
    weights = (4, 2, 1)
    return [side * weights[axis] + a * weights[first] + b * weights[second] for a, b in around]


_FACES = [_face(axis, side) for axis in range(3) for side in (0, 1)]


def _outline(corners: list[int], inside: list[bool]) -> dict[Edge, Edge]:
    """Outline on one face, from edge to edge, with the inside on its left; it parts the corners inside."""
    edges = [(min(pair), max(pair)) for pair in zip(corners, corners[1:] + corners[:1], strict=True)]
    pieces = {}
    for i, corner in enumerate(corners):
        if inside[corner] and not inside[corners[i - 1]]:
            end = i
            while inside[corners[(end + 1) % 4]]:
                end += 1
            pieces[edges[i - 1]] = edges[end % 4]
    return pieces


def _loops(inside: list[bool]) -> list[Loop]:
    """Join the outlines of the faces to closed loops of vertices in doubled coordinates, in order."""
    pieces = {start: end for corners in _FACES for start, end in _outline(corners, inside).items()}
    loops = []
    while pieces:
        edges = [next(iter(pieces))]
        while edges[-1] in pieces:
            edges.append(pieces.pop(edges[-1]))
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
    """Give the normal, twice as long as the triangle's area."""
    a, b, c = triangle
    return _cross(_difference(b, a), _difference(c, a))


def _area(triangles: list[Triangle]) -> float:
    normals = map(_normal, triangles)
    return round(sum(math.sqrt(_dot(normal, normal)) for normal in normals) / 2, 9)


def _fan(loop: Loop) -> list[Triangle]:
    """Cut a loop into triangles that share one vertex, with the cuts that the head of this file names."""
    turned = [loop[start:] + loop[:start] for start in range(len(loop))]
    good = [each for each in turned if not any(_in_a_face(each[0], other) for other in each[2:-1])]
    if len(loop) > _LONGEST_BY_AREA:
        return _triangles(min(good, key=_cuts))
    return max(map(_triangles, good), key=_area)


def _triangles(loop: Loop) -> list[Triangle]:
    return [(loop[0], loop[i], loop[i + 1]) for i in range(1, len(loop) - 1)]


def _cuts(loop: Loop) -> int:
    """Sum up the squared lengths of the cuts from the first vertex."""
    cuts = (_difference(other, loop[0]) for other in loop[2:-1])
    return sum(_dot(cut, cut) for cut in cuts)


def _in_a_face(a: Vector, b: Vector) -> bool:
    """Tell whether two vertices lie in one face of the cube; doubled, faces are at 0 and 2."""
    return any(one == other != 1 for one, other in zip(a, b, strict=True))


def _triangles_of(code: int) -> list[Triangle]:
    """Triangles of a cube, turned so that their normals point outwards."""
    inside = [bool(code >> corner & 1) for corner in range(8)]
    if inside[_DECIDING]:
        return [(c, b, a) for a, b, c in _triangles_of(255 - code)]
    return [triangle for loop in _loops(inside) for triangle in _fan(loop)]


@cache
def cube_tables() -> CubeTables:
    """Make the tables of marching cubes; takes some milliseconds, once."""
    areas, volumes, shifts = np.zeros(256), np.zeros(256, np.int64), np.zeros((256, 3), np.int64)
    for code in range(256):
        triangles = _triangles_of(code)
        normals = [_normal(triangle) for triangle in triangles]
        areas[code] = sum(math.sqrt(_dot(normal, normal)) for normal in normals) / 8.0
        volumes[code] = sum(_dot(a, _cross(b, c)) for a, b, c in triangles)
        shifts[code] = [2 * sum(normal[axis] for normal in normals) for axis in range(3)]
    return CubeTables(areas, volumes, shifts)


@cache
def square_tables() -> SquareTables:
    """Make the tables of marching squares; corner i is (i // 2, i % 2), opposite corners are parted."""
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
    return SquareTables(perimeters, surfaces)


@entry
def measure_cubes(cells: Any, origin: Any, volumes: Any, shifts: Any) -> Any:
    """Count the cubes of a bordered 3-D box that the surface crosses, and sum up 48 times the volume.

    ``origin`` is where the box begins in the frame in which the volume is taken.
    """
    counts, volume = np.zeros(256, np.int64), np.int64(0)
    for z in range(cells.shape[0] - 1):
        for y in range(cells.shape[1] - 1):
            column = np.int64(0)  # the border
            for x in range(cells.shape[2] - 1):
                code = column
                column = (
                    np.int64(cells[z, y, x + 1])
                    | np.int64(cells[z, y + 1, x + 1]) << 2
                    | np.int64(cells[z + 1, y, x + 1]) << 4
                    | np.int64(cells[z + 1, y + 1, x + 1]) << 6
                )
                code |= column << 1
                if code in (0, 255):
                    continue
                counts[code] += 1
                volume += volumes[code] + shifts[code, 0] * (origin[0] + z)
                volume += shifts[code, 1] * (origin[1] + y) + shifts[code, 2] * (origin[2] + x)
    return counts, volume


@entry
def count_squares(cells: Any) -> Any:
    """Count the 16 kinds of squares of a bordered 2-D box."""
    counts = np.zeros(16, np.int64)
    for y in range(cells.shape[0] - 1):
        for x in range(cells.shape[1] - 1):
            code = cells[y, x] | cells[y, x + 1] << 1 | cells[y + 1, x] << 2 | cells[y + 1, x + 1] << 3
            counts[code] += 1
    return counts
