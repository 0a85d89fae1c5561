"""Data sets as values: the files of each case, files left over, and cases that cannot have a result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from segtrust.io.array_ref import ArrayRef

__all__ = [
    "CaseFiles",
    "Dataset",
    "Failure",
    "FailureGroup",
    "Leftover",
    "group_failures",
    "join_id",
    "only_with_truth",
    "without_duplicates",
]

UNPAIRED = "Unpaired"
"""Kind of the failures that are known before any file is read."""


def join_id(*parts: str) -> str:
    """Join the parts of the id of a case; empty parts do not count."""
    return "/".join(part for part in parts if part)


@dataclass(frozen=True)
class CaseFiles:
    """The paths of one case.

    Attributes
    ----------
    name
        Name of the case in its folder, by which its other files are found.
    probabilities
        Probability map.
    mask
        Delivered mask; ``None`` if the mask is computed from the map.
    truth, image
        Ground truth and image, if there are any.
    group
        Patient, site or fold.
    split
        Part of the data set, such as ``"test"``.
    set
        Name of the data set, if several are evaluated together.
    folder
        Folders between the one that was searched and the file; empty for files in that folder itself.
    prefix
        Name of the folder that was searched, if there were several.
    members
        Maps of the other members of an ensemble, with which ``probabilities`` is fused.
    """

    name: str
    probabilities: ArrayRef
    mask: ArrayRef | None = None
    truth: ArrayRef | None = None
    image: ArrayRef | None = None
    group: str = ""
    split: str = ""
    set: str = ""
    folder: str = ""
    prefix: str = ""
    members: tuple[ArrayRef, ...] = ()

    @property
    def maps(self) -> tuple[ArrayRef, ...]:
        """Maps of all members; a single one without an ensemble."""
        return (self.probabilities, *self.members)

    @property
    def id(self) -> str:
        """Name in tables, unique within a data set.

        Examples
        --------
        >>> CaseFiles("a", ArrayRef(Path("site 1/a.npy")), folder="site 1").id
        'site 1/a'
        """
        return join_id(self.prefix, self.folder, self.name)


@dataclass(frozen=True)
class Failure:
    """A case without a result.

    Attributes
    ----------
    case, file
        Which case, and the file that is to blame.
    kind
        Name of the error, or ``"Unpaired"`` if the files of the case do not fit together.
    reason
        What was expected, what was received, and what to do.
    """

    case: str
    file: str
    kind: str
    reason: str

    def row(self) -> dict[str, str]:
        """Return the failure as a row of ``failures.csv``."""
        return {"case": self.case, "kind": self.kind, "reason": self.reason, "file": self.file}


@dataclass(frozen=True)
class Leftover:
    """A file, or a folder, that was found and is not used.

    Attributes
    ----------
    file
        Its path.
    pattern
        Its name with ``*`` in the place of the case, by which leftovers are counted.
    reason
        Why it is not used; empty if its name says nothing that is known.
    """

    file: str
    pattern: str
    reason: str = ""


@dataclass(frozen=True)
class FailureGroup:
    """Failures for the same reason: how many there are, and the first one."""

    count: int
    example: Failure

    def __str__(self) -> str:
        """Return one line for people."""
        several = f"{self.count} cases, for example " if self.count > 1 else ""
        return f"{several}{self.example.case}: {self.example.reason}"


_PATH = re.compile(r"(?:[^\s,;:'\"]*/)+[^\s,;:'\"]*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def group_failures(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Group failures whose reasons differ only in files, case names and numbers; the largest group first.

    Examples
    --------
    >>> values = [Failure(f"c{i}", f"c{i}.npy", "ReadError", f"c{i}.npy: got {i} values") for i in range(3)]
    >>> print(*group_failures(values))
    3 cases, for example c0: c0.npy: got 0 values
    """
    groups: dict[str, list[Failure]] = {}
    keys: dict[str, str] = {}
    for failure in failures:
        key = failure.reason
        for text in (failure.file, Path(failure.file).name, failure.case, failure.case.rpartition("/")[2]):
            key = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "", key) if text else key
        key = keys.setdefault(failure.reason, _NUMBER.sub("#", _PATH.sub("", key)))
        groups.setdefault(key, []).append(failure)
    found = [FailureGroup(len(members), members[0]) for members in groups.values()]
    return sorted(found, key=lambda group: -group.count)


@dataclass(frozen=True)
class Dataset:
    """The cases that were found, what was paired with what, and what was left over.

    Every file that was found is used by a case, a leftover, or the reason for a failure. The rule:

    - A *case* that cannot have a result is a failure. It appears in ``failures.csv`` and sets exit code 1.
      These are maps without the mask, the ensemble member or the ground truth that was asked for, two files
      where one is expected, delivered masks and members without a map (the model has seen that case), files
      that probably are maps in a format that is not read, and folders that cannot be read.
    - A *file* that no case needs is a leftover. It is counted in the summary and nowhere else. These are
      ground truth without a map, files whose names say nothing, masks that nobody asked for, and folders next
      to maps.

    Attributes
    ----------
    cases
        Cases that can be read.
    failures
        Cases that cannot have a result.
    leftovers
        Files that no case uses.
    notes
        What was decided by names alone, and options that would use the leftovers.

    Examples
    --------
    >>> print(Dataset((CaseFiles("a", ArrayRef(Path("a.npy")), truth=ArrayRef(Path("a_gt.png"))),)))
    1 map (`*.npy`), ground truth 1 (`*_gt.png`), images none, delivered masks none
    """

    cases: tuple[CaseFiles, ...] = ()
    failures: tuple[Failure, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Dataset) -> Dataset:
        """Return the cases of both."""
        return Dataset(
            self.cases + other.cases,
            self.failures + other.failures,
            self.leftovers + other.leftovers,
            tuple(dict.fromkeys(self.notes + other.notes)),
        )

    def with_prefix(self, prefix: str) -> Dataset:
        """Return the same cases with a prefix of their ids; the same data set if it is empty."""
        if not prefix:
            return self
        return replace(
            self,
            cases=tuple(replace(case, prefix=join_id(prefix, case.prefix)) for case in self.cases),
            failures=tuple(replace(each, case=join_id(prefix, each.case)) for each in self.failures),
        )

    def summary(self) -> str:
        """Return what was paired with what, then leftovers and notes.

        Each folder of maps has a line, and so has each folder in it, unless there are many.
        """
        folders: dict[str, list[CaseFiles]] = {}
        below: dict[str, list[CaseFiles]] = {}
        has_sets = len({case.set for case in self.cases}) > 1
        for case in self.cases:
            name = case.prefix or (case.set if has_sets else "")
            folders.setdefault(name, []).append(case)
            below.setdefault(join_id(name, case.folder.partition("/")[0]), []).append(case)
        folders = below if len(below) <= _MOST_LINES else folders
        lines = [_paired_line(cases) for cases in folders.values()] or ["no maps"]
        if len(lines) > 1:
            lines = [f"{name or '.'}: {line}" for name, line in zip(folders, lines, strict=True)]
            if len(lines) > _MOST_LINES:
                lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} more folders"]
        if self.leftovers:
            counts = Counter((each.pattern, each.reason) for each in self.leftovers)
            texts = [
                f"{count} `{pattern}`{f' ({reason})' if reason else ''}"
                for (pattern, reason), count in counts.most_common(_MOST_PATTERNS)
            ]
            more = ["…"] if len(counts) > _MOST_PATTERNS else []
            left_over = f"left over: {', '.join([*texts, *more])}"
            lines = [f"{lines[0]}; {left_over}"] if len(lines) == 1 else [*lines, left_over]
        return "\n".join([*lines, *self.notes])

    def __str__(self) -> str:
        """Return the summary, then the failures by reason."""
        count = len(self.failures)
        failed = [f"{count} failure{'s' if count > 1 else ''}:"] if count else []
        groups = (f"  {group}" for group in group_failures(self.failures)[:_MOST_LINES])
        return "\n".join([self.summary(), *failed, *groups])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


_MOST_LINES = 12
_MOST_PATTERNS = 6


def _paired_line(cases: Sequence[CaseFiles]) -> str:
    """Return how many cases of a folder have which files, and what these are called."""
    count = len(cases)
    parts = [f"{count} map{'s' if count > 1 else ''}{_patterns([(c, c.probabilities) for c in cases])}"]
    for name, role in (("ground truth", "truth"), ("images", "image"), ("delivered masks", "mask")):
        files = [(case, file) for case in cases if (file := getattr(case, role)) is not None]
        share = "none" if not files else str(count) if len(files) == count else f"{len(files)} of {count}"
        parts.append(f"{name} {share}{_patterns(files)}")
    members = {len(case.members) for case in cases} - {0}
    if members:
        parts.append(f"{' or '.join(str(number + 1) for number in sorted(members))} members per case")
    return ", ".join(parts)


def _patterns(files: Sequence[tuple[CaseFiles, ArrayRef]]) -> str:
    """Return the names of files with ``*`` for the case, the most frequent first; empty without files."""
    counts = Counter(
        name_pattern(file.path, case.name, near=case.probabilities.path.parent) for case, file in files
    )
    shown = [f"`{pattern}`" for pattern, _ in counts.most_common(3)]
    return f" ({', '.join([*shown, *(['…'] if len(counts) > 3 else [])])})" if counts else ""


def name_pattern(path: Path, case: str, mark: str = "*", *, near: Path | None = None) -> str:
    """Return the name of a file with a mark in the place of the case.

    The name of its folder is in front, unless the file is near the maps.

    Examples
    --------
    >>> name_pattern(Path("maps/benign (1)_mask.png"), "benign (1)"), name_pattern(Path("c0/gt.npy"), "c0")
    ('*_mask.png', '*/gt.npy')
    """
    name = path.name
    start = name.find(case) if case else -1
    while start >= 0 and any(
        char.isalnum() for char in (name[start - 1 : start], name[start + len(case) :][:1])
    ):
        start = name.find(case, start + 1)  # "a" is not the case of "maps_a.png" because of its second letter
    if start >= 0:
        name = f"{name[:start]}{mark}{name[start + len(case) :]}"
    elif path.parent.name == case:
        return f"{mark}/{path.name}"
    return name if near is None or path.parent == near else f"{path.parent.name}/{name}"


def without_duplicates(dataset: Dataset, remedy: str = "") -> Dataset:
    """Return a data set without the cases whose id occurs twice; they are failures.

    A case that was passed twice, by its file and with its folder, is kept once, with the files that belong to
    it.
    """
    files: dict[str, list[str]] = {}
    by_map: dict[tuple[str, ArrayRef], list[CaseFiles]] = {}
    for case in dataset.cases:
        place = replace(case.probabilities, path=case.probabilities.path.absolute())
        same = by_map.setdefault((case.id, place), [])
        if any(_has_all_of(other, case) for other in same):
            continue
        same[:] = [*(other for other in same if not _has_all_of(case, other)), case]
    cases = [case for same in by_map.values() for case in same]
    for case in cases:
        files.setdefault(case.id, []).append(str(case.probabilities))
    failures = [
        Failure(
            name, maps[0], UNPAIRED, f"expected one map of the case {name!r}, got {', '.join(maps)}{remedy}"
        )
        for name, maps in files.items()
        if len(maps) > 1
    ]
    kept = tuple(case for case in cases if len(files[case.id]) == 1)
    return replace(dataset, cases=kept, failures=(*dataset.failures, *failures))


def _has_all_of(case: CaseFiles, other: CaseFiles) -> bool:
    """Return whether a case of the same map has every file that another has."""
    pairs = ((getattr(case, name), getattr(other, name)) for name in ("mask", "truth", "image"))
    return all(theirs in (None, own) for own, theirs in pairs) and other.members in ((), case.members)


def only_with_truth(dataset: Dataset, remedy: str = "Pass its folder: --truth") -> Dataset:
    """Return the cases that have ground truth; the others are failures, unless they already are."""
    failed = {failure.case for failure in dataset.failures}
    reason = f"expected its ground truth, got none. {remedy}"
    missing = (
        Failure(case.id, str(case.probabilities), UNPAIRED, reason)
        for case in dataset.cases
        if case.truth is None and case.id not in failed
    )
    cases = tuple(case for case in dataset.cases if case.truth is not None)
    return replace(dataset, cases=cases, failures=(*dataset.failures, *missing))
