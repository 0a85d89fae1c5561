"""A volume is the same way up on the desk, in the report and in the figure of examples."""

import io
import re

import nibabel
import numpy as np
import pytest
import zarr
from PIL import Image

from segtrust.evaluation import FileCase
from segtrust.io import ArrayRef, CaseFiles, ReadOptions, read_table
from segtrust.report.examples import load_example
from segtrust.report.html.planes import planes_of
from segtrust.review.pictures import Layer, OpenedCase, open_case
from segtrust.review.tiles import box_of
from tests.io.test_grid import STORED, Chunks, affine_of
from tests.review import desks

ROOM = (9, 11, 7)  # right, anterior, superior
SPACING = (1.0, 2.0, 3.0)


def marked():
    """An L on the patient's right, its foot at the back, to the left; from the front it is one too."""
    mask = np.zeros(ROOM, bool)
    mask[6:8, 2:9, 1:4] = True
    mask[3:8, 2:4, 1:4] = True
    mask[6:8, 2:4, 1:6] = True
    return mask


def stored(path, values, axes, code=1):
    """Save a room with axes of another order and direction."""
    image = nibabel.Nifti1Image(values, np.diag([*SPACING, 1.0]))
    wanted = nibabel.io_orientation(affine_of(*axes))
    turned = image.as_reoriented(
        nibabel.orientations.ornt_transform(nibabel.io_orientation(image.affine), wanted)
    )
    turned.set_sform(turned.affine, code)
    turned.set_qform(turned.affine, code)
    nibabel.save(turned, path)
    return ArrayRef(path)


def case_in(folder, axes, image_axes=None, code=1):
    """The marked room as map and truth, and as an image."""
    p = np.where(marked(), 0.9, 0.05).astype(np.float32)
    places = {
        "probabilities": stored(folder / "map.nii", p, axes, code),
        "truth": stored(folder / "truth.nii", marked().astype(np.uint8), axes, code),
        "image": stored(folder / "image.nii", 100.0 * p, image_axes or axes, code),
    }
    return CaseFiles("a", **places)


def scored(folder, case):
    desks.score_run(folder, [case])
    table = read_table(folder / "scores.csv")
    return table.rows[0], table.about


def seen_by_a_radiologist(axes, number):
    """The mask of a slice, by its place in the room."""
    (through, sign), mask = (axes[0][2], axes[1][2]), marked()
    plane = np.take(mask, number if sign > 0 else ROOM[through] - 1 - number, axis=through)
    return plane[::-1, ::-1].T  # the patient's right, or anterior, on the left; anterior or superior on top


def tile(case, layer, number):
    box = box_of((case.plane.rows, case.plane.columns), 0, 0, 0)
    return np.asarray(Image.open(io.BytesIO(case.tile(layer, number, box, None)))) > 127


AXES = [STORED[at] for at in (0, 3, 6, 13, 21, 30, 40, 47)]


@pytest.mark.parametrize("axes", AXES)
def test_desk_report_and_examples_show_the_same(tmp_path, axes):
    case = case_in(tmp_path, axes, STORED[5])
    row, about = scored(tmp_path, case)
    opened, report = open_case(row, about), planes_of(row, about)
    assert not opened.note + report.note
    for number in range(opened.shape[0]):
        for layer in Layer:
            assert np.array_equal(tile(opened, layer, number), seen_by_a_radiologist(axes, number))
    number = opened.slices.middle
    assert f"slice {number + 1} of {opened.shape[0]}, middle" in report.planes[0].title
    expected = seen_by_a_radiologist(axes, number)
    for values in (report.planes[0].mask, report.planes[0].truth, report.planes[0].image > 127):
        assert np.array_equal(values, expected)
    example = load_example(row, FileCase(case, ReadOptions(), "foreground"))
    largest = max(range(opened.shape[0]), key=lambda at: seen_by_a_radiologist(axes, at).sum())
    assert np.array_equal(example.mask, seen_by_a_radiologist(axes, largest))
    assert np.array_equal(example.image[..., 0] > 0.5, example.mask)
    across, up = (each for each in range(3) if each != axes[0][2])
    aspect = pytest.approx(SPACING[up] / SPACING[across])
    assert opened.plane.aspect == aspect
    assert (report.planes[0].aspect, example.aspect) == (aspect, aspect)
    assert opened.plane.letters == report.planes[0].letters != ""


def test_without_a_place_all_is_as_the_array_is(tmp_path):
    row, about = scored(tmp_path, case_in(tmp_path, STORED[0], code=0))
    opened = open_case(row, about)
    assert (opened.plane.letters, opened.plane.rows, opened.plane.columns) == ("", ROOM[1], ROOM[0])
    assert np.array_equal(tile(opened, Layer.MASK, 2), marked()[..., 2].T)
    (plane, *_) = planes_of(row, about).planes
    assert np.array_equal(plane.mask, marked()[..., opened.slices.middle].T)


def test_an_image_elsewhere_is_told_of_by_desk_and_report(tmp_path):
    case = case_in(tmp_path, STORED[0])
    image = nibabel.load(tmp_path / "image.nii")
    nibabel.save(
        nibabel.Nifti1Image(image.get_fdata(), np.diag([1.0, 2.0, 3.5, 1.0])), tmp_path / "image.nii"
    )
    row, about = scored(tmp_path, case)
    reason = r"The image is not shown\. .*image\.nii: expected the grid of the map"
    assert re.match(reason, open_case(row, about).note)
    assert re.match(reason, planes_of(row, about).note)
    (tmp_path / "image.nii").unlink()
    assert "no such file" in planes_of(row, about).note
    about["read"]["resample"] = True
    nibabel.save(
        nibabel.Nifti1Image(image.get_fdata(), np.diag([1.0, 2.0, 3.5, 1.0])), tmp_path / "image.nii"
    )
    assert not open_case(row, about).note


@pytest.mark.parametrize("axes", AXES)
def test_tiles_of_chunks_are_turned_and_not_read_whole(axes):
    from segtrust.io import Grid, orientation_of

    rng = np.random.default_rng(0)
    p = rng.random((3, 700, 520)).astype(np.float32)
    orientation = orientation_of(Grid(p.shape, affine_of(*axes)))
    watched = Chunks(p)
    case = OpenedCase(watched, None, None, None, 0.5, None, np.eye(4), orientation=orientation)
    shown = orientation.turned(p[1])
    assert (case.plane.rows, case.plane.columns) == shown.shape
    box = box_of(shown.shape, 0, 1, 1)
    found = case.tile(Layer.PROBABILITIES, 1, box, None)
    assert np.array_equal(
        np.asarray(Image.open(io.BytesIO(found))), np.rint(255 * shown[box.rows, box.columns])
    )
    assert watched.pixels == 256 * 256
    blocks = np.add.reduceat(
        np.add.reduceat(shown >= 0.9995, range(0, shown.shape[0], 4)), range(0, shown.shape[1], 4), 1
    )
    few = OpenedCase(
        zarr.array(p, chunks=(1, 64, 64)), None, None, None, 0.9995, None, np.eye(4), orientation=orientation
    )
    small = few.tile(Layer.MASK, 1, box_of(shown.shape, 2, 0, 0), None)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(small))) > 0, blocks > 0)


def test_the_middle_is_that_of_mask_and_truth():
    p, truth = np.zeros((10, 4, 4), np.float32), np.zeros((10, 4, 4), np.uint8)
    empty = OpenedCase(p, None, None, None, 0.5, None, np.eye(4))
    assert empty.slices.middle == 5
    p[1:4, 0, 0] = 0.9
    assert OpenedCase(p, None, None, None, 0.5, None, np.eye(4)).slices.middle == 2
    truth[4:8, 0, 0] = 1
    assert OpenedCase(p, None, truth, None, 0.5, None, np.eye(4)).slices.middle == 4
