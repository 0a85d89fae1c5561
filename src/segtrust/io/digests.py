"""Fingerprints of files, for a table that says what it was made of."""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from segtrust.io.companions import companions_of
from segtrust.io.inflate import crc32, is_gzip
from segtrust.io.npz import read_directory, recognises_npz
from segtrust.io.stores import inside

__all__ = ["Digest", "digest_of", "digest_of_all"]

Digest = Literal["quick", "sha256"]
_CHUNK = 1 << 22
_SMALLEST_GZIP = 18
_FRAMES = 512
"""Bytes that a gzip file may have beside its data: header, name and checksum."""


def digest_of(path: Path, kind: Digest = "quick") -> str:
    """Give a fingerprint of a file, with its kind in front.

    Quick ones are checksums that the file keeps itself (zip, and gzip of one member), or CRC-32: they tell
    files apart that differ by accident. ``"sha256"`` also tells those that were made to look alike, and takes
    as long as a quarter of the reading. A folder (Zarr) has no quick one. Where the pixels are in another
    file (MHD, NHDR, pairs of NIfTI), it is of the fingerprints of both.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "map.npy"
    >>> _ = path.write_bytes(b"abc")
    >>> digest_of(path)
    'crc32:352441c2'
    """
    return _of_several([_of_file(each, kind) for each in (path, *companions_of(path))], kind)


def digest_of_all(paths: Sequence[Path], kind: Digest = "quick") -> str:
    """Give one fingerprint of several files in their order, such as the maps of an ensemble."""
    return _of_several([digest_of(path, kind) for path in paths], kind)


def _of_several(digests: Sequence[str], kind: Digest) -> str:
    if len(digests) == 1:
        return digests[0]
    together = " ".join(digests).encode()
    if kind == "sha256":
        return f"sha256:{hashlib.sha256(together).hexdigest()}"
    return f"crc32:{crc32(together):08x}"


def _of_file(path: Path, kind: Digest) -> str:
    if kind == "sha256":
        return f"sha256:{_sha256(path)}"
    if path.is_dir():
        return ""
    with path.open("rb") as file:
        head = file.read(4)
    if is_gzip(head):
        kept = _kept_by_gzip(path)
        return f"sha256:{_sha256(path)}" if kept is None else f"gzip-crc32:{kept:08x}"
    if recognises_npz(path, head):
        return f"zip-crc32:{_of_directory(path):08x}"
    return f"crc32:{_crc32_of_file(path):08x}"


def _kept_by_gzip(path: Path) -> int | None:
    """Give the checksum at the end; ``None`` where it is of the last member only, or the file is cut off.

    One member unpacks to no fewer bytes than it has, but for its header and the frames of deflate. Of more
    than 4 GiB the remainder alone is kept. CRC-32 of the whole file would not do instead: where noise is kept
    as it is, followed by its own CRC-32, that of both depends on the length alone.
    """
    packed = path.stat().st_size
    if packed < _SMALLEST_GZIP:
        return None
    with path.open("rb") as file:
        file.seek(-8, 2)
        crc, unpacked = struct.unpack("<II", file.read(8))
    is_one = unpacked and unpacked >= packed - _FRAMES - packed // 1000
    return int(crc) if is_one else None


def _of_directory(path: Path) -> int:
    """Checksum of the checksums of all arrays, with their names and sizes."""
    members = sorted(read_directory(path).values(), key=lambda member: member.name)
    return crc32("\n".join(f"{each.name} {each.size} {each.crc}" for each in members).encode())


def _crc32_of_file(path: Path) -> int:
    if not path.stat().st_size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        return crc32(whole)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for each in _files_below(path) if path.is_dir() else [path]:
        if path.is_dir():
            named = f"{each.relative_to(path).as_posix()}\0{each.stat().st_size}\0"
            digest.update(named.encode("utf-8", "surrogateescape"))
        with each.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _files_below(folder: Path) -> list[Path]:
    """Give the files of a store; what a link leads to outside of it is no part of it."""
    found = sorted(each for each in folder.rglob("*") if each.is_file())
    return [each for each in found if not each.is_symlink() or inside(folder, each)]
