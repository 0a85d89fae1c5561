"""Where pixels lie, against SimpleITK."""

import numpy as np
import pytest

from segtrust.errors import GeometryError
from segtrust.io.grids import Grid, check_same_grid

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
