"""What tells that a case has changed since it was scored, without reading it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from segtrust.errors import ReadError
from segtrust.io.cases import CaseFiles
from segtrust.io.companions import companions_of
from segtrust.io.nnunet import dataset_json_of

__all__ = ["stamps_of"]


def stamps_of(cases: Iterable[CaseFiles]) -> dict[str, Any]:
    """Give what changes with each case, by its name: its files, those that describe it, and its notes.

    Of a file that is where it was, how large it is and when it was written, and the same of the pixels where
    these are in another (MHD, NHDR, pairs of NIfTI); of a folder (Zarr) how many files there are, their size
    together and the newest. Each is looked at once, however many cases it holds.

    Examples
    --------
    >>> from segtrust.io.places import Place
    >>> stamps_of([CaseFiles("a", Place(Path("missing.npy")), group="patient 1")])["a"]["notes"]
    ['patient 1', '', '']
    """
    looked_at: dict[Path, list[int]] = {}

    def look(path: Path | None) -> list[int]:
        if path is None:
            return []
        if path not in looked_at:
            looked_at[path] = _look(path)
        return looked_at[path]

    return {case.id: _stamp(case, look) for case in cases}


def _stamp(case: CaseFiles, look: Any) -> dict[str, Any]:
    places = (case.probabilities, case.mask, case.truth, *case.members)
    path = case.probabilities.path
    return {
        "files": [None if place is None else [str(place), *look(place.path)] for place in places],
        "beside": [look(path.with_suffix(".pkl")), look(dataset_json_of(path))],
        "notes": [case.group, case.split, case.set],
    }


def _look(path: Path) -> list[int]:
    """Tell the state of a file or folder; nothing of what is not there."""
    try:
        if not path.is_dir():
            found = [each.stat() for each in (path, *companions_of(path))]
            return [value for each in found for value in (each.st_size, each.st_mtime_ns)]
        inside = [each.stat() for each in path.rglob("*") if each.is_file()]
    except (OSError, ReadError):
        return []
    newest = max((each.st_mtime_ns for each in inside), default=0)
    return [len(inside), sum(each.st_size for each in inside), newest]
