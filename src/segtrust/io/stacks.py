"""Files that hold many maps at once: ``p_hat``, with truths ``y`` and perhaps masks ``y_hat``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from segtrust.errors import PairingError, ReadError
from segtrust.io.cases import CaseFiles
from segtrust.io.names import stem_of
from segtrust.io.npz import open_npz, read_directory
from segtrust.io.places import Place
from segtrust.io.untrusted import is_pickle, unpickled

__all__ = ["cases_of_file", "cases_of_pickle", "is_pickled"]

_STACKED = "p_hat"
_STACK_AXES = 3
"""From which on an array is many maps: two are one."""


def cases_of_file(path: Path, case: str) -> list[CaseFiles]:
    """Give the case of a file, or the many of one that holds a stack of maps."""
    count, names = _stack(path)
    if count is None:
        return [CaseFiles(case, Place(path, _STACKED if _STACKED in names else None))]
    return _numbered(Place(path), case, names, count)


def is_pickled(path: Path) -> bool:
    """Tell files that may hold pickled maps: pickles, and archives with ``p_hat``."""
    return path.is_file() and (is_pickle(path) or _STACKED in _stack(path)[1])


def cases_of_pickle(path: Path) -> list[CaseFiles]:
    """Give the cases of a pickle, or of an archive that may hold one, which a person has allowed to load."""
    arrays = unpickled(path)
    if _STACKED not in arrays:
        raise PairingError(f"{path}: expected maps called {_STACKED!r}, got {', '.join(map(str, arrays))}.")
    return _numbered(Place(path, is_trusted=True), stem_of(path), set(arrays), len(arrays[_STACKED]))


def _stack(path: Path) -> tuple[int | None, Collection[str]]:
    """Give how many maps an archive holds, and the names of its arrays; what is damaged is told when read."""
    if path.suffix.lower() != ".npz":
        return None, ()
    try:
        names = set(read_directory(path))
    except (ReadError, OSError):
        return None, ()
    try:
        shape = open_npz(path, _STACKED).shape if _STACKED in names else ()
    except ReadError:
        shape = ()
    return (shape[0] if len(shape) >= _STACK_AXES else None), names


def _numbered(file: Place, case: str, names: Collection[str], count: int) -> list[CaseFiles]:
    def place(key: str, index: int) -> Place | None:
        return Place(file.path, key, index, file.is_trusted) if key in names else None

    return [
        CaseFiles(
            f"{case}[{i}]",
            Place(file.path, _STACKED, i, file.is_trusted),
            mask=place("y_hat", i),
            truth=place("y", i),
        )
        for i in range(count)
    ]
