"""Lines of JSON that end with their own checksum: one that was damaged since is never taken for whole."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

__all__ = ["open_line", "seal", "sealed_lines"]

_END = b"}\n"


def seal(values: Mapping[str, Any]) -> bytes:
    r"""Give a line, with the CRC-32 of all that stands before as its last value; any name becomes ASCII.

    Examples
    --------
    >>> seal({"case": "a"})
    b'{"case": "a", "crc32": "e9ec288e"}\n'
    """
    before = json.dumps(values).encode().removesuffix(b"}")
    return before + _tail_of(before)


def open_line(line: bytes) -> dict[str, Any]:
    """Give what a line says, without its checksum; nothing where that does not fit.

    Examples
    --------
    >>> line = seal({"sdc": 0.91})
    >>> open_line(line), open_line(line.replace(b"1", b"7"))
    ({'sdc': 0.91}, {})
    """
    before = line[: -len(_tail_of(b""))]
    if line[len(before) :] != _tail_of(before):
        return {}
    try:
        values = json.loads(before + _END)
    except (ValueError, RecursionError):  # made so, not damaged
        return {}
    return values if isinstance(values, dict) else {}


def sealed_lines(file: IO[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Give the lines up to one that is being written, each with what it says: nothing if it is damaged."""
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield line, open_line(line)


def _tail_of(before: bytes) -> bytes:
    return b', "crc32": "%08x"' % zlib.crc32(before) + _END
