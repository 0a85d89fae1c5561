"""Finding cases: which files belong together, in folders of maps, single files, archives and manifests."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from segtrust.errors import PairingError, ParameterError
from segtrust.io.case_files import (
    UNPAIRED,
    CaseFiles,
    Dataset,
    Failure,
    Leftover,
    join_id,
    name_pattern,
    only_with_truth,
    without_duplicates,
)
from segtrust.io.folders import FolderFile, assign_roles, folder_role, is_folder, list_folder
from segtrust.io.manifest import MEMBER_SEPARATOR, is_manifest, read_manifest
from segtrust.io.names import Pattern, Role, case_of, ending_of, image_cases, is_data_file, stem_of
from segtrust.io.partners import (
    NOUNS,
    Partner,
    add_files,
    cases_by_file,
    id_endings,
    pair_files,
    propose_prefixes,
)
from segtrust.io.stacks import cases_of_map, cases_of_pickle, may_be_pickled

__all__ = [
    "Dataset",
    "Sources",
    "add_files",
    "find_cases",
    "only_with_truth",
    "short_names",
    "without_duplicates",
]

Sources = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
"""One folder for all maps, several (one per folder of maps), or folders by the name of the folder of maps."""
Patterns = str | Sequence[str] | Mapping[str, str]

_NNUNET_FILES = ("predict_from_raw_data_args.json", "plans.json", "summary.json")
"""Files that nnU-Net writes next to its predictions and its validation."""
_NAMED_ARRAYS = (".h5", ".hdf5", ".zarr", ".ome.zarr", ".zarr.zip")
"""Files in which the map and the ground truth are found by the names of the arrays."""
_NO_PROBABILITIES = (
    "a mask of nnU-Net without a probability map: predict with --save_probabilities or by `segtrust nnunet "
    "predict`, which keeps none; or validate with --npz"
)
_PICKLE = "a pickle, which may run any code and was not loaded: --allow-pickle, if you made it yourself"
_FOLDER_OPTIONS: Mapping[Partner, str] = {"mask": "mask-dir", "truth": "truth", "image": "image-dir"}
_PATTERN_OPTIONS: Mapping[Role, str] = {
    "map": "pattern",
    "mask": "mask-pattern",
    "truth": "truth-pattern",
    "image": "image-pattern",
}


def find_cases(
    paths: str | Path | Sequence[str | Path],
    *,
    truth: Sources | None = None,
    masks: Sources | None = None,
    images: Sources | None = None,
    members: Sources | None = None,
    pattern: Patterns | None = None,
    truth_pattern: Patterns | None = None,
    mask_pattern: Patterns | None = None,
    image_pattern: Patterns | None = None,
    needs_truth: bool | None = None,
    may_be_empty: bool = False,
    allow_pickle: bool = False,
) -> Dataset:
    """Find the cases in files and folders, and say what was paired with what.

    Parameters
    ----------
    paths
        Probability maps, folders of maps (nnU-Net's with its masks, its ``fold_0 …/validation``, or a folder
        with ``predictions``, ``labels`` and ``images``), archives of many maps (``p_hat``), or manifests
        (CSV, Parquet). With several folders, the ids of the cases begin with the name of their folder.
    truth, masks, images
        Folders of ground truth, delivered masks and images, whose files are named like the maps. One folder
        serves all maps; it may be a parent folder with subfolders named like the folders of maps. Several
        folders are assigned to the folders of maps by name, if both have the same names, else in order; a
        name that contradicts the order is an error. A mapping, or ``"NAME=DIR"``, assigns them explicitly;
        NAME is the name of a folder of maps. Delivered masks are used only on request, or if the layout
        defines them (nnU-Net's ``a.nii.gz`` next to ``a.npz``).
    members
        Folders of the maps of the other members of an ensemble. Each folder is one more member, for all
        folders of maps (a parent folder has subfolders named like these); ``"NAME=DIR"`` is one more member
        of one folder of maps only. Masks next to the maps of the first member are not those of the ensemble.
    pattern, truth_pattern, mask_pattern, image_pattern
        File names with ``{case}`` in the place of the case, such as ``"{case}_prob.nii.gz"``; one for all, or
        several as with folders. Without a folder of their own, the files are next to the maps.
    needs_truth
        Whether the cases will be compared with ground truth. If so, files called ``x-mask.png`` next to
        ``x-pred.png`` are taken for it if nothing else may be. By default, only files whose name or folder
        says so (``x_gt.png``, ``labels/x.png``) are taken. With False, ground truth is not looked for.
    may_be_empty
        Whether some folders may hold no maps yet.
    allow_pickle
        Load pickles of many maps (``p_hat``), which runs any code that their author put in.

    Returns
    -------
    Dataset
        Cases, leftover files and failures. Print it to see what was paired with what.

    Raises
    ------
    PairingError
        If nothing was found, or a folder does not exist.
    ParameterError
        If an option would be ignored, such as two folders of ground truth for three folders of maps.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a-pred.png", "a-mask.png", "a-img.png", "a-pred_aid.png"):
    ...     (folder / name).touch()
    >>> print(find_cases(folder, truth_pattern="{case}-mask.png"))  # doctest: +NORMALIZE_WHITESPACE
    1 map (`*-pred.png`), ground truth 1 (`*-mask.png`), images 1 (`*-img.png`), delivered masks none;
    left over: 1 `*-pred_aid.png`
    """
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    if not all(str(path) for path in several):
        raise PairingError("expected the path of a file or a folder, got an empty one.")
    sources = list(dict.fromkeys(map(Path, several)))
    sets = list({path.resolve(): path for path in sources if is_manifest(path) or is_folder(path)}.values())
    prefixes = dict(zip(sets, short_names(sets), strict=True)) if len(sets) > 1 else {}
    files: dict[Path, list[Path]] = {path: [] for path in sets}
    for path in sources:
        if not (is_manifest(path) or is_folder(path)):
            files.setdefault(path.parent, []).append(path)
    folders = list(files)
    values = {
        "truth": truth,
        "mask-dir": masks,
        "image-dir": images,
        "pattern": pattern,
        "truth-pattern": truth_pattern,
        "mask-pattern": mask_pattern,
        "image-pattern": image_pattern,
    }
    requests = _requests(folders, values, members, needs_truth, allow_pickle)
    found = {
        folder: _find_in(folder, files[folder], request, prefixes.get(folder, "") if folder in sets else None)
        for folder, request in requests.items()
    }
    _check_own_truth(found, requests)
    dataset = without_duplicates(sum(found.values(), Dataset()))
    if not dataset.cases and not dataset.failures:
        named = "" if pattern is None else f" called {pattern!r}"
        unused = f" Not used: {dataset.leftovers[0].file}." if dataset.leftovers else ""
        raise PairingError(
            f"{', '.join(map(str, several))}: expected probability maps{named}, got none.{unused} "
            "`segtrust score --help` lists the formats."
        )
    if not may_be_empty:
        reason = "expected probability maps, got none. Put them there, or leave the folder out"
        empty = [path for path in sets if found[path] == Dataset()]
        failures = (Failure(path.name, str(path), UNPAIRED, reason) for path in empty)
        dataset = replace(dataset, failures=(*dataset.failures, *failures))
    folder_of = {case.id: folder for folder, each in found.items() for case in each.cases}
    dataset = _add_members(dataset, requests, folder_of)
    for role in _FOLDER_OPTIONS:
        shared: dict[tuple[str, str | None], set[Path]] = {}
        for folder, request in requests.items():
            if (partners := request.folders[role]) is not None:
                shared.setdefault((partners, request.patterns[role]), set()).add(folder)
        for (partners, text), maps in shared.items():
            ids = {case.id for case in dataset.cases if folder_of[case.id] in maps}
            pattern_of_role = None if text is None else Pattern(text, _PATTERN_OPTIONS[role])
            dataset = add_files(dataset, role, partners, pattern_of_role, ids=ids)
    used = {str(ref.path) for case in dataset.cases for ref in (case.mask, case.truth, case.image) if ref}
    leftovers = (each for each in dict.fromkeys(dataset.leftovers) if each.file not in used)
    notes = (*dataset.notes, *_check_truths(dataset.cases))
    return replace(dataset, leftovers=tuple(leftovers), notes=notes)


def _requests(
    folders: Sequence[Path],
    values: Mapping[str, Any],
    members: Sources | None,
    needs_truth: bool | None,
    allow_pickle: bool,
) -> dict[Path, _Request]:
    """Return what is asked for each folder of maps; ``values`` has folders and patterns by their options."""
    if needs_truth is False and values["truth-pattern"] is not None and values["truth"] is None:
        raise ParameterError("truth-pattern: ground truth is not looked for here, so it would be ignored.")
    assigned = {option: _assign(option, value, folders) for option, value in values.items()}
    member_folders = _assign_members(members, folders)
    requests = {}
    for index, folder in enumerate(folders):
        patterns: dict[Role, str | None] = {
            role: assigned[option][index] for role, option in _PATTERN_OPTIONS.items()
        }
        partners: dict[Partner, str | None] = {
            role: assigned[option][index] for role, option in _FOLDER_OPTIONS.items()
        }
        own: set[Partner] = {
            role
            for role, path in partners.items()
            if path is not None and Path(path).resolve() == folder.resolve()
        }
        own = {role for role in own if role == "truth" or patterns[role] is not None}
        has_own_truth = "truth" in own
        partners.update((role, None) for role in own)  # they are next to the maps
        requests[folder] = _Request(
            partners,
            patterns,
            member_folders[index],
            True if has_own_truth else needs_truth,
            allow_pickle,
            has_own_truth,
        )
    return requests


def _check_own_truth(found: Mapping[Path, Dataset], requests: Mapping[Path, _Request]) -> None:
    """Check that a folder of maps that was passed for ground truth as well has some."""
    for folder, request in requests.items():
        cases = found[folder].cases
        if request.has_own_truth and cases and not any(case.truth for case in cases):
            notes = " ".join(["", *found[folder].notes])
            raise ParameterError(
                f"truth: {cases[0].probabilities} is one of the maps: the folder of maps was given as ground "
                "truth. Pass the folder of the ground truth, or say which files are ground truth: "
                f"--truth-pattern.{notes}"
            )


def _check_truths(cases: Sequence[CaseFiles]) -> list[str]:
    """Return a note if several maps share their ground truth; raise an error if a map is ground truth."""
    truths = [case.truth for case in cases if case.truth is not None]
    if not truths:
        return []
    maps = {case.probabilities for case in cases}
    real = {folder: folder.resolve() for folder in {ref.path.parent for ref in (*maps, *truths)}}
    map_places = {replace(ref, path=real[ref.path.parent] / ref.path.name) for ref in maps}
    for ref in truths:
        may_hold_both = ref.key is None and ending_of(ref.path) in _NAMED_ARRAYS
        if not may_hold_both and replace(ref, path=real[ref.path.parent] / ref.path.name) in map_places:
            raise ParameterError(
                f"truth: {ref.path} is one of the maps: the folder of maps was given as ground truth. Pass "
                "the folder of the ground truth."
            )
    files = {truth for truth, count in Counter(truths).items() if count > 1}
    count = sum(truth in files for truth in truths)
    shared = f"{count} maps share {len(files)} file{'s' if len(files) > 1 else ''} of ground truth"
    return [f"{shared}. Are these several models? Evaluate them one at a time."] if files else []


def _find_in(folder: Path, files: Sequence[Path], request: _Request, prefix: str | None) -> Dataset:
    """Return the cases of single files in a folder, and those of the folder itself if it has a prefix."""
    found = []
    if request.allow_pickle:
        pickled = [path for path in files if may_be_pickled(path)]
        found = [cases_of_pickle(path) for path in pickled]
        files = [path for path in files if path not in pickled]
    if files:
        missing = [path for path in files if not path.exists()]
        if len(missing) == len(files):
            raise PairingError(f"{missing[0]}: no such file or folder.")
        failures = (Failure(case_of(path), str(path), UNPAIRED, "no such file or folder") for path in missing)
        found.append(Dataset(failures=tuple(failures)))
        files = [path for path in files if path not in missing]
        there = sorted(filter(is_data_file, folder.iterdir()), key=lambda path: path.name)
        listed = [FolderFile(path, stem_of(path)) for path in there]
        found.append(_cases_of_files(listed, folder, request, chosen=files))
    if prefix is not None and is_manifest(folder):
        for role, pattern in request.patterns_beside.items():
            if pattern is not None:
                option = _PATTERN_OPTIONS[role]
                raise ParameterError(
                    f"{option}: expected with folders of files only, got the manifest {folder}."
                )
        found.append(read_manifest(folder).with_prefix(prefix))
    elif prefix is not None:
        dataset = _cases_in_folder(folder, request)
        found.append((dataset + _neighbouring_folders(folder, dataset, request)).with_prefix(prefix))
    return sum(found, Dataset())


def _neighbouring_folders(folder: Path, dataset: Dataset, request: _Request) -> Dataset:
    """Return notes about folders called ``masks`` or ``images`` next to one called ``predictions``."""
    asked: dict[Role, str] = {"truth": "Ground truth? Add --truth", "image": "Images? Add --image-dir"}
    for role in ("truth", "image"):
        if not request.takes(role) or any(getattr(case, role) is not None for case in dataset.cases):
            del asked[role]
    if not asked or not dataset.cases or folder_role(folder.resolve().name) != "map":
        return Dataset()
    try:
        others = sorted(path for path in folder.resolve().parent.iterdir() if folder_role(path.name) in asked)
    except OSError:  # a folder may be readable in one that is not
        return Dataset()
    notes = []
    for path in others:
        held = folder_role(path.name)
        if held is not None and path.is_dir():
            notes.append(f"{asked[held]} {shlex.quote(str(folder.parent / path.name))}.")
    return Dataset(notes=tuple(notes))


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return short names of folders: as few of their last parts as tell them apart.

    Examples
    --------
    >>> short_names([Path("a/maps"), Path("b/maps")]), short_names([Path("a/x"), Path("b/y")])
    (['a/maps', 'b/maps'], ['x', 'y'])
    """
    absolute = [path.resolve() for path in paths]
    names: list[str] = []
    for count in range(1, max((len(path.parts) for path in absolute), default=0) + 1):
        names = ["/".join(path.parts[-count:]) for path in absolute]
        if len(set(names)) == len(names):
            break
    return names


# Which folder or pattern is for which folder of maps.


def _named_values(values: Sources | Patterns, folders: Sequence[Path]) -> list[tuple[str | None, str]]:
    """Return values with the name of the folder of maps that they are for; ``None`` if they name none."""
    if isinstance(values, Mapping):
        return [(name, str(value)) for name, value in values.items()]
    texts = [str(value) for value in ([values] if isinstance(values, str | Path) else values)]
    split: list[tuple[str | None, str]] = []
    for text in texts:
        name, _, value = text.partition("=")
        is_named = bool(name and value) and not Path(text).exists()
        if "{case}" in text:  # a pattern may hold the sign itself
            is_named = is_named and name in {*short_names(folders), *map(_own_name, folders)}
        split.append((name, value) if is_named else (None, text))
    return split


def _own_folder(folder: Path) -> Path:
    """Return a folder, or the one above it if its own name says only what it holds.

    Examples
    --------
    >>> _own_folder(Path("polyps/Kvasir/masks")).name, _own_folder(Path("polyps/Kvasir")).name
    ('Kvasir', 'Kvasir')
    """
    full = folder.resolve()
    return next(path for path in (full, *full.parents) if folder_role(path.name) is None)


def _own_name(folder: Path) -> str:
    return _own_folder(folder).name


def _namesake(text: str, folders: Sequence[Path]) -> int | None:
    """Return the folder of maps that a given folder is named like; ``None`` if there is not exactly one.

    ``study/gt`` is named like ``study/maps`` only if no other maps are in ``study``.
    """
    own = _own_folder(Path(text))
    alike = [index for index, folder in enumerate(folders) if _own_name(folder) == own.name]
    others = (folder.resolve() for index, folder in enumerate(folders) if index not in alike)
    is_shared = any(folder.is_relative_to(own) for folder in others)
    return alike[0] if len(alike) == 1 and not is_shared else None


def _contradiction(
    option: str, text: str, namesake: int, others: Sequence[int], folders: Sequence[Path]
) -> ParameterError:
    """Return the error of a folder that would be used for other maps than those that it is named like."""
    names = short_names(folders)
    assigned = shlex.quote(f"{names[namesake]}={text}")
    return ParameterError(
        f"{option}: {text} is named like {folders[namesake]}, but would be used for "
        f"{', '.join(str(folders[index]) for index in others)}. Assign each folder: --{option} {assigned} "
        f"--{option} {shlex.quote(f'{names[others[0]]}=DIR')}"
    )


def _index_of(name: str, option: str, folders: Sequence[Path]) -> int:
    """Return which folder of maps a name means: its short name, its last part, or its path."""
    names = short_names(folders)
    wanted = name.rstrip("/")
    for known in (names, [_own_name(folder) for folder in folders], [str(folder) for folder in folders]):
        if known.count(wanted) == 1:
            return known.index(wanted)
    raise ParameterError(
        f"{option}: expected NAME=… with the name of a folder of maps ({', '.join(names)}), got {name!r}."
    )


def _assign(option: str, values: Sources | Patterns | None, folders: Sequence[Path]) -> list[str | None]:
    """Return one value per folder of maps; an error if a value would be ignored."""
    found: list[str | None] = [None] * len(folders)
    if values is None:
        return found
    named = _named_values(values, folders)
    is_pattern = option in _PATTERN_OPTIONS.values()
    if not all(text for _, text in named) or not named:
        raise ParameterError(f"{option}: expected a {'pattern' if is_pattern else 'folder'}, got none.")
    if all(name is None for name, _ in named):
        texts = [text for _, text in named]
        namesakes = [None if is_pattern else _namesake(text, folders) for text in texts]
        return _assign_unnamed(option, texts, namesakes, folders)
    for name, text in named:
        if name is None:
            raise ParameterError(f"{option}: expected NAME=… for all of them or for none, got {text!r}.")
        index = _index_of(name, option, folders)
        if found[index] is not None:
            raise ParameterError(f"{option}: expected one for {name}, got {found[index]} and {text}.")
        found[index] = text
    return found


def _assign_unnamed(
    option: str, texts: Sequence[str], namesakes: Sequence[int | None], folders: Sequence[Path]
) -> list[str | None]:
    """Return one value per folder of maps: the only one, or by name, or in order if no name contradicts."""
    if len(texts) == 1:
        if namesakes[0] is not None and len(folders) > 1:
            others = [index for index in range(len(folders)) if index != namesakes[0]]
            raise _contradiction(option, texts[0], namesakes[0], others, folders)
        return [texts[0]] * len(folders)
    names = ", ".join(short_names(folders))
    if len(folders) == 1:
        raise ParameterError(
            f"{option}: only one is possible for the one folder of maps, {names}; got {len(texts)}."
        )
    if len(texts) != len(folders):
        raise ParameterError(
            f"{option}: expected one for all maps, or one per folder of maps ({len(folders)}: {names}), "
            f"got {len(texts)}. Name them: --{option} NAME=…"
        )
    if {*namesakes} == {*range(len(folders))}:
        return [texts[namesakes.index(index)] for index in range(len(folders))]
    for place, (text, namesake) in enumerate(zip(texts, namesakes, strict=True)):
        if namesake is not None and namesake != place:
            raise _contradiction(option, text, namesake, [place], folders)
    return [*texts]


def _assign_members(values: Sources | None, folders: Sequence[Path]) -> list[list[str]]:
    """Return the folders of further members for each folder of maps."""
    found: list[list[str]] = [[] for _ in folders]
    if values is None:
        return found
    named = _named_values(values, folders)
    if not all(text for _, text in named) or not named:
        raise ParameterError("member: expected a folder, got none.")
    for name, text in named:
        if name is None and len(folders) > 1 and (namesake := _namesake(text, folders)) is not None:
            others = [index for index in range(len(folders)) if index != namesake]
            raise _contradiction("member", text, namesake, others, folders)
        chosen = range(len(folders)) if name is None else [_index_of(name, "member", folders)]
        for index in chosen:
            found[index].append(text)
    return found


# Cases of one path, with what lies next to the maps.


@dataclass(frozen=True)
class _Request:
    """What is asked for one folder of maps."""

    folders: Mapping[Partner, str | None]
    patterns: Mapping[Role, str | None]
    members: Sequence[str]
    needs_truth: bool | None
    allow_pickle: bool
    has_own_truth: bool = False
    """Whether the folder of the maps itself was passed for ground truth."""

    @property
    def patterns_beside(self) -> dict[Role, Pattern | None]:
        """Patterns of the files next to the maps: those of roles without a folder of their own."""
        has_folder = {role for role, folder in self.folders.items() if folder is not None}
        return {
            role: None if text is None or role in has_folder else Pattern(text, _PATTERN_OPTIONS[role])
            for role, text in self.patterns.items()
        }

    def folders_below(self, folder: Path) -> list[Path]:
        """Return the folders of masks, ground truth, images and members that lie below a folder of maps."""
        others = [
            Path(path).absolute() for path in (*self.folders.values(), *self.members) if path is not None
        ]
        top = folder.absolute()
        return [path for path in others if path != top and path.is_relative_to(top)]

    def takes(self, role: Partner) -> bool:
        """Return whether files of a role are looked for next to the maps."""
        return self.folders[role] is None and not (role == "truth" and self.needs_truth is False)


def _cases_in_folder(folder: Path, request: _Request) -> Dataset:
    """Find the cases of a folder; the folds of an nnU-Net model are groups of cases."""
    if folder.name.startswith("fold_") and (folder / "validation").is_dir():
        return _in_group(_cases_in_folder(folder / "validation", request), folder.name)
    folds = sorted(folder.glob("fold_*/validation"))
    if folds:
        found = [_in_group(_cases_in_folder(fold, request), fold.parent.name) for fold in folds]
        files = [
            path for path in sorted(folder.iterdir()) if is_data_file(path) and path.name != "progress.png"
        ]
        bare = [path for path in sorted(folder.glob("fold_*")) if not (path / "validation").is_dir()]
        reason = "a fold without the folder 'validation': validate with --npz"
        return sum(found, Dataset()) + Dataset(
            failures=tuple(Failure(path.name, str(path), UNPAIRED, reason) for path in bare),
            leftovers=tuple(Leftover(str(path), path.name, "next to the folds") for path in files),
        )
    listing = list_folder(folder, skip=request.folders_below(folder))
    failures = list(listing.failures)
    for path in listing.foreign:
        reason = f"expected a format that can be read (`segtrust score --help`), got {path.name}. Convert it"
        failures.append(Failure(path.name, str(path), UNPAIRED, reason))
    has_maps = request.patterns["map"] or any(file.is_archive or file.role == "map" for file in listing.files)
    if not has_maps and any((folder / name).exists() for name in _NNUNET_FILES):
        failures += [
            Failure(file.name, str(file.path), UNPAIRED, _NO_PROBABILITIES) for file in listing.files
        ]
        return Dataset(failures=tuple(failures), leftovers=tuple(listing.leftovers))
    found = [Dataset(failures=tuple(failures), leftovers=tuple(listing.leftovers))]
    found.append(_cases_of_files(listing.files, folder, request))
    if request.patterns["map"] is None:
        found.append(Dataset(notes=propose_prefixes(listing.files)))
    if request.allow_pickle:
        found += [cases_of_pickle(path) for path in listing.pickles]
    else:
        pickles = (Failure(path.name, str(path), UNPAIRED, _PICKLE) for path in listing.pickles)
        found.append(Dataset(failures=tuple(pickles)))
    return sum(found, Dataset())


def _in_group(dataset: Dataset, group: str) -> Dataset:
    return replace(dataset, cases=tuple(replace(case, group=group) for case in dataset.cases))


def _cases_of_files(
    files: Sequence[FolderFile], folder: Path, request: _Request, chosen: Sequence[Path] | None = None
) -> Dataset:
    """Return the cases of the files of a folder, or of the chosen ones, with their partners next to them."""
    patterns = request.patterns_beside
    roles = assign_roles(files, patterns, needs_truth=bool(request.needs_truth) and request.takes("truth"))
    maps, unused, alone = list(roles.maps), list(roles.unused), []
    partners: dict[Partner, list[FolderFile]] = {
        "mask": list(roles.masks),
        "truth": list(roles.truths),
        "image": list(roles.images),
    }
    fitting = {role for role, its_files in partners.items() if its_files}
    if chosen is not None:
        # A chosen file that its folder takes for a partner is a map all the same, unless the map of its case
        # was chosen as well: `*.png` chooses both.
        order = {path: number for number, path in enumerate(chosen)}
        maps = sorted((file for file in maps if file.path in order), key=lambda file: order[file.path])
        names = {file.case(patterns["map"]) for file in maps}
        for role, its_files in partners.items():
            cases_of = cases_by_file(its_files, role, patterns[role])
            partners[role] = [file for file in its_files if not names.isdisjoint(cases_of[file.path])]
        unused = [file for file in unused if file.role in ("mask", "truth", "image") and file.name in names]
        taken = {file.path for each in (maps, unused, *partners.values()) for file in each}
        alone = [path for path in chosen if path not in taken]
    cases: list[CaseFiles] = []
    failures: list[Failure] = []
    for file in maps:
        found = cases_of_map(file.path, file.case(patterns["map"]) or "", file.folder)
        cases += found.cases
        failures += found.failures
    dataset = Dataset(tuple(cases), tuple(failures))
    for role, its_files in partners.items():
        pattern = patterns[role]
        if request.takes(role):
            dataset = pair_files(dataset, its_files, role, pattern, reports_others=chosen is None)
            if role == "truth" and its_files and request.needs_truth:
                dataset = _report_missing_truth(dataset, its_files)
        else:
            unused += its_files
        if pattern is not None and role not in fitting:
            reason = f"expected {NOUNS[role]} files of this pattern, got none that fits"
            dataset += Dataset(failures=(Failure(pattern.text, str(folder), UNPAIRED, reason),))
    dataset += _leftovers(unused, folder, {case.name for case in dataset.cases}, request)
    if roles.is_truth_likely and (case := next((case for case in dataset.cases if case.truth), None)):
        dataset += Dataset(notes=(_truth_note(case),))
    own = patterns["map"].case_of if patterns["map"] is not None else case_of
    if patterns["map"] is not None:  # as in a folder, the pattern decides which files are maps
        reason = f"its name does not fit {patterns['map'].text}"
        unfit = (Leftover(str(path), path.name, reason) for path in alone if own(path) is None)
        dataset += Dataset(leftovers=tuple(unfit))
        alone = [path for path in alone if own(path) is not None]
    others = [cases_of_map(path, own(path) or stem_of(path)) for path in alone]
    return dataset + Dataset(
        tuple(case for each in others for case in each.cases),
        tuple(failure for each in others for failure in each.failures),
    )


def _report_missing_truth(dataset: Dataset, files: Sequence[FolderFile]) -> Dataset:
    """Return a data set with a failure per case without ground truth, although others or files have it."""
    example = {file.folder: file.path for file in reversed(files)}
    failures = []
    for case in dataset.cases:
        if case.truth is None:
            path = example.get(case.folder, files[0].path)
            reason = (
                f"expected its ground truth in {path.parent}, where {path.name} is, got no file of its name"
            )
            failures.append(Failure(case.id, str(case.probabilities), UNPAIRED, reason))
    return replace(dataset, failures=(*dataset.failures, *failures))


def _leftovers(
    files: Iterable[FolderFile], folder: Path, cases: Collection[str], request: _Request
) -> Dataset:
    """Return files that are not used, with the options that would use them."""
    leftovers: list[Leftover] = []
    notes: Counter[str] = Counter()
    for file in files:
        names = [file.name, *(_shortened(file.stem) if file.role is None else image_cases(file.stem))]
        case = next((name for name in names if name in cases), None)
        pattern = name_pattern(file.path, case or file.name, near=folder)
        leftovers.append(Leftover(str(file.path), pattern, "" if case or not file.role else "without a map"))
        options = []
        if case is not None and file.placed == "mask" and request.takes("mask"):
            options = [f"Delivered masks? Add --mask-dir {shlex.quote(str(file.path.parent))}."]
        elif case is not None and file.stem == case and request.takes("image"):
            options = [f"Images? Add --image-pattern {shlex.quote(f'{{case}}{ending_of(file.path)}')}."]
        elif case is not None and file.role == "mask" and file.path.name.startswith(case):
            text = shlex.quote(name_pattern(file.path, case, "{case}"))
            if request.takes("truth"):
                options.append(f"Ground truth? Add --truth-pattern {text}.")
            if request.takes("mask"):
                options.append(f"Delivered masks? Add --mask-pattern {text}.")
        if options:
            notes[" ".join([f"`{pattern}` is not used.", *options])] += 1
    return Dataset(leftovers=tuple(leftovers), notes=tuple(note for note, _ in notes.most_common(1)))


def _shortened(stem: str) -> Iterable[str]:
    """Return a stem without its last words, one after the other: ``a-pred_aid``, ``a-pred``, ``a``."""
    return (stem[: found.start()] for found in reversed(list(re.finditer(r"[_\-. ]", stem))))


def _truth_note(case: CaseFiles) -> str:
    assert case.truth is not None
    pattern = name_pattern(case.truth.path, case.name)
    text = shlex.quote(name_pattern(case.truth.path, case.name, "{case}"))
    return (
        f"`{pattern}` was taken for ground truth, because of its name. If these are masks of the model, add "
        f"--mask-pattern {text} and the ground truth: --truth or --truth-pattern."
    )


# Members of an ensemble.


def _add_members(
    dataset: Dataset, requests: Mapping[Path, _Request], folder_of: Mapping[str, Path]
) -> Dataset:
    """Return the cases with their maps of the other members; a case that lacks one is a failure."""
    for number in range(max(len(request.members) for request in requests.values())):
        shared: dict[tuple[str, str | None, str | None], set[Path]] = {}
        for folder, request in requests.items():
            if number < len(request.members):
                mask_pattern = request.patterns["mask"] if request.takes("mask") else None
                key = (request.members[number], request.patterns["map"], mask_pattern)
                shared.setdefault(key, set()).add(folder)
        for (member, pattern, mask_pattern), folders in shared.items():
            found = find_cases(
                member,
                pattern=pattern,
                mask_pattern=mask_pattern,
                needs_truth=False,
                allow_pickle=any(requests[folder].allow_pickle for folder in folders),
            )
            dataset = _add_member(dataset, member, found, {i for i, at in folder_of.items() if at in folders})
    manifests = {folder for folder in requests if is_manifest(folder)}
    cases = (
        replace(case, mask=None) if case.members and folder_of[case.id] not in manifests else case
        for case in dataset.cases
    )
    return replace(dataset, cases=tuple(cases))


def _add_member(dataset: Dataset, folder: str, member: Dataset, ids: Collection[str]) -> Dataset:
    maps = {join_id(case.folder, case.name): case for case in member.cases}
    left = dict(maps)
    times = Counter(join_id(case.folder, case.name) for case in dataset.cases if case.id in ids)
    cases: list[CaseFiles] = []
    failures = [*dataset.failures, *member.failures]
    for case in dataset.cases:
        if case.id not in ids:
            cases.append(case)
            continue
        key = join_id(case.folder, case.name)
        partner = maps.get(case.id) or (maps.get(key) if times[key] == 1 else None)
        reason = ""
        if partner is None:
            reason = f"expected its map by the member {folder}, got no file of that name"
        elif partner.probabilities in case.maps:
            reason = f"expected another map by the member {folder}, got the same file twice"
        elif MEMBER_SEPARATOR in str(partner.probabilities):
            reason = (
                f"{partner.probabilities}: expected a path without {MEMBER_SEPARATOR!r}, which tables use"
            )
        if partner is not None:
            left.pop(join_id(partner.folder, partner.name), None)
        if partner is None or reason:
            failures.append(Failure(case.id, str(case.probabilities), UNPAIRED, reason))
        else:
            cases.append(replace(case, members=(*case.members, partner.probabilities)))
    failed = id_endings(dataset.failures)
    reason = "the map of a member without one of the first"
    failures += [
        Failure(name, str(case.probabilities), UNPAIRED, reason)
        for name, case in left.items()
        if name not in failed
    ]
    leftovers = (*dataset.leftovers, *member.leftovers)
    return replace(dataset, cases=tuple(cases), failures=tuple(failures), leftovers=leftovers)
