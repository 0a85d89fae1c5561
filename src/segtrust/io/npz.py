"""Archives of NumPy arrays (``.npz``), of which only what is asked for is unpacked."""

from __future__ import annotations

import struct
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.inflate import crc32, inflate_into
from segtrust.io.npy import LONGEST_HEADER, Header, header_of
from segtrust.io.volumes import Volume, check_size

__all__ = ["Member", "chosen_member", "open_member", "open_npz", "read_directory", "recognises_npz"]

_LOCAL = struct.Struct("<4s22xHH")
"""Signature, and the lengths of name and extra field, of the header before each member."""
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
    """Open one array of an archive: its header is read now, its pixels later."""
    header = _header(path, member)
    if header.length + header.size != member.size:
        raise DamagedFileError(
            f"{path}: expected {header.size} bytes for {member.name!r} of shape {header.shape}, got "
            f"{member.size - header.length} by the archive's directory. The file is damaged, or a trap."
        )

    def load(channel: int | None) -> Any:
        if channel is None or header.fortran_order or header.shape[0] == 1:
            whole = _whole(path, member, header)
            return whole if channel is None else whole[channel]
        part = Header(header.shape[1:], header.dtype, False, 0)
        return part.view(_bytes(path, member, part.size, skip=header.length + channel * part.size))

    return Volume(path, header.shape, header.dtype, load)


def _header(path: Path, member: Member) -> Header:
    return header_of(bytes(_bytes(path, member, min(member.size, LONGEST_HEADER))), path)


def _whole(path: Path, member: Member, header: Header) -> Any:
    """Unpack an array and compare its checksum."""
    values = _bytes(path, member, member.size)
    if not member.is_stored and (found := crc32(values)) != member.crc:
        raise DamagedFileError(
            f"{path}: expected {member.name!r} to have the checksum {member.crc:08x}, got {found:08x}. "
            "The file was damaged on its way: copy it again."
        )
    return header.view(values[header.length :])


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
