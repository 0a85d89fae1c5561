"""Names of files: which case a file belongs to, and what it holds of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from segtrust.errors import ParameterError
from segtrust.plugins import plugin_names

__all__ = [
    "ENDINGS",
    "Pattern",
    "case_of",
    "ending_of",
    "further_endings",
    "is_data_file",
    "is_foreign_file",
    "is_image_name",
    "is_map_name",
    "is_mask_name",
    "is_role",
    "is_truth_name",
    "stem_of",
]

ENDINGS = (
    ".nii.gz",
    ".ome.zarr",
    ".zarr.zip",
    ".ome.tiff",
    ".ome.tif",
    *(".nii", ".npz", ".npy", ".mha", ".mhd", ".nrrd", ".nhdr", ".h5", ".hdf5", ".zarr", ".dcm"),
    *(".png", ".tif", ".tiff", ".bmp", ".webp", ".jpg", ".jpeg"),
)
_MAP_WORDS = (
    "probabilities|probability|probs|prob|softmax|sigmoid|predictions|prediction|preds|pred|output|trans"
)
_MASK_WORDS = r"segmentation|seg|masks?|mask_\d+"
_TRUTH_WORDS = r"labels?|ground_?truth|truth|gt|annotations?"
_WORDS = rf"{_MAP_WORDS}|{_MASK_WORDS}|{_TRUTH_WORDS}"
_MAP, _MASK, _TRUTH, _IMAGE, _ROLE = (
    re.compile(rf"(?<=.)[_\-. ](?:{words})$", re.IGNORECASE)
    for words in (_MAP_WORDS, _MASK_WORDS, _TRUTH_WORDS, "image|img|scan", _WORDS)
)
_FOREIGN = (
    *(".pt", ".pth", ".mat", ".pickle", ".tfrecord", ".img", ".hdr", ".jp2", ".gif", ".svs"),
    *(".mgz", ".joblib", ".vtk", ".b2nd", ".rar"),
    *(".npy.gz", ".npz.gz", ".nii.zip", ".nii.bz2", ".nii.xz", ".zip", ".tar", ".tgz", ".7z"),
)
"""Of files that may hold maps, but in a format that is not read."""


def ending_of(path: Path) -> str:
    """Give the ending by which a format is told; nothing where none is known."""
    lower = path.name.lower()
    found = next((ending for ending in ENDINGS if lower.endswith(ending)), "")
    return found or next((ending for ending in further_endings() if lower.endswith(ending)), "")


def further_endings() -> list[str]:
    """Give the endings of files that readers of other packages are for, the longest first."""
    named = plugin_names("readers", [ending[1:] for ending in ENDINGS])
    return sorted((f".{name.lower()}" for name in named), key=len, reverse=True)


def is_data_file(path: Path) -> bool:
    """Tell by its ending whether a file may hold a map or a mask."""
    return bool(ending_of(path)) and not path.name.startswith(".")


def stem_of(path: Path) -> str:
    """Give the name without its ending.

    Examples
    --------
    >>> stem_of(Path("maps/case_07.nii.gz")), stem_of(Path("v1.2.npz"))
    ('case_07', 'v1.2')
    """
    ending = ending_of(path)
    if ending:
        return path.name[: -len(ending)]
    is_number = path.suffix[1:].isdecimal()  # the last part of a DICOM identifier is no ending
    return path.name if is_number else path.stem


def case_of(path: Path) -> str:
    """Give the case of a file: its stem without what common tools add to say what it holds.

    Examples
    --------
    >>> [case_of(Path(name)) for name in ("a_prob.nii.gz", "benign (1)_mask.png", "b_seg.nii.gz")]
    ['a', 'benign (1)', 'b']
    """
    return _ROLE.sub("", stem_of(path))


def is_foreign_file(path: Path) -> bool:
    """Tell by its ending whether a file may hold a map that cannot be read, as ``case.pt`` may.

    Examples
    --------
    >>> [is_foreign_file(Path(name)) for name in ("a.pt", "a.npy.gz", "a.nii.gz", "a.pkl", "notes.txt")]
    [True, True, False, False, False]
    """
    hidden = path.name.startswith(".")
    return path.name.lower().endswith(_FOREIGN) and not is_data_file(path) and not hidden


def is_map_name(path: Path) -> bool:
    """Tell whether a name says that the file holds a map, as ``case_prob.nii.gz`` does."""
    return _MAP.search(stem_of(path)) is not None


def is_mask_name(path: Path) -> bool:
    """Tell whether a name says that the file holds a mask, as ``case_seg.nii.gz`` does."""
    return _MASK.search(stem_of(path)) is not None


def is_truth_name(path: Path) -> bool:
    """Tell whether a name says that the file holds a truth, as ``case_gt.png`` does."""
    return _TRUTH.search(stem_of(path)) is not None


def is_image_name(path: Path) -> bool:
    """Tell whether a name says that the file holds an image, as ``case_image.png`` does."""
    return _IMAGE.search(stem_of(path)) is not None


def is_role(path: Path) -> bool:
    """Tell whether a name says what a file holds and not of which case, as ``case_07/prob.nii.gz``."""
    return re.fullmatch(_WORDS, stem_of(path), re.IGNORECASE) is not None


@dataclass(frozen=True)
class Pattern:
    """The names of files, with ``{case}`` in the place of the case.

    Examples
    --------
    >>> Pattern("{case}_lesion_prob.nii.gz").case_of(Path("p07_lesion_prob.nii.gz"))
    'p07'
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse a pattern that would not tell cases apart."""
        if self.text.count("{case}") != 1:
            raise ParameterError(f"pattern: expected {{case}} in it once, got {self.text!r}.")
        if "/" in self.text:
            raise ParameterError(f"pattern: expected the name of a file without folders, got {self.text!r}.")

    def case_of(self, path: Path) -> str | None:
        """Give the case of a file; ``None`` where its name is of another kind."""
        before, after = map(re.escape, self.text.split("{case}"))
        found = re.fullmatch(rf"{before}(?P<case>.+){after}".replace(r"\*", ".*"), path.name)
        return None if found is None else found["case"]
