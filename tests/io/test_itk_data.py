"""Data files of a header: only those in its own folder, all that it announces, and no others."""

import gzip
import time

import pytest
from segtrust.io.itk_headers import read_itk_header

from segtrust.errors import DamagedFileError, UnsafeFileError
from segtrust.io.digests import digest_of
from segtrust.io.itk import data_files_of, open_itk
from tests.io.itk_files import PIXELS, write_meta, write_nrrd

pytestmark = pytest.mark.needs("SimpleITK")
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
        without = digest_of(path)
        (tmp_path / "maps/a.raw").symlink_to(outside)
        assert digest_of(path) == without
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
    assert read_itk_header(path).names == ()
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
        with pytest.raises(DamagedFileError, match=r"expected its data file 'a\.raw' beside it, got none\."):
            open_itk(path).read()


def test_names_of_many_files_take_no_long_time(tmp_path):
    (tmp_path / "1").write_bytes(PIXELS)
    path = write_meta(tmp_path, b"1\n" * 300_000 + b"2\n", ElementDataFile="LIST")
    begin = time.process_time()
    assert len(read_itk_header(path).names) == 300_001
    assert time.process_time() - begin < 2.0
