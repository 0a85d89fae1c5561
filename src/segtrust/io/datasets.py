"""Data sets: which files belong to which case. What finds no partner is told, not dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from segtrust.errors import PairingError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.folders import FolderFile, files_in
from segtrust.io.manifests import is_manifest, read_manifest
from segtrust.io.names import Pattern, case_of, is_data_file, stem_of
from segtrust.io.pairing import paired, with_masks, with_truths
from segtrust.io.stacks import cases_of_file, cases_of_pickle, is_pickled
from segtrust.io.untrusted import is_pickle

__all__ = ["Search", "different_names", "find_cases"]

_OF_NNUNET = ("predict_from_raw_data_args.json", "plans.json", "summary.json")
"""Files that lie beside its predictions and its validation."""
_WITHOUT_MAPS = (
    "a mask of nnU-Net without a probability map: predict with --save_probabilities, or validate with --npz"
)


@dataclass(frozen=True)
class Search:
    """Which files are looked for, where that is not told by their names and folders.

    Attributes
    ----------
    maps, masks, truths
        Names of the files, where they are unusual; see `Pattern`.
    mask_folder, truth_folder
        Where they are, if not beside the maps. Masks beside the maps then do not count.
    with_truths
        Whether truths are looked for at all, where they lie beside the maps.
    allow_pickle
        Load pickles of many maps (``p_hat``), and with them any code that their author put in.
    """

    maps: Pattern | None = None
    masks: Pattern | None = None
    truths: Pattern | None = None
    mask_folder: Path | None = None
    truth_folder: Path | None = None
    with_truths: bool = True
    allow_pickle: bool = False

    @property
    def beside(self) -> Search:
        """What is looked for beside the maps: not what has a folder of its own."""
        return replace(
            self,
            masks=self.masks if self.mask_folder is None else None,
            truths=self.truths if self.truth_folder is None else None,
            with_truths=self.with_truths and self.truth_folder is None,
        )


def find_cases(paths: Sequence[Path], search: Search | None = None) -> DataSet:
    """Find the cases in files and folders.

    Parameters
    ----------
    paths
        Maps, folders of maps (nnU-Net's with masks beside them, its ``fold_0 …/validation``, or one with
        ``predictions`` and ``labels``), archives of many maps (``p_hat``), or manifests (CSV, Parquet). Where
        several folders are given, the names of cases begin with theirs.
    search
        What else is to be known.

    Raises
    ------
    PairingError
        If there is not one case.
    """
    wanted = search or Search()
    different = list({path.resolve(): path for path in paths}.values())
    found = _without_doubles(sum((_cases_of(each, wanted) for each in _named(different)), DataSet()))
    if not found.cases and not found.unpaired:
        listed = ", ".join(map(str, paths))
        named = "" if wanted.maps is None else f" called {wanted.maps.text!r}"
        raise PairingError(
            f"{listed}: expected probability maps{named}, got none. Formats are told by `--help`."
        )
    if wanted.mask_folder is not None:
        found = with_masks(found, wanted.mask_folder, wanted.masks)
    if wanted.truth_folder is not None:
        found = with_truths(found, wanted.truth_folder, wanted.truths)
    return found


def _named(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Name the folders and manifests among several, by which their cases are told apart."""
    several = [path for path in paths if _is_folder(path) or is_manifest(path)]
    names = dict(zip(several, different_names(several), strict=True)) if len(several) > 1 else {}
    return [(names.get(path, ""), path) for path in paths]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not is_data_file(path)


def _cases_of(named: tuple[str, Path], search: Search) -> DataSet:
    name, path = named
    if search.allow_pickle and is_pickled(path):
        return DataSet(tuple(cases_of_pickle(path)))
    found = _cases_at(path, search)
    if search.allow_pickle and _is_folder(path):
        found = found + DataSet(tuple(case for each in _pickles(path) for case in cases_of_pickle(each)))
    return found.below(name)


def _pickles(folder: Path) -> list[Path]:
    """Give the pickles of a folder that are not the geometry of an archive."""
    files = sorted(folder.iterdir())
    return [each for each in files if is_pickle(each) and not each.with_suffix(".npz").exists()]


def _cases_at(path: Path, search: Search) -> DataSet:
    if is_manifest(path):
        return read_manifest(path)
    if not path.exists():
        raise PairingError(f"{path}: expected a file or a folder, got none of this name.")
    if not _is_folder(path):
        case = case_of(path) if search.maps is None else search.maps.case_of(path)
        return DataSet(tuple(cases_of_file(path, case or stem_of(path))))
    return _cases_in(path, search.beside)


def _cases_in(folder: Path, search: Search) -> DataSet:
    folds = sorted(folder.glob("fold_*/validation"))
    if folds:
        found = sum((_of_group(_cases_in(each, search), each.parent.name) for each in folds), DataSet())
        return found + DataSet(unpaired=_beside_folds(folder))
    listing = files_in(folder)
    told = DataSet(unpaired=listing.told)
    if search.maps is None and _is_without_maps(folder, listing.files):
        lonely = [Unpaired(case_of(each.path), str(each.path), _WITHOUT_MAPS) for each in listing.files]
        return told + DataSet(unpaired=tuple(lonely))
    maps, masks, truths = _told_apart(listing.files, search)
    found = DataSet(tuple(case for each in maps for case in _cases_of_map(each, search.maps)))
    masked = told + paired(found, masks, "mask", search.masks)
    return paired(masked, truths, "truth", search.truths) if search.with_truths else masked


def _beside_folds(folder: Path) -> tuple[Unpaired, ...]:
    """Tell of maps beside the folds of nnU-Net, and of folds without a validation."""
    files = [each for each in sorted(folder.iterdir()) if is_data_file(each)]
    bare = [each for each in sorted(folder.glob("fold_*")) if not (each / "validation").is_dir()]
    return (
        *(
            Unpaired(case_of(each), str(each), "a file beside the folds, which was not looked at")
            for each in files
        ),
        *(
            Unpaired(each.name, str(each), "a fold without the folder 'validation': validate with --npz")
            for each in bare
        ),
    )


def _cases_of_map(file: FolderFile, pattern: Pattern | None) -> list[CaseFiles]:
    cases = cases_of_file(file.path, file.case(pattern) or "")
    return [replace(case, folder=file.folder) for case in cases] if file.folder else cases


def _of_group(found: DataSet, group: str) -> DataSet:
    return replace(found, cases=tuple(replace(case, group=group) for case in found.cases))


def _is_without_maps(folder: Path, files: Sequence[FolderFile]) -> bool:
    """Tell nnU-Net's folders in which masks alone were saved: labels are no probabilities."""
    is_of_nnunet = any((folder / name).exists() for name in _OF_NNUNET)
    return is_of_nnunet and not any(each.is_archive or each.is_map for each in files)


_Files = list[FolderFile]


def _told_apart(files: Sequence[FolderFile], search: Search) -> tuple[_Files, _Files, _Files]:
    """Tell maps from the masks and truths beside them: by patterns, by archives, or by their names."""
    chosen = [each for each in files if each.place in (None, "map")]
    placed = [each for each in files if each.place == "truth"]
    fitting = {each.path: _fitting(each, search) for each in chosen}
    patterns = (search.maps, search.masks, search.truths)
    maps, masks, truths = (
        [each for each in chosen if wanted is not None and fitting[each.path] is wanted]
        for wanted in patterns
    )
    if search.maps is not None:
        return maps, masks, truths + placed
    maps, *named = _told_by_names([each for each in chosen if fitting[each.path] is None])
    return maps, masks if search.masks else named[0], (truths if search.truths else named[1]) + placed


def _fitting(file: FolderFile, search: Search) -> Pattern | None:
    """Give the pattern that a name fits; of several the one that says most."""
    given = [each for each in (search.maps, search.masks, search.truths) if each is not None]
    fitting = [each for each in given if file.case(each) is not None]
    return max(fitting, key=lambda each: len(each.text), default=None)


def _told_by_names(files: Sequence[FolderFile]) -> tuple[_Files, _Files, _Files]:
    """Tell by names; where these call all files masks or truths they are maps, or there would be none."""
    archives = any(each.is_archive for each in files)
    truths = [each for each in files if each.is_truth and not each.is_archive]
    rest = [each for each in files if not each.is_truth or each.is_archive]
    maps = [each for each in rest if (each.is_archive if archives else not each.is_mask)]
    masks = [each for each in rest if (not each.is_archive if archives else each.is_mask)]
    if maps:
        return maps, masks, truths
    return (masks, [], truths) if masks else (truths, [], [])


def _without_doubles(found: DataSet) -> DataSet:
    """Leave out cases whose name comes twice: which is which could not be told in any table."""
    found = replace(found, cases=_different_files(found.cases))
    times = Counter(case.id for case in found.cases)
    files: dict[str, list[str]] = {}
    for case in found.cases:
        files.setdefault(case.id, []).append(str(case.probabilities))
    told = [
        Unpaired(case, paths[0], f"expected one map of the case {case!r}, got {', '.join(paths)}")
        for case, paths in files.items()
        if len(paths) > 1
    ]
    cases = tuple(case for case in found.cases if times[case.id] == 1)
    return DataSet(cases, found.unpaired + tuple(told))


def _different_files(cases: Sequence[CaseFiles]) -> tuple[CaseFiles, ...]:
    """Take a file once that was given twice, by itself and with its folder."""
    return tuple({(case.id, str(case.probabilities)): case for case in cases}.values())


def different_names(paths: Sequence[Path]) -> list[str]:
    """Give short names of folders, from as few of their last parts as tell them apart.

    Examples
    --------
    >>> different_names([Path("a/maps"), Path("b/maps")]), different_names([Path("a/x"), Path("b/y")])
    (['a/maps', 'b/maps'], ['x', 'y'])
    """
    absolute = [path.resolve() for path in paths]
    for count in range(1, max(len(path.parts) for path in absolute) + 1):
        names = ["/".join(path.parts[-count:]) for path in absolute]
        if len(set(names)) == len(names):
            break
    return names
