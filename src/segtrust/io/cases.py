"""The files of a case, and the cases of a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace

from segtrust.io.places import Place

__all__ = ["CaseFiles", "DataSet", "Unpaired"]


@dataclass(frozen=True)
class CaseFiles:
    """The files of one case.

    Attributes
    ----------
    name
        Of the case in its folder, by which masks and truths are found.
    probabilities
        Of its map.
    mask
        That was delivered; ``None`` for the map cut at a threshold.
    truth, image
        Where there are any.
    group
        Patient, site or fold.
    split
        Part of the data set, such as ``"test"``.
    set
        Name of the data set, where several are judged together.
    folder
        In which it lies below the one that was searched; nothing for cases in that folder itself.
    prefix
        Name of the folder that was searched, where several were.
    members
        Maps of the other members of an ensemble, with which that of ``probabilities`` is fused.
    """

    name: str
    probabilities: Place
    mask: Place | None = None
    truth: Place | None = None
    image: Place | None = None
    group: str = ""
    split: str = ""
    set: str = ""
    folder: str = ""
    prefix: str = ""
    members: tuple[Place, ...] = ()

    @property
    def maps(self) -> tuple[Place, ...]:
        """Of all members; the only one where there is no ensemble."""
        return (self.probabilities, *self.members)

    @property
    def id(self) -> str:
        """Its name in tables, different for each case of a data set.

        Examples
        --------
        >>> from pathlib import Path
        >>> CaseFiles("a", Place(Path("site 1/a.npy")), folder="site 1").id
        'site 1/a'
        """
        return _joined(self.prefix, self.folder, self.name)

    def having(self, role: str, place: Place) -> CaseFiles:
        """Give the case with a mask or a truth."""
        return replace(self, mask=place) if role == "mask" else replace(self, truth=place)

    def lacking(self, role: str) -> CaseFiles:
        """Give the case without its mask or its truth."""
        return replace(self, mask=None) if role == "mask" else replace(self, truth=None)


@dataclass(frozen=True)
class Unpaired:
    """A file that belongs to no case, or a case that lacks a file.

    Attributes
    ----------
    name, file
        Which.
    reason
        Why, and what was expected.
    folder, prefix
        As of a case.
    """

    name: str
    file: str
    reason: str
    folder: str = ""
    prefix: str = ""

    @property
    def case(self) -> str:
        """Its name in tables."""
        return _joined(self.prefix, self.folder, self.name)


@dataclass(frozen=True)
class DataSet:
    """Cases, and what could not be made one."""

    cases: tuple[CaseFiles, ...] = ()
    unpaired: tuple[Unpaired, ...] = ()

    def below(self, prefix: str) -> DataSet:
        """Give the same cases under names that tell of the folder that was searched, where it has one."""
        if not prefix:
            return self
        cases = tuple(replace(each, prefix=_joined(prefix, each.prefix)) for each in self.cases)
        told = tuple(replace(each, prefix=_joined(prefix, each.prefix)) for each in self.unpaired)
        return DataSet(cases, told)

    def __add__(self, other: DataSet) -> DataSet:
        """Take two together."""
        return DataSet(self.cases + other.cases, self.unpaired + other.unpaired)


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
