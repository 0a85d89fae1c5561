"""Gzip and deflate: what is whole, what is corrupt, and what is a decompression bomb."""

import gzip
import io
import random
import zlib
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import DamagedFileError, UnsafeFileError
from segtrust.io.formats import _deflate
from segtrust.io.formats._deflate import GZIP, Stream, crc32, gunzip, is_gzip
from tests.io.zip_files import deflated

in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = b"a mask, a map, a truth; " * 500


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.gz"


def test_a_library_is_found():
    assert _deflate.deflate_library().__name__ in _deflate._NAMES


def test_without_quick_libraries_zlib_serves(monkeypatch):
    def absent(name):
        if name == "zlib":
            return zlib
        raise ImportError(name)

    monkeypatch.setattr(_deflate, "import_module", absent)
    assert _deflate.deflate_library.__wrapped__() is zlib


def test_checksums_are_those_of_zlib(library):
    assert crc32(WORDS) == zlib.crc32(WORDS)
    assert crc32(WORDS[10:], crc32(WORDS[:10])) == zlib.crc32(WORDS)


def test_gzip_is_known_by_its_first_bytes():
    assert is_gzip(gzip.compress(b""))
    assert not is_gzip(b"\x1f")
    assert not is_gzip(b"")


@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=5), zeros=st.integers(0, 1000))
@in_folder
def test_members_are_one_file_and_zeros_after_them_none(library, path, parts, zeros):
    path.write_bytes(b"".join(map(gzip.compress, parts)) + bytes(zeros))
    assert gunzip(path) == b"".join(parts)


def test_zeros_may_stand_between_members(library, path):
    path.write_bytes(gzip.compress(WORDS) + bytes(600) + gzip.compress(b"more"))
    assert gunzip(path) == WORDS + b"more"


@given(most=st.integers(0, 2 * len(WORDS)))
@in_folder
def test_no_more_than_asked_for_is_given(library, path, most):
    path.write_bytes(gzip.compress(WORDS))
    assert gunzip(path, most=most) == WORDS[:most]


def test_a_truncated_file_is_never_whole(library, path):
    content = gzip.compress(WORDS[:500])
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match=f"^{path}: expected compressed data"):
            gunzip(path)


@pytest.mark.parametrize("place", [-1, -5, -8])
def test_wrong_checksums_and_lengths_are_told(library, path, place):
    content = bytearray(gzip.compress(WORDS))
    content[place] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=f"^{path}: expected compressed data, got something else"):
        gunzip(path)


def test_garbage_is_told(library, path):
    for content in (b"words", b"\x1f\x8b" + b"\xff" * 600, gzip.compress(WORDS) + b"words"):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=f"^{path}: expected compressed data"):
            gunzip(path)


def test_a_garbled_file_is_an_error_or_whole(library, path):
    content, draw = gzip.compress(WORDS[:700] + random.Random(1).randbytes(300)), random.Random(2)
    for _ in range(700):
        garbled = bytearray(content)
        garbled[draw.randrange(len(garbled))] = draw.randrange(256)
        path.write_bytes(garbled)
        with suppress(DamagedFileError):
            assert len(gunzip(path)) == 1000


def test_a_bomb_is_not_unpacked(library, path, monkeypatch):
    path.write_bytes(gzip.compress(bytes(1 << 26)))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    with pytest.raises(UnsafeFileError, match=rf"^{path}: expected an array of at most"):
        gunzip(path)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(1 << 26))
    assert len(gunzip(path)) == 1 << 26


def test_a_bomb_is_measured_over_all_members(library, path, monkeypatch):
    path.write_bytes(gzip.compress(bytes(600)) * 2)
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    with pytest.raises(UnsafeFileError):
        gunzip(path)


def filled(stream, skip, count):
    """Read bytes of a stream after others, and then the rest of it."""
    out = bytearray(count)
    stream.skip(skip)
    stream.fill(memoryview(out))
    stream.finish()
    return out


@given(skip=st.integers(0, 700), count=st.integers(0, 700))
@in_folder
def test_parts_of_streams_are_parts_of_what_was_packed(library, skip, count):
    values = random.Random(0).randbytes(700) + WORDS[:700]
    packed = deflated(values)
    raw = Stream(io.BytesIO(packed + b"more"), "a.npz", packed=len(packed))
    zipped = Stream(io.BytesIO(gzip.compress(values)), "a.gz", wbits=GZIP)
    stored = Stream(io.BytesIO(values + b"more"), "a.npz", packed=len(values), wbits=None)
    for stream in (raw, zipped, stored):
        assert filled(stream, skip, count) == values[skip : skip + count]
        assert (stream.count, stream.crc) == (len(values), zlib.crc32(values))


@pytest.mark.parametrize("wbits", [-15, None])
def test_a_stream_that_ends_too_early_is_an_error(library, wbits):
    packed = deflated(WORDS) if wbits else WORDS
    for there in (0, 1, len(packed) // 2, len(packed)):
        with pytest.raises(DamagedFileError, match=r"^a\.npz: expected .*truncated"):
            filled(Stream(io.BytesIO(packed), "a.npz", packed=there, wbits=wbits), 0, len(WORDS) + 1)


@pytest.mark.parametrize("more", [0, 7, 100, 258, 500])
@pytest.mark.parametrize("level", [1, 6])
def test_a_deflate_stream_is_emptied(library, level, more):
    """What is still inside the library at the end of a piece must come out."""
    values = bytes((16 << 20) + more)
    packer = zlib.compressobj(level, wbits=-15)
    packed = packer.compress(values) + packer.flush()
    assert filled(Stream(io.BytesIO(packed), "a.npz", packed=len(packed)), 0, len(values)) == values


@pytest.mark.parametrize("more", [-1, 0, 1, 100, 258])
@pytest.mark.parametrize("skip", [0, 5, 1 << 20])
def test_a_gzip_file_is_emptied(library, path, more, skip):
    values = bytes(range(256)) * 4096 + bytes((1 << 20) + more)
    path.write_bytes(gzip.compress(values, 1))
    with path.open("rb") as file:
        assert filled(Stream(file, path, wbits=GZIP), skip, len(values) - skip) == values[skip:]
    assert gunzip(path) == values
    assert gunzip(path, most=300) == values[:300]
