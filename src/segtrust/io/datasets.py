"""Data sets: which files belong to which case. What finds no partner is told, not dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from segtrust.errors import PairingError
from segtrust.io.beside import Neighbours
from segtrust.io.case_images import with_images
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.folders import FolderFile, files_in
from segtrust.io.manifests import is_manifest, read_manifest
from segtrust.io.members import with_members
from segtrust.io.names import Pattern, case_of, is_data_file, stem_of
from segtrust.io.pairing import paired, with_masks, with_truths
from segtrust.io.roles import roles_of
from segtrust.io.search import Search
from segtrust.io.stacks import cases_of_file, cases_of_pickle, is_pickled

__all__ = ["different_names", "find_cases", "without_doubles"]

_OF_NNUNET = ("predict_from_raw_data_args.json", "plans.json", "summary.json")
"""Files that lie beside its predictions and its validation."""
_PICKLE = "a pickle, which may run any code and so was not loaded: --allow-pickle, if you made it yourself"
_EMPTY = "expected probability maps, got none. Put them there, or leave it out"
_WITHOUT_MAPS = (
    "a mask of nnU-Net without a probability map: predict with --save_probabilities or by `segtrust nnunet "
    "predict`, which keeps none; or validate with --npz"
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
    beside = Neighbours(wanted.beside, frozenset(different))
    sets = {path: _cases_of((name, path), wanted, beside) for name, path in _named(different)}
    found = without_doubles(sum(sets.values(), DataSet()))
    if not found.cases and not found.unpaired:
        listed = ", ".join(map(str, paths))
        named = "" if wanted.maps is None else f" called {wanted.maps.text!r}"
        raise PairingError(
            f"{listed}: expected probability maps{named}, got none. Formats are told by `--help`."
        )
    if not wanted.may_be_empty:
        found += _empty_among(sets)
    if wanted.member_folders:
        found = _of_ensemble(found, paths, wanted)
    if wanted.mask_folder is not None:
        found = with_masks(found, wanted.mask_folder, wanted.masks)
    if wanted.truth_folder is not None:
        found = with_truths(found, wanted.truth_folder, wanted.truths)
    if wanted.image_folder is not None:
        found = with_images(found, wanted.image_folder)
    return found


def _empty_among(sets: Mapping[Path, DataSet]) -> DataSet:
    """Tell of folders that were given beside others and hold nothing: some cases may have gone astray."""
    empty = [path for path, each in sets.items() if _is_folder(path) and not (each.cases or each.unpaired)]
    return DataSet(unpaired=tuple(Unpaired(each.name, str(each), _EMPTY) for each in empty))


def _of_ensemble(found: DataSet, paths: Sequence[Path], search: Search) -> DataSet:
    """Give cases the maps of the other members. A mask beside the maps of the first is not the ensemble's."""
    if not any(is_manifest(path) for path in paths):
        found = replace(found, cases=tuple(case.lacking("mask") for case in found.cases))
    others = [(folder, find_cases([folder], search.of_members)) for folder in search.member_folders]
    return with_members(found, others)


def _named(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Name the folders and manifests among several, by which their cases are told apart."""
    several = [path for path in paths if _is_folder(path) or is_manifest(path)]
    names = dict(zip(several, different_names(several), strict=True)) if len(several) > 1 else {}
    return [(names.get(path, ""), path) for path in paths]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not is_data_file(path)


def _cases_of(named: tuple[str, Path], search: Search, beside: Neighbours) -> DataSet:
    name, path = named
    if search.allow_pickle and is_pickled(path):
        return cases_of_pickle(path)
    return _cases_at(path, search, beside).below(name)


def _pickled(paths: Sequence[Path], search: Search) -> DataSet:
    """Give the cases of pickles where a person has allowed to load them; elsewhere tell of them."""
    if search.allow_pickle:
        return sum((cases_of_pickle(path) for path in paths), DataSet())
    return DataSet(unpaired=tuple(Unpaired(path.name, str(path), _PICKLE) for path in paths))


def _cases_at(path: Path, search: Search, beside: Neighbours) -> DataSet:
    if is_manifest(path):
        return read_manifest(path)
    if not path.exists():
        raise PairingError(f"{path}: expected a file or a folder, got none of this name.")
    if not _is_folder(path):
        case = (case_of(path) if search.maps is None else search.maps.case_of(path)) or stem_of(path)
        return beside.join(cases_of_file(path, case), path, case)
    return _cases_in(path, search.beside)


def _cases_in(folder: Path, search: Search) -> DataSet:
    if folder.name.startswith("fold_") and (folder / "validation").is_dir():
        return _of_group(_cases_in(folder / "validation", search), folder.name)
    folds = sorted(folder.glob("fold_*/validation"))
    if folds:
        found = sum((_of_group(_cases_in(each, search), each.parent.name) for each in folds), DataSet())
        return found + DataSet(unpaired=_beside_folds(folder))
    listing = files_in(folder)
    files = [each for each in listing.files if not search.has_elsewhere(each.path, folder)]
    told = DataSet(
        unpaired=tuple(each for each in listing.told if not search.has_elsewhere(Path(each.file), folder))
    )
    if search.maps is None and _is_without_maps(folder, files):
        lonely = [Unpaired(case_of(each.path), str(each.path), _WITHOUT_MAPS) for each in files]
        return told + DataSet(unpaired=tuple(lonely))
    roles = roles_of(files, search)
    sets = [_cases_of_map(each, search.maps) for each in roles.maps]
    found = told + DataSet(
        tuple(case for each in sets for case in each.cases),
        (*(told for each in sets for told in each.unpaired), *roles.told(folder, search)),
    )
    found = paired(found, roles.masks, "mask", search.masks)
    if search.with_truths:
        found = paired(found, roles.truths, "truth", search.truths)
    return found + _pickled(listing.pickles, search)


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


def _cases_of_map(file: FolderFile, pattern: Pattern | None) -> DataSet:
    found = cases_of_file(file.path, file.case(pattern) or "")
    if not file.folder:
        return found
    return DataSet(
        tuple(replace(each, folder=file.folder) for each in found.cases),
        tuple(replace(each, folder=file.folder) for each in found.unpaired),
    )


def _of_group(found: DataSet, group: str) -> DataSet:
    return replace(found, cases=tuple(replace(case, group=group) for case in found.cases))


def _is_without_maps(folder: Path, files: Sequence[FolderFile]) -> bool:
    """Tell nnU-Net's folders in which masks alone were saved: labels are no probabilities."""
    is_of_nnunet = any((folder / name).exists() for name in _OF_NNUNET)
    return is_of_nnunet and not any(each.is_archive or each.is_map for each in files)


def without_doubles(found: DataSet) -> DataSet:
    """Leave out cases whose name comes twice: which is which could not be told in any table."""
    found = replace(found, cases=_different_files(found.cases))
    times = Counter(case.id for case in found.cases)
    files: dict[str, list[str]] = {}
    for case in found.cases:
        if times[case.id] > 1:
            files.setdefault(case.id, []).append(str(case.probabilities))
    told = [
        Unpaired(case, paths[0], f"expected one map of the case {case!r}, got {', '.join(paths)}")
        for case, paths in files.items()
    ]
    cases = tuple(case for case in found.cases if times[case.id] == 1)
    return DataSet(cases, found.unpaired + tuple(told))


def _different_files(cases: Sequence[CaseFiles]) -> tuple[CaseFiles, ...]:
    """Take a case once that was given twice, by its file and with its folder."""
    return tuple(dict.fromkeys(cases))


def different_names(paths: Sequence[Path]) -> list[str]:
    """Give short names of folders, from as few of their last parts as tell them apart.

    Examples
    --------
    >>> different_names([Path("a/maps"), Path("b/maps")]), different_names([Path("a/x"), Path("b/y")])
    (['a/maps', 'b/maps'], ['x', 'y'])
    """
    absolute = [path.resolve() for path in paths]
    names: list[str] = []
    for count in range(1, max(len(path.parts) for path in absolute) + 1):
        names = ["/".join(path.parts[-count:]) for path in absolute]
        if len(set(names)) == len(names):
            break
    return names
