"""The files in a folder, and which of them are maps, masks, ground truth and images."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from segtrust.io.case_files import UNPAIRED, Failure, Leftover
from segtrust.io.formats.pickle import is_pickle
from segtrust.io.names import (
    Pattern,
    Role,
    case_of,
    ending_of,
    image_cases,
    is_data_file,
    is_foreign_file,
    is_role_alone,
    role_of,
    stem_of,
)

__all__ = ["FolderFile", "Listing", "Roles", "assign_roles", "folder_role", "is_folder", "list_folder"]

_RESULTS = {"run.json": '"command"', "accept.csv": "case"}
"""Files, and words in them, by which folders of results are recognised: they hold figures and links."""
_NOT_DATA = ("progress.png",)
"""Curves that nnU-Net draws next to its folds."""
_NNUNET_PICKLES = ("plans.pkl", "postprocessing.pkl", "dataset_properties.pkl", "dataset.pkl")
_FOLDER_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("predictions", "prediction", "preds", "pred", "probabilities", "probs", "maps"), "map"),
    **dict.fromkeys(
        ("labels", "labelsts", "labelstr", "masks", "truths", "truth", "gt", "groundtruth"), "truth"
    ),
    **dict.fromkeys(("annotations", "ground_truth", "ground truth", "manual", "manual_masks"), "truth"),
    **dict.fromkeys(("segmentations", "segmentation", "segs"), "mask"),
    **dict.fromkeys(("images", "imagests", "imagestr"), "image"),
}
"""What folders of these names hold, within a folder that holds others."""
_OPTIONS: Mapping[Role, str] = {"truth": "--truth", "mask": "--mask-dir", "image": "--image-dir"}


def folder_role(name: str) -> Role | None:
    """Return what a folder holds by its name; ``None`` if that says nothing.

    Examples
    --------
    >>> folder_role("labelsTs"), folder_role("site_1")
    ('truth', None)
    """
    return _FOLDER_ROLES.get(name.lower())


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder of files, and not a store such as ``a.zarr``."""
    return path.is_dir() and not is_data_file(path)


@dataclass(frozen=True)
class FolderFile:
    """A file that may hold a map, a mask, ground truth or an image.

    Attributes
    ----------
    path
        Its path.
    stem
        The name that says case and content, without its ending: its own, or with that of its folder in front
        if its own says no case, as in ``case_07/prob.nii.gz``.
    folder
        Folders between the one that was searched and the file; those named after the case, or after what they
        hold, do not count.
    placed
        What its folder says that it is, as ``labels`` does; ``None`` if that says nothing.
    role, word
        What its name says that it is, and the word that says so.
    """

    path: Path
    stem: str
    folder: str = ""
    placed: Role | None = None
    role: Role | None = field(init=False)
    word: str = field(init=False)

    def __post_init__(self) -> None:
        """Read the last word of the name."""
        role, word = role_of(self.stem)
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "word", word)

    @property
    def is_archive(self) -> bool:
        """Whether it is an archive of NumPy, as nnU-Net writes them."""
        return self.path.name.lower().endswith(".npz")

    @property
    def name(self) -> str:
        """Name of its case, as far as its own name tells."""
        if self.role is None or self.role == "image":
            return self.stem
        return self.stem[: -len(self.word) - 1]

    def case(self, pattern: Pattern | None = None) -> str | None:
        """Return the name of its case; ``None`` if it does not fit a pattern."""
        return self.name if pattern is None else pattern.case_of(self.path)

    def image_cases(self, pattern: Pattern | None = None) -> list[str]:
        """Return the names of the cases whose image it may be."""
        if pattern is None:
            return image_cases(self.stem)
        case = pattern.case_of(self.path)
        return [] if case is None else [case]


@dataclass
class Listing:
    """What a folder holds.

    Attributes
    ----------
    files
        Data files, in the order of their names.
    foreign, pickles
        Files that may hold maps in a format that is not read, or that only the user may allow to load.
    failures
        Folders that cannot be read.
    leftovers
        Folders that were not searched.
    """

    files: list[FolderFile] = field(default_factory=list)
    foreign: list[Path] = field(default_factory=list)
    pickles: list[Path] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


def list_folder(folder: Path, *, skip: Collection[Path] = (), at_any_depth: bool = False) -> Listing:
    """List the files of a folder, or of the folders below it if it holds none.

    MONAI, for example, saves each case into a folder of its own. A folder that cannot be read is a failure; a
    folder next to files is a leftover, because it may hold anything.

    Parameters
    ----------
    folder
        Which folder.
    skip
        Folders below it that hold something else.
    at_any_depth
        Whether folders next to files are listed as well.
    """
    listing = Listing()
    skipped = {path.absolute() for path in skip}
    seen = {folder.resolve()}
    waiting: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
    while waiting:
        here, parts = waiting.pop()
        data, below = _list_one(here, listing)
        listing.files += [_folder_file(path, parts) for path in data]
        below = [path for path in below if path.absolute() not in skipped and not _is_results(path)]
        below = [path for path in below if path.resolve() not in seen]
        if data and not at_any_depth:
            listing.leftovers += [_unsearched(path) for path in below if _may_hold_data(path)]
            continue
        seen.update(path.resolve() for path in below)
        waiting += [(path, (*parts, path.name)) for path in reversed(below)]
    return listing


def _list_one(folder: Path, listing: Listing) -> tuple[list[Path], list[Path]]:
    """Return the data files and the folders in a folder, by name; add what is not read to a listing."""
    try:
        with os.scandir(folder) as entries:
            is_dir = {entry.name: entry.is_dir() for entry in entries if not entry.name.startswith(".")}
    except OSError as error:
        reason = f"expected a folder that can be read, got: {error.strerror}"
        listing.failures.append(Failure(folder.name, str(folder), UNPAIRED, reason))
        return [], []
    data: list[Path] = []
    below: list[Path] = []
    pickles: list[Path] = []
    for name in sorted(is_dir.keys() - {*_NOT_DATA, *_NNUNET_PICKLES}):
        path = folder / name
        if is_data_file(path) or (path.suffix == ".img" and f"{path.stem}.hdr" in is_dir):
            data.append(path)  # a NIfTI pair is one file
        elif is_dir[name]:
            below.append(path)
        elif is_pickle(path):
            pickles.append(path)
        elif is_foreign_file(path) and not (path.suffix == ".hdr" and f"{path.stem}.img" in is_dir):
            listing.foreign.append(path)
        elif _is_dicom(path):
            data.append(path)
    stems = {stem_of(path) for path in data} if pickles else set()
    listing.pickles += [path for path in pickles if path.stem not in stems]
    return data, below


def _is_dicom(path: Path) -> bool:
    """Recognise DICOM by its content if it has no ending, as archives of images write it."""
    if not (path.suffix == "" or path.suffix[1:].isdecimal()) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def _is_results(folder: Path) -> bool:
    """Return whether a folder holds results of segtrust: their figures and links are not maps."""
    for name, content in _RESULTS.items():
        try:
            if not (folder / name).is_file():
                continue
            with (folder / name).open(encoding="utf-8", errors="replace") as file:
                if content in file.read(200):
                    return True
        except OSError:
            continue  # a folder that cannot be read is reported when it is listed
    return False


def _may_hold_data(folder: Path) -> bool:
    try:
        return any(is_data_file(path) or is_foreign_file(path) for path in folder.rglob("*"))
    except OSError:
        return True


def _unsearched(folder: Path) -> Leftover:
    option = _OPTIONS.get(folder_role(folder.name) or "map", "")
    remedy = f"add {option} to use it" if option else "pass it as well to include it"
    return Leftover(str(folder), f"{folder.name}/", f"a folder next to maps, not searched; {remedy}")


def _folder_file(path: Path, parts: Sequence[str]) -> FolderFile:
    stem = stem_of(path)
    if not parts:
        return FolderFile(path, stem)
    placed: Role | None = None
    for part in parts:
        placed = folder_role(part) or placed
    others = [part for part in parts if folder_role(part) is None]
    if others and stem.lower() in ("image", "img", "scan"):
        return FolderFile(path, f"{others[-1]}_{stem}", "/".join(others[:-1]), "image")
    if others and is_role_alone(stem):
        return FolderFile(path, f"{others[-1]}_{stem}", "/".join(others[:-1]), placed)
    if others and others[-1] == case_of(path):
        others = others[:-1]
    return FolderFile(path, stem, "/".join(others), placed)


@dataclass(frozen=True)
class Roles:
    """The files of a folder by what they hold; ``unused`` files may be anything."""

    maps: Sequence[FolderFile] = ()
    masks: Sequence[FolderFile] = ()
    truths: Sequence[FolderFile] = ()
    images: Sequence[FolderFile] = ()
    unused: Sequence[FolderFile] = ()
    is_truth_likely: bool = False
    """Whether the ground truth was recognised only because files are called ``mask``."""


def assign_roles(
    files: Sequence[FolderFile], patterns: Mapping[Role, Pattern | None], *, needs_truth: bool = False
) -> Roles:
    """Return which files are maps, masks, ground truth and images.

    Patterns decide first, then folders that say what they hold, then names. A file that is only *called* a
    mask is never a delivered mask: ``_mask`` is the name of the ground truth in most public data sets.

    Parameters
    ----------
    files
        All files of a folder.
    patterns
        Patterns of names by role; ``None`` if there is none.
    needs_truth
        Whether files called ``mask`` next to maps that are called so (``x-mask.png``, ``x-pred.png``) are
        taken for ground truth, if no others may be it.
    """
    placed: dict[Role | None, list[FolderFile]] = {None: [], "map": [], "mask": [], "truth": [], "image": []}
    for file in files:
        placed[file.placed].append(file)
    candidates = placed["map"] or placed[None]
    unused = [*placed["mask"], *(placed[None] if placed["map"] else [])]
    given: list[tuple[Role, Pattern]] = [(role, each) for role, each in patterns.items() if each is not None]
    given.sort(key=lambda item: -len(item[1].text))  # the pattern that says most decides
    fitting: dict[Role, list[FolderFile]] = {role: [] for role, _ in given}
    rest: list[FolderFile] = []
    for file in candidates:
        fits: list[Role] = [role for role, pattern in given if pattern.case_of(file.path) is not None]
        (fitting[fits[0]] if fits else rest).append(file)
    named = _roles_by_name(
        rest, has_maps=patterns.get("map") is not None, needs_truth=needs_truth and not placed["truth"]
    )
    roles: dict[Role, Sequence[FolderFile]] = {
        "map": named.maps,
        "mask": named.masks,
        "truth": named.truths,
        "image": named.images,
    }
    unused += named.unused
    for role, its_files in fitting.items():
        unused += roles[role]
        roles[role] = its_files
    return Roles(
        roles["map"],
        roles["mask"],
        [*roles["truth"], *placed["truth"]],
        [*roles["image"], *placed["image"]],
        unused,
        named.is_truth_likely and "truth" not in fitting,
    )


def _roles_by_name(files: Sequence[FolderFile], *, has_maps: bool, needs_truth: bool) -> Roles:
    """Assign roles by names; files that are all called masks, or all ground truth, are maps."""
    says_maps = has_maps or any(file.role == "map" for file in files)
    archives = {
        file.stem for file in files if file.is_archive and not (says_maps and file.role in ("mask", "truth"))
    }
    endings = {ending_of(file.path) for file in files if not file.is_archive and file.stem in archives}
    maps: list[FolderFile] = []
    masks: list[FolderFile] = []
    called_masks: list[FolderFile] = []
    truths: list[FolderFile] = []
    images: list[FolderFile] = []
    unused: list[FolderFile] = []
    for file in files:
        is_named = says_maps or not file.is_archive  # a lone archive is a map whatever it is called
        if file.role == "truth" and is_named:
            truths.append(file)
        elif not file.is_archive and (
            file.stem in archives or (file.role is None and ending_of(file.path) in endings)
        ):
            masks.append(file)  # nnU-Net: a.nii.gz next to a.npz makes b.nii.gz a mask, too
        elif file.role == "mask" and is_named:
            called_masks.append(file)
        elif not says_maps or file.is_archive or file.role == "map":
            maps.append(file)
        else:
            (images if file.role == "image" else unused).append(file)
    plain = {file.name for file in maps if not file.is_archive}  # not of nnU-Net
    unused += [file for file in masks if file.name in plain]
    masks = [file for file in masks if file.name not in plain]
    if has_maps:
        unused += maps
        maps = []
    elif not maps:
        if called_masks:
            maps, called_masks = called_masks, []
        else:
            maps, truths = truths, []
    is_likely = (
        needs_truth
        and says_maps
        and not truths
        and {file.word.partition("_")[0] for file in called_masks} == {"mask"}
    )
    if is_likely:
        truths, called_masks = called_masks, []
    return Roles(maps, masks, truths, images, [*unused, *called_masks], is_likely)
