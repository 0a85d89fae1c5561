"""Maps told from the masks and truths beside them: by patterns, folders, archives, or names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from segtrust.io.cases import Unpaired
from segtrust.io.folders import FolderFile
from segtrust.io.names import Pattern, ending_of
from segtrust.io.search import Search

__all__ = ["Roles", "roles_of"]

_Files = list[FolderFile]


@dataclass(frozen=True)
class Roles:
    """The files of a folder by what they hold."""

    maps: Sequence[FolderFile] = ()
    masks: Sequence[FolderFile] = ()
    truths: Sequence[FolderFile] = ()

    def unmatched(self, folder: Path, search: Search) -> tuple[Unpaired, ...]:
        """Tell of patterns that no file fits: what they mean would be missing without a word."""
        asked = (("mask", search.masks, self.masks), ("truth", search.truths, self.truths))
        return tuple(
            Unpaired(pattern.text, str(folder), f"expected a {role} of this pattern, got no file that fits")
            for role, pattern, files in asked
            if pattern is not None and not files
        )


def roles_of(files: Sequence[FolderFile], search: Search) -> Roles:
    """Tell what each file holds. A folder called ``labels`` is believed before any name of a file."""
    open_to_all = [each for each in files if each.place in (None, "map")]
    placed = [each for each in files if each.place == "truth"]
    fitting = {each.path: _fitting(each, search) for each in open_to_all}
    maps, masks, truths = (
        [each for each in open_to_all if pattern is not None and fitting[each.path] is pattern]
        for pattern in (search.maps, search.masks, search.truths)
    )
    if search.maps is None:
        named = _by_names([each for each in open_to_all if fitting[each.path] is None])
        maps = list(named.maps)
        masks = masks if search.masks else list(named.masks)
        truths = truths if search.truths else list(named.truths)
    return Roles(maps, masks, truths + placed)


def _fitting(file: FolderFile, search: Search) -> Pattern | None:
    """Give the pattern that a name fits; of several the one that says most."""
    given = [each for each in (search.maps, search.masks, search.truths) if each is not None]
    fitting = [each for each in given if file.case(each) is not None]
    return max(fitting, key=lambda each: len(each.text), default=None)


def _by_names(files: Sequence[FolderFile]) -> Roles:
    """Tell by names; where these call all files masks or truths they are maps, or there would be none."""
    truths = [each for each in files if each.is_truth and not each.is_archive]
    rest = [each for each in files if not each.is_truth or each.is_archive]
    masks = _masks_among(rest)
    known = {each.path for each in masks}
    maps = [each for each in rest if each.path not in known]
    if maps:
        return Roles(maps, masks, truths)
    return Roles(masks, (), truths) if masks else Roles(truths)


def _masks_among(files: Sequence[FolderFile]) -> _Files:
    """Give the masks: files that are called so, and those beside archives, as nnU-Net writes them.

    Where ``a.npz`` has ``a.nii.gz`` beside it, ``b.nii.gz`` is a mask as well, though its map is missing. A
    single archive among maps of another format makes no masks of these.
    """
    archives = {each.case() for each in files if each.is_archive}
    beside = {ending_of(each.path) for each in files if not each.is_archive and each.case() in archives}
    return [
        each for each in files if not each.is_archive and (each.is_mask or ending_of(each.path) in beside)
    ]
