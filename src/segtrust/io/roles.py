"""Maps told from the masks and truths beside them: by patterns, folders, archives, or names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from segtrust.io.cases import Unpaired
from segtrust.io.folders import FolderFile
from segtrust.io.names import Pattern, ending_of, stem_of
from segtrust.io.search import Search

__all__ = ["Roles", "roles_of"]

_Files = list[FolderFile]


@dataclass(frozen=True)
class Roles:
    """The files of a folder by what they hold.

    Attributes
    ----------
    maps, masks, truths
        What is used.
    others
        Files that say nothing, beside others that say that they are maps.
    """

    maps: Sequence[FolderFile] = ()
    masks: Sequence[FolderFile] = ()
    truths: Sequence[FolderFile] = ()
    others: Sequence[FolderFile] = ()

    def told(self, folder: Path, search: Search) -> tuple[Unpaired, ...]:
        """Tell of files that are not used, and of patterns that no file fits."""
        silent = (Unpaired(each.case() or "", str(each.path), _SILENT, each.folder) for each in self.others)
        return (*silent, *self.unfitted(folder, search))

    def unfitted(self, folder: Path, search: Search) -> tuple[Unpaired, ...]:
        """Tell of patterns of masks and truths that no file fits."""
        asked = (("mask", search.masks, self.masks), ("truth", search.truths, self.truths))
        return tuple(
            Unpaired(pattern.text, str(folder), f"expected a {role} of this pattern, got none that fits")
            for role, pattern, files in asked
            if pattern is not None and not files
        )


_SILENT = (
    "says neither by its name nor by its folder what it is, beside others that say that they are maps. Say "
    "which are meant: --pattern, or a manifest"
)


def roles_of(files: Sequence[FolderFile], search: Search) -> Roles:
    """Tell what each file holds. A folder called ``labels`` is believed before any name of a file."""
    placed = {place: [each for each in files if each.place == place] for place in ("map", "mask", "truth")}
    silent = [each for each in files if each.place is None]
    open_to_all = placed["map"] or silent
    fitting = {each.path: _fitting(each, search) for each in open_to_all}
    maps, masks, truths = (
        [each for each in open_to_all if pattern is not None and fitting[each.path] is pattern]
        for pattern in (search.maps, search.masks, search.truths)
    )
    others = silent if placed["map"] and search.maps is None else []
    if search.maps is None:
        named = _by_names([each for each in open_to_all if fitting[each.path] is None])
        maps, others = list(named.maps), [*others, *named.others]
        masks = masks if search.masks else list(named.masks)
        truths = truths if search.truths else list(named.truths)
    return Roles(maps, masks + placed["mask"], truths + placed["truth"], others)


def _fitting(file: FolderFile, search: Search) -> Pattern | None:
    """Give the pattern that a name fits; of several the one that says most."""
    given = [each for each in (search.maps, search.masks, search.truths) if each is not None]
    fitting = [each for each in given if file.case(each) is not None]
    return max(fitting, key=lambda each: len(each.text), default=None)


def _by_names(files: Sequence[FolderFile]) -> Roles:
    """Tell by names; where these call all files masks or truths they are maps, or there would be none."""
    believed = any(each.is_map for each in files)
    truths = [each for each in files if each.is_truth and (believed or not each.is_archive)]
    masks = _masks_among(_without(files, truths), believed=believed)
    rest = _without(files, [*truths, *masks])
    if not rest:
        return Roles(masks, (), truths) if masks else Roles(truths)
    silent = [each for each in rest if believed and not (each.is_map or each.is_archive)]
    return Roles(_without(rest, silent), masks, truths, [each for each in silent if not each.is_image])


def _without(files: Sequence[FolderFile], others: Sequence[FolderFile]) -> _Files:
    known = {each.path for each in others}
    return [each for each in files if each.path not in known]


def _masks_among(files: Sequence[FolderFile], *, believed: bool) -> _Files:
    """Give the masks: files that are called so, and those beside archives, as nnU-Net writes them.

    Where ``a.npz`` has ``a.nii.gz`` beside it, ``b.nii.gz`` is a mask as well, though its map is missing. A
    single archive among maps of another format makes no masks of these.
    """
    archives = {stem_of(each.path) for each in files if each.is_archive}
    others = [each for each in files if not each.is_archive]
    endings = {ending_of(each.path) for each in others if stem_of(each.path) in archives}
    return [
        each
        for each in files
        if (each.is_mask and (believed or not each.is_archive))
        or (not each.is_archive and ending_of(each.path) in endings)
    ]
