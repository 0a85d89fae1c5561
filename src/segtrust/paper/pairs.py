"""Maps and truths that lie side by side in two folders of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import EmptyArrayError, ParameterError
from segtrust.io import ArrayRef, checksum_of, open_volume
from segtrust.maps import Case, Prediction

__all__ = ["ImagePair", "labelled_pairs", "pairs_in"]

_WHITE = 127
"""Grey level of 8 bits above which a pixel of a truth is foreground."""


@dataclass(frozen=True)
class ImagePair:
    """The files of one case; called, it loads them.

    Attributes
    ----------
    prediction, truth
        Grey images of 8 or 16 bits: probability times 255 or 65535, and black and white.
    id
        Name of the case.
    """

    prediction: Path
    truth: Path
    id: str

    def __call__(self) -> Case:
        """Load the case."""
        prediction = Prediction(_grey(self.prediction), id=self.id, checksum=checksum_of(self.prediction))
        return Case(prediction, self.load_truth())

    def load_truth(self) -> Any:
        """Load the truth alone: black and white, or 0 and 1."""
        levels = _grey(self.truth)
        return levels > (_WHITE if levels.max(initial=0) > 1 else 0)

    @property
    def fingerprint(self) -> list[Any]:
        """Where both files are, how large, and when they were changed: what results depend on."""
        return [_stamp(self.prediction), _stamp(self.truth)]


def _stamp(path: Path) -> list[Any]:
    about = path.stat()
    return [str(path.resolve()), about.st_size, about.st_mtime_ns]


def _grey(path: Path) -> Any:
    """Load a grey image in its own depth; black and white as 0 and 255."""
    levels = np.asarray(open_volume(ArrayRef(path)).read())
    return levels * np.uint8(255) if levels.dtype == bool else levels


def pairs_in(folders: Sequence[Path], predictions: str = "predictions") -> list[ImagePair]:
    """Find all cases of folders, as `labelled_pairs` does, also those whose truth is empty."""
    _refuse_repeated(folders)
    return [pair for folder in folders for pair in _pairs_of(folder, predictions)]


def labelled_pairs(folders: Sequence[Path], predictions: str = "predictions") -> list[ImagePair]:
    """Find the cases of folders whose truth is not empty; a file without its twin is an error.

    Parameters
    ----------
    folders
        Each holds a folder ``masks`` of PNG files and another with a map of the same name for each of them.
    predictions
        Name of the other one.
    """
    labelled = [pair for pair in pairs_in(folders, predictions) if pair.load_truth().any()]
    if not labelled:
        raise EmptyArrayError(f"{', '.join(map(str, folders))}: expected cases with a truth, got none.")
    return labelled


def _refuse_repeated(folders: Sequence[Path]) -> None:
    """Refuse a folder that comes twice: its cases would be tuned and tested on."""
    places = [folder.resolve() for folder in folders]
    twice = [folder for folder, place in zip(folders, places, strict=True) if places.count(place) > 1]
    if twice:
        times = places.count(twice[0].resolve())
        raise ParameterError(f"{twice[0]}: expected each folder once, got it {times} times.")


def _pairs_of(folder: Path, predictions: str) -> list[ImagePair]:
    maps = sorted((folder / predictions).glob("*.png"))
    if not maps:
        raise ParameterError(
            f"{folder / predictions}: expected PNG files, got none. Give a folder that holds {predictions!r} "
            "and 'masks'."
        )
    alone = sorted({path.name for path in (folder / "masks").glob("*.png")} - {path.name for path in maps})
    if alone:
        raise ParameterError(
            f"{folder / predictions / alone[0]}: expected a map for each of the masks, got no such file "
            f"({len(alone)} masks have none)."
        )
    pairs = [ImagePair(path, folder / "masks" / path.name, f"{folder.name}/{path.stem}") for path in maps]
    for pair in pairs:
        if not pair.truth.exists():
            raise ParameterError(f"{pair.truth}: expected the truth of {pair.prediction}, got no such file.")
    return pairs
