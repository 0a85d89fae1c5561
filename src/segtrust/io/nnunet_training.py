"""Which cases a model of nnU-Net was trained with: they promise nothing of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.errors import ParameterError, SavedStateError
from segtrust.io.cases import CaseFiles
from segtrust.io.names import stem_of
from segtrust.io.nnunet_layout import ALL, DataSetFolders, Roots, find_folders

__all__ = ["doubt_of"]


def doubt_of(cases: Sequence[CaseFiles], dataset: str, folds: Sequence[str], images: Path | None) -> str:
    """Say why predictions may not be of held-out cases; nothing where they seem to be.

    Parameters
    ----------
    cases
        That were predicted.
    dataset
        Name of the data set that the model was trained with; nothing where it is not known.
    folds
        That predicted them. Of a single one its own validation cases are held out.
    images
        Folder of the images that were predicted, where it is known.
    """
    trained = _trained_with(dataset, folds)
    known = sum(case.name in trained for case in cases)
    if known:
        return f"{known} of the calibration cases are among those that the model was trained with"
    if images is not None and images.name == "imagesTr" and not trained:
        return "the calibration cases are from imagesTr, with which the model was trained"
    return ""


def _trained_with(dataset: str, folds: Sequence[str]) -> set[str]:
    """Give the names of the cases that folds were trained with, as far as nnU-Net's folders tell."""
    try:
        folders = find_folders(dataset, Roots.from_environment())
    except ParameterError:
        return set()
    splits = _splits(folders)
    numbers = [int(fold) for fold in folds if fold != ALL and fold.isdecimal()]
    if splits and len(numbers) == len(folds) == 1 and numbers[0] < len(splits):
        return set(map(str, splits[numbers[0]].get("train", ())))
    labels = folders.truths
    return set() if labels is None else {stem_of(path) for path in labels.iterdir()}


def _splits(folders: DataSetFolders) -> list[Any]:
    """Read which cases each fold was trained with; nothing where that is not told."""
    path = (folders.preprocessed or Path()) / "splits_final.json"
    try:
        found = read_json(path) if folders.preprocessed else []
    except (OSError, SavedStateError):
        return []
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else []
