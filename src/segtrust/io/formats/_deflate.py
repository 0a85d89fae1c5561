"""Decompression of deflate, zlib and gzip streams by the fastest library that is installed."""

from __future__ import annotations

import zlib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from segtrust._files import check_size, max_bytes
from segtrust.errors import DamagedFileError

__all__ = ["GZIP", "RAW", "ZLIB", "Stream", "crc32", "deflate_library", "gunzip", "is_gzip"]

RAW, ZLIB, GZIP = -15, 15, 31
"""What surrounds a deflate stream, as zlib's ``wbits``: nothing, or a header and a checksum."""
_CHUNK = 1 << 20
_NAMES = ("isal.isal_zlib", "zlib_ng.zlib_ng", "zlib")


@cache
def deflate_library() -> Any:
    """Return ISA-L, which is much faster than zlib, or zlib-ng, or zlib itself."""
    for name in _NAMES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return zlib


def crc32(values: Any, start: int = 0) -> int:
    """Return the checksum that zip files keep."""
    return int(deflate_library().crc32(values, start))


def is_gzip(head: bytes) -> bool:
    """Recognise gzip by its first two bytes."""
    return head[:2] == b"\x1f\x8b"


class Stream:
    """Bytes of a compressed (or stored) stream in their order, never more at a time than requested.

    Parameters
    ----------
    file
        At the first byte of the stream.
    source
        File that errors name.
    packed
        Length of the stream in the file; to the end of the file if ``None``.
    wbits
        `RAW`, `ZLIB` or `GZIP`, whose members are read one after the other; ``None`` for stored bytes.
    """

    def __init__(
        self, file: BinaryIO, source: Path | str, *, packed: int | None = None, wbits: int | None = RAW
    ) -> None:
        self._file, self._source, self._wbits = file, source, wbits
        self._left = 1 << 62 if packed is None else packed
        self._rest = b""
        self._unpacker: Any = None if wbits is None else deflate_library().decompressobj(wbits=wbits)
        self.count = 0
        """Number of bytes returned or skipped so far."""
        self.crc = 0
        """Checksum of these bytes."""

    def read(self, most: int) -> bytes:
        """Return the next bytes, at most this many; none at the end. A truncated stream is an error."""
        library = deflate_library()
        try:
            chunk = self._packed(min(most, _CHUNK)) if self._unpacker is None else self._inflated(most)
        except (library.error, zlib.error) as error:
            raise DamagedFileError(
                f"{self._source}: expected compressed data, got something else ({error}). Copy the file "
                "again."
            ) from None
        self.count += len(chunk)
        self.crc = int(library.crc32(chunk, self.crc))
        return chunk

    def fill(self, out: memoryview) -> None:
        """Fill a buffer with the next bytes."""
        place = 0
        while place < len(out):
            chunk = self._expect(len(out) - place)
            out[place : place + len(chunk)] = chunk
            place += len(chunk)

    def skip(self, count: int) -> None:
        """Skip bytes, which count in the checksum."""
        while count > 0:
            count -= len(self._expect(min(count, _CHUNK)))

    def finish(self) -> None:
        """Read on to the end, so that the stream's own checksum is compared."""
        while self.read(_CHUNK):
            pass

    def _expect(self, most: int) -> bytes:
        chunk = self.read(most)
        if not chunk:
            raise DamagedFileError(
                f"{self._source}: expected {most} more bytes of data, got none after {self.count}. The file "
                "is truncated: copy it again."
            )
        return chunk

    def _packed(self, most: int) -> bytes:
        data = self._file.read(min(most, self._left))
        self._left -= len(data)
        return data

    def _inflated(self, most: int) -> bytes:
        while True:
            if self._unpacker.eof:
                if self._wbits != GZIP:
                    return b""
                rest = self._unpacker.unused_data.lstrip(b"\0")  # zeros may fill up a block
                while not rest and (data := self._packed(_CHUNK)):
                    rest = data.lstrip(b"\0")
                if not rest:
                    return b""
                self._rest, self._unpacker = rest, deflate_library().decompressobj(wbits=GZIP)
            self._rest = self._rest or self._packed(_CHUNK)
            has_ended = not self._rest
            chunk: bytes = self._unpacker.decompress(self._rest, min(most, 16 * _CHUNK))
            self._rest = self._unpacker.unconsumed_tail
            if chunk:
                return chunk
            if has_ended and not self._unpacker.eof:
                raise DamagedFileError(
                    f"{self._source}: expected compressed data to its end, got a truncated file. Copy "
                    "it again."
                )


def gunzip(path: Path, *, most: int | None = None) -> bytes:
    """Return the content of a gzip file, or its first ``most`` bytes."""
    limit = max_bytes() if most is None else most
    chunks: list[bytes] = []
    with path.open("rb") as file:
        stream = Stream(file, path, wbits=GZIP)
        while stream.count <= limit and (chunk := stream.read(limit + 1 - stream.count)):
            chunks.append(chunk)
    if most is None:
        check_size(path, stream.count, is_whole=False)
    return b"".join(chunks)[:limit]
