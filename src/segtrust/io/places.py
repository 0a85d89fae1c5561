"""Where an array lies: a file, the name of the array in it, and its number where several are stacked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place"]

_PATTERN = re.compile(r"(?P<path>.+?)(?:::(?P<key>.*?))?(?:\[(?P<index>\d+)\])?", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where an array lies.

    Attributes
    ----------
    path
        The file, or the folder of a Zarr store.
    key
        Name of the array in a file of several; ``None`` for the only one, or the usual one.
    index
        Number along the first axis, where a file holds many cases in one array.
    is_trusted
        Whether a person has allowed to load a pickle there, which runs code.

    Examples
    --------
    >>> Place.of("runs/polyp.npz::p_hat[3]")
    Place(path=PosixPath('runs/polyp.npz'), key='p_hat', index=3, is_trusted=False)
    >>> str(Place(Path("a.h5"), "maps/first"))
    'a.h5::maps/first'
    """

    path: Path
    key: str | None = None
    index: int | None = None
    is_trusted: bool = False

    @classmethod
    def of(cls, text: str | Path, folder: Path = Path()) -> Place:
        """Read what ``str`` gave, from a folder on; a file whose own name looks like that is meant itself."""
        found = _PATTERN.fullmatch(str(text))
        if found is None or not (found["key"] or found["index"]) or (folder / text).exists():
            return cls(folder / text)
        index = None if found["index"] is None else int(found["index"])
        return cls(folder / found["path"], found["key"] or None, index)

    def __str__(self) -> str:
        """Write it down as one text."""
        key = "" if self.key is None else f"::{self.key}"
        return f"{self.path}{key}{'' if self.index is None else f'[{self.index}]'}"
