"""Masks and truths of cases, found by name. What finds no partner is told, not dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from segtrust.errors import PairingError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.folders import FolderFile, by_case, files_in
from segtrust.io.names import Pattern
from segtrust.io.places import Place

__all__ = ["Role", "only_with_truth", "paired", "with_masks", "with_truths"]

Role = Literal["mask", "truth"]


def with_masks(found: DataSet, folder: Path, pattern: Pattern | None = None) -> DataSet:
    """Give each case the delivered mask of its name in a folder; cases without one are left out, and told.

    Another mask than the delivered one would give another confidence.
    """
    return _without(_told_missing(_with_folder(found, folder, "mask", pattern), "mask", folder), "mask")


def with_truths(found: DataSet, folder: Path, pattern: Pattern | None = None) -> DataSet:
    """Give each case the truth of its name in a folder; cases without one are told, and stay."""
    return _told_missing(_with_folder(found, folder, "truth", pattern), "truth", folder)


def only_with_truth(found: DataSet) -> DataSet:
    """Leave out cases without a truth; those are told of which it is not said yet."""
    told = {each.case for each in found.unpaired}
    reason = "expected its truth, got none. Give their folder: --truth"
    missing = tuple(
        _of_case(case, reason) for case in found.cases if case.truth is None and case.id not in told
    )
    return _without(found, "truth") + DataSet(unpaired=missing)


def _told_missing(found: DataSet, role: Role, folder: Path) -> DataSet:
    reason = f"expected its {role} in {folder}, got no file of that name"
    missing = tuple(_of_case(case, reason) for case in found.cases if getattr(case, role) is None)
    return found + DataSet(unpaired=missing)


def _without(found: DataSet, role: Role) -> DataSet:
    return DataSet(tuple(case for case in found.cases if getattr(case, role) is not None), found.unpaired)


def _of_case(case: CaseFiles, reason: str) -> Unpaired:
    return Unpaired(case.name, str(case.probabilities), reason, case.folder)


def _with_folder(found: DataSet, folder: Path, role: Role, pattern: Pattern | None) -> DataSet:
    if not folder.is_dir():
        raise PairingError(f"{folder}: expected a folder of {role}s, got none.")
    listing = files_in(folder)
    # The folder alone counts: a mask beside the map is another one.
    bare = DataSet(tuple(case.lacking(role) for case in found.cases), found.unpaired + listing.told)
    return paired(bare, listing.files, role, pattern)


def paired(found: DataSet, files: Sequence[FolderFile], role: Role, pattern: Pattern | None) -> DataSet:
    """Give the cases their masks or truths; a case with two is told, and so is a file without a case."""
    of_case = by_case(files, pattern)
    times = Counter(case.name for case in found.cases)
    cases, told = [], []
    taken: set[Path] = set()
    for case in found.cases:
        partners = _own(case, of_case.get(case.name, ()), is_only=times[case.name] == 1)
        taken.update(each.path for each in partners)
        if len(partners) > 1:
            listed = ", ".join(str(each.path) for each in partners)
            told.append(_of_case(case, f"expected one {role}, got {listed}. Say which: {_REMEDY[role]}"))
        else:
            cases.append(case.having(role, Place(partners[0].path)) if partners else case)
    missing = {(each.folder, each.name) for each in found.unpaired}
    told += [
        Unpaired(name, str(file.path), f"a {role} without a probability map", file.folder)
        for name, each in of_case.items()
        for file in each
        if file.path not in taken and not missing & {(file.folder, name), ("", name)}
    ]
    return DataSet(tuple(cases), found.unpaired + tuple(told))


_REMEDY = {"mask": "--mask-dir, or a manifest", "truth": "--truth, or a manifest"}


def _own(case: CaseFiles, files: Sequence[FolderFile], *, is_only: bool) -> Sequence[FolderFile]:
    """Give the files of a case among those of its name: never one in the folder of another case."""
    fitting = [each for each in files if not each.folder or not case.folder or _is_same(case, each)]
    if is_only and len(fitting) == 1:
        return fitting
    beside = [each for each in fitting if each.folder and _is_same(case, each)]
    return beside or [each for each in fitting if not each.folder]


def _is_same(case: CaseFiles, file: FolderFile) -> bool:
    """Tell whether one of the two lies in the folder that the other names, and perhaps others above it."""
    ours, theirs = f"/{case.folder}", f"/{file.folder}"
    return ours.endswith(theirs) or theirs.endswith(ours)
