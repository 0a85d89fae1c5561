"""What is looked for in files and folders, where their names do not tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from segtrust.io.names import Pattern

__all__ = ["Search"]


@dataclass(frozen=True)
class Search:
    """Which files are looked for, where that is not told by their names and folders.

    Attributes
    ----------
    maps, masks, truths
        Names of the files, where they are unusual; see `Pattern`.
    mask_folder, truth_folder
        Where they are, if not beside the maps. Masks beside the maps then do not count.
    image_folder
        Where the images are, which only people look at.
    member_folders
        Where the maps of the other members of an ensemble are, a folder each.
    with_truths
        Whether truths are looked for at all, where they lie beside the maps.
    may_be_empty
        Whether folders beside others may have no file yet, as those that are watched.
    allow_pickle
        Load pickles of many maps (``p_hat``), and with them any code that their author put in.
    """

    maps: Pattern | None = None
    masks: Pattern | None = None
    truths: Pattern | None = None
    mask_folder: Path | None = None
    truth_folder: Path | None = None
    image_folder: Path | None = None
    with_truths: bool = True
    may_be_empty: bool = False
    allow_pickle: bool = False
    member_folders: tuple[Path, ...] = ()

    @property
    def beside(self) -> Search:
        """What is looked for beside the maps: not what has a folder of its own."""
        return replace(
            self,
            masks=self.masks if self.mask_folder is None else None,
            truths=self.truths if self.truth_folder is None else None,
            with_truths=self.with_truths and self.truth_folder is None,
        )

    @property
    def of_members(self) -> Search:
        """What is looked for in the folder of a member: its maps alone."""
        return Search(maps=self.maps, masks=self.masks, with_truths=False, allow_pickle=self.allow_pickle)

    def has_elsewhere(self, path: Path, folder: Path) -> bool:
        """Tell whether a file in a folder lies in one of masks, truths or images: it is no map."""
        below = [
            each.absolute()
            for each in (self.mask_folder, self.truth_folder, self.image_folder, *self.member_folders)
            if each is not None and each.absolute().is_relative_to(folder.absolute())
        ]
        return any(path.absolute().is_relative_to(each) for each in below if each != folder.absolute())
