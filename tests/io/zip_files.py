"""Zip archives written byte by byte, so that they can lie."""

import struct
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

LOCAL = struct.Struct("<4sHHHHHLLLHH")
CENTRAL = struct.Struct("<4sHHHHHHLLLHHHHHLL")
END = struct.Struct("<4sHHHHLLH")


def npy_bytes(values) -> bytes:
    file = BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def deflated(data: bytes, level: int = 6) -> bytes:
    packer = zlib.compressobj(level, wbits=-15)
    return packer.compress(data) + packer.flush()


@dataclass
class Entry:
    """A member, with whatever it should say of itself."""

    name: str
    data: bytes
    method: int = 8
    flags: int = 0
    packed: bytes | None = None
    size: int | None = None
    packed_size: int | None = None
    crc: int | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        if self.packed is None:
            self.packed = deflated(self.data) if self.method == 8 else self.data
        self.size = len(self.data) if self.size is None else self.size
        self.packed_size = len(self.packed) if self.packed_size is None else self.packed_size
        self.crc = zlib.crc32(self.data) if self.crc is None else self.crc

    @property
    def described(self) -> tuple:
        sizes = (self.crc, min(self.packed_size, 0xFFFFFFFF), min(self.size, 0xFFFFFFFF))
        return 45, self.flags, self.method, 0, 33, *sizes, len(self.name)

    @property
    def extra(self) -> bytes:
        """The field of zip64, which holds sizes above 4 GiB."""
        large = [each for each in (self.size, self.packed_size) if each >= 0xFFFFFFFF]
        return struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""


def write_archive(path: Path, *entries: Entry) -> Path:
    body, directory = b"", b""
    for each in entries:
        offset = len(body) if each.offset is None else each.offset
        body += LOCAL.pack(b"PK\3\4", *each.described, 0) + each.name.encode() + each.packed
        central = CENTRAL.pack(b"PK\1\2", 45, *each.described, len(each.extra), 0, 0, 0, 0, offset)
        directory += central + each.name.encode() + each.extra
    end = END.pack(b"PK\5\6", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path
