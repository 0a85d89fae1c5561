"""Labels on another grid, against ITK by hand."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import GeometryError, UnsafeFileError
from segtrust.io.grids import Grid
from segtrust.io.resampling import resampled_labels
from segtrust.io.volumes import Volume

pytestmark = pytest.mark.needs("SimpleITK")

LABELS = np.random.default_rng(0).integers(0, 4, (5, 6, 7))
HERE = {"spacing": (1.0, 1.5, 2.0), "origin": (3.0, -4.0, 5.0), "direction": (1, 0, 0, 0, 1, 0, 0, 0, 1)}
ELSEWHERE = {
    "spacing": (0.7, 0.9, 1.3),
    "origin": (11.0, -4.5, 4.0),
    "direction": (-1, 0, 0, 0, 1, 0, 0, 0, 1),
}


def volume_of(values, grid):
    return Volume(Path("a.nii.gz"), values.shape, values.dtype, lambda _: values, False, grid)


def image_of(values, about):
    import SimpleITK

    image = SimpleITK.GetImageFromArray(values)
    image.SetSpacing(about["spacing"])
    image.SetOrigin(about["origin"])
    image.SetDirection(about["direction"])
    return image


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "i8", "f4", "f8"])
def test_labels_are_those_of_itk(dtype):
    import SimpleITK

    labels = LABELS.astype(dtype)
    target = Grid.of_itk((10, 12, 16), **ELSEWHERE)
    found = resampled_labels(volume_of(labels, Grid.of_itk((5, 6, 7), **HERE)), target)
    wanted = SimpleITK.Resample(
        image_of(labels, HERE),
        image_of(np.zeros((10, 12, 16), np.uint8), ELSEWHERE),
        SimpleITK.Transform(),
        SimpleITK.sitkNearestNeighbor,
    )
    assert found.shape == (10, 12, 16)
    assert (found == SimpleITK.GetArrayFromImage(wanted)).all()
    assert len(np.unique(found)) == 4


@pytest.mark.parametrize("dtype", [">i2", ">f4", "f2", "?"])
def test_types_that_itk_does_not_know_are_read_all_the_same(dtype):
    labels = (LABELS % 2).astype(dtype)
    here, there = Grid.of_itk((5, 6, 7), **HERE), Grid.of_itk((10, 12, 16), **ELSEWHERE)
    plain = resampled_labels(volume_of((LABELS % 2).astype(np.uint8), here), there)
    assert (resampled_labels(volume_of(labels, here), there) == plain).all()


def test_a_flip_is_undone():
    first = Grid((5, 6, 7), np.diag([1.0, 2.0, 3.0, 1.0]))
    affine = np.diag([-1.0, 2.0, 3.0, 1.0])
    affine[0, 3] = 6
    found = resampled_labels(volume_of(LABELS, first), Grid((5, 6, 7), affine))
    assert (found == LABELS[:, :, ::-1]).all()


def test_axes_in_another_order_are_put_in_order():
    turned = Grid((7, 6, 5), np.eye(4)[[2, 1, 0, 3]])
    found = resampled_labels(volume_of(LABELS, Grid((5, 6, 7), np.eye(4))), turned)
    assert (found == LABELS.transpose()).all()


def test_the_same_grid_changes_nothing():
    grid = Grid.of_itk((5, 6, 7), **ELSEWHERE)
    assert (resampled_labels(volume_of(LABELS, grid), grid) == LABELS).all()


def test_labels_outside_of_the_map_are_refused():
    """They would be lost, and a Dice without them be too high."""
    here = Grid.of_itk((5, 6, 7), **HERE)
    far = Grid.of_itk((5, 6, 7), spacing=(1, 1, 1), origin=(1000, 0, 0))
    with pytest.raises(GeometryError, match=r"a\.nii\.gz: .* got 165 of 165 labelled pixels outside of it"):
        resampled_labels(volume_of(LABELS, here), far)
    assert not resampled_labels(volume_of(0 * LABELS, here), far).any()


def test_slices_are_resampled_too():
    flat = LABELS[0]
    first, second = Grid((6, 7), np.eye(4)), Grid((1, 12, 14), np.diag([0.5, 0.5, 1.0, 1.0]))
    found = resampled_labels(volume_of(flat, first), second)
    assert found.shape == (1, 12, 14)
    assert (found[0, ::2, ::2] == flat).all()
    assert (resampled_labels(volume_of(found, second), first) == flat).all()


def test_labels_without_a_place_stay_as_they_are():
    assert resampled_labels(volume_of(LABELS, None), Grid((2, 3, 4), np.eye(4))) is LABELS


def test_a_store_that_announces_too_much_is_not_read():
    def load(_):
        raise AssertionError("not to be read")

    grid = Grid((1 << 20, 1 << 10, 1 << 10), np.eye(4))
    with pytest.raises(UnsafeFileError, match=r"^a\.zarr: expected an array of at most"):
        resampled_labels(
            Volume(Path("a.zarr"), grid.shape, np.dtype("u1"), load, False, grid, lazy=True), grid
        )
