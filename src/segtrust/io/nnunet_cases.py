"""Labelled cases of nnU-Net: those of a cross-validation, and held-out ones that were predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from segtrust._files import read_json
from segtrust.errors import PairingError, ParameterError, SavedStateError
from segtrust.io.case_files import UNPAIRED, CaseFiles, Dataset, Failure, only_with_truth, without_duplicates
from segtrust.io.dataset import find_cases
from segtrust.io.names import stem_of
from segtrust.io.nnunet_folders import (
    ALL,
    Model,
    PredictionFolder,
    Roots,
    cross_validation_name,
    find_folders,
)
from segtrust.io.partners import add_files

__all__ = [
    "LabelledCases",
    "find_cross_validation",
    "find_held_out",
    "training_overlap",
    "with_own_truths",
]

_POOLED = "each calibration case was predicted by its own fold, and no predictor of new cases is all of them"


@dataclass(frozen=True)
class LabelledCases:
    """Cases with ground truth, and the model that made their maps.

    Attributes
    ----------
    cases
        The cases, and files without one.
    predictor
        Name of the model; empty if unknown.
    doubt
        Why nothing can be certified with them; empty if something can.
    unpredicted
        Number of labels in the folder of the ground truth that have no map.
    """

    cases: Dataset
    predictor: str
    doubt: str = ""
    unpredicted: int = 0


def find_cross_validation(model: Model, folds: Sequence[str], truths: Path | None) -> LabelledCases:
    """Find the validation cases of folds, with their ground truth.

    Parameters
    ----------
    model
        The model.
    folds
        Numbers of the folds; all numbered ones if empty. Folds without maps are reported, with the command
        that creates them.
    truths
        Folder of the labels; by default the one that nnU-Net compared with, if it wrote it down.

    Raises
    ------
    ParameterError
        If a fold does not exist, or was trained with the cases that it validates on.
    PairingError
        If no fold has maps, or there are no labels.
    """
    chosen = []
    for key in folds or [key for key in model.folds if key != ALL]:
        if key == ALL:
            raise ParameterError(
                f"{model.name}: fold_all was trained with the cases that it validates on, which say nothing "
                "about others. Calibrate on predictions of held-out cases instead."
            )
        if key not in model.folds:
            existing = ", ".join(model.folds) or "none"
            raise ParameterError(f"{model.name}: expected one of its folds ({existing}), got {key}.")
        chosen.append(model.folds[key])
    mapped = [fold for fold in chosen if fold.maps]
    if not mapped:
        commands = "; ".join(model.validation_command(fold.key) for fold in chosen if fold.is_validated)
        remedy = f"Make them: {commands}" if commands else "Train its folds with --npz"
        raise PairingError(
            f"{model.folder}: expected the probabilities of a cross-validation (.npz), got none. {remedy}."
        )
    labels = truths or next(filter(None, (_compared_with(fold.validation) for fold in mapped)), None)
    if labels is None:
        raise PairingError(
            f"{model.folder}: expected the labels of the training cases. Their folder is looked for below "
            "nnUNet_preprocessed and nnUNet_raw; or pass it with --truth."
        )
    reason = "a fold without probabilities. If it is trained, make them:"
    without_maps = tuple(
        Failure(
            fold.folder.name, str(fold.folder), UNPAIRED, f"{reason} {model.validation_command(fold.key)}"
        )
        for fold in chosen
        if not fold.maps
    )
    cases = sum((find_cases(fold.folder) for fold in mapped), Dataset(failures=without_maps))
    remedy = ". It was validated by several folds: choose one by --fold, or keep one of the maps"
    once = without_duplicates(cases, remedy)
    keys = [fold.key for fold in mapped]
    name = cross_validation_name(model.name, keys)
    return LabelledCases(
        only_with_truth(with_own_truths(once, labels)), name, _POOLED if len(keys) > 1 else ""
    )


def find_held_out(
    predictions: PredictionFolder, predictor: str, truths: Path | None, folds: Sequence[str] = ()
) -> LabelledCases:
    """Find predictions with their ground truth: in a given folder, or in ``labelsTs`` beside ``imagesTs``.

    Nothing can be certified if the folds were trained with these cases.
    """
    labels = truths or predictions.truths
    if labels is None:
        raise PairingError(
            f"{predictions.folder}: expected the labels of these cases, got none beside the images that were "
            "predicted. Pass their folder with --truth."
        )
    cases = find_cases(predictions.folder, needs_truth=False)
    paired = add_files(cases, "truth", labels)
    labelled = only_with_truth(replace(paired, leftovers=cases.leftovers))
    doubt = training_overlap(labelled.cases, predictions.dataset, folds, predictions.images)
    return LabelledCases(labelled, predictor, doubt, len(paired.leftovers) - len(cases.leftovers))


def with_own_truths(dataset: Dataset, folder: Path) -> Dataset:
    """Return cases with their ground truth from a folder that may contain that of many others."""
    return replace(add_files(dataset, "truth", folder), leftovers=dataset.leftovers)


def _compared_with(validation: Path) -> Path | None:
    """Return the folder of labels that nnU-Net itself has compared with, if its summary names it."""
    path = validation / "summary.json"
    summary = read_json(path) if path.is_file() else {}
    cases = summary.get("metric_per_case") if isinstance(summary, dict) else None
    for case in cases or ():
        folder = Path(str(case.get("reference_file") or "")).parent
        if folder.name and folder.is_dir():
            return folder
    return None


def training_overlap(
    cases: Sequence[CaseFiles], dataset: str, folds: Sequence[str], images: Path | None
) -> str:
    """Return why predictions may not be of held-out cases; empty if they seem to be.

    Parameters
    ----------
    cases
        Cases that were predicted.
    dataset
        Name of the data set that the model was trained with; empty if unknown.
    folds
        Folds that predicted them. The validation cases of a single fold are held out.
    images
        Folder of the predicted images, if known.
    """
    trained = _training_cases(dataset, folds)
    overlap = sum(case.name in trained for case in cases)
    if overlap:
        return f"{overlap} of the calibration cases are among those that the model was trained with"
    if images is not None and images.name == "imagesTr" and not trained:
        return "the calibration cases are from imagesTr, with which the model was trained"
    return ""


def _training_cases(dataset: str, folds: Sequence[str]) -> set[str]:
    """Return the names of the cases that folds were trained with, as far as nnU-Net's folders say."""
    try:
        folders = find_folders(dataset, Roots.from_environment())
    except ParameterError:
        return set()
    try:
        path = (folders.preprocessed or Path()) / "splits_final.json"
        splits = read_json(path) if folders.preprocessed else []
    except (OSError, SavedStateError):
        splits = []
    if not isinstance(splits, list) or not all(isinstance(split, dict) for split in splits):
        splits = []
    is_one = len(folds) == 1 and folds[0].isdecimal()
    if is_one and int(folds[0]) < len(splits):
        return set(map(str, splits[int(folds[0])].get("train", ())))
    return set() if folders.truths is None else {stem_of(path) for path in folders.truths.iterdir()}
