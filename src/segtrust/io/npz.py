"""Archives of NumPy arrays (``.npz``), of which only what is asked for is unpacked."""

from __future__ import annotations

import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.inflate import InflatingReader, crc32, inflate_into
from segtrust.io.npy import LONGEST_HEADER, Header, header_of
from segtrust.io.volumes import Volume

__all__ = ["Member", "chosen_member", "open_member", "open_npz", "read_directory", "recognises_npz"]

_LOCAL = struct.Struct("<4s22xHH")
"""Signature, and the lengths of name and extra field, of the header before each member."""
_END, _END_BYTES = struct.Struct("<12xL"), 22
"""Where the record at the end has the length of the directory, and how long that record is."""
_END_64, _LOCATOR_64 = struct.Struct("<40xQ"), 20
"""The same of the one for large archives; between both is a locator."""
_LONGEST_COMMENT = 0xFFFF
_LONGEST_DIRECTORY = 1 << 20
"""Bytes: more than ten thousand arrays, each of which is looked at."""
_DAMAGED = (zipfile.BadZipFile, struct.error, NotImplementedError, EOFError, ValueError, OverflowError)
"""What Python raises when a directory makes no sense; also OSError, where it leads out of the file."""


@dataclass(frozen=True)
class Member:
    """An array of an archive, as its directory describes it.

    Attributes
    ----------
    name
        Without ``.npy``.
    begin, packed, size
        First byte of its data in the file, bytes there, and bytes when unpacked.
    crc
        Checksum of the unpacked bytes.
    is_stored
        Whether it is not compressed.
    """

    name: str
    begin: int
    packed: int
    size: int
    crc: int
    is_stored: bool


def recognises_npz(path: Path, head: bytes) -> bool:
    """Tell by the first bytes and the name: a Word document is a zip file too."""
    return head[:2] == b"PK" and path.suffix.lower() == ".npz"


def read_directory(path: Path) -> dict[str, Member]:
    """Give the arrays of an archive by name, without unpacking any."""
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = [_member(info, file, path) for info in archive.infolist()]
    except ReadError:
        raise
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "filename", None):  # it is the file that cannot be opened
            raise
        raise DamagedFileError(
            f"{path}: expected an archive of NumPy arrays, got one that cannot be read ({error}). It may be "
            "truncated: copy it again."
        ) from None
    name, times = Counter(member.name for member in members).most_common(1)[0] if members else ("", 0)
    if times > 1:
        raise DamagedFileError(f"{path}: expected one array called {name!r}, got {times}. Save it again.")
    return {member.name: member for member in members}


def _check_directory(path: Path) -> None:
    """Refuse an archive of more arrays than anybody saves; all are listed to find one."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - _LONGEST_COMMENT - 200, 0))
        length = _directory_length(file.read())
    if length > _LONGEST_DIRECTORY:
        raise UnsafeFileError(
            f"{path}: expected a directory of at most {_LONGEST_DIRECTORY >> 20} MiB, got one of "
            f"{length / 2**20:.3g} MiB, of many thousand arrays. Save fewer in a file."
        )


def _directory_length(tail: bytes) -> int:
    """Give what the last bytes of an archive say; 0 for what is none, as is told by who reads it."""
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END_BYTES:
        return 0
    large = at - _LOCATOR_64 - 56
    if large >= 0 and tail[at - _LOCATOR_64 :].startswith(b"PK\x06\x07"):
        return int(_END_64.unpack_from(tail, large)[0])
    return int(_END.unpack_from(tail, at)[0])


def _member(info: zipfile.ZipInfo, file: Any, path: Path) -> Member:
    name = PurePosixPath(info.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts:
        raise UnsafeFileError(
            f"{path}: expected names inside the archive, got {info.filename!r}, which leads out of it. "
            "Whoever made this file means harm, or used a broken tool."
        )
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DamagedFileError(
            f"{path}: expected plain or deflated arrays, got {info.filename!r} encrypted or packed in "
            "another way. Save it by numpy.savez_compressed."
        )
    file.seek(info.header_offset)
    signature, name_length, extra_length = _LOCAL.unpack(file.read(_LOCAL.size))
    if signature != b"PK\x03\x04":
        raise DamagedFileError(f"{path}: expected an array at byte {info.header_offset}, got none.")
    begin = info.header_offset + _LOCAL.size + name_length + extra_length
    stored = info.compress_type == zipfile.ZIP_STORED
    key = info.filename.removesuffix(".npy")
    return Member(key, begin, info.compress_size, info.file_size, info.CRC, stored)


def open_npz(path: Path, key: str | None = None) -> Volume:
    """Open the array called ``key``, or the only one."""
    return open_member(path, chosen_member(path, read_directory(path), key))


def chosen_member(path: Path, members: Mapping[str, Member], key: str | None) -> Member:
    """Give the array of this name, or the only one there is."""
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

    Channels of a packed array that are asked for in their order are unpacked once, and one at a time.
    """
    header = _header(path, member)
    if header.length + header.size != member.size:
        raise DamagedFileError(
            f"{path}: expected {header.size} bytes for {member.name!r} of shape {header.shape}, got "
            f"{member.size - header.length} by the archive's directory. The file is damaged, or a trap."
        )

    in_order = bool(header.shape) and not header.fortran_order
    channels = _Channels(path, member, header) if in_order else None

    def load(channel: int | None) -> Any:
        if channel is None or channels is None or header.shape[0] == 1:
            whole = _whole(path, member, header)
            return whole if channel is None else whole[channel]
        return channels.read(channel)

    return Volume(path, header.shape, header.dtype, load, in_order=in_order)


class _Channels:
    """The channels of an array: of a packed one it goes on where it was, or begins anew."""

    def __init__(self, path: Path, member: Member, header: Header) -> None:
        self._path, self._member, self._header = path, member, header
        self._part = Header(header.shape[1:], header.dtype, False, 0)
        self._coming: Iterator[Any] = iter(())
        self._next = header.shape[0]
        self._is_checked = False

    def read(self, channel: int) -> Any:
        """Return one of them; the checksum of a stored array is compared before the first."""
        if self._member.is_stored:
            if not self._is_checked:
                _check_stored(self._path, self._member)
                self._is_checked = True
            skip = self._header.length + channel * self._part.size
            return self._part.view(_bytes(self._path, self._member, self._part.size, skip=skip))
        if channel < self._next:
            self._coming, self._next = self._unpacked(channel), channel
        while self._next < channel:
            next(self._coming)
            self._next += 1
        self._next += 1
        return next(self._coming)

    def _unpacked(self, first: int) -> Iterator[Any]:
        """Unpack one after the other, from the first that is wanted on; compare the checksum at the end."""
        with self._path.open("rb") as file:
            file.seek(self._member.begin)
            reader = InflatingReader(file, self._member.packed, self._path)
            self._pass_over(reader, self._header.length + first * self._part.size)
            for number in range(first, self._header.shape[0]):
                out = np.empty(self._part.size, np.uint8)
                reader.fill(out.data)
                if number == self._header.shape[0] - 1:
                    _check_crc(self._path, self._member, reader.crc)
                yield self._part.view(out)

    def _pass_over(self, reader: InflatingReader, count: int) -> None:
        spare = np.empty(min(count, 1 << 20), np.uint8)
        for begin in range(0, count, 1 << 20):
            reader.fill(spare.data[: min(count - begin, 1 << 20)])


def _header(path: Path, member: Member) -> Header:
    return header_of(bytes(_bytes(path, member, min(member.size, LONGEST_HEADER))), path)


def _whole(path: Path, member: Member, header: Header) -> Any:
    """Read an array and compare its checksum."""
    values = _bytes(path, member, member.size)
    if member.is_stored:
        _check_stored(path, member)
    else:
        _check_crc(path, member, crc32(values))
    return header.view(values[header.length :])


def _check_stored(path: Path, member: Member) -> None:
    """Compare the checksum of an array that is stored as it is, read from start to end."""
    crc, remaining = 0, member.size
    with path.open("rb") as file:
        file.seek(member.begin)
        while remaining and (piece := file.read(min(remaining, 1 << 20))):
            crc, remaining = crc32(piece, crc), remaining - len(piece)
    _check_crc(path, member, crc)


def _check_crc(path: Path, member: Member, found: int) -> None:
    if found != member.crc:
        raise DamagedFileError(
            f"{path}: expected {member.name!r} to have the checksum {member.crc:08x}, got {found:08x}. "
            "The file was damaged on its way: copy it again."
        )


def _bytes(path: Path, member: Member, count: int, *, skip: int = 0) -> Any:
    """Give unpacked bytes; those that are stored as they are stay on the disk until they are needed."""
    check_size(path, count)
    if member.is_stored:
        if path.stat().st_size < member.begin + skip + count:
            raise DamagedFileError(f"{path}: expected {count} bytes of {member.name!r}, got fewer.")
        return np.memmap(path, np.uint8, "r", member.begin + skip, (count,)) if count else b""
    out = np.empty(count, np.uint8)
    with path.open("rb") as file:
        file.seek(member.begin)
        inflate_into(file, member.packed, out.data, path, skip=skip)
    return out
