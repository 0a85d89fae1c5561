"""Fields of headers, as MetaImage and NRRD both have them: lines of text, and numbers in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from segtrust.errors import DamagedFileError

__all__ = [
    "COUNT",
    "LONGEST_HEADER",
    "axes_of",
    "check_number",
    "check_printable",
    "lengths_of",
    "lines_of",
    "refusal",
]

LONGEST_HEADER = 1 << 20
COUNT = re.compile(r"\d{1,18}")
_MOST_AXES = 8
_FARTHEST = 1e12
"""Millimetres, and all other numbers that tell where pixels lie."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")


def refusal(path: Path, got: str) -> DamagedFileError:
    """Say what is not in order."""
    return DamagedFileError(
        f"{path}: expected an image in MetaImage or NRRD format, got {got}. It may be truncated: copy it "
        "again."
    )


def lines_of(path: Path, text: bytes, at: int = 0) -> Iterator[tuple[str, int]]:
    """Give line by line what is no line of pixels, and where the next begins."""
    while at < len(text):
        found = text.find(b"\n", at)
        if found < 0 and len(text) == LONGEST_HEADER:
            raise DamagedFileError(
                f"{path}: expected a header of less than {LONGEST_HEADER} bytes, got a longer one."
            )
        end = len(text) if found < 0 else found
        line = text[at:end].removesuffix(b"\r").decode("latin-1")  # bytes as they are
        at = end + 1
        yield line, at


def check_printable(path: Path, line: str) -> str:
    """Give a line back in which nothing is but text."""
    if any(ord(letter) < 32 and letter != "\t" for letter in line):
        raise refusal(path, "a header with unprintable characters")
    return line


def axes_of(path: Path, text: str) -> int:
    """Refuse numbers of axes that no image has: ITK makes room for many, and fewer than 0 bring it down."""
    if not COUNT.fullmatch(text) or not 1 <= int(text) <= _MOST_AXES:
        raise DamagedFileError(f"{path}: expected 2 or 3 axes and channels, got {text[:20]!r} axes.")
    return int(text)


def lengths_of(path: Path, numbers: list[str]) -> list[int]:
    """Give numbers of pixels, of which none is 0."""
    for number in numbers:
        if not COUNT.fullmatch(number) or not int(number):
            raise refusal(path, f"the length {number[:20]!r}")
    return [int(number) for number in numbers]


def check_number(path: Path, number: str, name: str, *, is_place: bool = True) -> None:
    """Refuse what is no number, or one so large that no place is so far away."""
    is_number = _NUMBER.fullmatch(number) is not None
    if not is_number or (is_place and abs(float(number)) > _FARTHEST):
        raise refusal(path, f"{number[:20]!r} among the numbers of {name}")
