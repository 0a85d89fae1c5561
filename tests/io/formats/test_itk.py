"""MetaImage and NRRD against SimpleITK."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats.itk import open_itk, recognises_itk
from segtrust.io.grids import Grid

pytestmark = pytest.mark.needs("SimpleITK")

SUFFIXES = (".mha", ".mhd", ".nrrd", ".nhdr")
TURN = (0.6, -0.8, 0.0, 0.0, 0.0, -1.0, 0.8, 0.6, 0.0)
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def save(path, array, *, components=False, packed=False):
    """Write an array in the order of its axes; its last are components if that is said."""
    import SimpleITK

    image = SimpleITK.GetImageFromArray(array, isVector=components)
    if image.GetDimension() == 3:
        image.SetSpacing((0.5, 0.75, 3.0))
        image.SetOrigin((10.0, -20.0, 30.0))
        image.SetDirection(TURN)
    SimpleITK.WriteImage(image, str(path), packed)
    return path


def example(shape, dtype="f4"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packed", [True, False])
def test_an_image_comes_back_with_its_place(tmp_path, suffix, packed):
    path = save(tmp_path / f"a{suffix}", example((3, 4, 5)), packed=packed)
    volume = open_itk(path)
    assert volume.shape == (3, 4, 5)
    assert volume.has_channels is False
    assert (volume.read() == example((3, 4, 5))).all()
    wanted = Grid.of_itk((3, 4, 5), spacing=(0.5, 0.75, 3.0), origin=(10.0, -20.0, 30.0), direction=TURN)
    assert volume.grid.distance_to(wanted) < 1e-6
    assert np.allclose(volume.grid.spacing_mm, (3.0, 0.75, 0.5))


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_image_as_nifti_lies_in_the_same_place(tmp_path, suffix):
    from segtrust.io.formats.nifti import open_nifti

    nifti = open_nifti(save(tmp_path / "a.nii.gz", example((3, 4, 5))))
    volume = open_itk(save(tmp_path / f"a{suffix}", example((3, 4, 5))))
    assert volume.grid.distance_to(nifti.grid) < 1e-3
    assert (volume.read() == nifti.read()).all()


@given(
    shape=st.lists(st.integers(2, 5), min_size=2, max_size=3),
    dtype=st.sampled_from(DTYPES),
    suffix=st.sampled_from(SUFFIXES),
    packed=st.booleans(),
)
@in_folder
def test_whatever_itk_writes_is_read_bit_for_bit(tmp_path, shape, dtype, suffix, packed):
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    volume = open_itk(save(tmp_path / f"a{suffix}", array, packed=packed))
    assert volume.dtype == volume.read().dtype == np.dtype(dtype)
    assert volume.shape == array.shape
    assert (volume.read() == array).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(4, 5, 2), (3, 4, 5, 2)])
def test_components_are_channels(tmp_path, suffix, shape):
    array = example(shape)
    volume = open_itk(save(tmp_path / f"a{suffix}", array, components=True))
    wanted = np.moveaxis(array, -1, 0)
    assert volume.shape == wanted.shape
    assert volume.has_channels
    assert volume.grid.shape == shape[:-1]
    assert volume.read().flags.c_contiguous
    assert (volume.read() == wanted).all()
    assert (volume.read(1) == wanted[1]).all()


@pytest.mark.parametrize("suffix", [".mha", ".nrrd"])
def test_a_fourth_axis_are_channels(tmp_path, suffix):
    array = example((2, 3, 4, 5))
    volume = open_itk(save(tmp_path / f"a{suffix}", array))
    assert volume.shape == array.shape
    assert volume.has_channels
    assert volume.grid.shape == (3, 4, 5)
    assert (volume.read(1) == array[1]).all()


def test_a_flat_image_has_a_flat_grid(tmp_path):
    import SimpleITK

    image = SimpleITK.GetImageFromArray(example((4, 5)))
    image.SetSpacing((0.5, 2.0))
    image.SetDirection((0.0, 1.0, 1.0, 0.0))
    SimpleITK.WriteImage(image, str(tmp_path / "a.mha"))
    volume = open_itk(tmp_path / "a.mha")
    assert volume.grid.shape == (4, 5)
    assert volume.grid.spacing_mm == (2.0, 0.5)
    assert np.allclose(volume.grid.itk()["direction"], (0, 1, 0, 1, 0, 0, 0, 0, 1))


@pytest.mark.parametrize("space", ["", "space: scanner-xyz\n", "space: left-posterior-superior\n"])
def test_axes_of_nothing_in_particular_are_not_those_of_a_body(tmp_path, space):
    places = "space directions: (1,0,0) (0,1,0) (0,0,2)\n" if space else "spacings: 1 1 2\n"
    header = (
        f"NRRD0004\ntype: float\ndimension: 3\nsizes: 4 3 2\n{space}{places}encoding: raw\nendian: little\n\n"
    )
    (tmp_path / "a.nrrd").write_bytes(header.encode() + example((2, 3, 4), "<f4").tobytes())
    grid = open_itk(tmp_path / "a.nrrd").grid
    assert grid.spacing_mm == (2.0, 1.0, 1.0)
    assert grid.is_oriented == ("left" in space)
    assert not open_itk(save(tmp_path / "flat.mha", example((3, 4)))).grid.is_oriented


def test_big_endian_numbers_are_read(tmp_path):
    header = "ObjectType = Image\nNDims = 2\nBinaryDataByteOrderMSB = True\nDimSize = 5 4\n"
    content = header.encode() + b"ElementType = MET_USHORT\nElementDataFile = LOCAL\n"
    (tmp_path / "a.mha").write_bytes(content + example((4, 5), ">u2").tobytes())
    assert (open_itk(tmp_path / "a.mha").read() == example((4, 5))).all()


def test_complex_numbers_and_many_axes_are_refused(tmp_path):
    with pytest.raises(WrongContentError, match="expected real numbers, got complex of 32-bit float"):
        open_itk(save(tmp_path / "a.nrrd", example((3, 4, 5), "c8")))
    with pytest.raises(WrongContentError, match="with 2 numbers a pixel"):
        open_itk(save(tmp_path / "a.mha", example((2, 2, 2, 2, 2)), components=True))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_are_known_by_their_content(tmp_path, suffix):
    path = save(tmp_path / f"a{suffix}", example((3, 4, 5)))
    head = path.read_bytes()[:512]
    assert recognises_itk(tmp_path / "other", head)
    assert recognises_itk(path, b"")
    assert not recognises_itk(tmp_path / "other", b"")
    assert not recognises_itk(tmp_path / "other", b"Comment = words\n")
    path.rename(tmp_path / "other")
    assert open_itk(tmp_path / "other").shape == (3, 4, 5)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("suffix", [".mha", ".nrrd"])
def test_a_truncated_file_is_never_read_wrongly(tmp_path, suffix, packed, capfd):
    array = np.random.default_rng(0).random((3, 4, 5))
    content = save(tmp_path / f"a{suffix}", array, packed=packed).read_bytes()
    path = tmp_path / f"b{suffix}"
    for length in [*range(0, len(content) - 8, 7), len(content) - 9]:
        path.write_bytes(content[:length])
        with pytest.raises(ReadError, match=r"trunc|got '' axes|with encoding 'ra'|is damaged") as caught:
            open_itk(path).read()
        assert str(caught.value).startswith(str(path))
        assert "0x" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_garbage_after_the_magic_is_named(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    for start in (b"NRRD0004\n", b"ObjectType = Image\nNDims = 3\n"):
        path.write_bytes(start + b"\xff\0 = :" * 90)
        with pytest.raises(DamagedFileError, match=f"a{suffix}: expected an image in MetaImage or NRRD"):
            open_itk(path)


OUTSIDE = (
    "../b.raw",
    "/etc/hostname",
    "sub/../../b.raw",
    "C:\\b.raw",
    "..\\b.raw",
    "~/b.raw",
    "../%d.raw 1 3 1",
)


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("field", ["ElementDataFile = ", "ElementDataFile : ", "ElementDataFile = LIST\n"])
def test_a_metaimage_stays_in_its_folder(tmp_path, field, name):
    path = save(tmp_path / "a.mhd", example((3, 4, 5)))
    path.write_text(path.read_text().replace("ElementDataFile = ", field).replace("a.raw", name))
    with pytest.raises(UnsafeFileError, match=r"a\.mhd: expected pixels in its own folder, got "):
        open_itk(path)


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("field", ["data file: ", "DataFile: ", "data file: LIST\n"])
def test_an_nrrd_stays_in_its_folder(tmp_path, field, name):
    path = save(tmp_path / "a.nhdr", example((3, 4, 5)))
    path.write_text(path.read_text().replace("data file: ", field).replace("a.raw", name))
    with pytest.raises(UnsafeFileError, match=r"a\.nhdr: expected pixels in its own folder, got "):
        open_itk(path)


def test_remarks_about_other_folders_are_no_data_files(tmp_path):
    path = save(tmp_path / "a.nhdr", example((3, 4, 5)))
    path.write_text(path.read_text() + "original data file:=/scans/7.raw\n")
    assert (open_itk(path).read() == example((3, 4, 5))).all()


def test_a_header_that_hides_its_data_file_is_refused(tmp_path):
    path = save(tmp_path / "a.mhd", example((3, 4, 5)))
    remark = "Comment = " + "x" * (1 << 20) + "\n"
    path.write_text(path.read_text().replace("ElementDataFile", remark + "ElementDataFile"))
    with pytest.raises(DamagedFileError, match=r"a\.mhd: expected a header of less than 1048576 bytes"):
        open_itk(path)


@pytest.mark.parametrize("suffix", [".mhd", ".nhdr"])
def test_pixels_may_lie_in_a_folder_below(tmp_path, suffix):
    path = save(tmp_path / f"a{suffix}", example((3, 4, 5)))
    (tmp_path / "below").mkdir()
    (tmp_path / "a.raw").rename(tmp_path / "below/a.raw")
    path.write_text(path.read_text().replace("a.raw", "below/a.raw"))
    assert (open_itk(path).read() == example((3, 4, 5))).all()


@pytest.mark.parametrize("suffix", [".mhd", ".nhdr"])
def test_a_missing_data_file_is_named(tmp_path, suffix):
    path = save(tmp_path / f"a{suffix}", example((3, 4, 5)))
    (tmp_path / "a.raw").unlink()
    with pytest.raises(DamagedFileError, match=r"expected its data file 'a\.raw' beside it"):
        open_itk(path).read()


def test_an_announced_size_has_a_limit(tmp_path, monkeypatch):
    path = save(tmp_path / "a.mha", example((3, 4, 5)), packed=True)
    path.write_bytes(path.read_bytes().replace(b"DimSize = 5 4 3", b"DimSize = 30000 30000 30000"))
    with pytest.raises(UnsafeFileError, match=r"got one of 1\.01e\+05 GiB"):
        open_itk(path).read()
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "239")
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=240"):
        open_itk(save(tmp_path / "a.nrrd", example((3, 4, 5)))).read()


def test_an_image_without_extent_is_refused(tmp_path):
    path = save(tmp_path / "a.mha", example((3, 4, 5)))
    path.write_bytes(path.read_bytes().replace(b"0.5 0.75 3", b"0.5 0.00 3"))
    with pytest.raises(DamagedFileError, match=r"a\.mha: expected "):
        open_itk(path)


@pytest.mark.parametrize("axes", [b"-1", b"0", b"17", b"100000000", b"1e9", b"", b"x"])
def test_numbers_of_axes_that_bring_itk_down_are_refused(tmp_path, axes):
    path = tmp_path / "a.mha"
    path.write_bytes(b"ObjectType = Image\nNDims = " + axes + b"\nDimSize = 2 2\nElementDataFile = LOCAL\n")
    with pytest.raises(DamagedFileError, match=r"a\.mha: expected 2 or 3 axes"):
        open_itk(path)


@pytest.mark.parametrize("line", [b"x" * 2000, b"foo: " + b"x" * 2000, b"kinds: " + b"q" * 2000 + b":=1"])
def test_lines_that_bring_nrrd_down_are_refused(tmp_path, line):
    path = tmp_path / "a.nrrd"
    path.write_bytes(b"NRRD0004\ntype: uint8\ndimension: 2\nsizes: 2 2\nencoding: raw\n" + line + b"\n\n1234")
    with pytest.raises(DamagedFileError, match=r"a\.nrrd: .* lines of at most 700 bytes"):
        open_itk(path)


@pytest.mark.parametrize("line", [b"# " + b"x" * 2000, b"content: " + b"x" * 2000, b"Tags:=" + b"x: " * 2000])
def test_notes_may_be_long(tmp_path, line):
    path = tmp_path / "a.nrrd"
    path.write_bytes(b"NRRD0004\ntype: uint8\ndimension: 2\nsizes: 2 2\nencoding: raw\n" + line + b"\n\n1234")
    assert open_itk(path).read().tolist() == [[49, 50], [51, 52]]
