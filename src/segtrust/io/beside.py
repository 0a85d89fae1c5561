"""What lies beside maps that were given by their files: the same that would be found with their folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from segtrust.io.cases import DataSet, Unpaired
from segtrust.io.folders import FolderFile, by_case
from segtrust.io.names import is_data_file
from segtrust.io.pairing import paired
from segtrust.io.roles import roles_of
from segtrust.io.search import Search

__all__ = ["Neighbours"]


@dataclass(frozen=True)
class _Folder:
    """What a folder holds: its maps, by case its masks and truths, and patterns that no file of it fits."""

    maps: Mapping[str, Sequence[FolderFile]]
    map_paths: frozenset[Path]
    masks: Mapping[str, Sequence[FolderFile]]
    truths: Mapping[str, Sequence[FolderFile]]
    told: tuple[Unpaired, ...]

    @classmethod
    def of(cls, folder: Path, search: Search) -> _Folder:
        files = [FolderFile(each, "", each) for each in sorted(folder.iterdir()) if is_data_file(each)]
        roles = roles_of(files, search)
        return cls(
            by_case(roles.maps, search.maps),
            frozenset(each.path for each in roles.maps),
            by_case(roles.masks, search.masks),
            by_case(roles.truths, search.truths),
            roles.unfitted(folder, search),
        )

    def is_partner(self, path: Path, case: str, given: frozenset[Path]) -> bool:
        """Tell a mask or truth of a map that was given as well, as ``*.npz`` gives both."""
        partners = [*self.masks.get(case, ()), *self.truths.get(case, ())]
        has_map = any(each.path in given for each in self.maps.get(case, ()))
        return has_map and path in [each.path for each in partners]


@dataclass
class Neighbours:
    """Masks and truths beside maps that are named one by one; each folder is listed once.

    Attributes
    ----------
    search
        What is looked for.
    given
        All files that were named.
    """

    search: Search
    given: frozenset[Path] = frozenset()
    _listed: dict[Path, _Folder] = field(default_factory=dict, init=False)

    def join(self, found: DataSet, path: Path, case: str) -> DataSet:
        """Give the cases of a file with the mask, and the truth, that lie beside it.

        A file that its folder would take for a mask or a truth was meant as a map, and is left as it is,
        unless the map of its case was given as well.

        Parameters
        ----------
        found
            The cases of the file.
        path, case
            The file, and the name of its case.
        """
        told = DataSet() if path.parent in self._listed else DataSet(unpaired=self._list(path.parent).told)
        beside = self._listed[path.parent]
        if path not in beside.map_paths:
            return told if beside.is_partner(path, case, self.given) else found + told
        if self.search.mask_folder is None:
            found = paired(found, beside.masks.get(case, ()), "mask", self.search.masks)
        if self.search.with_truths:
            found = paired(found, beside.truths.get(case, ()), "truth", self.search.truths)
        return found + told

    def _list(self, folder: Path) -> _Folder:
        self._listed[folder] = _Folder.of(folder, self.search)
        return self._listed[folder]
