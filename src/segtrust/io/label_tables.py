"""The names of labels that a NIfTI file tells in its own header, as those of TotalSegmentator do.

They stand in an extension of the header, as XML in the form of Caret: ``<Label Key="5" …>liver</Label>``.
"""

from __future__ import annotations

import html
import re
import struct
from functools import lru_cache
from pathlib import Path

from segtrust.errors import ReadError
from segtrust.io.inflate import gunzip, is_gzip

__all__ = ["label_table"]

_HEADER = 348
_LONGEST = 1 << 20
"""Bytes of a header that are looked at."""
_TABLE = re.compile(rb"<LabelTable>(.*?)</LabelTable>", re.DOTALL)
_LABEL = re.compile(
    r"<Label\b[^>]*\bKey=\"(\d{1,9})\"[^>]*>\s*(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))\s*</Label>", re.DOTALL
)


def label_table(path: Path) -> dict[int, str]:
    """Give the names of the labels of an image; nothing where its header tells none.

    Examples
    --------
    >>> label_table(Path("mask.png"))
    {}
    """
    if not path.name.lower().endswith((".nii", ".nii.gz")) or not path.is_file():
        return {}
    about = path.stat()
    return dict(_read(path, about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=8)
def _read(path: Path, changed: int, size: int) -> tuple[tuple[int, str], ...]:
    """Read the table of a file as it is now."""
    table = _TABLE.search(_extensions(path))
    if table is None:
        return ()
    text = table[1].decode("utf-8", "replace")
    return tuple((int(key), plain or html.unescape(words)) for key, plain, words in _LABEL.findall(text))


def _extensions(path: Path) -> bytes:
    """Give what stands between the header and the pixels of a file of NIfTI's first version."""
    try:
        with path.open("rb") as file:
            start = file.read(_LONGEST)
        start = gunzip(path, most=_LONGEST) if is_gzip(start) else start
    except (OSError, ReadError):  # told by who reads the pixels
        return b""
    sizes = (
        {order: struct.unpack(f"{order}i", start[:4])[0] for order in "<>"} if len(start) > _HEADER else {}
    )
    order = next((order for order, size in sizes.items() if size == _HEADER), None)
    if order is None:
        return b""
    (offset,) = struct.unpack(f"{order}f", start[108:112])
    return start[_HEADER : int(min(max(offset, _HEADER), _LONGEST))] if offset == offset else b""
