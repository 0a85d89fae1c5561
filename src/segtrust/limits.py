"""How much memory one file may ask for: a property of the place where it is read, not of the file."""

from __future__ import annotations

import os
from pathlib import Path

from segtrust.errors import ParameterError, UnsafeFileError

__all__ = ["GIB", "LETTER", "check_size", "largest_case", "told"]

GIB = 1 << 30
_LARGEST = 16 * GIB
LETTER = 16
"""Bytes of memory that a byte of text may take when it is read as values: of JSON, or of a row of CSV."""


def largest_case() -> int:
    """Bytes that one array may take in memory: ``SEGTRUST_MAX_BYTES``, else 16 GiB.

    Examples
    --------
    >>> largest_case() // 2**30
    16
    """
    text = os.environ.get("SEGTRUST_MAX_BYTES", "")
    if not text:
        return _LARGEST
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"SEGTRUST_MAX_BYTES: expected a whole number of at least 1, got {text!r}.")
    return int(text)


def told(count: int) -> str:
    """Give bytes as people say them.

    Examples
    --------
    >>> told(16 * GIB), told(3 << 20), told(1000)
    ('16 GiB', '3 MiB', '1000 bytes')
    """
    if count >= GIB:
        return f"{count / GIB:.3g} GiB"
    return f"{count / (1 << 20):.3g} MiB" if count >= 1 << 20 else f"{count} bytes"


def check_size(path: Path | str, count: int, *, is_whole: bool = True, what: str = "an array") -> None:
    """Refuse to read more bytes than one array may take; what a file says of itself may be a trap.

    Parameters
    ----------
    path
        Named in errors.
    count
        Bytes.
    is_whole
        Whether these are all; where bytes are counted as they come, nobody counts on beyond the limit.
    what
        Is read, for the error.
    """
    if count <= largest_case():
        return
    expected = f"{path}: expected {what} of at most {told(largest_case())} in memory"
    if is_whole:
        raise UnsafeFileError(
            f"{expected}, got one of {told(count)}. If that is right, allow it: SEGTRUST_MAX_BYTES={count}."
        )
    raise UnsafeFileError(
        f"{expected}, got one of more than that. If that is right, allow more: SEGTRUST_MAX_BYTES, now "
        f"{largest_case()}."
    )
