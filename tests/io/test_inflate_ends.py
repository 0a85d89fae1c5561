"""Streams that end where a piece ends: what is still inside of the library must come out."""

import gzip
import io
import zlib

import pytest

from segtrust.io import inflate

PIECE = 16 << 20


@pytest.mark.parametrize("more", [0, 7, 100, 258, 500])
@pytest.mark.parametrize("level", [1, 6])
def test_a_deflate_stream_is_emptied(library, level, more):
    values = bytes(PIECE + more)
    packer = zlib.compressobj(level, wbits=-15)
    packed = packer.compress(values) + packer.flush()
    out = bytearray(b"\1") * len(values)
    inflate.inflate_into(io.BytesIO(packed), len(packed), memoryview(out), "a.npz")
    assert out == values


@pytest.mark.parametrize("more", [-1, 0, 1, 100, 258])
@pytest.mark.parametrize("skip", [0, 5, 1 << 20])
def test_a_gzip_file_is_emptied(library, tmp_path, more, skip):
    path = tmp_path / "a.gz"
    values = bytes(range(256)) * 4096 + bytes((1 << 20) + more)
    path.write_bytes(gzip.compress(values, 1))
    out = bytearray(len(values) - skip)
    assert inflate.gunzip_into(path, memoryview(out), skip=skip) == len(values)
    assert out == values[skip:]
    assert inflate.gunzip(path) == values
    assert inflate.gunzip(path, most=300) == values[:300]


def test_what_is_left_of_a_gzip_file_is_not_unpacked(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    out = bytearray(10)
    assert inflate.gunzip_into(path, memoryview(out)) < 1 << 22
