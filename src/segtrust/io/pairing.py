"""Masks and truths of cases, found by name. What finds no partner is told, not dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segtrust.errors import PairingError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.folders import FolderFile, by_case, files_in, is_place
from segtrust.io.names import Pattern, ending_of
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


def only_with_truth(found: DataSet, remedy: str = "Give their folder: --truth") -> DataSet:
    """Leave out cases without a truth; those are told of which it is not said yet."""
    told = {each.case for each in found.unpaired}
    reason = f"expected its truth, got none. {remedy}"
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
    return Unpaired(case.name, str(case.probabilities), reason, case.folder, case.prefix)


def _with_folder(found: DataSet, folder: Path, role: Role, pattern: Pattern | None) -> DataSet:
    if not folder.is_dir():
        raise PairingError(f"{folder}: expected a folder of {role}s, got none.")
    listing = files_in(folder)
    # The folder alone counts: a mask beside the map is another one.
    bare = DataSet(tuple(case.lacking(role) for case in found.cases), found.unpaired + listing.told)
    placed = [each for each in listing.files if each.place in _PLACES[role]]
    return paired(bare, placed or [each for each in listing.files if each.place is None], role, pattern)


def paired(found: DataSet, files: Sequence[FolderFile], role: Role, pattern: Pattern | None) -> DataSet:
    """Give the cases their masks or truths; a case with two is told, and so is a file without a case."""
    of_case = by_case(files, pattern)
    shelves = _Shelves.of(found.cases, files)
    cases, told = [], []
    taken: set[Path] = set()
    for case in found.cases:
        partners = shelves.own(case, of_case.get(case.name, ()))
        taken.update(each.path for each in partners)
        if len(partners) > 1:
            listed = ", ".join(str(each.path) for each in partners)
            told.append(_of_case(case, f"expected one {role}, got {listed}. Say which: {_REMEDY[role]}"))
        elif partners and role == "mask" and shelves.is_shared(case, partners[0]):
            reason = f"expected a mask of its own, got {partners[0].path} for several cases of that name"
            told.append(_of_case(case, f"{reason}. Say which: {_REMEDY[role]}"))
        else:
            cases.append(case.having(role, Place(partners[0].path)) if partners else case)
    missing = {(each.folder, each.name) for each in found.unpaired}
    examples = _masks_beside_archives(cases) if role == "mask" and pattern is None else {}
    told += [
        Unpaired(
            name, str(file.path), f"a {role} without a probability map{_why(file, examples)}", file.folder
        )
        for name, each in of_case.items()
        for file in each
        if file.path not in taken and not missing & {(file.folder, name), ("", name)}
    ]
    return DataSet(tuple(cases), found.unpaired + tuple(told))


def _masks_beside_archives(cases: Sequence[CaseFiles]) -> Mapping[tuple[Path, str], CaseFiles]:
    """Give for each folder and ending a case by which all files that end so there are taken for masks."""
    return {
        (case.mask.path.parent, ending_of(case.mask.path)): case
        for case in reversed(cases)
        if case.mask is not None
        and case.mask.path.parent == case.probabilities.path.parent
        and case.probabilities.path.suffix.lower() == ".npz"
    }


def _why(file: FolderFile, examples: Mapping[tuple[Path, str], CaseFiles]) -> str:
    """Say why a file is taken for a mask whose name does not say so: one archive decides for many files."""
    case = examples.get((file.path.parent, ending_of(file.path)))
    if case is None or case.mask is None or file.is_mask or file.place is not None:
        return ""
    return (
        f": {case.mask.path.name} beside {case.probabilities.path.name} makes all of that ending masks. If "
        "they are maps, keep the two formats apart, or say which are meant: --pattern"
    )


_REMEDY = {
    "mask": "--mask-dir, --mask-pattern, or a manifest",
    "truth": "--truth, --truth-pattern, or a manifest",
}
_PLACES: Mapping[Role, tuple[str, ...]] = {"mask": ("mask", "truth"), "truth": ("truth",)}
"""What folders of masks or truths may be called, in a folder that was named for them."""


@dataclass(frozen=True)
class _Shelves:
    """Which files of its name are those of a case, by the folders that both lie in.

    Attributes
    ----------
    times
        Cases of each name.
    are_named_alike
        Whether folders of files are called as folders of cases, as ``site_1`` in both: then a file in the
        folder of another site is never taken. Elsewhere folders say nothing.
    """

    times: Counter[str]
    are_named_alike: bool

    @classmethod
    def of(cls, cases: Sequence[CaseFiles], files: Sequence[FolderFile]) -> _Shelves:
        folders = {each.folder for each in files} - {""}
        above = {_above(case) for case in cases} if folders else set()
        alike = any(where.endswith(f"/{folder}") for where in above for folder in folders)
        nested = {case.folder for case in cases} - {""}
        return cls(Counter(case.name for case in cases), alike or bool(folders and nested))

    def is_shared(self, case: CaseFiles, file: FolderFile) -> bool:
        """Tell whether a file would be given to several cases: two sites do not have one mask."""
        return self.times[case.name] > 1 and not file.folder

    def own(self, case: CaseFiles, files: Sequence[FolderFile]) -> Sequence[FolderFile]:
        """Give the files of a case among those of its name."""
        common = [each for each in files if not each.folder]
        if self.are_named_alike:
            return [each for each in files if each.folder and _is_same(case, each)] or common
        return files if self.times[case.name] == 1 else common


def _above(case: CaseFiles) -> str:
    """Give the folders that a case lies in, without those that say what they hold."""
    parts = case.probabilities.path.absolute().parent.parts
    return "/".join(part for part in parts if not is_place(part))


def _is_same(case: CaseFiles, file: FolderFile) -> bool:
    """Tell whether one of the two lies in the folder that the other names, and perhaps others above it."""
    ours, theirs = f"/{case.folder}", f"/{file.folder}"
    return _above(case).endswith(theirs) or (bool(case.folder) and theirs.endswith(ours))
