"""NumPy's arrays and archives: compared with NumPy, and files that lie."""

import random
import struct
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import segtrust
from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats import _deflate
from segtrust.io.formats.numpy import (
    open_npy,
    open_npz,
    read_members,
    read_npy_header,
    recognises_npy,
    recognises_npz,
)
from tests.io.zip_files import Entry, deflated, npy_bytes, write_archive

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ("f2", "f4", "f8", ">f4", "u1", "u2", ">u2", "i1", "i4", "i8", "?")
MAGIC = b"\x93NUMPY"
P = np.random.default_rng(3).random((3, 4, 5, 6)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "case.npz"


def save(path, *, packed=True, **values):
    (np.savez_compressed if packed else np.savez)(path, **values)
    return path


def written(path, values=P, **lies):
    """An archive of one array, which may say what is not so."""
    data = values if isinstance(values, bytes) else npy_bytes(values)
    return write_archive(path, Entry("p.npy", data, **lies))


@pytest.mark.parametrize("packed", [True, False])
@given(
    values=arrays.arrays(
        st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
    ),
    order=st.sampled_from("CF"),
)
@in_folder
def test_arrays_and_their_channels_are_those_of_numpy(library, path, packed, values, order):
    save(path, packed=packed, first=np.arange(7), p=np.array(values, order=order), last=np.ones((2, 3)))
    volume = open_npz(path, "p")
    assert (volume.shape, volume.dtype, volume.has_channels) == (values.shape, values.dtype, None)
    with np.load(path) as loaded:
        np.testing.assert_array_equal(volume.read(), loaded["p"])
        if values.ndim > 2:
            for channel in range(values.shape[0]):
                read = volume.read(channel)
                assert (read.shape, read.dtype) == (values.shape[1:], values.dtype)
                np.testing.assert_array_equal(read, loaded["p"][channel])


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_read_can_be_scored(path, packed):
    """Where it lies in the file is where it lies in memory: at an odd address."""
    p = P[0].astype(np.float64)
    written(path, p, method=8 if packed else 0)
    assert segtrust.soft_dice_confidence(open_npz(path).read()) == segtrust.soft_dice_confidence(p)


class _Counting:
    """A library of deflate that counts what comes out of it."""

    def __init__(self, library):
        self.library, self.error, self.crc32, self.count = library, library.error, library.crc32, 0

    def decompressobj(self, wbits):
        return _CountingStream(self, self.library.decompressobj(wbits=wbits))


class _CountingStream:
    def __init__(self, counter, stream):
        self._counter, self._stream = counter, stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def decompress(self, data, most):
        piece = self._stream.decompress(data, most)
        self._counter.count += len(piece)
        return piece


def test_the_first_channel_costs_the_whole_stream_and_the_others_their_own(library, path, monkeypatch):
    counting = _Counting(library)
    monkeypatch.setattr(_deflate, "deflate_library", lambda: counting)
    values = np.random.default_rng(0).integers(0, 9, (4, 300, 1000), np.uint8)
    save(path, p=values, other=np.zeros(10**7, np.uint8))
    volume = open_npz(path, "p")
    assert counting.count <= 20_000
    whole, one = 128 + values.nbytes, 300_000
    for channel, unpacked in ((0, whole), (1, 128 + 2 * one), (3, 2 * one), (1, 128 + 2 * one), (2, one)):
        counting.count = 0
        assert (volume.read(channel) == values[channel]).all()
        assert counting.count == unpacked  # it continues where it was, or starts again


@pytest.mark.parametrize("channel", [None, 0, 1, 2])
@pytest.mark.parametrize("method", [0, 8])
def test_every_channel_is_compared_with_the_checksum(library, path, channel, method):
    """One channel of a deflated archive: half of the flipped bits changed the number without an error."""
    values = np.random.default_rng(0).random((3, 40, 50))
    written(path, values, method=method, crc=12345)
    with pytest.raises(DamagedFileError, match="expected 'p' to have the checksum"):
        open_npz(path).read(channel)


def test_a_flipped_bit_of_a_deflated_archive_is_an_error_or_changes_nothing(path):
    values = np.random.default_rng(0).integers(0, 3, (3, 8, 9)).astype(np.float32)
    content, changed = save(path, p=values).read_bytes(), 0
    for place in range(60, content.index(b"PK\1\2")):
        flipped = bytearray(content)
        flipped[place] ^= 4
        path.write_bytes(flipped)
        try:
            assert (open_npz(path).read(0) == values[0]).all()
        except DamagedFileError:
            changed += 1
    assert changed > 50


def test_it_is_known_by_its_first_bytes_and_its_name(path):
    head = save(path, p=P).read_bytes()[:512]
    assert recognises_npz(path, head)
    assert recognises_npz(Path("CASE.NPZ"), head)
    assert not recognises_npz(Path("letter.docx"), head)
    assert not recognises_npz(path, b"\x93NUMPY")


def test_several_arrays_are_told_apart(path):
    save(path, first=P, second=P[::-1])
    assert set(read_members(path)) == {"first", "second"}
    assert (open_npz(path, "second").read() == P[::-1]).all()
    with pytest.raises(WrongContentError, match=rf"^{path}: .* got first, second\. Say which by --key\."):
        open_npz(path)
    with pytest.raises(
        WrongContentError, match=rf"^{path}: expected an array called 'third', got first, sec"
    ):
        open_npz(path, "third")


def test_an_archive_of_nothing_is_told(path):
    with pytest.raises(WrongContentError, match=rf"^{path}: .* got none"):
        open_npz(save(path))
    with pytest.raises(WrongContentError, match=rf"^{path}: .* got none"):
        open_npz(path, "p")


def test_a_member_that_is_no_array_is_told(path):
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected the header of a NumPy array"):
        open_npz(written(path, b"words"))
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected the header of a NumPy array"):
        open_npz(written(path, b""))


def test_archives_of_zip64_are_read(path):
    packed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
    with packed as archive, archive.open("p.npy", "w", force_zip64=True) as member:
        member.write(npy_bytes(P))
    assert (open_npz(path).read() == P).all()
    assert (open_npz(path).read(2) == P[2]).all()


def test_a_stream_that_was_written_on_the_fly_is_read(path):
    """Sizes stand after the data then, and in the directory."""
    with path.open("wb") as file, zipfile.ZipFile(_Pipe(file), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("p.npy", npy_bytes(P))
    assert (open_npz(path).read(1) == P[1]).all()


class _Pipe:
    """A file in which nothing can be written before what was."""

    def __init__(self, file):
        self.write, self.flush = file.write, file.flush


def test_a_wrong_checksum_is_told(library, path):
    written(path, crc=0xDEADBEEF)
    with pytest.raises(
        DamagedFileError, match=rf"^{path}: expected 'p' .* checksum deadbeef, got [0-9a-f]{{8}}"
    ):
        open_npz(path).read()


@pytest.mark.parametrize("channel", [None, 0, 2])
def test_a_stored_array_is_compared_with_its_checksum(path, channel):
    """A copy that stopped inside a preallocated file ends in zeros; numpy.load rejects it, too."""
    content = bytearray(save(path, packed=False, p=P).read_bytes())
    begin = content.find(P[2].tobytes())
    content[begin : begin + P[2].nbytes] = bytes(P[2].nbytes)
    path.write_bytes(content)
    with pytest.raises(
        DamagedFileError, match=rf"^{path}: expected 'p' to have the checksum .* copy it again"
    ):
        open_npz(path).read(channel)


def test_a_flipped_bit_of_a_stored_array_is_an_error(path):
    content = save(path, packed=False, p=P[0, 0]).read_bytes()
    begin = content.find(P[0, 0].tobytes())
    for place in range(begin, begin + P[0, 0].nbytes):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(DamagedFileError, match="checksum"):
            open_npz(path).read()


def test_a_truncated_archive_is_never_read(path):
    content = save(path, p=P[0, :2]).read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match=f"^{path}"):
            open_npz(path).read()


@pytest.mark.parametrize("packed_size", [0, 1, 50, 500])
def test_a_truncated_stream_is_told(library, path, packed_size):
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected .*truncated"):
        open_npz(written(path, packed_size=packed_size)).read()


def test_a_truncated_stored_array_is_told(path):
    data = npy_bytes(P)
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected .*truncated"):
        open_npz(written(path, data, method=0, packed=data[:200])).read()


def test_garbage_in_the_place_of_data_is_told(library, path):
    header = deflated(npy_bytes(P)[:128])[:-1]
    for packed in (b"\xff" * 500, header + b"\xff" * 500, bytes(500), b"\x06" * 500):
        with pytest.raises(DamagedFileError, match=f"^{path}: expected"):
            open_npz(written(path, packed=packed)).read()


def test_a_header_and_a_directory_that_differ_are_told(path):
    data = npy_bytes(P)
    for size in (len(data) - 4, len(data) + 4, 10 * len(data)):
        with pytest.raises(
            DamagedFileError, match=rf"^{path}: expected 1440 bytes for 'p' of shape \(3, 4, 5,"
        ):
            open_npz(written(path, data + bytes(9 * len(data)), size=size))


def announced(count: int) -> bytes:
    """The header of an array of so many bytes."""
    return npy_bytes(np.zeros((0, 0, 0), np.uint8)).replace(b"(0, 0, 0)", f"(2, 1, {count // 2})".encode())


def test_an_announced_size_allocates_nothing(library, path):
    count = 100 * 10**9
    volume = open_npz(written(path, announced(count) + bytes(20_000), size=128 + count))
    assert volume.shape == (2, 1, count // 2)
    tracemalloc.start()
    for channel in (None, 1):
        with pytest.raises(UnsafeFileError, match=rf"^{path}: expected an array of at most 16 GiB"):
            volume.read(channel)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_bomb_is_unpacked_no_further_than_announced(library, path, monkeypatch):
    counting = _Counting(library)
    monkeypatch.setattr(_deflate, "deflate_library", lambda: counting)
    data = npy_bytes(np.zeros(10_000, np.uint8))
    written(path, data, packed=deflated(data + bytes(1 << 26), 9))
    with pytest.raises(DamagedFileError, match="checksum"):
        open_npz(path).read()
    assert counting.count < 40_000


def test_objects_are_not_loaded(path):
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected an array of numbers, got .* pickle"):
        open_npz(save(path, p=np.array([{}, None], object)))


@pytest.mark.parametrize("lies", [{"flags": 1}, {"method": 12}, {"method": 14}, {"method": 99}])
def test_encrypted_and_unusual_archives_are_refused(path, lies):
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected stored or deflated arrays, got 'p'"):
        open_npz(written(path, **lies))


@pytest.mark.parametrize("offset", [1, 5000, 0xFFFFFFFE])
def test_a_directory_that_points_elsewhere_is_told(path, offset):
    with pytest.raises(DamagedFileError, match=f"^{path}: expected"):
        open_npz(written(path, offset=offset))


def test_an_offset_that_no_file_has_is_told(path):
    extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    content = bytearray(written(path, offset=0xFFFFFFFF).read_bytes())
    directory = content.index(b"PK\1\2")
    end = content.index(b"PK\5\6")
    content[directory + 30 : directory + 32] = struct.pack("<H", len(extra))
    content[end + 12 : end + 16] = struct.pack("<L", end - directory + len(extra))
    path.write_bytes(content[:end] + extra + content[end:])
    with pytest.raises(DamagedFileError, match=f"^{path}: expected"):
        open_npz(path)


def test_other_files_are_no_archives(path):
    for content in (b"PK\3\4", b"PK" + b"\xff" * 600, b"words" * 200):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=rf"^{path}: expected an archive of NumPy arrays, got"):
            open_npz(path)


@pytest.mark.parametrize("packed", [True, False])
def test_a_garbled_archive_is_an_error_or_an_array(path, packed):
    content, draw = save(path, packed=packed, p=P[0], q=P[1, 0]).read_bytes(), random.Random(packed)
    for _ in range(2000):
        garbled = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(garbled)) if draw.random() < 0.5 else -draw.randint(1, 250)
            garbled[place] = draw.choice((0, 255, draw.randrange(256)))
        path.write_bytes(garbled)
        with suppress(ReadError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's own reader of headers, and of doubled names
            volume = open_npz(path, "p")
            assert volume.read().shape == volume.shape


def test_members_of_one_name_are_refused(path):
    with pytest.raises(DamagedFileError, match=rf"^{path}: expected one array called 'p', got 2"):
        read_members(write_archive(path, Entry("p.npy", npy_bytes(P)), Entry("p.npy", npy_bytes(P[0]))))


# Arrays


def save_npy(path, values):
    np.save(path, values)
    return path


def described(text: str, version: int = 1) -> bytes:
    """A header of any words."""
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return MAGIC + bytes([version, 0]) + length + text.encode("latin-1")


@given(
    values=arrays.arrays(
        st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    ),
    order=st.sampled_from("CF"),
)
@in_folder
def test_arrays_are_those_of_numpy(tmp_path, values, order):
    path = save_npy(tmp_path / "a.npy", np.array(values, order=order))
    volume = open_npy(path)
    assert (volume.shape, volume.dtype, volume.has_channels, volume.grid) == (
        values.shape,
        values.dtype,
        None,
        None,
    )
    np.testing.assert_array_equal(volume.read(), values)
    if values.ndim > 2:
        for channel in range(values.shape[0]):
            np.testing.assert_array_equal(volume.read(channel), values[channel])


def test_pixels_stay_on_the_disk(tmp_path):
    assert isinstance(open_npy(save_npy(tmp_path / "a.npy", np.zeros((3, 4, 5)))).read(), np.memmap)


def test_an_array_is_known_by_its_first_bytes(tmp_path):
    path = save_npy(tmp_path / "a", np.zeros(3)).with_suffix(".npy")
    assert recognises_npy(path, path.read_bytes()[:512])
    assert not recognises_npy(path, b"PK\3\4")
    assert not recognises_npy(path, b"")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_are_read(tmp_path, version):
    values = np.arange(6.0).reshape(2, 3)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, values, version)
    assert (open_npy(tmp_path / "a.npy").read() == values).all()


@pytest.mark.parametrize("version", [0, 4, 255])
def test_a_version_to_come_is_refused(version):
    content = bytearray(npy_bytes(np.zeros(3)))
    content[6] = version
    with pytest.raises(DamagedFileError, match=rf"^a\.npy: .*\(version {version}\.0"):
        read_npy_header(bytes(content), "a.npy")


def test_a_truncated_file_is_never_read(tmp_path):
    content = npy_bytes(np.ones((3, 4), np.float32))
    path = tmp_path / "a.npy"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match="^" + str(path)):
            open_npy(path)
    path.write_bytes(content[:-1])
    with pytest.raises(
        DamagedFileError, match=f"expected {len(content)} bytes by its own header, got {len(content) - 1}"
    ):
        open_npy(path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{[]: 1}",
        "1" * 5000,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3.5,)}",
        "{'descr': 'words', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': (), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [()], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': 7, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 7: False, 'shape': (3,)}",
        "__import__('os').getcwd()",
        "(" * 400,
    ],
)
def test_a_header_that_makes_no_sense_is_named(text):
    with pytest.raises(DamagedFileError, match=r"^a\.npy: expected the header of a NumPy array, got"):
        read_npy_header(described(text), "a.npy")


@pytest.mark.parametrize(
    "shape", ["(-1, 3)", "(0, 2**62)", f"(0, {1 << 70})", f"({1 << 70},)", f"{(1,) * 65}"]
)
def test_a_shape_that_no_array_has_is_refused(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".replace("2**62", str(1 << 62))
    with pytest.raises(DamagedFileError, match=r"^a\.npy: expected .*shape"):
        read_npy_header(described(text), "a.npy")


def test_the_announced_size_of_an_array_has_a_limit(tmp_path, monkeypatch):
    path = save_npy(tmp_path / "a.npy", np.zeros((10, 10, 10), np.uint8))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "999")
    with pytest.raises(UnsafeFileError, match=rf"^{path}: .*SEGTRUST_MAX_BYTES=1000"):
        open_npy(path).read()
    assert open_npy(path).read(3).shape == (10, 10)


def test_objects_of_an_array_are_not_loaded(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.array([{"a": 1}, None], object)))
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected an array of numbers, got .* pickle"):
        open_npy(path)
    path.write_bytes(npy_bytes(np.zeros(2, [("a", "f4"), ("b", "O")])))
    with pytest.raises(UnsafeFileError):
        open_npy(path)


@pytest.mark.parametrize("dtype", ["c8", "U3", "S3", "M8[s]", "V4", [("a", "f4")], "S0"])
def test_only_real_numbers_are_pixels(tmp_path, dtype):
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.zeros((2, 3), dtype)))
    with pytest.raises(WrongContentError, match=rf"^{path}: expected one real number per pixel"):
        open_npy(path)


@pytest.mark.filterwarnings("ignore")
def test_a_garbled_file_is_an_error_or_an_array(tmp_path):
    content, draw = npy_bytes(np.ones((3, 4), np.float32)), random.Random(0)
    path = tmp_path / "a.npy"
    for _ in range(1500):
        garbled = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            garbled[draw.randrange(len(garbled))] = draw.randrange(256)
        path.write_bytes(garbled)
        with suppress(ReadError):
            volume = open_npy(path)
            assert volume.read().shape == volume.shape
