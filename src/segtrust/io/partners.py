"""Masks, ground truth and images of cases, matched by case name and folder."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from segtrust.errors import PairingError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import (
    UNPAIRED,
    CaseFiles,
    Dataset,
    Failure,
    Leftover,
    join_id,
    name_pattern,
)
from segtrust.io.folders import FolderFile, folder_role, list_folder
from segtrust.io.names import Pattern, Role, case_of, ending_of, role_of

__all__ = ["NOUNS", "Partner", "add_files", "cases_by_file", "id_endings", "pair_files", "propose_prefixes"]

Partner = Literal["mask", "truth", "image"]
NOUNS: Mapping[Partner, str] = {"mask": "mask", "truth": "ground truth", "image": "image"}
_REMEDIES = {
    "mask": "--mask-dir, --mask-pattern, or a manifest",
    "truth": "--truth, --truth-pattern, or a manifest",
}


def add_files(
    dataset: Dataset,
    role: Partner,
    folder: str | Path,
    pattern: Pattern | None = None,
    *,
    ids: Collection[str] | None = None,
) -> Dataset:
    """Return the cases with the masks, ground truth or images of their names in a folder.

    The folder alone counts: masks and ground truth that the cases already have are replaced, images are kept.
    A case without its mask is dropped and a failure, because another mask would give another confidence; a
    case without its ground truth is a failure and stays; a case without an image is complete.

    Parameters
    ----------
    dataset
        The cases.
    role
        What the folder holds.
    folder
        Where the files are, or a parent folder whose subfolders are named like the folders of the maps.
    pattern
        Pattern of their names.
    ids
        Cases that get files from this folder; all by default.
    """
    folder = Path(folder)
    _check_folder(folder, role)
    listing = list_folder(folder, at_any_depth=role == "image")
    chosen = {case.id for case in dataset.cases} if ids is None else ids
    replaced = chosen if role != "image" else ()
    cases = tuple(_with_partner(case, role, None) if case.id in replaced else case for case in dataset.cases)
    placed = [file for file in listing.files if file.placed in _ACCEPTED[role]]
    files = placed or [file for file in listing.files if file.placed is None]
    foreign = (
        Leftover(str(path), f"*{path.suffix}", "a format that is not read") for path in listing.foreign
    )
    dataset = replace(
        dataset,
        cases=cases,
        failures=(*dataset.failures, *listing.failures),
        leftovers=(*dataset.leftovers, *listing.leftovers, *foreign),
    )
    dataset = pair_files(dataset, files, role, pattern, ids=chosen, reports_others=role != "image")
    if pattern is not None and role != "image":
        dataset += Dataset(leftovers=tuple(_unfit(dataset.cases, files, pattern)))
    if role == "image":
        return dataset
    missing = {case.id for case in dataset.cases if case.id in chosen and getattr(case, role) is None}
    general = f"expected its {NOUNS[role]} in {folder}, got no file of that name"
    there = [*(file.path for file in files), *listing.foreign]
    if not there:
        general = f"expected its {NOUNS[role]} in {folder}, which has no files that can be read"
    elif pattern is not None and not any(pattern.case_of(path) for path in there):
        general = f"no file in {folder} fits {pattern.text}; the folder has files such as {there[0].name}"
    elif not any(case.id in chosen and case.id not in missing for case in dataset.cases):
        general += f"; the folder has files such as {there[0].name}"
    if not files and there:
        general += f" (convert them to PNG or NIfTI: {there[0].suffix} is not read)"
    unread = {(case_of(path) if pattern is None else pattern.case_of(path)): path for path in listing.foreign}
    failures = []
    for case in dataset.cases:
        if case.id in missing:
            reason = general
            if (path := unread.get(case.name)) is not None:
                reason = (
                    f"expected its {NOUNS[role]} in {folder}, got {path.name}: {path.suffix} is not read. "
                    "Convert it to PNG or NIfTI"
                )
            failures.append(Failure(case.id, str(case.probabilities), UNPAIRED, reason))
    kept = tuple(case for case in dataset.cases if role == "truth" or case.id not in missing)
    return replace(dataset, cases=kept, failures=(*dataset.failures, *failures))


def _unfit(cases: Sequence[CaseFiles], files: Sequence[FolderFile], pattern: Pattern) -> Iterable[Leftover]:
    """Yield the files of a folder that do not fit the pattern, such as a second mask of a case."""
    maps, names = {case.probabilities.path for case in cases}, {case.name for case in cases}
    for file in files:
        if pattern.case_of(file.path) is None and file.path not in maps:
            ends = range(len(file.path.name), 0, -1)
            known = next((start for end in ends if (start := file.path.name[:end]) in names), None)
            name = known or file.case() or ""
            yield Leftover(str(file.path), name_pattern(file.path, name), f"not of the form {pattern.text}")


def _check_folder(folder: Path, role: Partner) -> None:
    plural = NOUNS[role] if role == "truth" else f"{NOUNS[role]}s"
    if not folder.exists():
        raise PairingError(f"{folder}: no such folder of {plural}.")
    if not folder.is_dir():
        raise PairingError(f"{folder}: expected a folder of {plural}, got a file. Pass its folder.")


_ACCEPTED: Mapping[Partner, tuple[Role, ...]] = {
    "mask": ("mask", "truth"),
    "truth": ("truth",),
    "image": ("image",),
}
"""What subfolders may be called in a folder that was passed for masks, ground truth or images."""


def pair_files(
    dataset: Dataset,
    files: Sequence[FolderFile],
    role: Partner,
    pattern: Pattern | None,
    *,
    ids: Collection[str] | None = None,
    reports_others: bool = True,
) -> Dataset:
    """Return the cases with the file of their name; a case with two masks, or two of ground truth, fails."""
    cases_of = cases_by_file(files, role, pattern)
    by_case: dict[str, list[FolderFile]] = {}
    for file in files:
        for name in cases_of[file.path]:
            by_case.setdefault(name, []).append(file)
    chosen = [case for case in dataset.cases if ids is None or case.id in ids]
    own_files = _matcher(chosen, files)
    times = Counter(case.name for case in chosen)
    taken: set[Path] = set()
    cases: list[CaseFiles] = []
    failures = list(dataset.failures)
    for case in dataset.cases:
        is_chosen = ids is None or case.id in ids
        partners = own_files(case, by_case.get(case.name, ())) if is_chosen else ()
        reason = ""
        if role == "image":
            partners = partners if case.image is None and len(partners) == 1 else ()
        elif len(partners) > 1:
            reason = f"expected one {NOUNS[role]}, got {', '.join(str(file.path) for file in partners)}"
        elif partners and role == "mask" and times[case.name] > 1 and not partners[0].folder:
            reason = f"expected a mask of its own, got {partners[0].path} for several cases of that name"
        taken.update(file.path for file in partners)
        if reason:
            reason = f"{reason}. Say which: {_remedy(case, partners, role)}"
            failures.append(Failure(case.id, str(case.probabilities), UNPAIRED, reason))
        else:
            cases.append(_with_partner(case, role, ArrayRef(partners[0].path)) if partners else case)
    dataset = replace(dataset, cases=tuple(cases), failures=tuple(failures))
    if role != "image" and not taken:
        dataset += Dataset(notes=_propose_patterns(chosen, files, role))
    if not reports_others:
        return dataset
    others = {file: cases_of[file.path] for file in files if file.path not in taken}
    return _report_others(dataset, others, role, is_by_ending=pattern is None)


def _remedy(case: CaseFiles, partners: Sequence[FolderFile], role: Partner) -> str:
    """Return the options that choose among the files of a case: a pattern per file if their names differ."""
    patterns = list(dict.fromkeys(name_pattern(file.path, case.name, "{case}") for file in partners))
    if len(patterns) < 2 or not all("{case}" in pattern for pattern in patterns):
        return _REMEDIES[role]
    options = (f"--{role}-pattern {shlex.quote(pattern)}" for pattern in patterns)
    return f"{' or '.join(options)}, or a manifest"


def _report_others(
    dataset: Dataset, cases_of: Mapping[FolderFile, Sequence[str]], role: Partner, *, is_by_ending: bool
) -> Dataset:
    """Return a data set with the files of no case: a mask is a failure, the others are left over."""
    failed = id_endings(dataset.failures)
    known = {case.name for case in dataset.cases}
    others = [
        (file, next((name for name in names if name in known), names[-1]))
        for file, names in cases_of.items()
        if names and not any(join_id(file.folder, name) in failed for name in names)
    ]
    if role != "mask":
        near = next((case.probabilities.path.parent for case in dataset.cases), None)
        several = "not the only image of one case"
        alone = f"{NOUNS[role]} without a map"
        leftovers = (
            Leftover(
                str(file.path),
                name_pattern(file.path, name, near=near),
                several if role == "image" and name in known else alone,
            )
            for file, name in others
        )
        return replace(dataset, leftovers=(*dataset.leftovers, *leftovers))
    why = _masks_by_ending(dataset.cases) if is_by_ending else {}
    failures = list(dataset.failures)
    for file, name in others:
        example = why.get((file.path.parent, ending_of(file.path)), "") if file.role is None else ""
        reason = f"a mask without a probability map{example}"
        failures.append(Failure(join_id(file.folder, name), str(file.path), UNPAIRED, reason))
    return replace(dataset, failures=tuple(failures))


_NEARLY_ALL = 0.9


def _propose_patterns(
    cases: Sequence[CaseFiles], files: Sequence[FolderFile], role: Literal["mask", "truth"]
) -> tuple[str, ...]:
    """Return a note with the patterns by which nearly all maps find a file; empty if there is not one pair.

    The longest part of a map's name decides that occurs in the name of one file, if the same parts of the
    other names do so in the same places: ``0`` of ``pred_0.png`` in ``mask_0.png``.
    """
    names = {case.probabilities.path.name: case.name for case in cases}
    there = sorted({file.path.name for file in files})
    if len(names) < 2:
        return ()
    wanted = _NEARLY_ALL * len(names)
    example = min(names)
    words = list(re.finditer(r"[^\W\d_]+|\d+", example[: len(example) - len(ending_of(Path(example)))]))
    spans = {(one.start(), other.end()) for one in words for other in words if one.start() < other.end()}
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        token, before, after = example[start:end], example[:start], example[end:]
        middle = re.compile(rf"{re.escape(before)}(.+){re.escape(after)}")
        case_of_map = {name: found[1] for name in names if (found := middle.fullmatch(name))}
        if len(case_of_map) < wanted:
            continue
        first, last = (r"\d" if each.isdigit() else r"[^\W\d_]" for each in (token[0], token[-1]))
        part = re.compile(f"(?<!{first}){re.escape(token)}(?!{last})")
        frames = {(name[: at.start()], name[at.end() :]) for name in there for at in part.finditer(name)}
        known = set(there)
        fitting = [
            (left, right)
            for left, right in frames
            if sum(f"{left}{each}{right}" in known for each in case_of_map.values()) >= wanted
        ]
        if len(fitting) == 1:
            left, right = fitting[0]
            options = [f"--{role}-pattern {shlex.quote(f'{left}{{case}}{right}')}"]
            if case_of_map != names:
                options.insert(0, f"--pattern {shlex.quote(f'{before}{{case}}{after}')}")
            return (
                f"`{example}` and `{left}{token}{right}` seem to belong together. Add {' '.join(options)}.",
            )
        if fitting:
            return ()
    return ()


def propose_prefixes(files: Sequence[FolderFile]) -> tuple[str, ...]:
    """Return a note with patterns if names begin with what they hold, as ``pred_x`` and ``gt_x`` do."""
    groups: dict[tuple[Role, str], dict[str, str]] = {}
    for file in files:
        found = re.fullmatch(r"([^\W\d_]+[_\-. ])(.+)", file.stem)
        role = role_of(f"x_{found[1][:-1]}")[0] if found and file.role is None else None
        if found and role:
            pattern = f"{found[1]}{{case}}{ending_of(file.path)}"
            groups.setdefault((role, pattern), {})[found[2]] = file.path.name
    maps = [(pattern, names) for (role, pattern), names in groups.items() if role == "map"]
    if len(maps) != 1:
        return ()
    map_pattern, map_names = maps[0]
    options, examples = [f"--pattern {shlex.quote(map_pattern)}"], [min(map_names.values())]
    roles = {role for role, _ in groups}
    for (role, pattern), names in groups.items():
        shared = sorted(set(names) & set(map_names))
        if role != "map" and len(shared) >= _NEARLY_ALL * len(map_names):
            held = "truth" if role == "mask" and "truth" not in roles else role
            options.append(f"--{held}-pattern {shlex.quote(pattern)}")
            examples.append(names[shared[0]])
    if len(examples) == 1:
        return ()
    listed = ", ".join(f"`{name}`" for name in examples[:-1])
    return (f"{listed} and `{examples[-1]}` seem to belong together. Add {' '.join(options)}.",)


def _with_partner(case: CaseFiles, role: Partner, file: ArrayRef | None) -> CaseFiles:
    if role == "mask":
        return replace(case, mask=file)
    return replace(case, truth=file) if role == "truth" else replace(case, image=file)


def cases_by_file(
    files: Sequence[FolderFile], role: Partner, pattern: Pattern | None
) -> dict[Path, Sequence[str]]:
    """Return the names of the cases that each file may be of; none if it does not fit a pattern."""
    if role == "image":
        return {file.path: file.image_cases(pattern) for file in files}
    names = ((file.path, file.case(pattern)) for file in files)
    return {path: () if name is None else (name,) for path, name in names}


def id_endings(failures: Iterable[Failure]) -> set[str]:
    """Return the ids of failed cases, whole and without leading folders: their files are not left over."""
    endings: set[str] = set()
    for failure in failures:
        parts = failure.case.split("/")
        endings.update("/".join(parts[start:]) for start in range(len(parts)))
    return endings


def _masks_by_ending(cases: Sequence[CaseFiles]) -> Mapping[tuple[Path, str], str]:
    """Return per folder and ending why its files are taken for masks: one archive decides for many files."""
    return {
        (case.mask.path.parent, ending_of(case.mask.path)): (
            f": {case.mask.path.name} next to {case.probabilities.path.name} makes all of that ending masks. "
            "If they are maps, keep the two formats apart, or say which are meant: --pattern"
        )
        for case in reversed(cases)
        if case.mask is not None
        and case.mask.path.parent == case.probabilities.path.parent
        and case.probabilities.path.suffix.lower() == ".npz"
    }


def _matcher(
    cases: Sequence[CaseFiles], files: Sequence[FolderFile]
) -> Callable[[CaseFiles, Sequence[FolderFile]], Sequence[FolderFile]]:
    """Return a function that chooses the files of a case among those of its name, by their folders.

    If folders of files are named like folders of cases, such as ``site_1`` in both, a file in the folder of
    another site is never taken. Otherwise folders say nothing, and a file of a name that several cases have
    is taken only if it lies in no folder.
    """
    times = Counter(case.name for case in cases)
    folders = {file.folder for file in files} - {""}
    above = {_folders_above(case.probabilities.path.parent) for case in cases} if folders else set()
    is_alike = any(path.endswith(f"/{folder}") for path in above for folder in folders)
    is_alike = is_alike or bool(folders and {case.folder for case in cases} - {""})

    def is_same(case: CaseFiles, file: FolderFile) -> bool:
        if _folders_above(case.probabilities.path.parent).endswith(f"/{file.folder}"):
            return True
        return bool(case.folder) and f"/{file.folder}".endswith(f"/{case.folder}")

    def own_files(case: CaseFiles, named: Sequence[FolderFile]) -> Sequence[FolderFile]:
        common = [file for file in named if not file.folder]
        if is_alike:
            return [file for file in named if file.folder and is_same(case, file)] or common
        return named if times[case.name] == 1 else common

    return own_files


@lru_cache(maxsize=1024)
def _folders_above(folder: Path) -> str:
    """Return a folder and those above it, without those that say what they hold."""
    return "/".join(part for part in folder.absolute().parts if folder_role(part) is None)
