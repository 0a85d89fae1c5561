"""Packed pieces of a file, held against the limit before they are unpacked.

A few kilobytes may unpack to many gigabytes, whatever the piece was announced to hold. Some ways of packing
tell the size, or a bound of it; of the others a piece is unpacked into nothing to count, if it is long enough
to matter.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from segtrust._files import check_size, max_bytes
from segtrust.errors import DamagedFileError, UnsafeFileError

__all__ = ["PACKERS", "check_packed", "may_swell", "refuse_packed_twice"]

_PIECE = 1 << 20
_DENSEST = {"zlib": 1032, "gzip": 1032, "lzma": 10_000, "bz2": 50_000, "lzf": 132}
"""Bytes that one byte unpacks to at most, or nearly so."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 1 << 17
PACKERS = frozenset(["zlib", "gzip", "bz2", "lzma", "blosc", "zstd", "lz4", "lzf"])
"""Ways of packing that are known here; the names are those of Zarr."""


def refuse_packed_twice(path: Path | str, kinds: list[str]) -> None:
    """Refuse pieces that are packed again once they are packed, which serves nothing but to deceive."""
    packers = [kind for kind in kinds if kind in PACKERS]
    if len(packers) > 1:
        raise UnsafeFileError(
            f"{path}: expected pieces that are packed once, got {' in '.join(packers)}. Save it with one."
        )


def may_swell(kind: str, count: int) -> bool:
    """Tell whether so many bytes can unpack to more than one array may take.

    Examples
    --------
    >>> may_swell("zlib", 1 << 20), may_swell("zlib", 1 << 30)
    (False, True)
    """
    return count * _DENSEST.get(kind, 0) > max_bytes()


def check_packed(path: Path | str, kind: str, packed: Any) -> None:
    r"""Refuse a piece that unpacks to more than one array may take.

    Parameters
    ----------
    path
        Named in errors.
    kind
        How it is packed; nothing is said of ways that are not known.
    packed
        Its bytes.

    Examples
    --------
    >>> check_packed("a.zarr", "zlib", zlib.compress(bytes(1000)))
    >>> check_packed("a.zarr", "zstd", b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little"))
    Traceback (most recent call last):
    ...
    segtrust.errors.UnsafeFileError: a.zarr: expected an array of at most 16 GiB in memory, got one of 1...
    """
    view = memoryview(packed).cast("B")
    if kind in _SIZES:
        check_size(path, _SIZES[kind](bytes(view[:32]), view))
    elif may_swell(kind, len(view)):
        check_size(path, _counted(path, kind, view), is_whole=False)


def _counted(path: Path | str, kind: str, view: memoryview) -> int:
    """Count what comes out of a piece, up to a little more than is allowed."""
    if kind not in _UNPACKERS:
        return len(view) * _DENSEST[kind]
    count = 0
    try:
        for part in _unpacked(kind, view):
            count += len(part)
            if count > max_bytes():
                break
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise DamagedFileError(
            f"{path}: expected a piece packed by {kind}, got something else ({error}). Copy it again."
        ) from None
    return count


def _unpacked(kind: str, view: memoryview) -> Iterator[bytes]:
    """Give what comes out of a piece in small parts; but for zlib's, one stream may follow another."""
    unpacker, given, begin = _UNPACKERS[kind](), b"", 0
    while not (unpacker.eof and kind == "zlib"):
        if unpacker.eof:
            given, unpacker = unpacker.unused_data, _UNPACKERS[kind]()
        if not given and getattr(unpacker, "needs_input", True):
            given, begin = bytes(view[begin : begin + _PIECE]), begin + _PIECE
            if not given:
                return
        yield unpacker.decompress(given, _PIECE)
        given = getattr(unpacker, "unconsumed_tail", b"")  # the others keep it themselves


def _of_blosc(head: bytes, _: memoryview) -> int:
    return int.from_bytes(head[4:8], "little")


def _of_lz4(head: bytes, _: memoryview) -> int:
    return int.from_bytes(head[:4], "little")


def _of_zstd(head: bytes, view: memoryview) -> int:
    """Read the size of a frame; where it is not told, what its blocks can hold at most."""
    if head[:4] != _ZSTD:
        return 0  # told by who unpacks it
    about = head[4]
    is_single, flag = bool(about & 0x20), about >> 6
    at = 5 + (not is_single) + (0, 1, 2, 4)[about & 3]
    width = (int(is_single), 2, 4, 8)[flag]
    if width:
        return int.from_bytes(head[at : at + width], "little") + (256 if flag == 1 else 0)
    return _of_blocks(view, at)


def _of_blocks(view: memoryview, at: int) -> int:
    """Add up what the blocks of a frame of Zstandard can hold: 128 KiB each, where they are packed."""
    count, is_last = 0, False
    while not is_last and at + 3 <= len(view):
        header = int.from_bytes(view[at : at + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        count += size if kind < 2 else _ZSTD_BLOCK
        at += 3 + (1 if kind == 1 else size)
    return count


_SIZES: dict[str, Callable[[bytes, memoryview], int]] = {
    "blosc": _of_blosc,
    "lz4": _of_lz4,
    "zstd": _of_zstd,
}
_UNPACKERS: dict[str, Callable[[], Any]] = {
    "zlib": zlib.decompressobj,
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "lzma": lzma.LZMADecompressor,
}
