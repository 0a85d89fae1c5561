"""Pictures of cases: read, placed on the grid of the map, prepared for the screen."""

import numpy as np
import pytest

from segtrust.errors import GeometryError, PairingError, ReadError, SegtrustError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.grid import Grid
from segtrust.io.pictures import (
    is_jpeg,
    middle_slice,
    read_case_image,
    read_grey_jpeg,
    slice_uncertainty,
    stretch,
    window_of,
)
from segtrust.io.volume import open_volume
from tests.io.test_grid import STORED, affine_of


def test_images_on_the_grid_of_the_map_are_read(tmp_path):
    np.save(tmp_path / "volume.npy", np.ones((1, 3, 4, 5)))
    assert read_case_image(ArrayRef(tmp_path / "volume.npy"), (3, 4, 5)).shape == (3, 4, 5)
    with pytest.raises(PairingError, match=r"volume.npy: expected .* 3 × 4 × 6, got 3 × 4 × 5"):
        read_case_image(ArrayRef(tmp_path / "volume.npy"), (3, 4, 6))
    with pytest.raises(ReadError, match="no such file"):
        read_case_image(ArrayRef(tmp_path / "nowhere.png"), (3, 4))


@pytest.mark.needs("PIL")
@pytest.mark.parametrize(("kind", "shape"), [("uint8", (3, 4, 1)), ("uint16", (3, 4)), ("float32", (3, 4))])
def test_greys_keep_their_bits(tmp_path, kind, shape):
    from PIL import Image

    values = np.arange(12, dtype=kind).reshape(3, 4) * (1 if kind == "uint8" else 300)
    Image.fromarray(values).save(tmp_path / "grey.tif")
    found = read_case_image(ArrayRef(tmp_path / "grey.tif"), (3, 4))
    np.testing.assert_array_equal(found, values.reshape(shape))


@pytest.mark.needs("tifffile")
def test_pages_of_a_picture_are_slices_of_a_volume(tmp_path):
    import tifffile

    values = np.arange(60, dtype=np.uint16).reshape(3, 4, 5)
    tifffile.imwrite(tmp_path / "stack.tif", values, photometric="minisblack")
    np.testing.assert_array_equal(read_case_image(ArrayRef(tmp_path / "stack.tif"), (3, 4, 5)), values)


def test_colours_have_eight_bits(tmp_path):
    np.save(tmp_path / "colours.npy", np.ones((3, 4, 3), np.uint8))
    assert read_case_image(ArrayRef(tmp_path / "colours.npy"), (3, 4)).shape == (3, 4, 3)
    np.save(tmp_path / "shares.npy", np.ones((3, 4, 3)))
    with pytest.raises(PairingError, match="got 3 × 4 × 3"):
        read_case_image(ArrayRef(tmp_path / "shares.npy"), (3, 4))


def stored_as(path, values, order, signs, code=1):
    """Save a room, right, anterior, superior in steps of 1, 2 and 3 mm, with axes of any order."""
    import nibabel

    image = nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 3.0, 1.0]))
    wanted = nibabel.io_orientation(affine_of(order, signs))
    axes = nibabel.orientations.ornt_transform(nibabel.io_orientation(image.affine), wanted)
    turned = image.as_reoriented(axes)
    turned.set_sform(turned.affine, code)
    turned.set_qform(turned.affine, code)
    nibabel.save(turned, path)
    return open_volume(ArrayRef(path))


def room():
    return np.random.default_rng(0).random((4, 4, 4)).astype(np.float32)


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize(("order", "signs"), STORED)
def test_an_image_with_other_axes_is_turned_to_those_of_the_map(tmp_path, order, signs):
    image = stored_as(tmp_path / "image.nii", room(), order, signs)
    for name, storing in {"ras": ((0, 1, 2), (1, 1, 1)), "other": ((2, 0, 1), (-1, 1, -1))}.items():
        same = stored_as(tmp_path / f"{name}.nii", room(), *storing)
        found = read_case_image(ArrayRef(image.path), same.shape, same.grid)
        np.testing.assert_array_equal(found, same.read())


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize("kind", ["spacing", "origin", "oblique", "shape"])
def test_an_image_that_lies_elsewhere_is_refused(tmp_path, kind):
    import nibabel

    affine, values = np.diag([1.0, 2.0, 3.0, 1.0]), room()
    grid = Grid(values.shape, affine.copy())
    if kind == "spacing":
        affine[2, 2] = 3.5
    elif kind == "origin":
        affine[0, 3] = 1.0
    elif kind == "oblique":
        affine[:2, :2] = [[0.96, -0.56], [0.28, 1.92]]
    else:
        values = values[:3]
    nibabel.save(nibabel.Nifti1Image(values, affine), tmp_path / "image.nii")
    with pytest.raises(GeometryError, match=r"image\.nii: expected the grid of the map"):
        read_case_image(ArrayRef(tmp_path / "image.nii"), grid.shape, grid)


@pytest.mark.needs("nibabel")
def test_shapes_decide_where_one_of_both_lies_nowhere(tmp_path):
    values = room()
    stored = stored_as(tmp_path / "image.nii", values, (0, 1, 2), (-1, 1, 1))
    backwards = values[::-1].T
    np.testing.assert_array_equal(read_case_image(ArrayRef(stored.path), (4, 4, 4)), backwards)
    nowhere = Grid((4, 4, 4), np.eye(4), is_oriented=False)
    np.testing.assert_array_equal(read_case_image(ArrayRef(stored.path), (4, 4, 4), nowhere), backwards)
    codeless = stored_as(tmp_path / "codeless.nii", values, (0, 1, 2), (-1, 1, 1), code=0)
    assert not codeless.grid.is_oriented
    somewhere = Grid((4, 4, 4), np.diag([1.0, 2.0, 3.0, 1.0]))
    np.testing.assert_array_equal(read_case_image(ArrayRef(codeless.path), (4, 4, 4), somewhere), backwards)


@pytest.mark.needs("nibabel", "SimpleITK")
def test_an_image_elsewhere_is_resampled_if_asked_for(tmp_path):
    import nibabel

    fine = np.zeros((8, 8, 8), np.float32)
    fine[:] = np.arange(8)[:, None, None]  # rises to the right
    nibabel.save(nibabel.Nifti1Image(fine, np.eye(4)), tmp_path / "image.nii")
    coarse = np.diag([-2.0, 2.0, 2.0, 1.0])
    coarse[:3, 3] = 6.5, 0.5, 0.5
    found = read_case_image(
        ArrayRef(tmp_path / "image.nii"), (4, 4, 4), Grid((4, 4, 4), coarse), resample=True
    )
    np.testing.assert_allclose(found, np.broadcast_to([6.5, 4.5, 2.5, 0.5], (4, 4, 4)))


@pytest.mark.needs("nibabel")
def test_one_slice_is_turned_as_a_picture(tmp_path):
    import nibabel

    values = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    nibabel.save(nibabel.Nifti1Image(values, np.diag([-1.0, 1.0, 1.0, 1.0])), tmp_path / "image.nii")
    affine = np.eye(4)
    affine[0, 3] = -2.0
    found = read_case_image(ArrayRef(tmp_path / "image.nii"), (4, 3), Grid((1, 4, 3), affine))
    np.testing.assert_array_equal(found, values[::-1, :, 0].T)


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        ([], 0),
        ([0], 0),
        ([1], 0),
        ([0, 0, 0, 0], 2),
        ([0, 0, 0, 1], 3),
        ([1, 0, 0, 0, 1, 1], 4),
        ([1, 1, 1], 1),
    ],
)
def test_the_middle_is_that_of_what_is_filled(filled, expected):
    assert middle_slice(np.array(filled, bool)) == expected


def test_doubt_is_least_where_all_is_sure():
    assert slice_uncertainty(np.array([[0.0, 1.0]])) == 0.0
    assert slice_uncertainty(np.full((2, 2), 0.5)) == 2.0


def test_greys_are_cut_at_both_ends_and_colours_at_the_bright_one():
    values = np.arange(100, 1101.0).reshape(-1, 7, 1).repeat(3, 2)
    grey, coloured = window_of(values), window_of(values, has_colours=True)
    assert (grey.low, grey.high) == pytest.approx((105.0, 1095.0), abs=0.01)
    assert (coloured.low, coloured.high) == (0.0, grey.high)
    assert (grey.least, coloured.least, coloured.most) == (100.0, 0.0, 1100.0)


def test_what_is_no_number_does_not_count():
    values = np.array([np.nan, 0.0, np.inf, 4.0])
    window = window_of(values)
    assert (window.least, window.most) == (0.0, 4.0)
    assert stretch(values, 0.0, 4.0).tolist() == [0.0, 0.0, 255.0, 255.0]
    assert window_of(np.array([np.nan])) is None


def test_an_image_of_few_bright_pixels_is_seen_by_its_whole_range():
    values = np.zeros(1000)
    values[0] = 9.0
    window = window_of(values)
    assert (window.low, window.high) == (0.0, 9.0)
    assert stretch(np.array([5.0]), 5.0, 5.0).tolist() == [0.0]


@pytest.mark.needs("PIL")
@pytest.mark.parametrize(("kind", "shape"), [("uint8", (8, 6, 3)), ("uint8", (8, 6, 1)), ("uint16", (8, 6))])
def test_a_picture_of_another_size_is_brought_to_the_map(tmp_path, kind, shape):
    from PIL import Image

    values = np.random.default_rng(0).integers(0, np.iinfo(kind).max, (16, 18, *shape[2:])).astype(kind)
    Image.fromarray(values.squeeze()).save(tmp_path / "a.png")
    with pytest.raises(PairingError, match="expected an image of the map's shape, 8 × 6, got 16 × 18"):
        read_case_image(ArrayRef(tmp_path / "a.png"), (8, 6))
    found = read_case_image(ArrayRef(tmp_path / "a.png"), (8, 6), resample=True)
    assert found.shape == shape
    assert found.dtype == (np.uint8 if kind == "uint8" else np.float32)
    between = (values[0::2].astype(float) + values[1::2]) / 2  # a new row lies between two old ones
    np.testing.assert_allclose(found, between[:, 1::3].reshape(shape), atol=0.51, rtol=1e-6)


@pytest.mark.needs("PIL")
@pytest.mark.parametrize("ending", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_an_image_that_is_to_be_turned_is_rejected(tmp_path, ending, orientation):
    """It would be drawn turned against its mask."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a{ending}"
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(path, exif=exif)
    if orientation == 1:
        assert read_case_image(ArrayRef(path), (4, 5)).shape == (4, 5, 3)
        return
    with pytest.raises(WrongContentError, match=r"upright image, .* \(EXIF orientation tag 6\)\. Turn"):
        read_case_image(ArrayRef(path), (4, 5))


@pytest.mark.needs("PIL")
def test_what_is_a_jpeg(tmp_path):
    from PIL import Image

    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "a.png", format="JPEG")
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "b.jpg", format="PNG")
    assert is_jpeg(tmp_path / "a.png")
    assert not any(map(is_jpeg, (tmp_path / "b.jpg", tmp_path, tmp_path / "nowhere.jpg")))
    assert read_grey_jpeg(tmp_path / "a.png").shape == (4, 5)
    with pytest.raises(ReadError):
        read_grey_jpeg(tmp_path / "b.jpg")


@pytest.mark.needs("PIL")
def test_corrupt_jpegs_are_read_or_rejected(tmp_path):
    """Bytes that are changed, dropped or added anywhere end in pixels or in an error of this package."""
    from PIL import Image

    path = tmp_path / "a.jpg"
    y, x = np.indices((40, 56))
    exif = Image.Exif()
    exif[0x010E] = "a mask"
    Image.fromarray(((np.hypot(y - 20, x - 28) < 12) * 255).astype(np.uint8)).save(path, exif=exif)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    rejected = []
    for _ in range(400):
        changed = bytearray(content)
        for place in rng.integers(3, len(changed), rng.integers(1, 6)):
            changed[place] = rng.integers(256)
        start, stop = sorted(rng.integers(3, len(changed) + 1, 2))
        if rng.random() < 0.3:
            del changed[start:stop]
        path.write_bytes(changed)
        try:
            assert read_grey_jpeg(path).ndim == 2
        except SegtrustError as error:
            rejected.append(str(error))
    assert 0 < len(rejected) < 400
    assert all(reason.startswith(f"{path}: ") for reason in rejected)
