"""Maps and truths that lie side by side in two folders of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import EmptyArrayError, ParameterError
from segtrust.maps import Case, Prediction
from segtrust.optional import require

__all__ = ["ImagePair", "labelled_pairs"]

_WHITE = 127
"""Grey level of 8 bits above which a pixel of a truth is foreground."""


@dataclass(frozen=True)
class ImagePair:
    """The files of one case; called, it loads them.

    Attributes
    ----------
    prediction, truth
        Grey images of 8 bits: probability times 255, and black and white.
    id
        Name of the case.
    """

    prediction: Path
    truth: Path
    id: str

    def __call__(self) -> Case:
        """Load the case."""
        return Case(Prediction(_grey(self.prediction), id=self.id), self.load_truth())

    def load_truth(self) -> Any:
        """Load the truth alone."""
        return _grey(self.truth) > _WHITE


def _grey(path: Path) -> Any:
    with require("PIL.Image", extra="io").open(path) as image:
        return np.array(image.convert("L"))


def labelled_pairs(folders: Sequence[Path], predictions: str = "predictions") -> list[ImagePair]:
    """Find the cases of folders whose truth is not empty.

    Parameters
    ----------
    folders
        Each holds a folder ``masks`` of PNG files and another with a map of the same name for each of them.
    predictions
        Name of the other one.
    """
    found = [pair for folder in folders for pair in _pairs_of(folder, predictions)]
    labelled = [pair for pair in found if pair.load_truth().any()]
    if not labelled:
        raise EmptyArrayError(f"{', '.join(map(str, folders))}: expected cases with a truth, got none.")
    return labelled


def _pairs_of(folder: Path, predictions: str) -> list[ImagePair]:
    maps = sorted((folder / predictions).glob("*.png"))
    if not maps:
        raise ParameterError(
            f"{folder / predictions}: expected PNG files, got none. Give a folder that holds {predictions!r} "
            "and 'masks'."
        )
    pairs = [ImagePair(path, folder / "masks" / path.name, f"{folder.name}/{path.stem}") for path in maps]
    for pair in pairs:
        if not pair.truth.exists():
            raise ParameterError(f"{pair.truth}: expected the truth of {pair.prediction}, got no such file.")
    return pairs
