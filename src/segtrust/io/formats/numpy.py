"""NumPy's own files: arrays (``.npy``) and archives of arrays (``.npz``)."""

from __future__ import annotations

import math
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from segtrust._files import check_size
from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats._common import Volume, check_complete, check_numbers, check_shape
from segtrust.io.formats._deflate import RAW, Stream

__all__ = [
    "Member",
    "NpyHeader",
    "choose_member",
    "open_member",
    "open_npy",
    "open_npz",
    "read_members",
    "read_npy_header",
    "recognises_npy",
    "recognises_npz",
]

_LONGEST_HEADER = 12 + 16384
"""Bytes in which the header of an array of plain numbers must end."""
_AT_ONCE = 256 << 20
"""Bytes up to which all channels are decompressed together."""
_LOCAL = struct.Struct("<4s22xHH")
"""Header before each member of a zip file: signature, and the lengths of its name and extra field."""


@dataclass(frozen=True)
class NpyHeader:
    """Header of an array: its shape, type and order, and the length of the header in bytes."""

    shape: tuple[int, ...]
    dtype: Any
    fortran_order: bool
    length: int

    @property
    def size(self) -> int:
        """Number of bytes of the pixels."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def view(self, values: Any) -> Any:
        """Return bytes as the array that they are."""
        flat = np.frombuffer(values, self.dtype)
        return flat.reshape(self.shape[::-1]).T if self.fortran_order else flat.reshape(self.shape)


def read_npy_header(head: bytes, source: Path | str) -> NpyHeader:
    """Read a header from the first bytes of an array; nothing in it is executed."""
    file = BytesIO(head)
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):  # 3 differs from 2 only in names of fields
            raise ValueError(f"version {version[0]}.{version[1]}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    except Exception as error:  # noqa: BLE001 - NumPy raises nearly everything if a header is corrupt
        raise DamagedFileError(
            f"{source}: expected the header of a NumPy array, got something else ({error}). Save it again."
        ) from None
    if dtype.hasobject:
        raise UnsafeFileError(
            f"{source}: expected an array of numbers, got an array of Python objects, which is a pickle: "
            "loading it would run whatever code its author put in. Save the numbers themselves (float32), "
            "case by case."
        )
    check_shape(source, shape, check_numbers(source, dtype))
    return NpyHeader(shape, dtype, fortran_order, file.tell())


def recognises_npy(path: Path, head: bytes) -> bool:
    """Recognise an array by its first bytes."""
    return head.startswith(npy.MAGIC_PREFIX)


def open_npy(path: Path, key: str | None = None) -> Volume:
    """Open a ``.npy`` file; its pixels stay on the disk until they are needed."""
    with path.open("rb") as file:
        header = read_npy_header(file.read(_LONGEST_HEADER), path)
    check_complete(path, header.length + header.size, path.stat().st_size)

    def load(channel: int | None) -> Any:
        if not header.size:
            return np.empty(header.shape if channel is None else header.shape[1:], header.dtype)
        place = (header.length, header.shape)
        values = np.memmap(path, header.dtype, "r", *place, order="F" if header.fortran_order else "C")
        return values if channel is None else values[channel]

    return Volume(path, header.shape, header.dtype, load)


# Archives


@dataclass(frozen=True)
class Member:
    """An array of an archive as its directory describes it.

    Attributes
    ----------
    name
        Name without ``.npy``.
    header_offset
        Where its local header begins in the file.
    packed, size
        Number of bytes in the file, and of the decompressed array with its header.
    crc
        Checksum of the decompressed bytes.
    compression
        Method of zip: stored or deflated; -1 if it is encrypted.
    """

    name: str
    header_offset: int
    packed: int
    size: int
    crc: int
    compression: int


def recognises_npz(path: Path, head: bytes) -> bool:
    """Recognise an archive by its first bytes and its name: a Word document is a zip file too."""
    return head[:2] == b"PK" and path.suffix.lower() == ".npz"


def read_members(path: Path) -> dict[str, Member]:
    """Read the directory of an archive: its arrays by name."""
    with _reading_zip(path), zipfile.ZipFile(path) as archive:
        members = [
            Member(
                info.filename.removesuffix(".npy"),
                info.header_offset,
                info.compress_size,
                info.file_size,
                info.CRC,
                -1 if info.flag_bits & 1 else info.compress_type,
            )
            for info in archive.infolist()
        ]
    for name, times in Counter(member.name for member in members).items():
        if times > 1:
            raise DamagedFileError(f"{path}: expected one array called {name!r}, got {times}. Save it again.")
    return {member.name: member for member in members}


@contextmanager
def _reading_zip(path: Path) -> Iterator[None]:
    """Name the file in what Python raises if a zip file makes no sense."""
    try:
        yield
    except ReadError:
        raise
    except (zipfile.BadZipFile, struct.error, NotImplementedError, EOFError, ValueError, OSError) as error:
        if getattr(error, "filename", None):  # the file itself cannot be opened
            raise
        raise DamagedFileError(
            f"{path}: expected an archive of NumPy arrays, got one that cannot be read ({error}). It may be "
            "truncated: copy it again."
        ) from None


def open_npz(path: Path, key: str | None = None) -> Volume:
    """Open the array called ``key``, or the only one."""
    return open_member(path, choose_member(path, read_members(path), key))


def choose_member(path: Path, members: Mapping[str, Member], key: str | None) -> Member:
    """Return the array of this name, or the only one."""
    if key is None and len(members) == 1:
        return next(iter(members.values()))
    listed = ", ".join(sorted(members)) or "none"
    if key is None:
        raise WrongContentError(
            f"{path}: expected one array, or one called 'probabilities', got {listed}. Say which by --key."
        )
    if key not in members:
        raise WrongContentError(f"{path}: expected an array called {key!r}, got {listed}.")
    return members[key]


def open_member(path: Path, member: Member) -> Volume:
    """Open one array of an archive: its header is read now, its pixels later.

    The checksum of the whole array is verified before the first pixel is returned, even if only one channel
    is read.
    """
    with _opened(path, member) as stream:
        head = b""
        while len(head) < min(member.size, _LONGEST_HEADER) and (chunk := stream.read(_LONGEST_HEADER)):
            head += chunk
    header = read_npy_header(head, path)
    if header.length + header.size != member.size:
        raise DamagedFileError(
            f"{path}: expected {header.size} bytes for {member.name!r} of shape {header.shape}, got "
            f"{member.size - header.length} by the archive's directory. The file is corrupt, or made to "
            "deceive."
        )
    pixels = _Pixels(path, member, header)
    is_large = pixels.in_order and header.size > _AT_ONCE  # smaller ones are read at once
    return Volume(path, header.shape, header.dtype, pixels.read, in_order=is_large)


@contextmanager
def _opened(path: Path, member: Member) -> Iterator[Stream]:
    """Yield the stream of an array."""
    if member.compression not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DamagedFileError(
            f"{path}: expected stored or deflated arrays, got {member.name!r} encrypted or compressed in "
            "another way. Save it by numpy.savez_compressed."
        )
    with _reading_zip(path), path.open("rb") as file:
        file.seek(member.header_offset)
        signature, name_length, extra_length = _LOCAL.unpack(file.read(_LOCAL.size))
        if signature != b"PK\x03\x04":
            raise DamagedFileError(f"{path}: expected an array at byte {member.header_offset}, got none.")
        file.seek(name_length + extra_length, 1)
        is_stored = member.compression == zipfile.ZIP_STORED
        yield Stream(file, path, packed=member.packed, wbits=None if is_stored else RAW)


class _Pixels:
    """The pixels of an array in an archive, read whole or channel by channel."""

    def __init__(self, path: Path, member: Member, header: NpyHeader) -> None:
        self._path, self._member, self._header = path, member, header
        self.in_order = bool(header.shape) and not header.fortran_order
        """Whether one channel follows the other in the file."""
        self._channel = NpyHeader(header.shape[1:], header.dtype, False, 0)
        self._following: Iterator[Any] = iter(())
        self._next: int | None = None
        """Channel that ``_following`` returns next; ``None`` before the checksum has been verified."""

    def read(self, channel: int | None) -> Any:
        """Read the array or a channel. Channels in ascending order continue where the last one ended."""
        if channel is None or not self.in_order:
            whole = self._header.view(self._verified(self._header.length, self._header.size))
            return whole if channel is None else whole[channel]
        if self._next is None:
            first = self._verified(self._header.length + channel * self._channel.size, self._channel.size)
            self._next = self._header.shape[0]
            return self._channel.view(first)
        if channel < self._next:
            self._following, self._next = self._from(channel), channel
        while self._next < channel:
            next(self._following)
            self._next += 1
        self._next += 1
        return next(self._following)

    def _verified(self, begin: int, count: int) -> Any:
        """Return some of the bytes after the whole array has been compared with its checksum."""
        check_size(self._path, count)
        out = np.empty(count, np.uint8)
        with _opened(self._path, self._member) as stream:
            stream.skip(begin)
            stream.fill(out.data)
            stream.skip(self._member.size - begin - count)
            if stream.read(1) or stream.crc != self._member.crc:
                raise DamagedFileError(
                    f"{self._path}: expected {self._member.name!r} to have the checksum "
                    f"{self._member.crc:08x}, got {stream.crc:08x}. The file was corrupted on its way: copy "
                    "it again."
                )
        return out

    def _from(self, first: int) -> Iterator[Any]:
        """Yield the channels from this one on, one in memory at a time."""
        with _opened(self._path, self._member) as stream:
            stream.skip(self._header.length + first * self._channel.size)
            for _ in range(first, self._header.shape[0]):
                out = np.empty(self._channel.size, np.uint8)
                stream.fill(out.data)
                yield self._channel.view(out)
