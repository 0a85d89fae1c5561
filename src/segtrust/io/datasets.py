"""Data sets: which files belong to which case. What finds no partner is told, not dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from segtrust.errors import PairingError, ReadError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.manifests import is_manifest, read_manifest
from segtrust.io.names import Pattern, case_of, is_data_file, is_mask_name, stem_of
from segtrust.io.npz import open_npz, read_directory
from segtrust.io.places import Place
from segtrust.io.untrusted import unpickled

__all__ = [
    "Patterns",
    "different_names",
    "find_cases",
    "with_layout",
    "with_masks",
    "with_prefix",
    "with_truths",
]

_STACKED = "p_hat"
"""Name of an array of many maps, beside their truths ``y`` and perhaps masks ``y_hat``."""
_OF_NNUNET = ("predict_from_raw_data_args.json", "plans.json", "summary.json")
"""Files that lie beside its predictions and its validation."""
_WITHOUT_MAPS = (
    "a mask of nnU-Net without a probability map: predict with --save_probabilities, or validate with --npz"
)


@dataclass(frozen=True)
class Patterns:
    """Names of the files of a data set, where they do not follow the usual rules; see `Pattern`."""

    probabilities: Pattern | None = None
    mask: Pattern | None = None
    truth: Pattern | None = None


def find_cases(
    paths: Sequence[Path], patterns: Patterns | None = None, *, allow_pickle: bool = False
) -> DataSet:
    """Find the cases in files and folders.

    Parameters
    ----------
    paths
        Maps, folders of maps (nnU-Net's with masks beside them, or its ``fold_0 …/validation``), archives of
        many maps (``p_hat``), or manifests (CSV, Parquet).
    patterns
        Of the names, where they are unusual.
    allow_pickle
        Load pickles of many maps (``p_hat``), and with them any code that their author put in.

    Raises
    ------
    PairingError
        If there is not one case.
    """
    chosen = patterns or Patterns()
    found = DataSet()
    for path in {path.resolve(): path for path in paths}.values():
        pickled = allow_pickle and path.is_file()
        found = found + (_cases_of_pickle(path) if pickled else _cases_at(path, chosen))
    found = _without_doubles(found)
    if not found.cases and not found.unpaired:
        listed = ", ".join(map(str, paths))
        raise PairingError(f"{listed}: expected probability maps, got none. Formats are told by `--help`.")
    return found


def _cases_at(path: Path, patterns: Patterns) -> DataSet:
    if is_manifest(path):
        return read_manifest(path)
    if path.is_dir() and not is_data_file(path):
        return _cases_in(path, patterns)
    if not path.exists():
        raise PairingError(f"{path}: expected a file or a folder, got none of this name.")
    return DataSet(tuple(_cases_of_file(path, _case_of(path, patterns.probabilities) or stem_of(path))))


def _cases_of_file(path: Path, case: str) -> list[CaseFiles]:
    """Give the case of a file, or the many of one that holds a stack of maps."""
    if path.suffix.lower() != ".npz":
        return [CaseFiles(case, Place(path))]
    try:
        members = read_directory(path)
    except (ReadError, OSError):
        return [CaseFiles(case, Place(path))]  # told when it is read
    if _STACKED not in members:
        return [CaseFiles(case, Place(path))]
    return _stacked_cases(path, case, set(members))


def _cases_of_pickle(path: Path) -> DataSet:
    """Give the cases of a pickle, or of an archive that may hold one, which a person has allowed to load."""
    arrays = unpickled(path)
    if _STACKED not in arrays:
        raise PairingError(f"{path}: expected maps called {_STACKED!r}, got {', '.join(map(str, arrays))}.")

    def place(key: str, index: int) -> Place | None:
        return Place(path, key, index, is_trusted=True) if key in arrays else None

    return DataSet(
        tuple(
            CaseFiles(
                f"{stem_of(path)}[{i}]",
                Place(path, _STACKED, i, is_trusted=True),
                mask=place("y_hat", i),
                truth=place("y", i),
            )
            for i in range(len(arrays[_STACKED]))
        )
    )


def _stacked_cases(path: Path, case: str, names: set[str]) -> list[CaseFiles]:
    try:
        shape = open_npz(path, _STACKED).shape
    except ReadError:
        shape = ()  # told when it is read
    if len(shape) < 2:
        return [CaseFiles(case, Place(path, _STACKED))]

    def place(key: str, index: int) -> Place | None:
        return Place(path, key, index) if key in names else None

    return [
        CaseFiles(f"{case}[{i}]", Place(path, _STACKED, i), mask=place("y_hat", i), truth=place("y", i))
        for i in range(shape[0])
    ]


def _cases_in(folder: Path, patterns: Patterns) -> DataSet:
    folds = sorted(folder.glob("fold_*/validation"))
    if folds:
        found = [_of_group(_cases_in(each, patterns), each.parent.name) for each in folds]
        return sum(found, DataSet())
    files = _data_files(folder)
    if patterns.probabilities is None and _is_without_maps(folder, files):
        return DataSet(unpaired=tuple(Unpaired(case_of(path), str(path), _WITHOUT_MAPS) for path in files))
    maps, masks = _told_apart(files, patterns)
    cases = [
        case for path in maps for case in _cases_of_file(path, _case_of(path, patterns.probabilities) or "")
    ]
    return _with(DataSet(tuple(cases)), masks, "mask", _case_names(masks, patterns.mask))


def _data_files(folder: Path) -> list[Path]:
    """Give the files of a folder that may hold maps or masks, or where there are none those one level below.

    MONAI, for one, saves each case into a folder of its own.
    """
    entries = sorted(folder.iterdir())
    here = [each for each in entries if is_data_file(each)]
    below = [each for each in entries if each.is_dir() and not each.name.startswith(".")]
    return here or sorted(file for each in below for file in each.iterdir() if is_data_file(file))


def _of_group(found: DataSet, group: str) -> DataSet:
    return replace(found, cases=tuple(replace(case, group=group) for case in found.cases))


def _is_without_maps(folder: Path, files: Sequence[Path]) -> bool:
    """Tell nnU-Net's folders in which masks alone were saved: labels are no probabilities."""
    return any((folder / name).exists() for name in _OF_NNUNET) and not any(map(_is_archive, files))


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _told_apart(files: Sequence[Path], patterns: Patterns) -> tuple[list[Path], list[Path]]:
    """Tell maps from the masks beside them: by patterns, by archives, or by their names."""
    masks = [path for path in files if _is_mask(path, patterns)]
    rest = [path for path in files if not _is_mask(path, patterns)]
    if patterns.probabilities is not None:
        return [path for path in rest if patterns.probabilities.case_of(path)], masks
    maps, named = _told_by_names(rest)
    return maps, named if patterns.mask is None else masks


def _is_mask(path: Path, patterns: Patterns) -> bool:
    """Tell by patterns; a name that both fit is of the one that says more."""
    maps, masks = patterns.probabilities, patterns.mask
    if masks is None or masks.case_of(path) is None:
        return False
    return maps is None or maps.case_of(path) is None or len(masks.text) > len(maps.text)


def _told_by_names(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    is_map = _is_archive if any(map(_is_archive, files)) else lambda path: not is_mask_name(path)
    maps, masks = ([path for path in files if is_map(path) is wanted] for wanted in (True, False))
    return (maps, masks) if maps else (masks, [])


def _case_of(path: Path, pattern: Pattern | None) -> str | None:
    return case_of(path) if pattern is None else pattern.case_of(path)


def _case_names(files: Iterable[Path], pattern: Pattern | None) -> dict[str, list[Path]]:
    """Give the files of each case."""
    found: dict[str, list[Path]] = {}
    for path in files:
        case = _case_of(path, pattern)
        if case is not None:
            found.setdefault(case, []).append(path)
    return found


def with_masks(found: DataSet, folder: Path, patterns: Patterns | None = None) -> DataSet:
    """Give each case the delivered mask of its name in a folder; cases without one are told."""
    return _complete(_with_folder(found, folder, "mask", (patterns or Patterns()).mask), "mask", folder)


def with_truths(found: DataSet, folder: Path, patterns: Patterns | None = None) -> DataSet:
    """Give each case the truth of its name in a folder; cases without one are told."""
    return _complete(_with_folder(found, folder, "truth", (patterns or Patterns()).truth), "truth", folder)


def _complete(found: DataSet, role: str, folder: Path) -> DataSet:
    """Leave out, and tell, cases that lack a file."""
    missing = [
        Unpaired(
            case.id, str(case.probabilities), f"expected its {role} in {folder}, got no file of that name"
        )
        for case in found.cases
        if getattr(case, role) is None
    ]
    cases = tuple(case for case in found.cases if getattr(case, role) is not None)
    return DataSet(cases, found.unpaired + tuple(missing))


def _with_folder(found: DataSet, folder: Path, role: str, pattern: Pattern | None) -> DataSet:
    if not folder.is_dir():
        raise PairingError(f"{folder}: expected a folder of {role}s, got none.")
    files = _data_files(folder)
    # The folder alone counts: a mask beside the map is another one.
    bare = DataSet(tuple(case.lacking(role) for case in found.cases), found.unpaired)
    return _with(bare, files, role, _case_names(files, pattern))


def _with(found: DataSet, files: Sequence[Path], role: str, of_case: Mapping[str, list[Path]]) -> DataSet:
    """Give the cases their masks or truths; a case with two is told, and so is a file without a case."""
    cases, told = [], []
    for case in found.cases:
        partners = of_case.get(case.id, [])
        if len(partners) > 1:
            listed = ", ".join(path.name for path in partners)
            told.append(Unpaired(case.id, str(case.probabilities), f"expected one {role}, got {listed}"))
        else:
            cases.append(case.having(role, Place(partners[0])) if partners else case)
    names = {case.id for case in found.cases}
    lonely = [(case, path) for case, paths in of_case.items() if case not in names for path in paths]
    told += [Unpaired(case, str(path), f"a {role} without a probability map") for case, path in lonely]
    return DataSet(tuple(cases), found.unpaired + tuple(told))


def _without_doubles(found: DataSet) -> DataSet:
    """Leave out cases whose name comes twice: which is which could not be told in any table."""
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


_TRUTHS = ("masks", "labels", "labelsTs", "truths", "truth", "gt")


def with_layout(path: Path) -> tuple[Path, Path | None]:
    """Tell the maps of a folder from the truths in it, where both are folders in it with usual names.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("predictions", "masks"):
    ...     (folder / name).mkdir()
    >>> [each.name for each in with_layout(folder)]
    ['predictions', 'masks']
    """
    maps = path / "predictions"
    truths = [path / name for name in _TRUTHS if (path / name).is_dir()]
    return (maps, truths[0]) if maps.is_dir() and truths else (path, None)


def with_prefix(found: DataSet, prefix: str) -> DataSet:
    """Give the same cases under names that tell of their folder."""
    cases = tuple(replace(case, id=f"{prefix}/{case.id}") for case in found.cases)
    return DataSet(cases, tuple(replace(each, case=f"{prefix}/{each.case}") for each in found.unpaired))


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
