"""Headers that would bring ITK down, or lead it elsewhere, are refused before it sees them."""

import gzip
import itertools
import os
import time
import zlib
from contextlib import suppress

import numpy as np
import pytest
from segtrust.io.itk_headers import read_itk_header

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.itk import data_files_of, open_itk
from tests.io.itk_files import PIXELS, write_meta, write_nrrd

pytestmark = pytest.mark.needs("SimpleITK")


@pytest.mark.parametrize("write", [write_meta, write_nrrd])
def test_what_is_in_order_is_read(tmp_path, write):
    path = write(tmp_path)
    assert read_itk_header(path).numbers == 6
    assert open_itk(path).read().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"NDims": "0"}, "'0' axes"),
        ({"NDims": "20"}, "'20' axes"),
        ({"NDims": "-1"}, "'-1' axes"),
        ({"NDims": None}, "'' axes"),
        ({"DimSize": "3 -2"}, "the length '-2'"),
        ({"DimSize": "3 0"}, "the length '0'"),
        ({"DimSize": "3 2.5"}, r"the length '2\.5'"),
        ({"DimSize": "3"}, "where 2 numbers are needed"),
        ({"DimSize": None}, "without DimSize"),
        ({"ElementType": None}, "without ElementType"),
        ({"TransformMatrix": "1 0 0"}, "where 4 numbers are needed"),
        ({"TransformMatrix": "1 0 1e308 1"}, "'1e308' among the numbers of TransformMatrix"),
        ({"ElementSpacing": "nan 1"}, "'nan' among the numbers of ElementSpacing"),
        ({"ElementNumberOfChannels": "0"}, "the length '0'"),
        ({"HeaderSize": "1000000000"}, "HeaderSize = 1000000000"),
        ({"CompressedData": "True", "CompressedDataSize": "99999999999"}, "CompressedDataSize = 9"),
        ({"F" * 201: "x"}, "the line 'FFF"),
        ({"Comment": "x" * 600}, "more than 490"),
        ({"Comment": "\x00"}, "unprintable"),
        ({"Comment": "x\nno field"}, "the line 'no field'"),
        ({"Comment": "x\nDimSize = 9 9"}, "DimSize twice"),
    ],
)
def test_metaimages_that_are_not_in_order_are_refused(tmp_path, fields, why):
    with pytest.raises(DamagedFileError, match=rf"a\.mha: expected .* got .*{why}"):
        open_itk(write_meta(tmp_path, **fields))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"dimension": "0"}, "'0' axes"),
        ({"dimension": "20"}, "'20' axes"),
        ({"dimension": None}, "'' axes"),
        ({"sizes": "3 -2"}, "'-2'"),
        ({"sizes": "3 0"}, "the length '0'"),
        ({"sizes": "3"}, "1 sizes for 2 axes"),
        ({"sizes": None}, "0 sizes for 2 axes"),
        ({"type": None}, "without type or encoding"),
        ({"space_directions": "(1e200,0) (0,1)"}, "'1e200' among the numbers of spacedirections"),
        ({"spacings": "1 inf"}, "'inf' among the numbers of spacings"),
        ({"byte_skip": "-2"}, "byteskip '-2'"),
        ({"byte_skip": "9" * 17}, "byteskip '999"),
        ({"line_skip": "x"}, "lineskip 'x'"),
        ({"Sizes": "9 9"}, "Sizes twice"),
        ({"kinds": "domain\x01domain"}, "unprintable"),
        ({"content": "x\nno field"}, "the line 'no field'"),
    ],
)
def test_nrrds_that_are_not_in_order_are_refused(tmp_path, fields, why):
    with pytest.raises(DamagedFileError, match=rf"a\.nrrd: expected .* got .*{why}"):
        open_itk(write_nrrd(tmp_path, **fields))


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


@pytest.mark.parametrize("packed", [True, False])
def test_what_a_file_cannot_hold_is_refused_before_room_is_made(tmp_path, packed):
    """Within the limit of a case, and yet more than so few bytes can become."""
    pixels = gzip.compress(PIXELS) if packed else PIXELS
    is_packed = {"CompressedData": str(packed), "CompressedDataSize": len(pixels)}
    meta = write_meta(tmp_path, pixels, DimSize="50000 50000", **is_packed)
    nrrd = write_nrrd(tmp_path, pixels, sizes="50000 50000", encoding="gzip" if packed else "raw")
    for path in (meta, nrrd):
        with pytest.raises(DamagedFileError, match="bytes by its own header, got "):
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
        assert open_itk(packed_meta(tmp_path, packed)).read().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_more_than_is_announced_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    much = bytes(50_000_000)
    with pytest.raises(DamagedFileError, match="expected 6 bytes when it is unpacked, got more than that"):
        open_itk(packed_meta(tmp_path, zlib.compress(much))).read()
    assert not open_itk(write_nrrd(tmp_path, gzip.compress(much), encoding="gzip")).read().any()


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


@pytest.mark.parametrize("skip", [{}, {"byte_skip": "0"}, {"line_skip": "0"}, {"line_skip": "1"}])
def test_what_is_no_gzip_is_not_taken_for_pixels(tmp_path, skip):
    with pytest.raises(DamagedFileError, match=r"pixels in a\.nrrd that are not gzip"):
        open_itk(write_nrrd(tmp_path, encoding="gzip", **skip))


def test_many_bytes_of_a_bomb_are_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    path = write_nrrd(tmp_path, gzip.compress(bytes(50_000_000)), encoding="gzip", byte_skip="49999990")
    with pytest.raises(DamagedFileError, match="byteskip"):
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


@pytest.mark.parametrize("name", ["/etc/hostname", "../b.raw", "-", "", "below", "waiting"])
def test_only_files_beside_a_header_are_opened(tmp_path, name):
    (tmp_path / "below").mkdir()
    os.mkfifo(tmp_path / "waiting")
    for path in (write_meta(tmp_path, ElementDataFile=name), write_nrrd(tmp_path, data_file=name)):
        with pytest.raises(ReadError, match=r"expected pixels in its own folder|the line 'data file: "):
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
    assert volume.read().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("name", ["pixels.raw", "two words.raw", "größe.raw"])
def test_pixels_in_a_file_of_their_own_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(PIXELS)
    meta = write_meta(tmp_path, b"", "a.mhd", ElementDataFile=name)
    nrrd = write_nrrd(tmp_path, b"", "a.nhdr", data_file=name)
    for path in (meta, nrrd):
        assert data_files_of(path) == [tmp_path / name]
        assert open_itk(path).read().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_text_and_hex_are_read(tmp_path):
    told = b"0 1 2 3 4 5\n"
    for path in (
        write_meta(tmp_path, told, BinaryData="False"),
        write_nrrd(tmp_path, told, encoding="ascii"),
        write_nrrd(tmp_path, b"000102030405\n", name="b.nrrd", encoding="hex"),
    ):
        assert open_itk(path).read().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_refused_header_has_no_data_files(tmp_path):
    assert data_files_of(write_meta(tmp_path, name="a.mhd", ElementDataFile="/etc/hostname")) == []


@pytest.mark.parametrize(
    "lines",
    [
        b"Note = x" + b" " * 1_000_000 + b"y\n",
        b"x" + b" " * 1_000_000 + b"y\n",
        b"x " * 500_000 + b"\n",
        b"".join(b"n%d = x\n" % number for number in range(90_000)),
    ],
)
def test_long_headers_take_no_long_time(tmp_path, lines):
    meta, nrrd = write_meta(tmp_path), write_nrrd(tmp_path)
    meta.write_bytes(meta.read_bytes().replace(b"DimSize", lines + b"DimSize"))
    nrrd.write_bytes(nrrd.read_bytes().replace(b"encoding", lines.replace(b" =", b":") + b"encoding"))
    begin = time.process_time()
    for path in (meta, nrrd):
        with suppress(DamagedFileError):
            read_itk_header(path)
    assert time.process_time() - begin < 2.0


def test_many_fields_take_no_long_time(tmp_path):
    names = map("".join, itertools.product("abcdefghij", repeat=5))
    path = write_nrrd(tmp_path)
    lines = "".join(f"{name}: x\n" for name in itertools.islice(names, 90_000))
    path.write_bytes(path.read_bytes().replace(b"encoding", lines.encode() + b"encoding"))
    begin = time.process_time()
    assert read_itk_header(path).numbers == 6
    assert time.process_time() - begin < 2.0


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
