"""What gzip and zip hold, unpacked by the fastest library that is there, and never more than is wanted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from segtrust._files import check_size, max_bytes
from segtrust.errors import DamagedFileError

__all__ = [
    "InflatingReader",
    "check_unpacks",
    "crc32",
    "deflate_library",
    "gunzip",
    "gunzip_into",
    "inflate_into",
    "is_gzip",
]

_CHUNK = 1 << 20
_RAW, _ZLIB, _GZIP = -15, 15, 31
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


def check_unpacks(path: Path, begin: int, packed: int, wanted: int) -> None:
    """Refuse a file whose zlib or gzip stream does not unpack, by its own checksum, to just so many bytes.

    Parameters
    ----------
    path
        Of the file.
    begin, packed
        First byte of the stream, and its length.
    wanted
        Bytes when it is unpacked; no more are.
    """
    with path.open("rb") as file:
        file.seek(begin)
        wbits = _GZIP if is_gzip(file.read(2)) else _ZLIB
        file.seek(begin)
        reader, there = InflatingReader(file, packed, path, wbits=wbits), 0
        while there <= wanted and (piece := reader.piece(wanted + 1 - there)):
            there += len(piece)
    if there != wanted or not reader.is_whole:
        more = "more than that" if there > wanted else f"{there}"
        raise DamagedFileError(
            f"{path}: expected {wanted} bytes when it is unpacked, got {more}. The file is damaged: copy it "
            "again."
        )


class InflatingReader:
    """Unpacks a deflate stream from its beginning on, as many bytes at a time as are asked for, and no more.

    Parameters
    ----------
    file, packed, source
        As for `inflate_into`.
    wbits
        Of zlib: what is around the stream, nothing unless said otherwise.
    """

    def __init__(self, file: BinaryIO, packed: int, source: Path | str, *, wbits: int = _RAW) -> None:
        self._file, self._packed, self._source = file, packed, source
        self._unpacker = deflate_library().decompressobj(wbits=wbits)
        self._rest = b""
        self.crc = 0
        """Checksum of all that `fill` has given so far."""

    @property
    def is_whole(self) -> bool:
        """Whether the stream has come to its end."""
        return bool(self._unpacker.eof)

    def fill(self, out: memoryview) -> None:
        """Fill ``out`` with the bytes that come next."""
        place = 0
        while place < len(out):
            piece = self.piece(len(out) - place)
            if not piece:
                raise DamagedFileError(
                    f"{self._source}: expected {len(out)} bytes of data more, got {place}. The file is "
                    "truncated: copy it again."
                )
            out[place : place + len(piece)] = piece
            place += len(piece)
        self.crc = crc32(out, self.crc)

    def piece(self, most: int) -> bytes:
        """Give the bytes that come next, ``most`` of them or fewer; none at the end."""
        library = deflate_library()
        try:
            while not self._unpacker.eof:
                if not self._rest:
                    self._rest = self._file.read(min(_CHUNK, self._packed))
                    self._packed -= len(self._rest)
                ended = not self._rest
                piece: bytes = self._unpacker.decompress(self._rest, min(most, 16 * _CHUNK))
                self._rest = self._unpacker.unconsumed_tail
                if piece or ended:
                    return piece
        except (library.error, zlib.error) as error:
            raise DamagedFileError(
                f"{self._source}: expected compressed data, got something else ({error}). Copy the file "
                "again."
            ) from None
        return b""


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
    reader = InflatingReader(file, packed, source)
    while wanted and (piece := reader.piece(wanted)):
        wanted -= len(piece)
        yield piece


def gunzip(path: Path, *, most: int | None = None) -> bytes:
    """Give what a gzip file holds, or its first ``most`` bytes.

    A file that holds more than one array may take is refused before it is unpacked further.
    """
    limit = max_bytes() if most is None else most
    pieces: list[bytes] = []
    count = 0
    for piece in _gzip_pieces(path, min(16 * _CHUNK, limit + 1)):
        pieces.append(piece)
        count += len(piece)
        if count > limit:
            break
    if most is None:
        check_size(path, count, is_whole=False)
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
