"""The files in a folder, and what each is: map, mask or truth, and of which case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from segtrust.io.cases import Unpaired
from segtrust.io.names import (
    Pattern,
    case_of,
    is_data_file,
    is_foreign_file,
    is_image_name,
    is_map_name,
    is_mask_name,
    is_role,
    is_truth_name,
    stem_of,
)
from segtrust.io.untrusted import is_pickle

__all__ = ["FolderFile", "Listing", "by_case", "files_in", "is_place"]

_OWN = {"run.json": '"command"', "accept.csv": "case"}
"""Files by which folders of results are told, which may hold figures and links to maps, and what they say."""
_NO_DATA = ("progress.png",)
"""Curves that nnU-Net draws beside its folds."""
_OF_NNUNET = ("plans.pkl", "postprocessing.pkl", "dataset_properties.pkl", "dataset.pkl")
_Place = Literal["map", "mask", "truth", "image"]
_PLACES: Mapping[str, _Place] = {
    **dict.fromkeys(("predictions", "prediction", "preds", "pred", "probabilities", "probs", "maps"), "map"),
    **dict.fromkeys(
        ("labels", "labelsts", "labelstr", "masks", "truths", "truth", "gt", "groundtruth"), "truth"
    ),
    **dict.fromkeys(("annotations", "ground_truth", "ground truth", "manual", "manual_masks"), "truth"),
    **dict.fromkeys(("segmentations", "segmentation", "segs"), "mask"),
    **dict.fromkeys(("images", "imagests", "imagestr"), "image"),
}
"""What folders of these names hold, in folders in which there are others."""
_IMAGES = ("image", "img", "scan")
"""Names of files in the folder of a case that are neither map nor mask."""


def is_place(name: str) -> bool:
    """Tell whether a folder of this name says what it holds.

    Examples
    --------
    >>> is_place("labelsTs"), is_place("site_1")
    (True, False)
    """
    return name.lower() in _PLACES


@dataclass(frozen=True)
class FolderFile:
    """A file that may hold a map, a mask or a truth.

    Attributes
    ----------
    path
        Where it is.
    folder
        Between the folder that was asked for and the file; empty for files in that folder itself. Folders
        that are called after their case, or after what they hold, do not count.
    naming
        The name that says case and content: its own, or with that of its folder before it where its own says
        no case, as ``case_07/prob.nii.gz``.
    place
        What its folder says that it is, as ``labels`` does; ``None`` where that says nothing.
    """

    path: Path
    folder: str
    naming: Path
    place: _Place | None = None

    @property
    def is_archive(self) -> bool:
        """Whether it is one of NumPy's, as nnU-Net writes them."""
        return self.path.suffix.lower() == ".npz"

    @property
    def is_mask(self) -> bool:
        """Whether its name says that it is a mask."""
        return is_mask_name(self.naming)

    @property
    def is_image(self) -> bool:
        """Whether its name says that it is an image."""
        return is_image_name(self.naming)

    @property
    def is_map(self) -> bool:
        """Whether its name says that it is a map."""
        return is_map_name(self.naming)

    @property
    def is_truth(self) -> bool:
        """Whether its name says that it is a truth."""
        return is_truth_name(self.naming)

    def case(self, pattern: Pattern | None = None) -> str | None:
        """Name its case; ``None`` where a pattern is given that its name does not fit."""
        return case_of(self.naming) if pattern is None else pattern.case_of(self.path)


@dataclass(frozen=True)
class Listing:
    """What was found in a folder.

    Attributes
    ----------
    files
        In the order of their names.
    told
        Folders that were not looked into, and files of formats that are not known.
    pickles
        Files that only a person may allow to load.
    """

    files: tuple[FolderFile, ...]
    told: tuple[Unpaired, ...] = ()
    pickles: tuple[Path, ...] = ()

    def __add__(self, other: Listing) -> Listing:
        """Take two together."""
        return Listing(self.files + other.files, self.told + other.told, self.pickles + other.pickles)


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
    here = tuple(_file(each, top) for each in entries if _is_data(each))
    foreign = tuple(_unknown(each) for each in entries if is_foreign_file(each))
    stems = {stem_of(each) for each in entries if is_data_file(each)}
    pickles = tuple(each for each in entries if is_pickle(each) and not _is_beside(each, stems))
    below = [each for each in entries if _is_folder(each) and each.resolve() not in seen]
    if here:
        beside = tuple(_not_looked_into(each) for each in below if _has_files(each))
        return Listing(here, foreign + beside, pickles)
    seen.update(each.resolve() for each in below)
    return sum((_walk(each, top, seen) for each in below), Listing((), foreign, pickles))


def _is_beside(path: Path, stems: Collection[str]) -> bool:
    """Tell pickles that describe others, as nnU-Net writes them, from those that may hold maps."""
    return path.stem in stems or path.name in _OF_NNUNET or path.name.startswith(".")


def _is_data(path: Path) -> bool:
    return path.name not in _NO_DATA and (is_data_file(path) or _is_dicom(path))


def _is_dicom(path: Path) -> bool:
    """Tell DICOM by its content where it has no ending, as archives of images write it."""
    if path.name.startswith(".") or not (path.suffix == "" or path.suffix[1:].isdecimal()):
        return False
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:  # a folder, or a file that may not be read
        return False


def _is_folder(path: Path) -> bool:
    """Tell a folder that may hold files of a data set from stores, hidden ones and those of results."""
    if path.name.startswith(".") or is_data_file(path) or not path.is_dir():
        return False
    try:
        return not any(word in _beginning(path / name) for name, word in _OWN.items())
    except OSError:
        return True  # told when it is read


def _beginning(path: Path) -> str:
    """Read the first words of a file; nothing where there is none."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(200)


def _has_files(folder: Path) -> bool:
    """Tell whether there may be maps in a folder, at any depth."""
    try:
        return any(is_data_file(each) or is_foreign_file(each) for each in folder.rglob("*"))
    except OSError:
        return True


def _not_looked_into(folder: Path) -> Unpaired:
    reason = "a folder beside maps, which was not looked into. Give it as well, or keep it elsewhere"
    return Unpaired(folder.name, str(folder), reason)


def _unknown(path: Path) -> Unpaired:
    reason = f"expected a format that can be read (`segtrust score --help`), got {path.name}. Save it as one"
    return Unpaired(path.name, str(path), reason)


def _file(path: Path, top: Path) -> FolderFile:
    parts = path.parent.relative_to(top).parts
    places: list[_Place] = [_PLACES[part.lower()] for part in parts if part.lower() in _PLACES]
    place = places[-1] if places else None
    others = [part for part in parts if part.lower() not in _PLACES]
    if others and stem_of(path).lower() in _IMAGES:
        return FolderFile(path, "/".join(others[:-1]), path, "image")
    if others and is_role(path):
        naming = path.with_name(f"{others[-1]}_{path.name}")
        return FolderFile(path, "/".join(others[:-1]), naming, place)
    if others and others[-1] == case_of(path):
        others = others[:-1]
    return FolderFile(path, "/".join(others), path, place)


def by_case(files: Iterable[FolderFile], pattern: Pattern | None) -> Mapping[str, Sequence[FolderFile]]:
    """Sort files by their cases; those that a pattern does not fit are left out."""
    found: dict[str, list[FolderFile]] = {}
    for file in files:
        case = file.case(pattern)
        if case is not None:
            found.setdefault(case, []).append(file)
    return found
