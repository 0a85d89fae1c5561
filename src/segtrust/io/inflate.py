"""What gzip and zip hold, unpacked by the fastest library that is there, and never more than is wanted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from segtrust.errors import DamagedFileError
from segtrust.io.volumes import check_size, largest_case

__all__ = ["crc32", "deflate_library", "gunzip", "gunzip_into", "inflate_into", "is_gzip"]

_CHUNK = 1 << 20
_RAW, _GZIP = -15, 31
_NAMES = ("isal.isal_zlib", "zlib_ng.zlib_ng", "zlib")


@cache
def deflate_library() -> Any:
    """Give ISA-L, which is quicker than zlib by far, else zlib-ng, else zlib itself."""
    for name in _NAMES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return zlib


def crc32(values: Any, start: int = 0) -> int:
    """Give the checksum that zip files keep."""
    return int(deflate_library().crc32(values, start))


def is_gzip(head: bytes) -> bool:
    """Tell gzip by its first two bytes."""
    return head[:2] == b"\x1f\x8b"


def inflate_into(file: BinaryIO, packed: int, out: memoryview, source: Path | str, *, skip: int = 0) -> None:
    """Unpack ``packed`` bytes of a deflate stream until ``out`` is full; what follows is not looked at.

    Parameters
    ----------
    file
        At the first byte of the stream.
    packed
        Bytes of the stream.
    out
        Filled from its beginning to its end.
    source
        Names the file in errors.
    skip
        Unpacked bytes to pass over first.
    """
    there = _fill(out, _pieces(file, packed, skip + len(out), source), skip)
    if there < skip + len(out):
        raise DamagedFileError(
            f"{source}: expected {skip + len(out)} bytes of data, got {there}. The file is truncated: "
            "copy it again."
        )


def _fill(out: memoryview, pieces: Iterator[bytes], skip: int) -> int:
    """Fill ``out`` after passing over ``skip`` bytes; give how many there were, or a few more."""
    place = -skip
    for piece in pieces:
        begin = max(place, 0)
        passed = min(begin - place, len(piece))
        taken = piece[passed : passed + len(out) - begin]
        out[begin : begin + len(taken)] = taken
        place += len(piece)
        if place > len(out):
            break
    return skip + place


def _pieces(file: BinaryIO, packed: int, wanted: int, source: Path | str) -> Iterator[bytes]:
    """Give what comes out of a raw deflate stream, piece by piece, up to as many bytes as are wanted."""
    library = deflate_library()
    unpacker = library.decompressobj(wbits=_RAW)
    rest = b""
    try:
        while wanted and not unpacker.eof:
            if not rest:
                rest = file.read(min(_CHUNK, packed))
                packed -= len(rest)
            piece = unpacker.decompress(rest, min(wanted, 16 * _CHUNK))
            if not rest and not piece:
                return
            rest = unpacker.unconsumed_tail
            wanted -= len(piece)
            yield piece
    except (library.error, zlib.error) as error:
        raise DamagedFileError(
            f"{source}: expected compressed data, got something else ({error}). Copy the file again."
        ) from None


def gunzip(path: Path, *, most: int | None = None) -> bytes:
    """Give what a gzip file holds, or its first ``most`` bytes.

    A file that holds more than one array may take is refused before it is unpacked further.
    """
    limit = largest_case() if most is None else most
    pieces: list[bytes] = []
    count = 0
    for piece in _gzip_pieces(path, min(16 * _CHUNK, limit + 1)):
        pieces.append(piece)
        count += len(piece)
        if count > limit:
            break
    if most is None:
        check_size(path, count)
    return b"".join(pieces)[:limit]


def gunzip_into(path: Path, out: memoryview, *, skip: int = 0) -> int:
    """Fill ``out`` with what a gzip file holds after ``skip`` bytes; give how many there were, with those.

    Where it is known how much there must be, this takes less time than `gunzip` and half the memory.
    """
    return _fill(out, _gzip_pieces(path, _CHUNK), skip)


def _gzip_pieces(path: Path, largest: int) -> Iterator[bytes]:
    """Give what a gzip file holds in pieces of ``largest`` bytes at most."""
    library = deflate_library()
    try:
        with path.open("rb") as file:
            yield from _members(file, library, largest, path)
    except (library.error, zlib.error) as error:
        raise DamagedFileError(
            f"{path}: expected gzip data, got something else ({error}). Copy the file again."
        ) from None


def _members(file: BinaryIO, library: Any, largest: int, path: Path) -> Iterator[bytes]:
    """Give the members of a gzip file one after the other."""
    unpacker = library.decompressobj(wbits=_GZIP)
    rest = file.read(_CHUNK)
    while rest:
        piece = unpacker.decompress(rest, largest)
        rest = unpacker.unconsumed_tail or (b"" if unpacker.eof else file.read(_CHUNK))
        yield piece
        if unpacker.eof:
            rest = unpacker.unused_data.lstrip(b"\0") or file.read(_CHUNK).lstrip(b"\0")
            if rest:
                unpacker = library.decompressobj(wbits=_GZIP)
    if not unpacker.eof:
        raise DamagedFileError(f"{path}: expected gzip data to its end, got a truncated file. Copy it again.")
