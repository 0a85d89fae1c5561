"""Planes in space become volumes."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import GeometryError
from segtrust.io.planes import Planes, stacked

PATH = Path("case.dcm")
STRAIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def oblique() -> tuple[float, ...]:
    """Directions of rows and columns, turned about two axes."""
    a, b = 0.4, -0.3
    x = (np.cos(a), np.sin(a), 0.0)
    y = (-np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), np.sin(b))
    return (*x, *y)


def at(heights, orientation=STRAIGHT, origin=(5.0, -6.0, 7.0)):
    x, y = np.reshape(orientation, (2, 3))
    return np.add(origin, np.outer(heights, np.cross(x, y)))


@pytest.mark.parametrize("orientation", [STRAIGHT, oblique(), (0.0, 1.0, 0.0, 0.0, 0.0, -1.0)])
@pytest.mark.parametrize(
    ("heights", "step", "numbers"),
    [
        ([0.0, 2.0, 4.0], None, [0, 1, 2]),
        ([4.0, 0.0, 2.0, 2.0], None, [2, 0, 1, 1]),
        ([0.0, 2.0, 8.0], None, [0, 1, 4]),
        ([0.0, 4.0, 10.0], None, [0, 2, 5]),
        ([0.0, 4.0, 8.0], 2.0, [0, 2, 4]),
        ([0.0, 2.0, 4.0], 2.2, [0, 1, 2]),
        ([0.0, 2.0, 4.0], 5.0, [0, 1, 2]),
    ],
)
def test_planes_are_put_in_order_and_gaps_are_kept(orientation, heights, step, numbers):
    planes = Planes(at(heights, orientation), orientation, (0.5, 0.7), step)
    found, grid = stacked(PATH, planes, (6, 5))
    assert found.tolist() == numbers
    assert grid.shape == (max(numbers) + 1, 6, 5)
    assert grid.spacing_mm == pytest.approx((2.0, 0.5, 0.7))
    itk = grid.itk()
    np.testing.assert_allclose(itk["origin"], (5.0, -6.0, 7.0), atol=1e-12)
    np.testing.assert_allclose(np.reshape(itk["direction"], (3, 3))[:, :2].T.ravel(), orientation, atol=1e-12)


def test_places_that_were_rounded_do_not_add_up():
    heights = np.round(np.arange(400) * 2.0 / 3.0, 2)
    numbers, grid = stacked(PATH, Planes(at(heights), STRAIGHT, (1.0, 1.0), 0.66), (4, 4))
    assert numbers.tolist() == list(range(400))
    assert grid.spacing_mm[0] == pytest.approx(2.0 / 3.0, abs=1e-4)


@pytest.mark.parametrize(
    ("step", "thickness", "expected"), [(3.0, 5.0, 3.0), (None, 5.0, 5.0), (None, None, 1.0)]
)
def test_a_single_plane_is_as_thick_as_the_file_says(step, thickness, expected):
    planes = Planes(at([0.0, 0.0]), STRAIGHT, (1.0, 1.0), step, thickness)
    assert stacked(PATH, planes, (4, 4))[1].spacing_mm == (expected, 1.0, 1.0)


@pytest.mark.parametrize(
    ("heights", "step", "message"),
    [
        ([0.0, 1.0, 2.37], None, r"some 1 mm and some 1\.37 mm apart\. "),
        ([0.0, 1.0, 2.5], 1.0, r"some 1 mm and some 1\.5 mm apart, and 1 mm announced\. "),
    ],
)
def test_uneven_planes_are_refused_with_both_distances(heights, step, message):
    with pytest.raises(GeometryError, match=rf"case\.dcm: expected planes at equal distances, got {message}"):
        stacked(PATH, Planes(at(heights), STRAIGHT, (1.0, 1.0), step), (4, 4))


def test_planes_aside_of_each_other_are_refused():
    places = np.add(at([0.0, 1.0]), [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    with pytest.raises(GeometryError, match=r"case\.dcm: .* some that are 0\.5 mm aside"):
        stacked(PATH, Planes(places, STRAIGHT, (1.0, 1.0)), (4, 4))


@pytest.mark.parametrize(
    ("orientation", "spacing", "heights"),
    [
        ((1.0, 0.0, 0.0, 1.0, 0.0, 0.0), (1.0, 1.0), [0.0]),
        ((2.0, 0.0, 0.0, 0.0, 1.0, 0.0), (1.0, 1.0), [0.0]),
        (STRAIGHT, (0.0, 1.0), [0.0]),
        (STRAIGHT, (np.nan, 1.0), [0.0]),
        (STRAIGHT, (1.0, 1.0), [np.inf]),
        (STRAIGHT, (1.0, 1.0), [1e300]),
    ],
)
def test_headers_that_make_no_sense_are_refused(orientation, spacing, heights):
    places = np.full((1, 3), heights[0])
    with pytest.raises(GeometryError, match=r"case\.dcm: expected directions at right angles"):
        stacked(PATH, Planes(places, orientation, spacing), (4, 4))
