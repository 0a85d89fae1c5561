"""Checksums of files, stamps that show that a file has changed, and the memory that a case needs.

Files that belong to another one (the pixels of a header, the other file of a pair, files that HDF5 links to)
count with it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from segtrust.errors import DamagedFileError, MissingExtraError, ReadError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.formats._common import is_inside
from segtrust.io.formats._deflate import crc32, is_gzip
from segtrust.io.formats.hdf5 import linked_files, recognises_hdf5
from segtrust.io.formats.itk import data_files_of
from segtrust.io.formats.nifti import pair_of
from segtrust.io.formats.nnunet import AXES, KEYS
from segtrust.io.formats.numpy import open_member, read_members, recognises_npz
from segtrust.io.structures import find_dataset_json

__all__ = [
    "ChecksumKind",
    "FileStamp",
    "check_unchanged",
    "checksum_of",
    "checksum_of_all",
    "companions_of",
    "is_hdf5",
    "memory_of",
    "stamp_files",
    "stamps_of",
]

ChecksumKind = Literal["quick", "sha256"]
_CHUNK = 1 << 22
_SMALLEST_GZIP = 18
_GZIP_FRAMES = 512
"""Bytes that a gzip file may have besides its data: header, name and checksum."""
_LARGEST_STORE = 64 << 20
"""Bytes of a folder up to which it has a quick checksum."""
_HEAD = 8
_NEVER_HDF5 = frozenset((".png", ".npy", ".npz", ".nii", ".gz", ".tif", ".tiff", ".jpg", ".json", ".pkl"))
"""Endings of files that are not opened to see whether they are HDF5: a run may have 100,000 of them."""


def companions_of(path: Path) -> list[Path]:
    """Return the files that belong to a file: data files (MHD, NHDR), a pair (NIfTI), linked files (HDF5).

    Examples
    --------
    >>> companions_of(Path("map.npy"))
    []
    """
    other = pair_of(path)
    files = [*data_files_of(path), *([other] if other is not None and other.is_file() else [])]
    with suppress(OSError, ReadError, MissingExtraError):  # which is reported when it is read
        files += linked_files(path) if is_hdf5(path) else []
    return files


def is_hdf5(path: Path) -> bool:
    """Return whether a file is HDF5, by its first bytes."""
    if path.suffix.lower() in _NEVER_HDF5 or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return recognises_hdf5(path, file.read(_HEAD))
    except OSError:
        return False


# Checksums


def checksum_of(path: Path, kind: ChecksumKind = "quick") -> str:
    """Return a checksum of a file and its companions, with its kind in front.

    Quick ones are checksums that the file keeps itself (zip, and gzip of one member), or CRC-32: they
    distinguish files that differ by accident. ``"sha256"`` also distinguishes files that were made to look
    alike, and takes a quarter of the reading time. A folder (Zarr) of more than 64 MiB has no quick checksum:
    reading all of it would take too long, and names and sizes say nothing about the content.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "map.npy"
    >>> _ = path.write_bytes(b"abc")
    >>> checksum_of(path)
    'crc32:352441c2'
    """
    return _joined([_of_file(file, kind) for file in (path, *companions_of(path))], kind)


def checksum_of_all(paths: Sequence[Path], kind: ChecksumKind = "quick") -> str:
    """Return one checksum of several files in their order, such as the maps of an ensemble.

    It is empty if one of them has none.
    """
    return _joined([checksum_of(path, kind) for path in paths], kind)


def _joined(checksums: Sequence[str], kind: ChecksumKind) -> str:
    if len(checksums) == 1:
        return checksums[0]
    if not all(checksums):
        return ""
    together = " ".join(checksums).encode()
    if kind == "sha256":
        return f"sha256:{hashlib.sha256(together).hexdigest()}"
    return f"crc32:{crc32(together):08x}"


def _of_file(path: Path, kind: ChecksumKind) -> str:
    if kind == "sha256":
        return f"sha256:{_sha256(path)}"
    if path.is_dir():
        is_small = sum(file.stat().st_size for file in _files_of_store(path)) <= _LARGEST_STORE
        return (
            f"folder-crc32:{reduce(lambda crc, part: crc32(part, crc), _contents(path), 0):08x}"
            if is_small
            else ""
        )
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if is_gzip(head):
            kept = _kept_by_gzip(path)
            return f"sha256:{_sha256(path)}" if kept is None else f"gzip-crc32:{kept:08x}"
        if recognises_npz(path, head):
            members = sorted(read_members(path).values(), key=lambda member: member.name)
            lines = "\n".join(f"{member.name} {member.size} {member.crc}" for member in members)
            return f"zip-crc32:{crc32(lines.encode()):08x}"
        crc = crc32(head)
        while chunk := file.read(_CHUNK):
            crc = crc32(chunk, crc)
    return f"crc32:{crc:08x}"


def _kept_by_gzip(path: Path) -> int | None:
    """Return the checksum at the end; ``None`` if it belongs to the last member only, or is truncated.

    One member decompresses to no fewer bytes than it has, except for its header and the frames of deflate. Of
    more than 4 GiB only the remainder is kept. CRC-32 of the whole file would not do instead: if noise is
    stored as it is, followed by its own CRC-32, that of both depends on the length alone.
    """
    packed = path.stat().st_size
    if packed < _SMALLEST_GZIP:
        return None
    with path.open("rb") as file:
        file.seek(-8, 2)
        crc, unpacked = struct.unpack("<II", file.read(8))
    is_one = unpacked and unpacked >= packed - _GZIP_FRAMES - packed // 1000
    return int(crc) if is_one else None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for part in _contents(path):
        digest.update(part)
    return digest.hexdigest()


def _contents(path: Path) -> Iterator[bytes]:
    """Yield the content of a file, or of all files of a store with their names and sizes."""
    for file in _files_of_store(path) if path.is_dir() else [path]:
        if path.is_dir():
            named = f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0"
            yield named.encode("utf-8", "surrogateescape")
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                yield chunk


def _files_of_store(path: Path) -> list[Path]:
    """Return the files of a store; what a link leads to outside is not part of it."""
    below = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in below if not file.is_symlink() or is_inside(path, file)]


# Stamps


@dataclass(frozen=True)
class FileStamp:
    """State of a file and its companions: sizes and modification times; empty if the file is missing.

    For a folder (Zarr): the number of files, their total size, and the newest time.
    """

    values: tuple[int, ...] = ()

    @classmethod
    def of(cls, path: Path, *, follow_links: bool = True) -> FileStamp:
        """Return the current state of a file or folder; without companions if links are not followed."""
        try:
            if not path.is_dir():
                companions = companions_of(path) if follow_links else ()
                states = [file.stat() for file in (path, *companions)]
                return cls(tuple(n for state in states for n in (state.st_size, state.st_mtime_ns)))
            inside = [file.stat() for file in path.rglob("*") if file.is_file()]
        except (OSError, ReadError):
            return cls()
        newest = max((state.st_mtime_ns for state in inside), default=0)
        return cls((len(inside), sum(state.st_size for state in inside), newest))


def stamp_files(refs: Iterable[ArrayRef | None]) -> dict[Path, FileStamp]:
    """Return the state of each file before it is read, for `check_unchanged`."""
    return {path: FileStamp.of(path) for path in {ref.path for ref in refs if ref is not None}}


def check_unchanged(refs: Iterable[ArrayRef | None], stamps: Mapping[Path, FileStamp]) -> None:
    """Check that no file has changed since `stamp_files`, so that what was read is one state of it.

    Raises
    ------
    DamagedFileError
        If a file was written, replaced or removed in the meantime.
    """
    for path, stamp in stamp_files(refs).items():
        if path in stamps and stamp != stamps[path]:
            raise DamagedFileError(
                f"{path}: expected a file that stays as it is while it is read, but it changed. Score it "
                "again when it has been written completely."
            )


def stamps_of(cases: Iterable[CaseFiles], *, follow_links: bool = True) -> dict[str, Any]:
    """Return what changes with each case, by its id: its files, the files that describe it, and its notes.

    Each file is examined once, however many cases it holds. To follow links, HDF5 files are opened.

    Examples
    --------
    >>> stamps_of([CaseFiles("a", ArrayRef(Path("missing.npy")), group="patient 1")])["a"]["notes"]
    ['patient 1', '', '']
    """
    seen: dict[Path, list[int]] = {}

    def stamp(path: Path | None) -> list[int]:
        if path is None:
            return []
        if path not in seen:
            seen[path] = list(FileStamp.of(path, follow_links=follow_links).values)
        return seen[path]

    def stamp_case(case: CaseFiles) -> dict[str, Any]:
        refs = (case.probabilities, case.mask, case.truth, case.image, *case.members)
        path = case.probabilities.path
        return {
            "files": [None if ref is None else [str(ref), *stamp(ref.path)] for ref in refs],
            "beside": [stamp(path.with_suffix(".pkl")), stamp(find_dataset_json(path))],
            "notes": [case.group, case.split, case.set],
        }

    return {case.id: stamp_case(case) for case in cases}


# Memory

_LAZY = 256 << 20
"""Bytes of a Zarr or HDF5 file, which is read chunk by chunk."""
_CHUNKED = (".zarr", ".h5", ".hdf5")
_COPIES = 2
"""An array and what is made from it: a mask, a transposed copy, a part."""
_SUMS = 4
"""For an ensemble: sums in double precision, the fused map, and masks as bits, besides a map of floats."""


def memory_of(case: CaseFiles) -> int:
    """Estimate the bytes that a case takes while it is scored, without reading its pixels.

    Examples
    --------
    >>> memory_of(CaseFiles("a", ArrayRef(Path("missing.npy"))))
    0
    """
    labels = sum(_unpacked_size(ref.path) for ref in (case.mask, case.truth) if ref is not None)
    largest = max(_unpacked_size(ref.path) for ref in case.maps)  # members are read one after the other
    sums = _SUMS * largest if case.members else 0
    return _COPIES * (largest + labels) + sums


def _unpacked_size(path: Path) -> int:
    """Return the size of a file's largest array; 0 if it cannot be read, which is reported later."""
    try:
        if path.suffix.lower() in _CHUNKED:
            return _LAZY
        if not path.is_file():  # reading a pipe would wait
            return 0
        with path.open("rb") as file:
            head = file.read(2)
            if is_gzip(head):
                file.seek(-4, 2)
                return max(int.from_bytes(file.read(4), "little"), path.stat().st_size)
        if not recognises_npz(path, head):
            return path.stat().st_size
        sizes = [0]
        for member in read_members(path).values():
            shape = open_member(path, member).shape if member.name in KEYS else ()
            channels = shape[0] if len(shape) == AXES and shape[0] else 1  # nnU-Net's are read one by one
            sizes.append(member.size // channels)
        return max(sizes)
    except (OSError, ValueError):
        return 0
