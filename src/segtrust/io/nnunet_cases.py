"""Labelled cases of nnU-Net: those of a cross-validation, and held-out ones that were predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from segtrust._files import read_json
from segtrust.errors import PairingError, ParameterError
from segtrust.io.case_files import UNPAIRED, Dataset, Failure, only_with_truth, without_duplicates
from segtrust.io.dataset import find_cases
from segtrust.io.nnunet_layout import ALL, Fold, Model
from segtrust.io.nnunet_predictors import PredictionFolder, cross_validation_name
from segtrust.io.nnunet_training import doubt_of
from segtrust.io.partners import add_files

__all__ = ["LabelledCases", "cross_validation", "held_out", "with_own_truths"]

_POOLED = "each calibration case was predicted by its own fold, and no predictor of new cases is all of them"
_SEVERAL_FOLDS = "It was validated by several folds: choose one by --fold, or keep one of the maps"
_MANY_TRUTHS = "Their folder is looked for below nnUNet_preprocessed and nnUNet_raw; or give it: --truth"


@dataclass(frozen=True)
class LabelledCases:
    """Cases with truths, and what made their maps.

    Attributes
    ----------
    cases
        With what could not be made one.
    predictor
        Its name; nothing where it is not known.
    doubt
        Why nothing can be certified with them; nothing where something can.
    unpredicted
        Labels in the folder of the truths of which there is no map.
    """

    cases: Dataset
    predictor: str
    doubt: str = ""
    unpredicted: int = 0


def cross_validation(model: Model, folds: Sequence[str], truths: Path | None) -> LabelledCases:
    """Find the validation cases of folds, with their truths.

    Parameters
    ----------
    model
        Whose cross-validation.
    folds
        Which; all that are numbered where none are named. Folds without maps are told, with what makes them.
    truths
        Folder of the labels; where none is given that which nnU-Net compared with, if it noted it.

    Raises
    ------
    ParameterError
        If a fold is not there, or was trained with the very cases that it validates on.
    PairingError
        If no fold has maps, or the labels are nowhere.
    """
    chosen = [_fold(model, key) for key in folds or [key for key in model.folds if key != ALL]]
    mapped = [fold for fold in chosen if fold.maps]
    if not mapped:
        raise PairingError(_without_maps(model, chosen))
    labels = truths or _compared_with(mapped)
    if labels is None:
        raise PairingError(f"{model.folder}: expected the labels of the training cases. {_MANY_TRUTHS}.")
    bare = tuple(_untold(model, fold) for fold in chosen if not fold.maps)
    found = sum((find_cases(fold.folder) for fold in mapped), Dataset(failures=bare))
    found = without_duplicates(found, f". {_SEVERAL_FOLDS}")
    keys = [fold.key for fold in mapped]
    name = cross_validation_name(model.name, keys)
    cases = only_with_truth(with_own_truths(found, labels))
    return LabelledCases(cases, name, _POOLED if len(keys) > 1 else "")


def held_out(
    predictions: PredictionFolder, predictor: str, truths: Path | None, folds: Sequence[str] = ()
) -> LabelledCases:
    """Find predictions with their truths: in a given folder, or in ``labelsTs`` beside ``imagesTs``.

    Where they are of cases that the folds were trained with, nothing can be certified.
    """
    labels = truths or predictions.truths
    if labels is None:
        raise PairingError(
            f"{predictions.folder}: expected the labels of these cases, got none beside the images that were "
            "predicted. Give their folder: --truth."
        )
    found = find_cases(predictions.folder, needs_truth=False)
    paired = add_files(found, "truth", labels)
    cases = only_with_truth(replace(paired, leftovers=found.leftovers))
    doubt = doubt_of(cases.cases, predictions.dataset, folds, predictions.images)
    unpredicted = len(paired.leftovers) - len(found.leftovers)
    return LabelledCases(cases, predictor, doubt, unpredicted)


def _fold(model: Model, key: str) -> Fold:
    if key == ALL:
        raise ParameterError(
            f"{model.name}: fold_all was trained with the cases that it validates on, which promise nothing "
            "of others. Calibrate on predictions of held-out cases instead."
        )
    if key not in model.folds:
        there = ", ".join(model.folds) or "none"
        raise ParameterError(f"{model.name}: expected one of its folds ({there}), got {key}.")
    return model.folds[key]


def _without_maps(model: Model, folds: Sequence[Fold]) -> str:
    commands = "; ".join(model.validating(fold.key) for fold in folds if fold.is_validated)
    remedy = f"Make them: {commands}" if commands else "Train its folds with --npz"
    return f"{model.folder}: expected the probabilities of a cross-validation (.npz), got none. {remedy}."


def _untold(model: Model, fold: Fold) -> Failure:
    reason = f"a fold without probabilities. If it is trained, make them: {model.validating(fold.key)}"
    return Failure(fold.folder.name, str(fold.folder), UNPAIRED, reason)


def with_own_truths(found: Dataset, folder: Path) -> Dataset:
    """Return the cases with their ground truth from a folder that may hold that of many others."""
    return replace(add_files(found, "truth", folder), leftovers=found.leftovers)


def _compared_with(folds: Sequence[Fold]) -> Path | None:
    """Find the labels that nnU-Net itself has compared with, where its summary names them."""
    for fold in folds:
        path = fold.validation / "summary.json"
        summary = read_json(path) if path.is_file() else {}
        cases = summary.get("metric_per_case") if isinstance(summary, dict) else None
        for case in cases or ():
            folder = Path(str(case.get("reference_file") or "")).parent
            if folder.name and folder.is_dir():
                return folder
    return None
