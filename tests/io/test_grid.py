"""Grids in space, orientation on the screen, resampling, and planes of DICOM."""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.errors import GeometryError
from segtrust.io.grid import (
    AS_STORED,
    Grid,
    Orientation,
    Planes,
    check_same_grid,
    orientation_of,
    resample_in_space,
    resize_linear,
    resize_nearest,
    stack_planes,
    upright_affine,
)

NAMES = ("a.npz", "b.nii.gz")


TURNED = (0.0, -1.0, 0.0, 0.6, 0.0, 0.8, -0.8, 0.0, 0.6)


def grid_of(shape=(2, 3, 4), spacing=(0.5, 0.7, 3.0), origin=(10.0, -20.0, 30.0), direction=TURNED):
    return Grid.of_itk(shape, spacing=spacing, origin=origin, direction=direction)


@pytest.mark.needs("SimpleITK")
def test_pixels_lie_where_itk_puts_them():
    import SimpleITK

    image = SimpleITK.Image([4, 3, 2], SimpleITK.sitkUInt8)
    image.SetSpacing((0.5, 0.7, 3.0))
    image.SetOrigin((10.0, -20.0, 30.0))
    image.SetDirection(TURNED)
    affine = grid_of().affine
    for index in np.ndindex(4, 3, 2):
        left, posterior, superior = image.TransformIndexToPhysicalPoint(index)
        assert np.allclose((affine @ [*index, 1])[:3], (-left, -posterior, superior))


def test_what_itk_said_is_given_back():
    about = grid_of().itk()
    assert np.allclose(about["spacing"], (0.5, 0.7, 3.0))
    assert np.allclose(about["origin"], (10.0, -20.0, 30.0))
    assert np.allclose(about["direction"], TURNED)


@pytest.mark.parametrize(
    ("shape", "spacing"), [((2, 3, 4), (3.0, 0.7, 0.5)), ((3, 4), (0.7, 0.5)), ((1, 3, 4), (3.0, 0.7, 0.5))]
)
def test_spacing_is_in_the_order_of_the_array(shape, spacing):
    assert np.allclose(grid_of(shape).spacing_mm, spacing)


@pytest.mark.parametrize(
    "changed",
    [
        {"spacing": (0.5, 0.7, 3.3)},
        {"origin": (10.0, -20.0, 30.3)},
        {"direction": (1, 0, 0, 0, 1, 0, 0, 0, 1)},
        {"direction": tuple(-each for each in TURNED)},
    ],
)
def test_another_place_is_refused_and_both_are_named(changed):
    other = grid_of(**changed)
    with pytest.raises(GeometryError, match=r"^b\.nii\.gz: expected the grid of a\.npz, .* got") as caught:
        check_same_grid(grid_of(), other, NAMES)
    assert str(grid_of()) in str(caught.value)
    assert str(other) in str(caught.value)


def test_another_shape_is_refused_and_both_are_named():
    with pytest.raises(GeometryError, match=r"a\.npz, shape \(2, 3, 4\), got shape \(2, 3, 5\)\."):
        check_same_grid(grid_of(), grid_of((2, 3, 5)), NAMES)


def test_rounding_of_headers_is_no_difference():
    rounded = np.array(grid_of((200, 300, 400)).affine, np.float32).astype(float)
    check_same_grid(grid_of((200, 300, 400)), Grid((200, 300, 400), rounded), NAMES)


def test_a_small_difference_of_steps_adds_up_over_a_large_image():
    check_same_grid(grid_of((2, 3, 4)), grid_of((2, 3, 4), spacing=(0.505, 0.7, 3.0)), NAMES)
    with pytest.raises(GeometryError):
        check_same_grid(grid_of((2, 3, 400)), grid_of((2, 3, 400), spacing=(0.505, 0.7, 3.0)), NAMES)


def test_where_one_does_not_say_nothing_is_refused():
    check_same_grid(None, grid_of(), NAMES)
    check_same_grid(grid_of(), None, NAMES)
    check_same_grid(None, None, NAMES)


def test_a_slice_is_the_same_with_and_without_its_third_axis():
    check_same_grid(grid_of((3, 4)), grid_of((1, 3, 4)), NAMES)
    check_same_grid(grid_of((1, 3, 4)), grid_of((3, 4)), NAMES)
    with pytest.raises(GeometryError):
        check_same_grid(grid_of((3, 4)), grid_of((2, 3, 4)), NAMES)


def test_a_place_that_is_no_number_is_no_place():
    broken = Grid((2, 3, 4), np.full((4, 4), np.nan))
    with pytest.raises(GeometryError):
        check_same_grid(grid_of(), broken, NAMES)


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


LABELS = np.random.default_rng(0).integers(0, 4, (5, 6, 7))


HERE = {"spacing": (1.0, 1.5, 2.0), "origin": (3.0, -4.0, 5.0), "direction": (1, 0, 0, 0, 1, 0, 0, 0, 1)}


ELSEWHERE = {
    "spacing": (0.7, 0.9, 1.3),
    "origin": (11.0, -4.5, 4.0),
    "direction": (-1, 0, 0, 0, 1, 0, 0, 0, 1),
}


def resampled(labels, grid, target):
    return resample_in_space(labels, grid, target, source="a.nii.gz")


def image_of(values, about):
    import SimpleITK

    image = SimpleITK.GetImageFromArray(values)
    image.SetSpacing(about["spacing"])
    image.SetOrigin(about["origin"])
    image.SetDirection(about["direction"])
    return image


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "i8", "f4", "f8"])
def test_labels_are_those_of_itk(dtype):
    import SimpleITK

    labels = LABELS.astype(dtype)
    target = Grid.of_itk((10, 12, 16), **ELSEWHERE)
    found = resampled(labels, Grid.of_itk((5, 6, 7), **HERE), target)
    wanted = SimpleITK.Resample(
        image_of(labels, HERE),
        image_of(np.zeros((10, 12, 16), np.uint8), ELSEWHERE),
        SimpleITK.Transform(),
        SimpleITK.sitkNearestNeighbor,
    )
    assert found.shape == (10, 12, 16)
    assert (found == SimpleITK.GetArrayFromImage(wanted)).all()
    assert len(np.unique(found)) == 4


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("dtype", [">i2", ">f4", "f2", "?"])
def test_types_that_itk_does_not_know_are_read_all_the_same(dtype):
    labels = (LABELS % 2).astype(dtype)
    here, there = Grid.of_itk((5, 6, 7), **HERE), Grid.of_itk((10, 12, 16), **ELSEWHERE)
    plain = resampled((LABELS % 2).astype(np.uint8), here, there)
    assert (resampled(labels, here, there) == plain).all()


@pytest.mark.needs("SimpleITK")
def test_a_flip_is_undone():
    first = Grid((5, 6, 7), np.diag([1.0, 2.0, 3.0, 1.0]))
    affine = np.diag([-1.0, 2.0, 3.0, 1.0])
    affine[0, 3] = 6
    found = resampled(LABELS, first, Grid((5, 6, 7), affine))
    assert (found == LABELS[:, :, ::-1]).all()


@pytest.mark.needs("SimpleITK")
def test_axes_in_another_order_are_put_in_order():
    turned = Grid((7, 6, 5), np.eye(4)[[2, 1, 0, 3]])
    found = resampled(LABELS, Grid((5, 6, 7), np.eye(4)), turned)
    assert (found == LABELS.transpose()).all()


@pytest.mark.needs("SimpleITK")
def test_the_same_grid_changes_nothing():
    grid = Grid.of_itk((5, 6, 7), **ELSEWHERE)
    assert (resampled(LABELS, grid, grid) == LABELS).all()


@pytest.mark.needs("SimpleITK")
def test_labels_outside_of_the_map_are_refused():
    """They would be lost, and a Dice without them be too high."""
    here = Grid.of_itk((5, 6, 7), **HERE)
    far = Grid.of_itk((5, 6, 7), spacing=(1, 1, 1), origin=(1000, 0, 0))
    with pytest.raises(GeometryError, match=r"a\.nii\.gz: .* got 165 of 165 labelled pixels outside it"):
        resampled(LABELS, here, far)
    assert not resampled(0 * LABELS, here, far).any()


@pytest.mark.needs("SimpleITK")
def test_slices_are_resampled_too():
    flat = LABELS[0]
    first, second = Grid((6, 7), np.eye(4)), Grid((1, 12, 14), np.diag([0.5, 0.5, 1.0, 1.0]))
    found = resampled(flat, first, second)
    assert found.shape == (1, 12, 14)
    assert (found[0, ::2, ::2] == flat).all()
    assert (resampled(found, second, first) == flat).all()


@pytest.mark.needs("SimpleITK")
def test_probabilities_are_interpolated_in_space():
    p = np.linspace(0, 1, 8).reshape(1, 2, 4)
    coarse, fine = Grid((1, 2, 4), np.eye(4)), Grid((1, 2, 7), np.diag([0.5, 1.0, 1.0, 1.0]))
    moved = resample_in_space(p, coarse, fine, linear=True)
    np.testing.assert_allclose(moved[..., ::2], p, rtol=1e-6)
    np.testing.assert_allclose(moved[..., 1::2], (p[..., 1:] + p[..., :-1]) / 2, rtol=1e-6)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("shape", [(5, 7), (20, 30), (3, 40), (10, 11)])
def test_sizes_are_adapted_as_torch_does_it(shape):
    """By pixel centres, without antialiasing: ``align_corners=False`` and ``nearest-exact``."""
    import torch

    p = np.random.default_rng(0).random((10, 11))
    batch = torch.from_numpy(p)[None, None]
    linear = torch.nn.functional.interpolate(batch, shape, mode="bilinear", align_corners=False)
    np.testing.assert_allclose(resize_linear(p, shape), linear[0, 0].numpy(), rtol=1e-12)
    nearest = torch.nn.functional.interpolate(batch, shape, mode="nearest-exact")
    np.testing.assert_array_equal(resize_nearest(p, shape), nearest[0, 0].numpy())
    corner = torch.nn.functional.interpolate(batch, shape, mode="nearest")  # that of OpenCV
    np.testing.assert_array_equal(resize_nearest(p, shape, corner=True), corner[0, 0].numpy())


def test_further_axes_keep_their_length():
    colours = np.random.default_rng(0).random((4, 6, 3))
    assert resize_linear(colours, (8, 5)).shape == resize_nearest(colours, (8, 5)).shape == (8, 5, 3)
    np.testing.assert_array_equal(
        resize_linear(colours, (8, 5))[..., 1], resize_linear(colours[..., 1], (8, 5))
    )


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
    found, grid = stack_planes(PATH, planes, (6, 5))
    assert found.tolist() == numbers
    assert grid.shape == (max(numbers) + 1, 6, 5)
    assert grid.spacing_mm == pytest.approx((2.0, 0.5, 0.7))
    itk = grid.itk()
    np.testing.assert_allclose(itk["origin"], (5.0, -6.0, 7.0), atol=1e-12)
    np.testing.assert_allclose(np.reshape(itk["direction"], (3, 3))[:, :2].T.ravel(), orientation, atol=1e-12)


def test_places_that_were_rounded_do_not_add_up():
    heights = np.round(np.arange(400) * 2.0 / 3.0, 2)
    numbers, grid = stack_planes(PATH, Planes(at(heights), STRAIGHT, (1.0, 1.0), 0.66), (4, 4))
    assert numbers.tolist() == list(range(400))
    assert grid.spacing_mm[0] == pytest.approx(2.0 / 3.0, abs=1e-4)


@pytest.mark.parametrize(
    ("step", "thickness", "expected"), [(3.0, 5.0, 3.0), (None, 5.0, 5.0), (None, None, 1.0)]
)
def test_a_single_plane_is_as_thick_as_the_file_says(step, thickness, expected):
    planes = Planes(at([0.0, 0.0]), STRAIGHT, (1.0, 1.0), step, thickness)
    assert stack_planes(PATH, planes, (4, 4))[1].spacing_mm == (expected, 1.0, 1.0)


@pytest.mark.parametrize(
    ("heights", "step", "message"),
    [
        ([0.0, 1.0, 2.37], None, r"some 1 mm and some 1\.37 mm apart\. "),
        ([0.0, 1.0, 2.5], 1.0, r"some 1 mm and some 1\.5 mm apart, and 1 mm announced\. "),
    ],
)
def test_uneven_planes_are_refused_with_both_distances(heights, step, message):
    with pytest.raises(GeometryError, match=rf"case\.dcm: expected planes at equal distances, got {message}"):
        stack_planes(PATH, Planes(at(heights), STRAIGHT, (1.0, 1.0), step), (4, 4))


def test_planes_aside_of_each_other_are_refused():
    places = np.add(at([0.0, 1.0]), [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    with pytest.raises(GeometryError, match=r"case\.dcm: .* some that are 0\.5 mm aside"):
        stack_planes(PATH, Planes(places, STRAIGHT, (1.0, 1.0)), (4, 4))


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
        stack_planes(PATH, Planes(places, orientation, spacing), (4, 4))
