"""Pixels that a header announces: how many, in which files, and whether these can hold them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from segtrust.errors import DamagedFileError, UnsafeFileError
from segtrust.io.checks import check_complete
from segtrust.io.inflate import check_unpacks
from segtrust.io.itk_fields import check_printable, refusal
from segtrust.io.stores import beside

__all__ = ["LIST", "ItkHeader", "data_file_of", "data_names"]

LIST = "LIST"
"""How a field begins where names of data files follow, a line each; in small letters it is a name itself."""
_LONGEST_WORD = 70
"""Of a pattern of names: ITK has 80 bytes for each of its words."""
_MOST_FILES = 100_000
_MOST_DEFLATED = 1032
"""Bytes that one byte of a deflate stream can become."""
_PATTERN = re.compile(r"(?P<name>[^%\s]*%0?\d?d[^%\s]*) +(?P<numbers>\d{1,9}(?: +\d{1,9}){2,3})")


@dataclass(frozen=True)
class ItkHeader:
    """What a header announces.

    Attributes
    ----------
    path
        The file that it is in.
    numbers
        How many are announced: of all pixels, and all that a pixel has.
    names
        Data files, relative to the folder of the file; none where pixels follow the header.
    begin
        Byte at which pixels begin that follow the header.
    packing
        ``"raw"``, ``"deflate"``, ``"text"`` or ``"hex"``.
    packed
        Bytes of the stream, where the header tells.
    """

    path: Path
    numbers: int
    names: tuple[str, ...]
    begin: int
    packing: str
    packed: int | None = None

    @property
    def files(self) -> list[Path]:
        """Data files that are there."""
        return [path for path in (self.path.parent / name for name in self.names) if path.is_file()]

    def check_complete(self, itemsize: int) -> None:
        """Refuse a file that cannot hold what it announces, before room is made for that.

        Of a MetaImage that is packed, all is unpacked: ITK gives whatever was in memory where it cannot.

        Parameters
        ----------
        itemsize
            Bytes of a number.
        """
        self.check_files()
        sizes = [path.stat().st_size for path in self.files] or [self.path.stat().st_size - self.begin]
        count = self.numbers * itemsize
        least = {"raw": count, "deflate": count // _MOST_DEFLATED, "text": self.numbers, "hex": 2 * count}
        check_complete(self.path, least[self.packing], sum(sizes))
        if self.packed is not None:
            begin = 0 if self.names else self.begin
            check_unpacks((self.files or [self.path])[0], begin, self.packed, count)

    def check_files(self) -> None:
        """Refuse data files that are not there: ITK would look for others, packed, and believe them all."""
        missing = [name for name in self.names if not (self.path.parent / name).is_file()]
        if missing:
            raise DamagedFileError(
                f"{self.path}: expected its data file {missing[0]!r} beside it, got none. Copy it there, "
                "unpacked if it was packed by itself."
            )


def data_names(path: Path, field: str, listed: list[str]) -> tuple[str, ...]:
    """Give the names of data files, of which each is in the folder of the header, or below.

    Parameters
    ----------
    path
        Of the header.
    field
        What it says of them: a name, a pattern with its numbers, or that they are listed.
    listed
        The lines that follow.
    """
    if field.startswith(LIST):
        last = max((at for at, line in enumerate(listed, 1) if line.strip()), default=0)
        names = listed[:last]
    else:
        names = _numbered(path, field) if "%" in field else [field]
    if not names:
        raise refusal(path, "a list of data files with no name in it")
    for name in dict.fromkeys(names):
        if name != " ".join(name.split()):
            raise refusal(path, f"the data file {name[:80]!r}, whose spaces ITK reads in another way")
        _check_inside(path, check_printable(path, name))
    return tuple(_as_name(name) for name in names)


def data_file_of(path: Path, name: str) -> Path:
    """Give the place of a data file, which may not be there."""
    _check_inside(path, name)
    return path.parent / _as_name(name)


def _as_name(text: str) -> str:
    """Give a name as the system writes it, of the bytes that a header has."""
    return os.fsdecode(text.encode("latin-1"))


def _numbered(path: Path, field: str) -> list[str]:
    """Give the names that a pattern and its numbers stand for: the first, the last and the step."""
    _check_inside(path, field)
    found = _PATTERN.fullmatch(field)
    first, last, step = (int(number) for number in found["numbers"].split()[:3]) if found else (0, 0, 0)
    if (
        found is None
        or not step
        or not 0 <= last - first <= _MOST_FILES
        or _longest_word(field) > _LONGEST_WORD
    ):
        raise UnsafeFileError(
            f"{path}: expected a pattern of data files such as 'a%03d.raw 1 9 1', got {field[:80]!r}. Name "
            "them in a list."
        )
    return [found["name"] % number for number in range(first, last + 1, step)]


def _longest_word(text: str) -> int:
    return max(map(len, text.split()))


def _check_inside(path: Path, name: str) -> None:
    """Refuse names and links that lead out of the folder, and what is no file: a pipe would be waited for."""
    plain = name.replace("\\", "/")
    leads_out = plain.startswith(("/", "~")) or plain[1:2] == ":" or ".." in plain.split("/")
    place = path.parent / _as_name(name)
    is_other = plain == "-" or (not leads_out and place.exists() and not place.is_file())
    if leads_out or is_other or not plain:
        raise UnsafeFileError(
            f"{path}: expected pixels in its own folder, got {plain!r}, which leads out of it or is no file. "
            "Move them beside the header, and name them there."
        )
    if place.is_file() and not beside(path, place):
        raise UnsafeFileError(
            f"{path}: expected pixels in its own folder, got the link {plain!r}, which leads out of it. Copy "
            "them there with links followed: cp -L."
        )
