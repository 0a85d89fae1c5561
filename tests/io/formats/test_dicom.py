"""Segmentations of DICOM, written by highdicom."""

import numpy as np
import pytest

import segtrust
from segtrust.errors import DamagedFileError, GeometryError, UnsafeFileError, WrongContentError
from segtrust.io.formats.dicom import open_dicom, recognises_dicom
from tests.io.dicom_files import OBLIQUE, SPACING, STRAIGHT, Series, save, segmentation, source_images

pytestmark = pytest.mark.needs("highdicom")

LEVELS = np.random.default_rng(7).integers(0, 256, (2, 4, 5, 7)).astype(np.uint8)
LEVELS[1, 0] = LEVELS[0, 3] = 0
P = LEVELS / np.float32(255.0)
MASKS = LEVELS > 100
ORIENTATIONS = pytest.mark.parametrize("orientation", [STRAIGHT, OBLIQUE])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "case.dcm"


def last(channels_first):
    """As highdicom takes segments: behind the pixels."""
    return np.moveaxis(channels_first, 0, -1)


def fractional(**options):
    return segmentation(last(P), "FRACTIONAL", **options)


def binary(**options):
    return segmentation(last(MASKS), "BINARY", **options)


def as_highdicom_reads(path):
    """Pixels, segments first, and the 4 × 4 place for (z, y, x), with slices in the order of their normal."""
    import highdicom

    volume = highdicom.seg.segread(path).get_volume()
    affine, array = np.array(volume.affine), volume.array
    if np.dot(np.cross(affine[:3, 2], affine[:3, 1]), affine[:3, 0]) < 0.0:
        affine[:3, 3] += (len(array) - 1) * affine[:3, 0]
        affine[:3, 0] *= -1.0
        array = array[::-1]
    return np.moveaxis(array, -1, 0), affine


def check_place(volume, path):
    expected, itk = as_highdicom_reads(path)[1], volume.grid.itk()
    np.testing.assert_allclose(itk["origin"], expected[:3, 3], atol=1e-5)
    steps = np.reshape(itk["direction"], (3, 3)) * itk["spacing"]
    np.testing.assert_allclose(steps[:, ::-1], expected[:3, :3], atol=1e-5)


def test_any_dicom_file_is_known_by_its_mark(path):
    save(fractional(), path)
    assert recognises_dicom(path, path.read_bytes()[:512])
    assert not recognises_dicom(path, b"DICM")


@ORIENTATIONS
def test_probabilities_are_put_where_they_lie(path, orientation):
    save(fractional(series=Series(orientation=orientation)), path)
    volume = open_dicom(path)
    assert (volume.shape, volume.dtype, volume.has_channels) == (P.shape, np.float32, True)
    assert volume.channel_names == ("liver", "spleen")
    np.testing.assert_array_equal(volume.read(), P)
    np.testing.assert_array_equal(volume.read(1), P[1])
    assert volume.grid.spacing_mm == pytest.approx((2.5, *SPACING))
    check_place(volume, path)
    assert segtrust.score(volume.read(0)) == segtrust.score(P[0])


@ORIENTATIONS
@pytest.mark.parametrize("omit", [True, False])
def test_bits_that_begin_within_a_byte_are_unpacked(path, orientation, omit):
    save(binary(series=Series(orientation=orientation), omit_empty_frames=omit), path)
    volume = open_dicom(path)
    assert volume.dtype == bool
    np.testing.assert_array_equal(volume.read(), MASKS)
    np.testing.assert_array_equal(volume.read(1), MASKS[1])
    check_place(volume, path)


@ORIENTATIONS
def test_the_pixels_are_those_that_highdicom_reads(path, orientation):
    save(fractional(series=Series(orientation=orientation)), path)
    np.testing.assert_allclose(open_dicom(path).read(), as_highdicom_reads(path)[0], rtol=1e-6)


@pytest.mark.needs("SimpleITK")
def test_the_place_is_that_of_the_image_it_was_made_of(path, tmp_path):
    import SimpleITK

    series = Series(orientation=OBLIQUE)
    for number, image in enumerate(source_images(series)):
        save(image, tmp_path / f"{number}.dcm")
    files = SimpleITK.ImageSeriesReader.GetGDCMSeriesFileNames(str(tmp_path))
    image = SimpleITK.ReadImage(files)
    itk = open_dicom(save(fractional(series=series), path)).grid.itk()
    np.testing.assert_allclose(itk["origin"], image.GetOrigin(), atol=1e-5)
    np.testing.assert_allclose(itk["spacing"], image.GetSpacing(), atol=1e-5)
    np.testing.assert_allclose(itk["direction"], image.GetDirection(), atol=1e-5)


def test_a_maximum_other_than_255_is_taken_into_account(path):
    save(fractional(max_fractional_value=100), path)
    np.testing.assert_allclose(open_dicom(path).read(), P, atol=0.005)
    assert open_dicom(path).read().max() <= 1.0


@pytest.mark.parametrize("make", [fractional, binary])
def test_slices_without_any_frame_are_empty(path, make):
    masks = np.zeros((2, 4, 5, 7), np.uint8)
    masks[:, [0, 1, 3]] = MASKS[:, [0, 1, 3]]
    kind = "BINARY" if make is binary else "FRACTIONAL"
    save(segmentation(last(masks if make is binary else masks.astype(float)), kind), path)
    np.testing.assert_array_equal(open_dicom(path).read(), masks)
    check_place(open_dicom(path), path)


def test_the_volume_ends_with_the_last_frame(path):
    masks = np.zeros((4, 5, 7), np.uint8)
    masks[1:3, 2] = 1
    volume = open_dicom(save(segmentation(masks, "BINARY", names=["liver"]), path))
    np.testing.assert_array_equal(volume.read(), masks[None, 1:3])
    assert volume.grid.itk()["origin"] == pytest.approx((10.0, -20.0, 32.5))


def test_the_order_of_the_frames_does_not_matter(path):
    dataset = fractional()
    frames = list(dataset.PerFrameFunctionalGroupsSequence)
    pixels = np.frombuffer(dataset.PixelData, np.uint8)[: len(frames) * 35].reshape(len(frames), -1)
    dataset.PerFrameFunctionalGroupsSequence = frames[::-1]
    dataset.PixelData = pixels[::-1].tobytes() + b"\0" * (pixels.size % 2)
    np.testing.assert_array_equal(open_dicom(save(dataset, path)).read(), P)


def test_a_segment_without_a_frame_is_empty(path):
    masks = np.stack([MASKS[0], np.zeros_like(MASKS[0])])
    volume = open_dicom(save(segmentation(last(masks), "BINARY"), path))
    assert volume.read().any(axis=(1, 2, 3)).tolist() == [True, False]
    assert not volume.read(1).any()
    levels = open_dicom(save(segmentation(last(masks.astype(float)), "FRACTIONAL"), path))
    assert not levels.read(1).any()


def test_labels_are_read_as_they_are(path):
    labels = np.where(MASKS[0], 1, np.where(MASKS[1], 2, 0)).astype(np.uint8)
    volume = open_dicom(save(segmentation(labels, "LABELMAP"), path))
    assert (volume.shape, volume.dtype, volume.has_channels) == (labels.shape, np.uint8, False)
    np.testing.assert_array_equal(volume.read(), labels)
    check_place(volume, path)
    with pytest.raises(WrongContentError, match="expected channels"):
        volume.read(0)


@pytest.mark.parametrize(
    "syntax", ["RLELossless", "DeflatedExplicitVRLittleEndian", "ImplicitVRLittleEndian"]
)
def test_packed_files_are_unpacked(path, syntax):
    from pydicom import uid

    kind = getattr(uid, syntax)
    dataset = fractional(transfer_syntax_uid=kind) if syntax == "RLELossless" else fractional()
    dataset.file_meta.TransferSyntaxUID = kind
    save_as = {"implicit_vr": True, "little_endian": True} if syntax.startswith("Implicit") else {}
    dataset.save_as(path, enforce_file_format=True, **save_as)
    np.testing.assert_array_equal(open_dicom(path).read(), P)


def test_an_image_is_refused_by_its_modality(path):
    with pytest.raises(WrongContentError, match=r"case\.dcm: expected a DICOM seg.* got the modality 'CT'"):
        open_dicom(save(source_images(Series())[0], path))


def test_a_segmentation_by_surfaces_is_refused(path):
    dataset = fractional()
    dataset.SOPClassUID = dataset.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.66.5"
    with pytest.raises(WrongContentError, match=r"case\.dcm: .* got Surface Segmentation Storage"):
        open_dicom(save(dataset, path))


def test_an_unknown_type_is_refused(path):
    dataset = fractional()
    dataset.SegmentationType = "SURFACE"
    with pytest.raises(WrongContentError, match=r"case\.dcm: .* got the type 'SURFACE'"):
        open_dicom(save(dataset, path))


def test_occupancy_is_refused(path):
    with pytest.raises(
        WrongContentError, match=r"case\.dcm: .* PROBABILITY, got OCCUPANCY.* is no probability"
    ):
        open_dicom(save(fractional(fractional_type="OCCUPANCY"), path))


def test_uneven_slices_are_refused(path):
    heights = (0.0, 2.5, 5.0, 9.1)
    with pytest.raises(GeometryError, match=r"case\.dcm: .* some 2\.5 mm and some 4\.1 mm apart"):
        open_dicom(save(fractional(series=Series(heights=heights)), path))


def test_frames_of_several_spacings_are_refused(path):
    from pydicom.dataset import Dataset

    dataset = fractional()
    other = Dataset()
    other.PixelSpacing = [1.0, 1.0]
    dataset.PerFrameFunctionalGroupsSequence[2].PixelMeasuresSequence = [other]
    with pytest.raises(GeometryError, match=r"one spacing, got \[0\.5, 0\.75\] and \[1\.0, 1\.0\]"):
        open_dicom(save(dataset, path))


def test_frames_without_a_place_are_refused(path):
    dataset = fractional()
    for frame in dataset.PerFrameFunctionalGroupsSequence:
        del frame.PlanePositionSequence
    with pytest.raises(WrongContentError, match=r"case\.dcm: expected frames with a place in the patient"):
        open_dicom(save(dataset, path))


def test_two_frames_in_one_place_are_refused(path):
    dataset = fractional()
    frames = dataset.PerFrameFunctionalGroupsSequence
    dataset.PerFrameFunctionalGroupsSequence = [frames[0], frames[0], *frames[2:]]
    with pytest.raises(WrongContentError, match=r"case\.dcm: expected one frame for each segment and slice"):
        open_dicom(save(dataset, path))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NumberOfFrames", 100, "expected 100 frames, as it says, got places of 6"),
        ("MaximumFractionalValue", 0, "MaximumFractionalValue of at least 1, got 0"),
        ("SegmentSequence", [], r"expected frames of the segments \[\], got some of \[1, 2\]"),
        ("Rows", None, "expected a DICOM segmentation, got one that cannot be read"),
        ("PerFrameFunctionalGroupsSequence", [], "got places of 0"),
    ],
)
def test_headers_that_contradict_themselves_are_refused(path, name, value, message):
    dataset = fractional()
    setattr(dataset, name, value)
    with pytest.raises(DamagedFileError, match=rf"case\.dcm: .*{message}"):
        open_dicom(save(dataset, path))


def test_a_size_that_would_fill_the_memory_is_refused(path, monkeypatch):
    dataset = fractional()
    dataset.Rows = dataset.Columns = 65535
    volume = open_dicom(save(dataset, path))
    with pytest.raises(UnsafeFileError, match=r"case\.dcm: expected an array of at most 16 GiB"):
        volume.read()
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    with pytest.raises(UnsafeFileError, match=r"case\.dcm: expected an array of at most"):
        open_dicom(path)


@pytest.mark.parametrize("make", [fractional, binary])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(path, make, part):
    written = save(make(), path).read_bytes()
    path.write_bytes(written[: int(len(written) * part)])
    with pytest.raises(DamagedFileError, match=r"case\.dcm: expected (a DICOM segmentation|\d+ bytes)"):
        open_dicom(path).read()


@pytest.mark.parametrize("make", [fractional, binary])
def test_too_few_pixels_are_refused(path, make):
    dataset = make()
    dataset.PixelData = dataset.PixelData[:8]
    volume = open_dicom(save(dataset, path))
    with pytest.raises(DamagedFileError, match=r"case\.dcm: expected \d+ bytes by its own header, got 8"):
        volume.read()


@pytest.mark.parametrize("make", [fractional, binary])
def test_surplus_pixels_are_an_error(path, make):
    """A header that announces fewer frames than there are."""
    dataset = make()
    dataset.PixelData = dataset.PixelData + bytes(8)
    volume = open_dicom(save(dataset, path))
    with pytest.raises(DamagedFileError, match=r"case\.dcm: expected \d+ bytes by .* got \d+\. Pix"):
        volume.read()
