"""Marching cubes: where the surface is convex it is the hull of its vertices, everywhere it fits together."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from segtrust.kernels.surface import (
    _triangles_of,
    count_squares,
    cube_tables,
    measure_cubes,
    square_tables,
)
from tests.kernels.test_extents import vertices
from tests.masks import masks

SIDE = 1 << np.arange(8)
NAMED = [pytest.param(mask, id=name) for name, mask in masks(3).items()]
FLAT = [pytest.param(mask, id=name) for name, mask in masks(2).items()]


def measure(mask, origin=(0, 0, 0)):
    """(area, volume) of a mask's surface."""
    tables = cube_tables()
    cells = np.pad(mask.astype(np.uint8), 1)
    counts, volume = measure_cubes(cells, np.array(origin), tables.volumes, tables.shifts)
    return counts @ tables.areas, volume / 48


def brute_triangles(mask):
    """All triangles of a surface, one cube after the other."""
    cells = np.pad(mask, 1)
    for place in np.ndindex(*(side - 1 for side in cells.shape)):
        cube = cells[tuple(slice(i, i + 2) for i in place)].ravel()
        for triangle in _triangles_of(int(cube @ SIDE)):
            yield np.array(triangle) / 2 + place


def box(*sides):
    return np.ones(sides, bool)


@pytest.mark.parametrize("mask", [box(1, 1, 1), box(1, 1, 2), box(2, 3, 4), box(1, 5, 2)])
def test_convex_surfaces_are_hulls(mask):
    hull = ConvexHull(vertices(np.pad(mask, 1)) / 2)
    assert measure(mask) == pytest.approx((hull.area, hull.volume), rel=1e-12)


@pytest.mark.parametrize("mask", NAMED)
def test_sums_are_those_of_the_triangles(mask):
    triangles = np.array(list(brute_triangles(mask))).reshape(-1, 3, 3)
    crossed = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    area = np.linalg.norm(crossed, axis=1).sum() / 2
    volume = np.linalg.det(triangles).sum() / 6
    assert measure(mask) == pytest.approx((area, volume), rel=1e-10, abs=1e-10)


def test_origin_moves_the_frame():
    mask = masks(3)["noise 0.5"]
    origin = np.array([5, 2, 9])
    triangles = np.array(list(brute_triangles(mask))) + origin
    assert measure(mask, origin)[1] == pytest.approx(np.linalg.det(triangles).sum() / 6, rel=1e-9)


def step(*sides):
    """A box that has lost a bar along one of its edges."""
    mask = box(*sides)
    mask[0, 0] = False
    return mask


@pytest.mark.parametrize("mask", [box(1, 1, 1), box(4, 3, 5), step(4, 3, 5), step(2, 2, 1)])
def test_smooth_surfaces_are_closed(mask):
    """Each side of a triangle belongs to one other, which runs through it the other way."""
    sides = set()
    for triangle in brute_triangles(mask):
        corners = [tuple(corner) for corner in triangle]
        for side in zip(corners, corners[1:] + corners[:1], strict=True):
            assert side not in sides
            sides.add(side)
    assert {(end, start) for start, end in sides} == sides


def test_complement_has_the_same_surface_turned_around():
    tables = cube_tables()
    opposite = 255 - np.arange(256)
    assert tables.areas == pytest.approx(tables.areas[opposite], abs=1e-15)
    assert (tables.volumes == -tables.volumes[opposite]).all()
    assert (tables.shifts == -tables.shifts[opposite]).all()


def test_every_vertex_lies_between_in_and_out():
    for code in range(256):
        triangles = _triangles_of(code)
        assert (len(triangles) > 0) == (code not in (0, 255))
        for vertex in np.array(triangles).reshape(-1, 3):
            (axis,) = np.flatnonzero(vertex == 1)
            ends = [vertex // 2, vertex // 2 + np.eye(3, dtype=int)[axis]]
            inside = [code >> int(end @ (4, 2, 1)) & 1 for end in ends]
            assert sorted(inside) == [0, 1]


@pytest.mark.parametrize("mask", FLAT)
def test_squares_are_counted(mask):
    cells = np.pad(mask.astype(np.uint8), 1)
    windows = np.lib.stride_tricks.sliding_window_view(cells, (2, 2)).reshape(-1, 4)
    assert (count_squares(cells) == np.bincount(windows @ SIDE[:4], minlength=16)).all()


@pytest.mark.parametrize("sides", [(1, 1), (1, 2), (3, 5)])
def test_outline_of_a_rectangle_is_its_hull(sides):
    cells = np.pad(np.ones(sides, np.uint8), 1)
    points = vertices(cells[None])[:, 1:] / 2
    hull = ConvexHull(points)  # in the plane, area means perimeter and volume area
    counts, tables = count_squares(cells), square_tables()
    assert counts @ tables.perimeters == pytest.approx(hull.area, rel=1e-12)
    assert counts @ tables.surfaces == pytest.approx(hull.volume, rel=1e-12)


def test_pixels_that_touch_at_a_corner_are_parted():
    alone, diagonal = box(1, 1), np.eye(2, dtype=bool)
    counts, tables = (
        [count_squares(np.pad(mask.astype(np.uint8), 1)) for mask in (alone, diagonal)],
        square_tables(),
    )
    for table in (tables.perimeters, tables.surfaces):
        one, two = (count @ table for count in counts)
        assert two == pytest.approx(2 * one, rel=1e-14)
        assert one > 0
