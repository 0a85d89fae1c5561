"""Largest distances against all pairs of all vertices."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.kernels.extents import farthest, farthest_in_planes, line_ends, plane_hulls
from tests.masks import masks

NAMED = [pytest.param(mask, id=name) for name, mask in masks(3).items() if mask.any()]
some_masks = arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=5), elements=st.booleans())


def vertices(cells):
    """Twice the middle of each pair of neighbours of which one is inside."""
    found = []
    for axis in range(3):
        crossed = np.argwhere(np.diff(cells.astype(int), axis=axis))
        found.append(2 * crossed + np.eye(3, dtype=int)[axis])
    return np.concatenate(found)


def brute(points, axis=None):
    """Largest squared distance of all pairs, or of those that lie in one plane across an axis."""
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    if axis is not None:
        squared[points[:, None, axis] != points[None, :, axis]] = 0
    return int(squared.max())


def check(mask):
    cells = np.pad(mask.astype(np.uint8), 1)
    points = vertices(cells)
    along_x = line_ends(cells)
    along_y = line_ends(np.ascontiguousarray(cells.swapaxes(1, 2)))
    assert farthest(plane_hulls(along_x)) == brute(points)
    for axis, ends in enumerate((along_x, along_x.swapaxes(0, 1), along_y.swapaxes(0, 1))):
        assert farthest_in_planes(plane_hulls(np.ascontiguousarray(ends))) == brute(points, axis)


@pytest.mark.parametrize("mask", NAMED)
def test_named_masks(mask):
    check(mask)


@given(some_masks.filter(np.any))
def test_any_mask(mask):
    check(mask)


@pytest.mark.parametrize("radius", [1.0, 4.5, 7.3])
def test_balls_have_many_corners(radius):
    squares = np.arange(-8, 9) ** 2
    check(squares[:, None, None] + squares[:, None] + squares < radius**2)


def test_lines_without_vertices_are_marked():
    ends = line_ends(np.zeros((3, 3, 3), np.uint8))
    assert (ends[..., 0] == -1).all()
    assert len(plane_hulls(ends)) == 0
    assert farthest_in_planes(plane_hulls(ends)) == 0
