"""Packed pieces are measured before they are unpacked."""

import bz2
import gzip
import lzma
import struct
import zlib

import pytest

from segtrust.errors import DamagedFileError, UnsafeFileError
from segtrust.io.packed import check_packed, may_swell, refuse_packed_twice

PACK = {"zlib": zlib.compress, "gzip": gzip.compress, "bz2": bz2.compress, "lzma": lzma.compress}
LIMIT = 10_000


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(LIMIT))


@pytest.mark.parametrize("kind", PACK)
def test_streams_are_counted_to_the_limit(kind):
    check_packed("a.zarr", kind, PACK[kind](bytes(LIMIT)))
    with pytest.raises(UnsafeFileError, match=r"^a\.zarr: .* more than that.*SEGTRUST_MAX_BYTES, now 10000"):
        check_packed("a.zarr", kind, PACK[kind](bytes(5_000_000)))


@pytest.mark.parametrize("kind", ["gzip", "bz2", "lzma"])
def test_streams_that_follow_each_other_are_counted_together(kind):
    with pytest.raises(UnsafeFileError):
        check_packed("a.zarr", kind, PACK[kind](bytes(LIMIT - 10)) * 2)


def test_what_follows_a_stream_of_zlib_is_a_checksum():
    check_packed("a.h5", "zlib", zlib.compress(bytes(LIMIT)) + b"\1\2\3\4")


@pytest.mark.parametrize("kind", PACK)
def test_damage_is_told(kind):
    packed = bytearray(PACK[kind](bytes(range(256)) * 30))
    packed[len(packed) // 3] ^= 0xFF
    with pytest.raises(DamagedFileError, match=r"^a\.zarr: expected a piece packed by"):
        check_packed("a.zarr", kind, packed + packed)


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("blosc", b"\2\1\1\1" + struct.pack("<I", LIMIT + 1)),
        ("lz4", struct.pack("<I", LIMIT + 1)),
        ("zstd", b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", LIMIT + 1)),  # one segment, 8 bytes for the size
        ("zstd", b"\x28\xb5\x2f\xfd\x40\x58" + struct.pack("<H", LIMIT + 1 - 256)),
        ("zstd", b"\x28\xb5\x2f\xfd\x00\x58" + (LIMIT + 1 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"),
    ],
)
def test_sizes_that_are_told_are_believed(kind, head):
    """The last one tells none: its only block is a zero, repeated."""
    with pytest.raises(UnsafeFileError, match=f"SEGTRUST_MAX_BYTES={LIMIT + 1}"):
        check_packed("a.zarr", kind, head)


@pytest.mark.needs("numcodecs")
@pytest.mark.parametrize("kind", ["blosc", "lz4", "zstd"])
def test_what_libraries_write_is_measured_right(kind):
    import numcodecs

    codec = numcodecs.get_codec({"id": kind})
    check_packed("a.zarr", kind, codec.encode(bytes(LIMIT)))
    with pytest.raises(UnsafeFileError, match=f"={LIMIT + 8}"):
        check_packed("a.zarr", kind, codec.encode(bytes(LIMIT + 8)))


def test_what_is_not_known_is_not_measured():
    check_packed("a.zarr", "delta", b"anything")
    assert not may_swell("delta", 1 << 60)


def test_packed_twice_is_refused():
    refuse_packed_twice("a.zarr", ["delta", "zlib", "shuffle"])
    with pytest.raises(UnsafeFileError, match=r"^a\.zarr: .* got zlib in blosc\."):
        refuse_packed_twice("a.zarr", ["zlib", "delta", "blosc"])


@pytest.mark.needs("zarr")
def test_a_store_packed_twice_is_refused(tmp_path, monkeypatch):
    import json

    from segtrust.io.zarrs import open_zarr

    monkeypatch.delenv("SEGTRUST_MAX_BYTES")
    about = {
        "zarr_format": 2,
        "shape": [4, 4],
        "chunks": [4, 4],
        "dtype": "|u1",
        "fill_value": 0,
        "order": "C",
    }
    (tmp_path / "a.zarr").mkdir()
    twice = {"compressor": {"id": "zlib"}, "filters": [{"id": "gzip"}]}
    (tmp_path / "a.zarr/.zarray").write_text(json.dumps({**about, **twice}))
    with pytest.raises(
        UnsafeFileError, match=r"a\.zarr: expected pieces that are packed once, got zlib in gzip"
    ):
        open_zarr(tmp_path / "a.zarr")
