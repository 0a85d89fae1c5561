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
    id
        Name of the case, different for each of a data set.
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
    """

    id: str
    probabilities: Place
    mask: Place | None = None
    truth: Place | None = None
    image: Place | None = None
    group: str = ""
    split: str = ""
    set: str = ""

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
    case, file
        Which.
    reason
        Why, and what was expected.
    """

    case: str
    file: str
    reason: str


@dataclass(frozen=True)
class DataSet:
    """Cases, and what could not be made one."""

    cases: tuple[CaseFiles, ...] = ()
    unpaired: tuple[Unpaired, ...] = ()

    def __add__(self, other: DataSet) -> DataSet:
        """Take two together."""
        return DataSet(self.cases + other.cases, self.unpaired + other.unpaired)
