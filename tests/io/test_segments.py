"""Maps and masks of DICOM segmentations together: segments by name, and slices that are absent."""

import numpy as np
import pytest

from segtrust.errors import GeometryError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.loading import ReadOptions, load_case
from tests.io.dicom_files import REGULAR, save, segmentation, source_images

pytestmark = pytest.mark.needs("highdicom", "pydicom", "SimpleITK")


def shape():
    """Of the images that the segmentations are made of."""
    images = source_images(REGULAR)
    return len(images), int(images[0].Rows), int(images[0].Columns)


@pytest.fixture
def case(tmp_path):
    """Two organs: maps everywhere, masks that leave out the first and the last slice."""
    p = np.random.default_rng(0).random((*shape(), 2)) * 0.9 + 0.05
    masks = (p > 0.5).astype(np.uint8)
    masks[0] = masks[-1] = 0
    save(segmentation(p.astype(np.float32), "FRACTIONAL"), tmp_path / "map.dcm")
    save(segmentation(masks, "BINARY", omit_empty_frames=True), tmp_path / "mask.dcm")
    return CaseFiles("a", ArrayRef(tmp_path / "map.dcm"), mask=ArrayRef(tmp_path / "mask.dcm")), masks


def test_slices_without_a_frame_are_filled_up(case):
    files, masks = case
    liver, spleen = load_case(files, ReadOptions(regions=("each",)))
    assert (liver.structure, spleen.structure) == ("liver", "spleen")
    for i, loaded in enumerate((liver, spleen)):
        assert loaded.delivered.shape == loaded.prediction.shape == shape()
        assert sorted(loaded.delivered.sum((1, 2))) == sorted(masks[..., i].sum((1, 2)))
        assert loaded.delivered.sum() == masks[..., i].sum()


def test_a_mask_where_the_map_is_not_is_refused(case, tmp_path):
    """The map begins a slice later: what the mask has in the first would be lost."""
    p = np.random.default_rng(0).random((*shape(), 2)) * 0.9 + 0.05
    full = (p > 0.5).astype(np.uint8)
    p[0] = p[-1] = 0
    save(segmentation(p.astype(np.float32), "FRACTIONAL", omit_empty_frames=True), tmp_path / "map.dcm")
    save(segmentation(full, "BINARY"), tmp_path / "mask.dcm")
    with pytest.raises(GeometryError, match="labelled pixels outside it"):
        list(load_case(case[0], ReadOptions(regions=("each",))))


def test_segments_are_never_taken_by_their_number(case, tmp_path):
    """The second segment of a mask need not be the second of the map."""
    masks = case[1]
    save(segmentation(masks, "BINARY", names=("kidney", "Liver")), tmp_path / "mask.dcm")
    (loaded,) = load_case(case[0], ReadOptions(regions=("liver",)))
    assert loaded.delivered.sum() == masks[..., 1].sum(), "by its name, whatever its case"
    with pytest.raises(WrongContentError, match="expected a segment called 'spleen', got kidney, Liver"):
        list(load_case(case[0], ReadOptions(regions=("spleen",))))
