"""The largest distance between two vertices of a mask's surface, without comparing all of them.

A vertex lies halfway between a pixel inside and a neighbour outside; in doubled coordinates it is a whole
number along each axis. Only vertices of the convex hull can be the farthest apart: of each line of the grid
its two ends, of these the hull in each plane, of these the hull in space. The last is found by Qhull, whose
error of about 1e-13 is far below the distance of a point of this grid from a hull that it does not lie in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import entry, plain

__all__ = ["farthest", "farthest_in_planes", "line_ends", "plane_hulls"]

_NONE = -1


@plain
def _ends(one: Any, other: Any, shift: int, ends: Any) -> None:
    """Find the first and the last place at which two rows differ, doubled, plus a shift."""
    first, last = 0, one.size - 1
    while first <= last and one[first] == other[first]:
        first += 1
    if first > last:
        ends[0] = _NONE
        return
    while one[last] == other[last]:
        last -= 1
    ends[0], ends[1] = 2 * first + shift, 2 * last + shift


@entry
def line_ends(cells: Any) -> Any:
    """Find the first and the last vertex on each line along x of a bordered 3-D box.

    Gives planes × lines × 2 in doubled coordinates, -1 where a line has no vertex.
    """
    depth, height, _ = cells.shape
    ends = np.full((2 * depth - 1, 2 * height - 1, 2), _NONE)
    for z in range(depth):
        for y in range(height):
            row = cells[z, y]
            _ends(row[:-1], row[1:], 1, ends[2 * z, 2 * y])
            if y + 1 < height:
                _ends(row, cells[z, y + 1], 0, ends[2 * z, 2 * y + 1])
            if z + 1 < depth:
                _ends(row, cells[z + 1, y], 0, ends[2 * z + 1, 2 * y])
    return ends


@plain
def _chain(lines: Any, side: int, sign: int, hull: Any) -> int:
    """Fill ``hull`` with the lines whose ends on one side are corners of the convex hull; give their number.

    ``sign`` is 1 for the side of small values.
    """
    n = 0
    for line in range(lines.shape[0]):
        if lines[line, 0] == _NONE:
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
    """Give the corners of the convex hull in each plane, as rows of (plane, line, place)."""
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
def _farther(one: Any, other: Any, largest: int) -> int:
    squared = 0
    for axis in range(3):
        squared += (one[axis] - other[axis]) ** 2
    return max(squared, largest)


@entry
def farthest_in_planes(points: Any) -> int:
    """Give the largest squared distance between two points of one plane, of points sorted by plane."""
    largest = 0
    for i in range(points.shape[0]):
        j = i + 1
        while j < points.shape[0] and points[j, 0] == points[i, 0]:
            largest = _farther(points[i], points[j], largest)
            j += 1
    return largest


@entry
def _farthest(points: Any) -> int:
    largest = 0
    for i in range(points.shape[0]):
        for j in range(i):
            largest = _farther(points[i], points[j], largest)
    return largest


def farthest(points: Any) -> int:
    """Give the largest squared distance between points in space that do not lie in one plane."""
    from scipy.spatial import ConvexHull

    return int(_farthest(points[ConvexHull(points).vertices]))
