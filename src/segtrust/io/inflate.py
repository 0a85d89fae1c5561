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

__all__ = ["crc32", "deflate_library", "gunzip", "inflate_into", "is_gzip"]

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
    place = -skip
    for piece in _pieces(file, packed, skip + len(out), source):
        passed = min(max(-place, 0), len(piece))
        begin = max(place, 0)
        out[begin : begin + len(piece) - passed] = piece[passed:]
        place += len(piece)
    if place < len(out):
        raise DamagedFileError(
            f"{source}: expected {skip + len(out)} bytes of data, got {skip + place}. The file is truncated: "
            "copy it again."
        )


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
            if not rest:
                return
            piece = unpacker.decompress(rest, min(wanted, 16 * _CHUNK))
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
    library = deflate_library()
    pieces: list[bytes] = []
    count = 0
    try:
        with path.open("rb") as file:
            for piece in _gzip_pieces(file, library, path):
                pieces.append(piece)
                count += len(piece)
                if count > limit:
                    break
    except (library.error, zlib.error) as error:
        raise DamagedFileError(
            f"{path}: expected gzip data, got something else ({error}). Copy the file again."
        ) from None
    if most is None:
        check_size(path, count)
    return b"".join(pieces)[:limit]


def _gzip_pieces(file: BinaryIO, library: Any, path: Path) -> Iterator[bytes]:
    """Give the members of a gzip file one after the other."""
    unpacker = library.decompressobj(wbits=_GZIP)
    rest = file.read(_CHUNK)
    while rest:
        piece = unpacker.decompress(rest, 16 * _CHUNK)
        rest = unpacker.unconsumed_tail or (b"" if unpacker.eof else file.read(_CHUNK))
        yield piece
        if unpacker.eof:
            rest = unpacker.unused_data.lstrip(b"\0") or file.read(_CHUNK).lstrip(b"\0")
            if rest:
                unpacker = library.decompressobj(wbits=_GZIP)
    if not unpacker.eof:
        raise DamagedFileError(f"{path}: expected gzip data to its end, got a truncated file. Copy it again.")
