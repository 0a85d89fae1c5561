"""What the name of a file says: its format, its case, and whether it is a map, a mask or ground truth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from segtrust.errors import ParameterError
from segtrust.plugins import plugin_names

__all__ = [
    "MAP_ENDINGS",
    "Pattern",
    "Role",
    "case_of",
    "ending_of",
    "further_endings",
    "image_cases",
    "is_data_file",
    "is_foreign_file",
    "is_role_alone",
    "may_hold_arrays",
    "role_of",
    "stem_of",
]

Role = Literal["map", "mask", "truth", "image"]

MAP_ENDINGS = (
    ".nii.gz",
    ".ome.zarr",
    ".zarr.zip",
    ".ome.tiff",
    ".ome.tif",
    *(".nii", ".npz", ".npy", ".mha", ".mhd", ".nrrd", ".nhdr", ".h5", ".hdf5", ".zarr", ".dcm"),
    *(".png", ".tif", ".tiff", ".bmp", ".webp", ".jpg", ".jpeg"),
)
_BY_LAST_PART = {
    last: [ending for ending in MAP_ENDINGS if ending.endswith(f".{last}")]
    for last in {ending.rpartition(".")[2] for ending in MAP_ENDINGS}
}
_FOREIGN = (
    *(".pt", ".pth", ".mat", ".pickle", ".tfrecord", ".img", ".hdr", ".jp2", ".gif", ".svs"),
    *(".mgz", ".joblib", ".vtk", ".b2nd", ".rar"),
    *(".npy.gz", ".npz.gz", ".nii.zip", ".nii.bz2", ".nii.xz", ".zip", ".tar", ".tgz", ".7z"),
)
"""Endings of files that may hold maps in a format that is not read; a pair of ``.hdr`` and ``.img`` is."""

_OF_ARRAYS = (".npz", ".h5", ".hdf5", ".zarr", ".ome.zarr", ".zarr.zip")

_WORDS = {
    "map": "probabilities|probability|probs?|softmax|sigmoid|predictions?|preds?|output|trans",
    "mask": r"segmentation|seg|masks?|mask_\d+",
    "truth": r"labels?|ground_?truth|truth|gt|annotations?",
}
_ROLE = "|".join(f"(?P<{role}>{words})" for role, words in _WORDS.items())
_ROLE_AT_END = re.compile(rf"(?<=.)[_\-. ](?:{_ROLE})$", re.IGNORECASE)
_ROLE_ALONE = re.compile(_ROLE, re.IGNORECASE)
_IMAGE_AT_END = re.compile(r"(?<=.)[_\-. ](?:image|img|scan)$", re.IGNORECASE)
_FIRST_CHANNEL = re.compile(r"_0000$")
"""What nnU-Net adds to the name of a case; the others (``_0001`` …) are further channels."""


def _ending(name: str) -> str:
    lower = name.lower()
    for ending in _BY_LAST_PART.get(lower.rpartition(".")[2], ()):
        if lower.endswith(ending):
            return ending
    return next((ending for ending in further_endings() if lower.endswith(ending)), "")


def ending_of(path: Path) -> str:
    """Return the ending that names the format; empty if none is known."""
    return _ending(path.name)


def further_endings() -> list[str]:
    """Return the endings of formats that other packages read, the longest first."""
    named = plugin_names("readers", [ending[1:] for ending in MAP_ENDINGS])
    return sorted((f".{name.lower()}" for name in named), key=len, reverse=True)


def is_data_file(path: Path) -> bool:
    """Return whether a file may hold a map or a mask, by its ending."""
    return bool(_ending(path.name)) and not path.name.startswith(".")


def is_foreign_file(path: Path) -> bool:
    """Return whether a file may hold a map in a format that is not read, such as ``case.pt``.

    Examples
    --------
    >>> [is_foreign_file(Path(name)) for name in ("a.pt", "a.npy.gz", "a.nii.gz", "a.pkl", "notes.txt")]
    [True, True, False, False, False]
    """
    name = path.name
    return name.lower().endswith(_FOREIGN) and not name.startswith(".") and not _ending(name)


def may_hold_arrays(path: Path) -> bool:
    """Return whether a file may hold several arrays with names, as NumPy's archives, HDF5 and Zarr do."""
    return ending_of(path) in (*_OF_ARRAYS, *further_endings())


def stem_of(path: Path) -> str:
    """Return the name without its ending.

    Examples
    --------
    >>> stem_of(Path("maps/case_07.nii.gz")), stem_of(Path("v1.2.npz"))
    ('case_07', 'v1.2')
    """
    ending = _ending(path.name)
    if ending:
        return path.name[: -len(ending)]
    is_number = path.suffix[1:].isdecimal()  # the last part of a DICOM identifier is not an ending
    return path.name if is_number else path.stem


def case_of(path: Path) -> str:
    """Return the case of a file: its stem without the word by which common tools say what it holds.

    Examples
    --------
    >>> [case_of(Path(name)) for name in ("a_prob.nii.gz", "benign (1)_mask.png", "b_seg.nii.gz")]
    ['a', 'benign (1)', 'b']
    """
    return _ROLE_AT_END.sub("", stem_of(path))


def image_cases(stem: str) -> list[str]:
    """Return the names of the cases whose image a file may be.

    Examples
    --------
    >>> image_cases("a_0000"), image_cases("b-img")
    (['a_0000', 'a'], ['b-img', 'b'])
    """
    shorter = (expression.sub("", stem) for expression in (_FIRST_CHANNEL, _IMAGE_AT_END, _ROLE_AT_END))
    return list(dict.fromkeys((stem, *shorter)))


def role_of(stem: str) -> tuple[Role | None, str]:
    """Return what the last word of a stem says that the file holds, and that word; ``None`` if nothing.

    Examples
    --------
    >>> role_of("a_prob"), role_of("x-Mask"), role_of("a.gt"), role_of("a_img"), role_of("mask")
    (('map', 'prob'), ('mask', 'mask'), ('truth', 'gt'), ('image', 'img'), (None, ''))
    """
    found = _ROLE_AT_END.search(stem)
    if found is not None:
        return found.lastgroup, found[0][1:].lower()  # type: ignore[return-value]
    found = _IMAGE_AT_END.search(stem)
    return ("image", found[0][1:].lower()) if found is not None else (None, "")


def is_role_alone(stem: str) -> bool:
    """Return whether a stem says what a file holds but not of which case, as in ``case_07/prob.nii.gz``."""
    return _ROLE_ALONE.fullmatch(stem) is not None


@dataclass(frozen=True)
class Pattern:
    """A pattern of file names, with ``{case}`` in the place of the case and ``*`` for any text.

    Examples
    --------
    >>> Pattern("{case}_lesion_prob.nii.gz").case_of(Path("p07_lesion_prob.nii.gz"))
    'p07'
    """

    text: str
    option: str = field(default="pattern", compare=False)
    """What errors call it."""

    def __post_init__(self) -> None:
        """Reject a pattern that cannot tell cases apart."""
        if self.text.count("{case}") != 1:
            meant = self.text.replace("*", "{case}", 1)
            remedy = f" Write {meant!r}." if "*" in self.text and meant.count("{case}") == 1 else ""
            raise ParameterError(
                f"{self.option}: expected {{case}} exactly once in the pattern, got {self.text!r}.{remedy}"
            )
        if "/" in self.text:
            raise ParameterError(
                f"{self.option}: expected the name of a file without folders, got {self.text!r}."
            )

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        before, after = map(re.escape, self.text.split("{case}"))
        return re.compile(rf"{before}(?P<case>.+){after}".replace(r"\*", ".*"))

    def case_of(self, path: Path) -> str | None:
        """Return the case of a file; ``None`` if its name does not fit."""
        found = self._expression.fullmatch(path.name)
        return None if found is None else found["case"]
