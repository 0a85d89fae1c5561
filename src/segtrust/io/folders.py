"""The files in a folder, and what each is: map, mask or truth, and of which case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from segtrust.io.cases import Unpaired
from segtrust.io.names import Pattern, case_of, is_data_file, is_mask_name, is_role, is_truth_name

__all__ = ["FolderFile", "Layout", "Listing", "by_case", "files_in", "layout_of"]

_TRUTHS = ("masks", "labels", "labelsTs", "truths", "truth", "gt")
_OWN = ("run.json", "accept.csv")
"""Files by which folders of results are told, which may hold figures and links to maps."""


@dataclass(frozen=True)
class FolderFile:
    """A file that may hold a map, a mask or a truth.

    Attributes
    ----------
    path
        Where it is.
    folder
        Between the folder that was asked for and the file; empty for files in that folder itself, and for a
        folder that has the name of its case.
    told
        The name by which case and content are told: its own, or with that of its folder before it where its
        own says no case, as ``case_07/prob.nii.gz``.
    """

    path: Path
    folder: str
    told: Path

    @property
    def is_archive(self) -> bool:
        """Whether it is one of NumPy's, as nnU-Net writes them."""
        return self.path.suffix.lower() == ".npz"

    @property
    def is_mask(self) -> bool:
        """Whether its name says that it is a mask."""
        return is_mask_name(self.told)

    @property
    def is_truth(self) -> bool:
        """Whether its name says that it is a truth."""
        return is_truth_name(self.told)

    def case(self, pattern: Pattern | None = None) -> str | None:
        """Name its case; ``None`` where a pattern is given that its name does not fit."""
        return case_of(self.told) if pattern is None else pattern.case_of(self.path)


@dataclass(frozen=True)
class Listing:
    """What was found in a folder.

    Attributes
    ----------
    files
        In the order of their names.
    told
        Folders that were not looked into, and why.
    """

    files: tuple[FolderFile, ...]
    told: tuple[Unpaired, ...] = ()


def files_in(folder: Path) -> Listing:
    """List the files of a folder, or where there are none those at any depth below it.

    MONAI, for one, saves each case into a folder of its own. A folder that cannot be read is told, and so is
    one with files beside files, as it may hold anything.
    """
    return _walk(folder, folder, {folder.resolve()})


def _walk(folder: Path, top: Path, seen: set[Path]) -> Listing:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        reason = f"expected a folder that can be read, got: {error.strerror}"
        return Listing((), (Unpaired(folder.name, str(folder), reason),))
    here = tuple(_file(each, top) for each in entries if is_data_file(each))
    below = [each for each in entries if _is_folder(each) and each.resolve() not in seen]
    if here:
        return Listing(here, tuple(_not_looked_into(each) for each in below if _has_files(each)))
    seen.update(each.resolve() for each in below)
    found = [_walk(each, top, seen) for each in below]
    return Listing(
        tuple(file for each in found for file in each.files),
        tuple(told for each in found for told in each.told),
    )


def _is_folder(path: Path) -> bool:
    """Tell a folder that may hold files of a data set from stores, hidden ones and those of results."""
    if path.name.startswith(".") or is_data_file(path) or not path.is_dir():
        return False
    try:
        return not any((path / name).exists() for name in _OWN)
    except OSError:
        return True  # told when it is read


def _has_files(folder: Path) -> bool:
    try:
        return any(is_data_file(each) for each in folder.iterdir())
    except OSError:
        return True


def _not_looked_into(folder: Path) -> Unpaired:
    reason = "a folder beside maps, which was not looked into. Give it as well, or keep it elsewhere"
    return Unpaired(folder.name, str(folder), reason)


def _file(path: Path, top: Path) -> FolderFile:
    parts = path.parent.relative_to(top).parts
    if parts and is_role(path):
        return FolderFile(path, "/".join(parts[:-1]), path.with_name(f"{parts[-1]}_{path.name}"))
    if parts and parts[-1] == case_of(path):
        return FolderFile(path, "/".join(parts[:-1]), path)
    return FolderFile(path, "/".join(parts), path)


def by_case(files: Iterable[FolderFile], pattern: Pattern | None) -> Mapping[str, Sequence[FolderFile]]:
    """Sort files by their cases; those that a pattern does not fit are left out."""
    found: dict[str, list[FolderFile]] = {}
    for file in files:
        case = file.case(pattern)
        if case is not None:
            found.setdefault(case, []).append(file)
    return found


@dataclass(frozen=True)
class Layout:
    """Where in a folder maps and truths are.

    Attributes
    ----------
    maps
        A folder.
    truths
        Another, or ``None`` where none is told from the maps.
    """

    maps: Path
    truths: Path | None = None


def layout_of(path: Path) -> Layout:
    """Tell the maps of a folder from the truths in it, where both are folders in it with usual names.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("predictions", "masks"):
    ...     (folder / name).mkdir()
    >>> layout_of(folder).truths.name
    'masks'
    """
    maps = path / "predictions"
    truths = [path / name for name in _TRUTHS if (path / name).is_dir()]
    return Layout(maps, truths[0]) if maps.is_dir() and truths else Layout(path)
