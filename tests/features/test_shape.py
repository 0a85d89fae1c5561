"""Surfaces against hulls and sums over triangles, diameters against all pairs of vertices."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial import ConvexHull

from segtrust.features.shape import (
    count_squares,
    cube_tables,
    largest_distance,
    largest_distance_in_planes,
    line_ends,
    measure_cubes,
    plane_hulls,
    second_moments,
    square_tables,
    triangles_of_cube,
)
from tests.features.references import vertices
from tests.masks import masks

SIDE = 1 << np.arange(8)
SOME = ("noise 0.1", "noise 0.5", "blob 0", "shell", "one pixel", "two across", "slice", "checkerboard")
NAMED = [pytest.param(masks(3)[name], id=name) for name in SOME]
FLAT = [pytest.param(masks(2)[name], id=name) for name in SOME]
some_masks = arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=5), elements=st.booleans())


def measure(mask, origin=(0, 0, 0)):
    """(area, volume) of a mask's surface."""
    tables = cube_tables()
    padded = np.pad(mask.astype(np.uint8), 1)
    counts, volume = measure_cubes(padded, np.array(origin), tables.volumes, tables.shifts)
    return counts @ tables.areas, volume / 48


def brute_triangles(mask):
    """All triangles of a surface, one cube after the other."""
    padded = np.pad(mask, 1)
    for place in np.ndindex(*(side - 1 for side in padded.shape)):
        cube = padded[tuple(slice(i, i + 2) for i in place)].ravel()
        for triangle in triangles_of_cube(int(cube @ SIDE)):
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
        triangles = triangles_of_cube(code)
        assert (len(triangles) > 0) == (code not in (0, 255))
        for vertex in np.array(triangles).reshape(-1, 3):
            (axis,) = np.flatnonzero(vertex == 1)
            ends = [vertex // 2, vertex // 2 + np.eye(3, dtype=int)[axis]]
            inside = [code >> int(end @ (4, 2, 1)) & 1 for end in ends]
            assert sorted(inside) == [0, 1]


@pytest.mark.parametrize("mask", FLAT)
def test_squares_are_counted(mask):
    padded = np.pad(mask.astype(np.uint8), 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2)).reshape(-1, 4)
    assert (count_squares(padded) == np.bincount(windows @ SIDE[:4], minlength=16)).all()


@pytest.mark.parametrize("sides", [(1, 1), (1, 2), (3, 5)])
def test_outline_of_a_rectangle_is_its_hull(sides):
    padded = np.pad(np.ones(sides, np.uint8), 1)
    points = vertices(padded[None])[:, 1:] / 2
    hull = ConvexHull(points)  # in the plane, area means perimeter and volume area
    counts, (perimeters, surfaces) = count_squares(padded), square_tables()
    assert counts @ perimeters == pytest.approx(hull.area, rel=1e-12)
    assert counts @ surfaces == pytest.approx(hull.volume, rel=1e-12)


def test_pixels_that_touch_at_a_corner_are_parted():
    alone, diagonal = box(1, 1), np.eye(2, dtype=bool)
    counts = [count_squares(np.pad(mask.astype(np.uint8), 1)) for mask in (alone, diagonal)]
    for table in square_tables():
        one, two = (count @ table for count in counts)
        assert two == pytest.approx(2 * one, rel=1e-14)
        assert one > 0


def brute_distance(points, axis=None):
    """Largest squared distance of all pairs, or of those in one plane across an axis."""
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    if axis is not None:
        squared[points[:, None, axis] != points[None, :, axis]] = 0
    return int(squared.max())


def check_diameters(mask):
    padded = np.pad(mask.astype(np.uint8), 1)
    points = vertices(padded)
    along_x = line_ends(padded)
    along_y = line_ends(np.ascontiguousarray(padded.swapaxes(1, 2)))
    assert largest_distance(plane_hulls(along_x)) == brute_distance(points)
    for axis, ends in enumerate((along_x, along_x.swapaxes(0, 1), along_y.swapaxes(0, 1))):
        hulls = plane_hulls(np.ascontiguousarray(ends))
        assert largest_distance_in_planes(hulls) == brute_distance(points, axis)


@pytest.mark.parametrize("name", ["noise 0.03", "noise 0.3", "blob 1", "two apart", "slanting line", "slice"])
def test_diameters_of_named_masks(name):
    check_diameters(masks(3)[name])


@given(some_masks.filter(np.any))
def test_diameters_of_any_mask(mask):
    check_diameters(mask)


@pytest.mark.parametrize("radius", [1.0, 4.5, 7.3])
def test_diameters_of_balls_which_have_many_corners(radius):
    squares = np.arange(-8, 9) ** 2
    check_diameters(squares[:, None, None] + squares[:, None] + squares < radius**2)


def test_lines_without_vertices_are_marked():
    ends = line_ends(np.zeros((3, 3, 3), np.uint8))
    assert (ends[..., 0] == -1).all()
    assert len(plane_hulls(ends)) == 0
    assert largest_distance_in_planes(plane_hulls(ends)) == 0


@given(some_masks)
def test_moments(mask):
    z, y, x = np.argwhere(mask).T
    terms = (np.ones_like(z), z, y, x, z * z, z * y, z * x, y * y, y * x, x * x)
    assert second_moments(mask.astype(np.uint8)).tolist() == [int(term.sum()) for term in terms]
