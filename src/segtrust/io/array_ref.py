"""The location of an array: a file, the name of the array in it, and its number where several are stacked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ArrayRef"]

_PATTERN = re.compile(r"(?P<path>.+?)(?:::(?P<key>.*?))?(?:\[(?P<index>\d+)\])?", re.DOTALL)


@dataclass(frozen=True)
class ArrayRef:
    """The location of an array in a file.

    Attributes
    ----------
    path
        The file, or the folder of a Zarr store.
    key
        Name of the array in a file that holds several; ``None`` for the only one, or the one with a usual
        name.
    index
        Number along the first axis, if a file holds many cases in one array.
    is_trusted
        Whether a person has allowed this file to be loaded as a pickle, which runs code.

    Examples
    --------
    >>> ArrayRef.parse("runs/polyp.npz::p_hat[3]")
    ArrayRef(path=PosixPath('runs/polyp.npz'), key='p_hat', index=3, is_trusted=False)
    >>> str(ArrayRef(Path("a.h5"), "maps/first"))
    'a.h5::maps/first'
    """

    path: Path
    key: str | None = None
    index: int | None = None
    is_trusted: bool = False

    @classmethod
    def parse(cls, text: str | Path, folder: Path = Path()) -> ArrayRef:
        """Return the location that ``str`` wrote, relative to a folder.

        A file whose own name looks like a location with a key or an index is that file.
        """
        match = _PATTERN.fullmatch(str(text))
        if match is None or not (match["key"] or match["index"]) or (folder / text).exists():
            return cls(folder / text)
        index = None if match["index"] is None else int(match["index"])
        return cls(folder / match["path"], match["key"] or None, index)

    def __str__(self) -> str:
        """Return the location as one text, which `parse` reads."""
        key = "" if self.key is None else f"::{self.key}"
        return f"{self.path}{key}{'' if self.index is None else f'[{self.index}]'}"
