"""What a person means by a number, a name or a folder: a data set of nnU-Net, a model, or predictions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from segtrust.errors import ParameterError
from segtrust.io.nnunet_layout import (
    DataSetFolders,
    Model,
    ModelChoice,
    Roots,
    chosen_model,
    find_folders,
    is_data_set,
    model_at,
)
from segtrust.io.nnunet_predictors import NOTE, PredictionFolder

__all__ = ["Target", "find_target"]

_PREDICTED = ("predict_from_raw_data_args.json", NOTE)


@dataclass(frozen=True)
class Target:
    """What is meant: the folders of a data set, or those of predictions.

    Attributes
    ----------
    text
        As it was written.
    folders
        Of the data set; ``None`` for predictions.
    model, fold
        Where the folder of one was given.
    predictions
        ``None`` for a data set.
    """

    text: str
    folders: DataSetFolders | None = None
    model: Model | None = None
    fold: str = ""
    predictions: PredictionFolder | None = None

    def chosen_model(self, choice: ModelChoice) -> Model:
        """Give the one model that is meant."""
        there = self.folders.models if self.folders is not None else ()
        return chosen_model([self.model] if self.model is not None else there, choice, self.text)


def find_target(text: str, roots: Roots) -> Target:
    """Find out what is meant.

    Parameters
    ----------
    text
        Number or name of a data set; or a folder: of a data set, of a model, of one of its folds, or of
        predictions.
    roots
        Where nnU-Net keeps its data.
    """
    path = Path(text)
    if is_data_set(text) and (text.isdecimal() or not path.is_dir()):
        return Target(text, find_folders(text, roots))
    if not path.is_dir():
        raise ParameterError(
            f"{text}: expected the number or name of a data set of nnU-Net, or a folder, got neither."
        )
    return _of_folder(text, path.absolute(), roots)


def _of_folder(text: str, path: Path, roots: Roots) -> Target:
    if any((path / name).exists() for name in _PREDICTED):
        return Target(text, predictions=PredictionFolder(path))
    fold = path.parent if path.name == "validation" else path
    model = model_at(path)
    if model is None and fold.name.startswith("fold_"):
        model = model_at(fold.parent)
    if model is not None:
        key = "" if fold == model.folder else fold.name.removeprefix("fold_")
        return Target(text, find_folders(str(model.folder.parent), roots), model, key)
    if is_data_set(path.name):
        return Target(text, find_folders(str(path), roots))
    return Target(text, predictions=PredictionFolder(path))
