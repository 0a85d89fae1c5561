"""Masks that are written: they can be read again, and lie where the map lies."""

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats._common import MASKS
from segtrust.io.grid import Grid, is_same_grid
from segtrust.io.mask_files import mask_path, write_mask
from segtrust.io.volume import open_labels

GRID = Grid.of_itk((4, 5, 6), spacing=(0.5, 0.75, 3.0), origin=(10.0, -20.0, 30.0))
VOLUME = np.random.default_rng(0).random((4, 5, 6)) < 0.4


@pytest.mark.needs("nibabel", "SimpleITK")
@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".mha", ".nrrd", ".npz"])
def test_volumes_lie_where_the_map_lies(tmp_path, ending):
    path = mask_path(tmp_path, "a", tmp_path / f"maps/a{ending}", GRID)
    write_mask(path, VOLUME, GRID)
    found = open_labels(ArrayRef(path), MASKS)
    np.testing.assert_array_equal(found.read(), VOLUME)
    assert is_same_grid(found.grid, GRID)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.needs("PIL")
@pytest.mark.parametrize(("source", "ending"), [("a.png", ".png"), ("a.jpg", ".png"), ("a.npy", ".npy")])
def test_pictures_and_arrays_are_read_again(tmp_path, source, ending):
    path = mask_path(tmp_path, "set/a", tmp_path / source, None)
    assert path == tmp_path / f"set/a{ending}"
    write_mask(path, VOLUME[0], None)
    assert (np.squeeze(open_labels(ArrayRef(path), MASKS).read()) != 0).tolist() == VOLUME[0].tolist()


def test_a_name_that_leads_elsewhere_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="leads elsewhere"):
        mask_path(tmp_path / "masks", "../a", tmp_path / "a.npy", None)
