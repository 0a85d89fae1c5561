"""Changes to real files: blind ones to their bytes, and ones that know what is packed where.

A flipped bit in a compressed stream shows that checksums are looked at, and little else. So archives, streams
and chunks are opened, what is in them is changed, and they are closed again with the right checksum.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from tools.reliability.fuzz.bundles import Bundle

__all__ = ["mutated", "mutated_bytes"]

_EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62)
_TEXTS = (
    *(b"0", b"1", b"-1", b"2147483648", b"4294967295", b"1000000000000000000", b"99999999999999999999999"),
    *(b"1e308", b"nan", b"inf", b"-0.5", b"", b"null", b"[]", b"{}", b"../../x", b"/dev/zero", b"\xff\xfe"),
)
_PLAIN: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63, 10**18, 10**400, -0.5, 1e308, float("nan"), float("inf")),
    *("", "x" * 5000, "\ud800", "../../x", [], {}, [[]], [None], {"a": None}, [10**18] * 3, "<f4", "|O"),
)
_NUMBER = re.compile(rb"\d+")
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_PACKED = 1 << 22
"""Bytes up to which what is packed is unpacked to be changed."""
_DEEPEST = 3
_LONGEST = 1 << 20

Change = Callable[[bytes, random.Random], bytes]


def mutated(bundle: Bundle, chance: random.Random, other: Bundle) -> Bundle:
    """Give a bundle of which one file or two are changed, now and then by parts of another bundle."""
    changed = dict(bundle)
    for name in chance.sample(sorted(changed), k=min(len(changed), chance.choice((1, 1, 1, 2)))):
        given = other.get(name) or chance.choice(list(other.values()))
        for _ in range(chance.choice((1, 1, 2, 4))):
            changed[name] = mutated_bytes(changed[name], chance, given)[:_LONGEST]
    return changed


def mutated_bytes(content: bytes, chance: random.Random, other: bytes, depth: int = 0) -> bytes:
    """Change bytes once: inside of what they pack, or as they are."""
    opened = _inside(content) if depth < _DEEPEST and chance.random() < 0.7 else None
    if opened is not None:
        try:
            return opened(content, chance, other, depth)
        except (ValueError, zlib.error, zipfile.BadZipFile, OSError, EOFError, struct.error, RuntimeError):
            pass  # an earlier change has broken it
    if chance.random() < 0.1 and other:
        return _spliced(content, chance, other)
    return chance.choice(_CHANGES)(content, chance)


def _inside(content: bytes) -> Callable[[bytes, random.Random, bytes, int], bytes] | None:
    """Tell what is packed in bytes by how they begin."""
    if content[:2] == b"PK":
        return _in_zip
    if content[:2] == b"\x1f\x8b":
        return _in_gzip
    if content[:8] == _PNG:
        return _in_png
    if content[:1] in (b"{", b"[") and len(content) < _MOST_PACKED:
        return _in_json
    return None


def _in_zip(content: bytes, chance: random.Random, other: bytes, depth: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
        if not infos or sum(each.file_size for each in infos) > _MOST_PACKED:
            raise ValueError("nothing to change")
        members = [(each, archive.read(each)) for each in infos]
    at = chance.randrange(len(members))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number, (info, data) in enumerate(members):
            given = mutated_bytes(data, chance, other, depth + 1) if number == at else data
            archive.writestr(info.filename, given, compress_type=info.compress_type)
    return out.getvalue()


def _in_gzip(content: bytes, chance: random.Random, other: bytes, depth: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    data = unpacker.decompress(content, _MOST_PACKED)
    return gzip.compress(mutated_bytes(data, chance, other, depth + 1), 1)


def _in_png(content: bytes, chance: random.Random, other: bytes, depth: int) -> bytes:
    """Change a chunk, leave one out or double it; its checksum is right."""
    chunks, at = [], len(_PNG)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += 12 + length
    if not chunks:
        raise ValueError("no chunks")
    place = chance.randrange(len(chunks))
    kind, data = chunks[place]
    if kind in (b"IDAT", b"zTXt", b"iCCP") and chance.random() < 0.6:
        data = zlib.compress(mutated_bytes(zlib.decompress(data), chance, other, depth + 1))
    else:
        data = mutated_bytes(data, chance, other, _DEEPEST)
    chunks[place : place + 1] = [(kind, data)] * chance.choice((0, 1, 1, 1, 1, 2))
    return _PNG + b"".join(_chunk(*each) for each in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _in_json(content: bytes, chance: random.Random, other: bytes, depth: int) -> bytes:
    """Put another value into a document, or take one out; of several lines into one of them."""
    lines = content.split(b"\n")
    at = chance.randrange(len(lines)) if _is_lines(lines) else None
    document = json.loads(content if at is None else lines[at])
    document = _other_value(document, chance)
    if chance.random() < 0.01:
        document = _deep(document)
    text = json.dumps(document).encode("utf-8", "surrogatepass")
    return text if at is None else b"\n".join([*lines[:at], text, *lines[at + 1 :]])


def _is_lines(lines: list[bytes]) -> bool:
    return len(lines) > 1 and lines[0].endswith(b"}")


def _deep(document: Any, levels: int = 900) -> Any:
    for _ in range(levels):
        document = [document]
    return document


def _other_value(document: Any, chance: random.Random) -> Any:
    """Walk to a place at random and change what is there."""
    if isinstance(document, dict) and document and chance.random() < 0.9:
        key = chance.choice(list(document))
        if chance.random() < 0.15:
            return {name: value for name, value in document.items() if name != key}
        return {**document, key: _other_value(document[key], chance)}
    if isinstance(document, list) and document and chance.random() < 0.8:
        at = chance.randrange(len(document))
        part = [_other_value(document[at], chance)] * chance.choice((0, 1, 1, 1, 2))
        return [*document[:at], *part, *document[at + 1 :]]
    return chance.choice(_PLAIN)


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[_place(changed, chance)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _place(content: bytes | bytearray, chance: random.Random) -> int:
    """Choose a byte; headers are at the beginning, and at times at the end."""
    length = len(content)
    reach = chance.choice((min(length, 64), min(length, 512), length))
    return length - 1 - chance.randrange(reach) if chance.random() < 0.15 else chance.randrange(reach)


def _extreme(content: bytes, chance: random.Random) -> bytes:
    """Write a number at the limits of its type where one may be."""
    width, order = chance.choice((1, 2, 4, 8)), chance.choice(("little", "big"))
    value = chance.choice((*_EXTREMES, chance.getrandbits(16))) % (1 << 8 * width)
    at = _place(content or b"\0", chance)
    if chance.random() < 0.5:
        at -= at % width
    return content[:at] + value.to_bytes(width, order) + content[at + width :]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _left_out(content: bytes, chance: random.Random) -> bytes:
    begin, count = chance.randrange(len(content) + 1), chance.choice((1, 2, 4, 16, 256))
    return content[:begin] + content[begin + count :]


def _doubled(content: bytes, chance: random.Random) -> bytes:
    begin, count = chance.randrange(len(content) + 1), chance.choice((1, 4, 16, 64, 1024))
    return content[:begin] + content[begin : begin + count] * chance.choice((2, 3, 50)) + content[begin:]


def _inserted(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.randbytes(chance.choice((1, 2, 4, 32))) + content[at:]


def _other_number(content: bytes, chance: random.Random) -> bytes:
    """Write another number, or word, over one that is written in digits."""
    found = list(_NUMBER.finditer(content[: 1 << 16]))
    if not found:
        return _extreme(content, chance)
    match = chance.choice(found)
    return content[: match.start()] + chance.choice(_TEXTS) + content[match.end() :]


def _spliced(content: bytes, chance: random.Random, other: bytes) -> bytes:
    """Put a part of another file in."""
    at, begin = chance.randrange(len(content) + 1), chance.randrange(len(other))
    part = other[begin : begin + chance.choice((4, 16, 128, 4096))]
    return content[:at] + part + content[at + chance.choice((0, len(part))) :]


_CHANGES: tuple[Change, ...] = (
    *(_flipped, _extreme, _extreme, _extreme, _cut, _left_out, _doubled, _inserted, _other_number),
)
