"""MetaImage and NRRD against SimpleITK."""

import gzip
import os
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.checksums import checksum_of
from segtrust.io.formats.itk import data_files_of, open_itk, recognises_itk
from segtrust.io.grid import Grid
from tests.io.itk_files import PIXELS, write_meta, write_nrrd
from tests.io.sandbox import read_in_child

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
    with pytest.raises(WrongContentError, match="with 2 numbers per pixel"):
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
    with pytest.raises(DamagedFileError, match=r"a\.mhd: expected .* a line of \d+ characters"):
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
    with pytest.raises(DamagedFileError, match=r"expected its data file 'a\.raw' next to it"):
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
    with pytest.raises(DamagedFileError, match=r"a\.mha: expected .* axes"):
        open_itk(path)


@pytest.mark.parametrize("line", [b"x" * 2000, b"foo: " + b"x" * 2000, b"kinds: " + b"q" * 2000 + b":=1"])
def test_lines_that_bring_nrrd_down_are_refused(tmp_path, line):
    path = tmp_path / "a.nrrd"
    path.write_bytes(b"NRRD0004\ntype: uint8\ndimension: 2\nsizes: 2 2\nencoding: raw\n" + line + b"\n\n1234")
    with pytest.raises(DamagedFileError, match=r"a\.nrrd: .* a line of 20.. characters"):
        open_itk(path)


@pytest.mark.parametrize("line", [b"# " + b"x" * 2000, b"content: " + b"x" * 2000, b"Tags:=" + b"x: " * 2000])
def test_notes_may_be_long(tmp_path, line):
    path = tmp_path / "a.nrrd"
    path.write_bytes(b"NRRD0004\ntype: uint8\ndimension: 2\nsizes: 2 2\nencoding: raw\n" + line + b"\n\n1234")
    assert open_itk(path).read().tolist() == [[49, 50], [51, 52]]


# Data files and headers

ROWS = [[0, 1, 2], [3, 4, 5]]


def both(folder, name):
    """Headers in both formats, whose pixels are in the file of this name."""
    folder.mkdir(exist_ok=True)
    meta = write_meta(folder, b"", "a.mhd", ElementDataFile=name)
    return meta, write_nrrd(folder, b"", "a.nhdr", data_file=name)


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "elsewhere" / "secret"
    path.parent.mkdir()
    path.write_bytes(PIXELS)
    return path


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path, outside, is_relative):
    headers = both(tmp_path / "maps", "a.raw")
    (tmp_path / "maps/a.raw").symlink_to("../elsewhere/secret" if is_relative else outside)
    for path in headers:
        with pytest.raises(UnsafeFileError, match=r"got the link 'a\.raw', which leads out .*: cp -L\.$"):
            open_itk(path)
        assert data_files_of(path) == []


def test_a_folder_that_leads_out_is_refused_too(tmp_path, outside):
    headers = both(tmp_path / "maps", "below/secret")
    (tmp_path / "maps/below").symlink_to(outside.parent, target_is_directory=True)
    for path in headers:
        with pytest.raises(UnsafeFileError, match="got the link 'below/secret'"):
            open_itk(path)


def test_no_fingerprint_is_made_of_what_a_link_leads_to(tmp_path, outside):
    for path in both(tmp_path / "maps", "a.raw"):
        without = checksum_of(path)
        (tmp_path / "maps/a.raw").symlink_to(outside)
        assert checksum_of(path) == without
        (tmp_path / "maps/a.raw").unlink()


def test_links_within_the_folder_are_followed(tmp_path):
    headers = both(tmp_path, "a.raw")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/pixels").write_bytes(PIXELS)
    (tmp_path / "a.raw").symlink_to("kept/pixels")
    assert [open_itk(path).read().tolist() for path in headers] == [ROWS, ROWS]


def test_a_folder_may_itself_be_a_link(tmp_path):
    both(tmp_path / "maps", "a.raw")
    (tmp_path / "maps/a.raw").write_bytes(PIXELS)
    (tmp_path / "again").symlink_to(tmp_path / "maps", target_is_directory=True)
    for name in ("a.mhd", "a.nhdr"):
        assert open_itk(tmp_path / "again" / name).read().tolist() == ROWS


def test_a_header_and_its_pixels_may_both_be_links_to_one_folder(tmp_path):
    headers = both(tmp_path / "maps", "a.raw")
    (tmp_path / "maps/a.raw").write_bytes(PIXELS)
    (tmp_path / "chosen").mkdir()
    for path in (*headers, tmp_path / "maps/a.raw"):
        (tmp_path / "chosen" / path.name).symlink_to(path)
    for path in headers:
        assert open_itk(tmp_path / "chosen" / path.name).read().tolist() == ROWS


@pytest.mark.parametrize("name", ["LOCAL", "list.raw", "List", "back\\slash"])
def test_names_that_look_like_something_else_are_looked_at_too(tmp_path, outside, name):
    meta, nrrd = both(tmp_path / "maps", name)
    (tmp_path / "maps" / name).symlink_to(outside)
    for path in (nrrd,) if name == "LOCAL" else (meta, nrrd):
        with pytest.raises(UnsafeFileError, match="which leads out of it"):
            open_itk(path).read()


def test_a_name_that_begins_like_a_list_leads_nowhere_else(tmp_path, outside):
    headers = both(tmp_path / "maps", "list/../../elsewhere/secret")
    (tmp_path / "maps/list").mkdir()
    for path in headers:
        with pytest.raises(UnsafeFileError, match="expected pixels in its own folder"):
            open_itk(path).read()


@pytest.mark.parametrize("name", ["LOCAL", "Local", "local"])
def test_pixels_in_the_file_itself(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(6))
    path = write_meta(tmp_path, ElementDataFile=name)
    assert open_itk(path).read().tolist() == ROWS
    assert open_itk(write_nrrd(tmp_path, data_file=name)).read().tolist() == [[0] * 3] * 2


def test_a_list_without_names_is_refused(tmp_path):
    """Of such ITK gives what was in memory before."""
    nrrd = tmp_path / "a.nhdr"
    nrrd.write_text(
        "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 3 2\nencoding: raw\ndata file: LIST\n" + "\n" * 9
    )
    for path in (write_meta(tmp_path, b"\n" * 9, ElementDataFile="LIST"), nrrd):
        with pytest.raises(DamagedFileError, match="a list of data files with no name in it"):
            open_itk(path)


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        ("LIST", "1.raw\n"),
        ("LIST", "1.raw\n2.raw"),  # the last line has no end
        ("LIST 1", "1.raw\n"),
        ("LIST 9", "1.raw\n"),
        ("%d.raw 1 1 1", ""),
    ],
)
def test_fewer_files_than_slices_are_refused(tmp_path, field, lines):
    """Of those that lack ITK gives what was in memory before."""
    for name in ("1.raw", "2.raw"):
        (tmp_path / name).write_bytes(PIXELS)
    path = write_meta(tmp_path, lines.encode(), "a.mhd", ElementDataFile=field)
    with pytest.raises(DamagedFileError, match="expected 2 data files, one for each slice, got 1 names"):
        open_itk(path)


@pytest.mark.parametrize("told", ["2", "x", "-1"])
def test_files_of_other_axes_than_slices_have_are_refused(tmp_path, told):
    (tmp_path / "1.raw").write_bytes(PIXELS)
    path = write_meta(tmp_path, b"1.raw\n" * 2, "a.mhd", ElementDataFile=f"LIST {told}")
    with pytest.raises(DamagedFileError, match=f"data files of '{told}' axes in an image of 2"):
        open_itk(path)


def test_rows_in_files_of_their_own_are_read(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.raw").write_bytes(bytes([number]))
    fields = {"NDims": "3", "DimSize": "1 3 2", "ElementDataFile": "LIST 1"}
    listed = b"".join(b"%d.raw\n" % number for number in range(6))
    assert open_itk(write_meta(tmp_path, listed, "a.mhd", **fields)).read().ravel().tolist() == list(range(6))


@pytest.mark.parametrize("name", ["a.raw ", "a.raw\t", "two  words.raw"])
def test_names_with_spaces_that_are_read_in_another_way_are_refused(tmp_path, outside, name):
    """NRRD's library opens the name with its last space, and one space where there are two."""
    headers = [write_nrrd(tmp_path, b"", "a.nhdr", data_file=name)]
    headers += [write_meta(tmp_path, f"{name}\n".encode() * 2, "a.mhd", ElementDataFile="LIST")]
    (tmp_path / " ".join(name.strip().split())).write_bytes(PIXELS)
    for path in headers:
        with pytest.raises(DamagedFileError, match="whose spaces ITK reads in another way"):
            open_itk(path)


def test_a_pattern_is_one_word(tmp_path):
    """Of two words ITK's MetaImage takes one, and NRRD's library neither."""
    for name in ("a", "a b1.raw", "a b2.raw"):
        (tmp_path / name).write_bytes(PIXELS)
    for path in both(tmp_path, "a b%d.raw 1 2 1"):
        with pytest.raises(UnsafeFileError, match="expected a pattern of data files such as"):
            open_itk(path)


@pytest.mark.parametrize("ending", ["gz", "Z"])
def test_pixels_of_another_name_are_not_looked_for(tmp_path, ending):
    """ITK takes ``a.raw.gz`` for ``a.raw`` that is not there, and whatever comes for what it lacks."""
    (tmp_path / f"a.raw.{ending}").write_bytes(gzip.compress(PIXELS)[:-12])
    for path in both(tmp_path, "a.raw"):
        with pytest.raises(DamagedFileError, match=r"expected its data file 'a\.raw' next to it, got none\."):
            open_itk(path).read()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"NDims": "0"}, "2 lengths for '0' axes"),
        ({"NDims": "-1"}, "2 lengths for '-1' axes"),
        ({"NDims": "100000000"}, "2 lengths for '100000000' axes"),
        ({"NDims": None}, "2 lengths for '' axes"),
        ({"DimSize": "3 -2"}, "the lengths '3 -2'"),
        ({"DimSize": "3 0"}, "the lengths '3 0'"),
        ({"DimSize": "3 2.5"}, r"the lengths '3 2\.5'"),
        ({"DimSize": "3"}, "1 lengths for '2' axes"),
        ({"DimSize": None}, "the lengths ''"),
        ({"TransformMatrix": "1 0 0"}, "where 4 numbers are needed"),
        ({"ElementSpacing": "1"}, "where 2 numbers are needed"),
        ({"ElementNumberOfChannels": "0"}, "'0' channels"),
        ({"Comment": "x" * 600}, "a line of 610 characters"),
        ({"Comment": "x\nDimSize = 9 9"}, "dimsize twice"),
    ],
)
def test_metaimages_that_are_not_in_order_are_rejected(tmp_path, fields, why):
    with pytest.raises(DamagedFileError, match=rf"a\.mha: expected .* got .*{why}"):
        open_itk(write_meta(tmp_path, **fields))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"dimension": "0"}, "2 lengths for '0' axes"),
        ({"sizes": "3 -2"}, "the lengths '3 -2'"),
        ({"sizes": "3"}, "1 lengths for '2' axes"),
        ({"Sizes": "9 9"}, "sizes twice"),
    ],
)
def test_nrrds_that_are_not_in_order_are_rejected(tmp_path, fields, why):
    with pytest.raises(DamagedFileError, match=rf"a\.nrrd: expected .* got .*{why}"):
        open_itk(write_nrrd(tmp_path, **fields))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize(
    ("write", "fields"),
    [
        (write_meta, {"ElementType": None}),
        (write_meta, {"TransformMatrix": "1 0 1e308 1"}),
        (write_meta, {"ElementSpacing": "nan 1"}),
        (write_meta, {"HeaderSize": "1000000000"}),
        (write_meta, {"Comment": "\x00"}),
        (write_nrrd, {"space_directions": "(1e200,0) (0,1)"}),
        (write_nrrd, {"spacings": "1 inf"}),
        (write_nrrd, {"byte_skip": "9" * 17}),
        (write_nrrd, {"line_skip": "999999999"}),
        (write_nrrd, {"kinds": "domain\x01domain"}),
    ],
)
def test_what_brings_itk_down_takes_only_its_process(tmp_path, write, fields):
    outcome = read_in_child(write(tmp_path, **fields), seconds=3)
    assert outcome.kind != "read" or outcome.value.tolist() == ROWS


def test_surplus_bytes_are_an_error(tmp_path):
    """A header that announces fewer pixels than there are leaves some of them out."""
    (tmp_path / "a.raw").write_bytes(PIXELS + b"x")
    for path in (
        write_meta(tmp_path, PIXELS + b"x"),
        write_nrrd(tmp_path, PIXELS + b"x"),
        *both(tmp_path, "a.raw"),
        packed_meta(tmp_path, zlib.compress(PIXELS + b"x"), name="b.mha"),
        write_nrrd(tmp_path, gzip.compress(PIXELS + b"x"), "b.nrrd", encoding="gzip"),
    ):
        with pytest.raises(DamagedFileError, match=r"expected 6 bytes .*, got (7|more)"):
            open_itk(path).read()


@pytest.mark.parametrize("encoding", ["raw", "gzip", "ascii"])
def test_missing_pixels_are_an_error(tmp_path, encoding):
    pixels = {"raw": PIXELS[:5], "gzip": gzip.compress(PIXELS[:5]), "ascii": b"0 1 2 3 4"}[encoding]
    with pytest.raises(DamagedFileError, match=r"expected 6 bytes .*, got 5"):
        open_itk(write_nrrd(tmp_path, pixels, encoding=encoding)).read()


def test_what_is_no_gzip_is_not_taken_for_pixels(tmp_path):
    with pytest.raises(DamagedFileError, match=r"pixels in a\.nrrd that are not gzip"):
        open_itk(write_nrrd(tmp_path, encoding="gzip")).read()


def test_a_metaimage_without_pixels_is_refused(tmp_path):
    with pytest.raises(DamagedFileError, match="without ElementDataFile"):
        open_itk(write_meta(tmp_path, b"", ElementDataFile=None))


@pytest.mark.parametrize("fields", [{"encoding": "bzip2"}, {"encoding": "zrl"}, {"type": "block"}])
def test_what_is_kept_in_other_ways_is_told(tmp_path, fields):
    with pytest.raises(WrongContentError, match="expected numbers as raw, text, hex or gzip"):
        open_itk(write_nrrd(tmp_path, **fields))


@pytest.mark.parametrize("lengths", ["1000000000 1000000000", "99999999999999999 9"])
@pytest.mark.parametrize("packed", [True, False])
def test_absurd_lengths_take_no_memory(tmp_path, lengths, packed):
    meta = write_meta(tmp_path, DimSize=lengths, CompressedData=str(packed), CompressedDataSize="6")
    nrrd = write_nrrd(tmp_path, sizes=lengths, encoding="gzip" if packed else "raw")
    for path in (meta, nrrd):
        with pytest.raises(ReadError, match=path.name):
            open_itk(path).read()


def test_a_channel_is_not_read_where_all_of_them_are_too_many(tmp_path, monkeypatch):
    """ITK reads all of them to give one."""
    path = write_meta(tmp_path, bytes(60), ElementNumberOfChannels="10")
    volume = open_itk(path)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "59")
    with pytest.raises(UnsafeFileError, match="SEGTRUST_MAX_BYTES=60"):
        volume.read(0)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "60")
    assert volume.read(0).shape == (2, 3)


def packed_meta(folder, pixels, **fields):
    return write_meta(folder, pixels, CompressedData="True", CompressedDataSize=len(pixels), **fields)


def test_packed_pixels_are_read(tmp_path):
    for packed in (zlib.compress(PIXELS), gzip.compress(PIXELS)):
        assert open_itk(packed_meta(tmp_path, packed)).read().tolist() == ROWS


@pytest.mark.parametrize("damage", ["flipped", "checksum", "short", "garbage"])
def test_packed_pixels_that_are_damaged_are_never_read(tmp_path, damage):
    """ITK says nothing then, and gives what was in memory before."""
    pixels = np.random.default_rng(0).integers(0, 9, 6000).astype("u1").tobytes()
    packed = bytearray(zlib.compress(pixels if damage != "short" else pixels[:-1]))
    if damage == "flipped":
        packed[1000] ^= 255
    if damage == "checksum":
        packed[-1] ^= 255
    if damage == "garbage":
        packed[:] = b"x" * len(packed)
    path = packed_meta(tmp_path, bytes(packed), DimSize="60 100")
    with pytest.raises(DamagedFileError, match=r"a\.mha: expected .*Copy|a\.mha: expected .*copy"):
        open_itk(path).read()


@pytest.mark.parametrize("length", [None, "0", "-1"])
def test_packed_pixels_of_an_unknown_length_are_not_read(tmp_path, length):
    """Of such ITK gives what was in memory before."""
    packed = zlib.compress(PIXELS)
    path = write_meta(tmp_path, packed, CompressedData="True", CompressedDataSize=length)
    with pytest.raises(DamagedFileError, match="without CompressedDataSize"):
        open_itk(path)


@pytest.mark.parametrize(
    "name",
    [
        "a%d.raw 1 2 0",  # divides by zero
        "a%s.raw 1 2 1",  # reads from anywhere
        "a%n.raw 1 2 1",  # writes anywhere
        "a%d%d.raw 1 2 1",
        "a%999d.raw 1 2 1",
        "a%*d.raw 1 2 1",
        "a%d.raw",
        "a%d.raw 2 1 1",
        "a%d.raw 0 999999999 1",
        "x" * 90 + "%d.raw 1 2 1",  # more than there is room for
    ],
)
def test_patterns_of_names_that_bring_itk_down_are_refused(tmp_path, name):
    for path in (
        write_meta(tmp_path, ElementDataFile=name),
        write_nrrd(tmp_path, data_file=name),
    ):
        with pytest.raises(UnsafeFileError, match="expected a pattern of data files such as"):
            open_itk(path)


@pytest.mark.parametrize("name", ["/etc/hostname", "../b.raw", "-", "below", "waiting"])
def test_only_files_beside_a_header_are_opened(tmp_path, name):
    (tmp_path / "below").mkdir()
    os.mkfifo(tmp_path / "waiting")
    for path in (write_meta(tmp_path, ElementDataFile=name), write_nrrd(tmp_path, data_file=name)):
        with pytest.raises(ReadError, match=r"expected pixels in its own folder"):
            open_itk(path)


def test_each_name_of_a_list_is_looked_at(tmp_path):
    (tmp_path / "1.raw").write_bytes(PIXELS[:3])
    meta = write_meta(tmp_path, b"1.raw\n/etc/hostname\n", ElementDataFile="LIST")
    nrrd = tmp_path / "a.nhdr"
    fields = "type: uint8\ndimension: 2\nsizes: 3 2\nencoding: raw\ndata file: LIST 1\n"
    nrrd.write_text(f"NRRD0004\n{fields}1.raw\n../2.raw\n")
    for path in (meta, nrrd):
        with pytest.raises(UnsafeFileError, match="expected pixels in its own folder"):
            open_itk(path)


@pytest.mark.parametrize("how", ["%d.raw 1 2 1", "LIST"])
def test_slices_in_files_of_their_own_are_read(tmp_path, how):
    (tmp_path / "1.raw").write_bytes(PIXELS[:3])
    (tmp_path / "2.raw").write_bytes(PIXELS[3:])
    listed = b"1.raw\n2.raw\n" if how == "LIST" else b""
    path = write_meta(tmp_path, listed, "a.mhd", ElementDataFile=how)
    assert data_files_of(path) == [tmp_path / "1.raw", tmp_path / "2.raw"]
    volume = open_itk(path)
    assert volume.read().tolist() == ROWS


@pytest.mark.parametrize("name", ["pixels.raw", "two words.raw", "größe.raw"])
def test_pixels_in_a_file_of_their_own_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(PIXELS)
    meta = write_meta(tmp_path, b"", "a.mhd", ElementDataFile=name)
    nrrd = write_nrrd(tmp_path, b"", "a.nhdr", data_file=name)
    for path in (meta, nrrd):
        assert data_files_of(path) == [tmp_path / name]
        assert open_itk(path).read().tolist() == ROWS


def test_text_and_hex_are_read(tmp_path):
    told = b"0 1 2 3 4 5\n"
    for path in (
        write_meta(tmp_path, told, BinaryData="False"),
        write_nrrd(tmp_path, told, encoding="ascii"),
        write_nrrd(tmp_path, b"000102030405\n", name="b.nrrd", encoding="hex"),
    ):
        assert open_itk(path).read().tolist() == ROWS


def test_a_refused_header_has_no_data_files(tmp_path):
    assert data_files_of(write_meta(tmp_path, name="a.mhd", ElementDataFile="/etc/hostname")) == []


def test_notes_of_other_programs_are_passed_over(tmp_path):
    """As DICOM's tags in MetaImage, and the segments of 3D Slicer in NRRD."""
    meta = write_meta(tmp_path, **{"0008|0060": "CT", "ITK_note": "x" * 3000, "Name": "Größe"})
    fields = {"space": "left-posterior-superior", "dimension": "3", "sizes": "3 2 1", "kinds": "domain " * 3}
    places = {"space_directions": "(1,0,0) (0,1,0) (0,0,1)", "space_origin": "(0,0,0)"}
    nrrd = write_nrrd(tmp_path, **fields, **places)
    note = b"Segment0_Name:=Gr\xc3\xb6\xc3\x9fe: large\nSegment0_Color:=0.5 0.5 0.1\n"
    nrrd.write_bytes(nrrd.read_bytes().replace(b"\n\n", b"\n" + note + b"\n", 1))
    assert open_itk(meta).read().size == open_itk(nrrd).read().size == 6
    assert np.array_equal(open_itk(nrrd).read()[0], open_itk(meta).read())
