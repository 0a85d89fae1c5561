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
    for case in found.cases:
        partners = _own(case, of_case.get(case.name, ()), is_only=times[case.name] == 1)
        if len(partners) > 1:
            listed = ", ".join(each.path.name for each in partners)
            told.append(_of_case(case, f"expected one {role}, got {listed}"))
        else:
            cases.append(case.having(role, Place(partners[0].path)) if partners else case)
    names = {case.name for case in found.cases} | {each.name for each in found.unpaired}
    told += [
        Unpaired(name, str(file.path), f"a {role} without a probability map", file.folder)
        for name, lonely in of_case.items()
        if name not in names
        for file in lonely
    ]
    return DataSet(tuple(cases), found.unpaired + tuple(told))


def _own(case: CaseFiles, files: Sequence[FolderFile], *, is_only: bool) -> Sequence[FolderFile]:
    """Give the files of a case among those of its name; where there are others of that name, by folders."""
    if is_only and len(files) == 1:
        return files
    beside = [each for each in files if each.folder and f"/{case.folder}".endswith(f"/{each.folder}")]
    return beside or [each for each in files if not each.folder]
