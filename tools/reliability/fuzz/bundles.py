"""An input of a reader: one file, or several that belong together, as one string of bytes and on the disk."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

__all__ = ["Bundle", "lay_out", "load", "pack", "unpack"]

Bundle = dict[str, bytes]
"""Contents by name; the first is the file that is read, the others lie beside it. A name may have folders."""

_MAGIC = b"bundle1\n"
_ENTRY = struct.Struct("<HI")


def pack(bundle: Mapping[str, bytes]) -> bytes:
    """Give a bundle as bytes, for a fuzzer that knows nothing else."""
    entries = [
        _ENTRY.pack(len(name.encode()), len(content)) + name.encode() + content
        for name, content in bundle.items()
    ]
    return _MAGIC + b"".join(entries)


def unpack(data: bytes) -> Bundle | None:
    """Give the bundle that `pack` packed; ``None`` for other bytes.

    Examples
    --------
    >>> unpack(pack({"a.npy": b"1", "a.pkl": b""}))
    {'a.npy': b'1', 'a.pkl': b''}
    >>> unpack(b"bundle1 and more") is None
    True
    """
    if not data.startswith(_MAGIC):
        return None
    found, at = {}, len(_MAGIC)
    while at + _ENTRY.size <= len(data):
        name_length, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size + name_length + length
        if at > len(data):
            return None
        name = data[at - length - name_length : at - length].decode()
        found[name] = data[at - length : at]
    return found or None


def lay_out(bundle: Mapping[str, bytes], folder: Path) -> Path:
    """Write a bundle into a folder, which is emptied first, and give the path that is read."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name, content in bundle.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / PurePosixPath(next(iter(bundle))).parts[0]


def load(path: Path) -> Bundle:
    """Read a bundle from its folder; where it has several files, ``main`` names the first."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and each != path / "main")
    found = {each.relative_to(path).as_posix(): each.read_bytes() for each in files}
    first = (path / "main").read_text().strip() if len(found) > 1 else next(iter(found))
    return {first: found.pop(first), **found}
