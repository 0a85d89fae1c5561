"""Slices the right way up, against nibabel, for all 48 ways in which the axes of a file can run."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.io.grids import Grid
from segtrust.io.orientation import AS_STORED, Orientation, orientation_of, upright_affine

SHAPE = (3, 4, 5)  # x, y, z of a file
STEPS = (0.5, 0.8, 3.0)
STORED = [(order, signs) for order in permutations(range(3)) for signs in product((1, -1), repeat=3)]
TILTED = np.array([[0.96, -0.28, 0.0], [0.28, 0.96, 0.0], [0.0, 0.0, 1.0]])


def affine_of(order, signs, tilt=None):
    """An affine by which each axis of a file leads along one direction, in steps of its own."""
    affine = np.eye(4)
    affine[:3, :3] = 0.0
    for axis, (direction, sign) in enumerate(zip(order, signs, strict=True)):
        affine[direction, axis] = sign * STEPS[axis]
    affine[:3, 3] = 7.0, -11.0, 13.0
    if tilt is not None:
        affine[:3, :3] = tilt @ affine[:3, :3]
    return affine


def values():
    return np.arange(np.prod(SHAPE)).reshape(SHAPE)


def seen_by_a_radiologist(affine, number):
    """A slice across the third axis of a file, pixel by pixel, and the height of a pixel for its width."""
    import nibabel

    image = nibabel.Nifti1Image(values().astype(np.int32), affine)
    through = int(nibabel.io_orientation(affine)[2, 0])
    upright = nibabel.as_closest_canonical(image)
    room = np.asarray(upright.dataobj)
    at = room.shape[through] - 1 - number if nibabel.io_orientation(affine)[2, 1] < 0 else number
    across, up = (each for each in range(3) if each != through)
    plane = np.empty((room.shape[up], room.shape[across]), int)
    for row, column in np.ndindex(*plane.shape):
        index = [at, at, at]
        index[across], index[up] = room.shape[across] - 1 - column, room.shape[up] - 1 - row
        plane[row, column] = room[tuple(index)]
    zooms = upright.header.get_zooms()
    return plane, zooms[up] / zooms[across]


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize("tilt", [None, TILTED, TILTED.T, TILTED[::-1, ::-1]], ids=["", "a", "b", "c"])
@pytest.mark.parametrize(("order", "signs"), STORED)
def test_slices_are_seen_as_by_a_radiologist(order, signs, tilt):
    affine = affine_of(order, signs, tilt)
    grid = Grid(SHAPE[::-1], affine)
    orientation = orientation_of(grid)
    for number in range(SHAPE[2]):
        expected, aspect = seen_by_a_radiologist(affine, number)
        found = orientation.slice_of(values().T, number)
        np.testing.assert_array_equal(found, expected)
        assert orientation.aspect(grid.spacing_mm) == pytest.approx(aspect)
        assert orientation.ordered(grid.shape[1:]) == expected.shape


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize(("order", "signs"), STORED)
def test_letters_are_those_of_nibabel(order, signs):
    """Left and top are where columns and rows come from."""
    import nibabel

    affine = affine_of(order, signs)
    orientation = orientation_of(Grid(SHAPE[::-1], affine))
    leads_to = nibabel.aff2axcodes(affine)
    opposite = dict(zip("RLAPSI", "LRPAIS", strict=True))
    down, across = orientation.ordered((leads_to[1], leads_to[0]))
    if orientation.is_flipped[0]:
        down = opposite[down]
    if orientation.is_flipped[1]:
        across = opposite[across]
    assert orientation.letters == opposite[across] + across + opposite[down] + down
    assert orientation.letters[:2] == ("AP" if leads_to[2] in "RL" else "RL")
    assert orientation.letters[2:] == ("AP" if leads_to[2] in "SI" else "SI")


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize(("order", "signs"), STORED)
def test_the_viewer_is_told_the_same_axes(order, signs):
    import nibabel

    straight = affine_of(order, signs)
    np.testing.assert_allclose(upright_affine(Grid(SHAPE[::-1], straight)), straight, atol=1e-12)
    tilted = upright_affine(Grid(SHAPE[::-1], affine_of(order, signs, TILTED)))
    np.testing.assert_array_equal(nibabel.io_orientation(tilted), nibabel.io_orientation(straight))
    assert (np.count_nonzero(tilted[:3, :3], axis=0) == 1).all()


@pytest.mark.parametrize("grid", [None, Grid((2, 3, 4), np.eye(4), is_oriented=False)])
def test_what_lies_nowhere_is_shown_as_it_is(grid):
    assert orientation_of(grid) == AS_STORED
    plane = values()[0]
    np.testing.assert_array_equal(AS_STORED.slice_of(plane, None), plane)
    assert (AS_STORED.letters, AS_STORED.aspect(None)) == ("", 1.0)


class Chunks:
    """An array in chunks that notes what is read of it."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.chunks = (
            values,
            values.shape,
            values.dtype,
            (1, 2, 3)[-values.ndim :],
        )
        self.pixels = 0

    def __getitem__(self, at):
        found = self.values[at]
        self.pixels += found.size
        return found


@given(
    st.booleans(),
    st.tuples(st.booleans(), st.booleans()),
    st.booleans(),
    st.data(),
)
def test_a_part_of_chunks_is_that_of_the_whole(is_transposed, is_flipped, is_volume, data):
    orientation = Orientation(is_transposed, is_flipped)
    whole = np.arange(2 * 7 * 9).reshape(2, 7, 9)
    array, number = (Chunks(whole), 1) if is_volume else (Chunks(whole[1]), None)
    lazy = orientation.slice_of(array, number)
    expected = orientation.turned(whole[1])
    assert lazy.shape == expected.shape
    assert lazy.chunks == orientation.ordered((2, 3))
    ends = [sorted(data.draw(st.tuples(*[st.integers(0, length)] * 2))) for length in lazy.shape]
    part = tuple(slice(*each) for each in ends)
    np.testing.assert_array_equal(lazy[part], expected[part])
    assert array.pixels == expected[part].size


def test_colours_are_turned_with_their_pixels():
    colours = np.arange(24).reshape(2, 4, 3)
    found = Orientation(True, (False, True)).turned(colours)
    assert found.shape == (4, 2, 3)
    np.testing.assert_array_equal(found[1, 0], colours[1, 1])
