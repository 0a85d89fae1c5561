"""Files that hold many maps at once: ``p_hat``, with truths ``y`` and perhaps masks ``y_hat``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from segtrust.errors import PairingError, ReadError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.names import stem_of
from segtrust.io.npz import open_npz, read_directory
from segtrust.io.places import Place
from segtrust.io.untrusted import is_pickle, unpickled

__all__ = ["cases_of_file", "cases_of_pickle", "is_pickled"]

_STACKED = "p_hat"
_OF_CASES = ("y_hat", "y")
_MOST_CASES = 100_000
"""Cases in a file: an array of so many is of another kind, as one whose first axis are pixels."""
_STACK_AXES = 3
"""From which on an array is many maps: two are one."""


def cases_of_file(path: Path, case: str) -> DataSet:
    """Give the case of a file, or the many of one that holds a stack of maps."""
    lengths = _lengths(path)
    if lengths.get(_STACKED) is None:
        return DataSet((CaseFiles(case, Place(path, _STACKED if _STACKED in lengths else None)),))
    return _numbered(Place(path), case, lengths)


def is_pickled(path: Path) -> bool:
    """Tell files that may hold pickled maps: pickles, and archives with ``p_hat``."""
    return path.is_file() and (is_pickle(path) or _STACKED in _lengths(path))


def cases_of_pickle(path: Path) -> DataSet:
    """Give the cases of a pickle, or of an archive that may hold one, which a person has allowed to load."""
    arrays = unpickled(path)
    if _STACKED not in arrays:
        raise PairingError(f"{path}: expected maps called {_STACKED!r}, got {', '.join(map(str, arrays))}.")
    lengths = {name: len(values) for name, values in arrays.items() if name in (_STACKED, *_OF_CASES)}
    return _numbered(Place(path, is_trusted=True), stem_of(path), lengths)


def _lengths(path: Path) -> dict[str, int | None]:
    """Give how many cases the arrays of an archive hold, ``None`` for no stack; damage is told when read."""
    if path.suffix.lower() != ".npz":
        return {}
    try:
        names = [name for name in read_directory(path) if name in (_STACKED, *_OF_CASES)]
    except (ReadError, OSError):
        return {}
    return {name: _length(path, name) for name in names} if _STACKED in names else {}


def _length(path: Path, name: str) -> int | None:
    try:
        shape = open_npz(path, name).shape
    except ReadError:
        return None
    return shape[0] if len(shape) >= _STACK_AXES else None


def _numbered(file: Place, case: str, lengths: Mapping[str, int | None]) -> DataSet:
    """Give the cases of a stack; one whose arrays are not equally long is told: nobody knows who is whose."""
    count = lengths[_STACKED] or 0
    if count > _MOST_CASES:
        reason = (
            f"expected at most {_MOST_CASES} maps in {_STACKED!r}, got {count}. Save them in several files"
        )
        return DataSet(unpaired=(Unpaired(case, str(file), reason),))
    other = next((name for name in _OF_CASES if lengths.get(name, count) not in (count, None)), None)
    if other is not None:
        reason = f"expected as many in {other!r} as in {_STACKED!r}, {count}, got {lengths[other]}"
        return DataSet(unpaired=(Unpaired(case, str(file), reason),))

    def place(key: str, index: int) -> Place | None:
        return Place(file.path, key, index, file.is_trusted) if key in lengths else None

    return DataSet(
        tuple(
            CaseFiles(
                f"{case}[{i}]",
                Place(file.path, _STACKED, i, file.is_trusted),
                mask=place("y_hat", i),
                truth=place("y", i),
            )
            for i in range(count)
        )
    )
