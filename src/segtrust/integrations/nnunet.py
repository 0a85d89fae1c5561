"""nnU-Net's predictor with a confidence for each case: scored in memory, no probabilities on the disk.

`score_predictions` takes a predictor of nnU-Net as it is. Images are prepared in other processes, the network
runs in this one, and others again bring its output to the grid of the image, write the mask and score, as
nnU-Net's own pipeline does; the probabilities never leave the process that scores them. Numbers are those
that ``segtrust score`` gives for what ``--save_probabilities`` would have written.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust._optional import require
from segtrust.engine import ScoreTable
from segtrust.errors import DamagedFileError, PairingError, ParameterError
from segtrust.integrations.nnunet_engine import PredictingEngine
from segtrust.io import (
    ArrayRef,
    CaseFiles,
    Dataset,
    ReadOptions,
    predictor_name,
    training_overlap,
    with_own_truths,
)
from segtrust.workflows import score_cases

__all__ = [
    "ImageFiles",
    "ScoringOptions",
    "doubt_about",
    "find_images",
    "load_predictor",
    "name_predictor",
    "score_predictions",
]

_USUAL_STEP = 0.5
_FINAL = "checkpoint_final.pth"


def load_predictor(
    model: Path, folds: Sequence[str], *, checkpoint: str = _FINAL, device: str = "cuda", **settings: Any
) -> Any:
    """Give nnU-Net's predictor for the folds of a model.

    Parameters
    ----------
    model
        Folder of the trained model, which holds those of the folds.
    folds
        Numbers, or ``"all"`` alone; the networks of several are averaged.
    checkpoint
        Name of the file with the weights.
    device
        ``"cuda"``, ``"cpu"`` or ``"mps"``.
    settings
        More of ``nnUNetPredictor``, such as ``use_mirroring=False``.
    """
    inference = require("nnunetv2.inference.predict_from_raw_data", extra="nnunet")
    torch = require("torch", extra="nnunet")
    missing = [fold for fold in folds if not (model / f"fold_{fold}" / checkpoint).is_file()]
    if missing:
        raise ParameterError(f"{model}: expected {checkpoint} in fold_{missing[0]}, got none.")
    found = _device(torch, device)
    with redirect_stdout(sys.stderr):  # it prints
        made = inference.nnUNetPredictor(device=found, allow_tqdm=False, **settings)
        try:
            made.initialize_from_trained_model_folder(str(model), tuple(folds), checkpoint)
        except (pickle.UnpicklingError, EOFError, RuntimeError, KeyError, ValueError, OSError) as error:
            listed = ", ".join(f"fold_{fold}/{checkpoint}" for fold in folds)
            raise DamagedFileError(
                f"{model}: expected a model that nnU-Net can load ({listed}), got: {error}. Train it "
                "again, or copy it anew."
            ) from error
    return made


def _device(torch: Any, name: str) -> Any:
    """Give a device that is there: to find out by each case that it is not would fail all of them."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        said = str(error).split("\n")[0]
        raise ParameterError(
            f"device: expected one that is there, got {name!r} ({said}). On any machine: -device cpu."
        ) from None
    return device


def name_predictor(
    predictor: Any, model: str = "", folds: Sequence[str] = (), *, checkpoint: str = _FINAL
) -> str:
    """Name a predictor, so that two that work otherwise have other names.

    Where model and folds are given the name is theirs, as `segtrust nnunet triage` knows it too: a model that
    is trained anew in the same folder keeps it, and must be calibrated anew.

    Parameters
    ----------
    predictor
        Of nnU-Net, initialised. What is not usual about it becomes a part of the name.
    model, folds
        What it was initialised from; where they are not given its weights tell it apart.
    checkpoint
        Name of the file with the weights.
    """
    unusual = [] if checkpoint == _FINAL else [checkpoint]
    if not predictor.use_mirroring:
        unusual.append("without mirroring")
    if predictor.tile_step_size != _USUAL_STEP:
        unusual.append(f"step size {predictor.tile_step_size:g}")
    if not predictor.use_gaussian:
        unusual.append("without Gaussian weights")
    if model and folds:
        return predictor_name(model, folds, unusual)
    made_of = f"{predictor.plans_manager.dataset_name}/{predictor.trainer_name}"
    return ", ".join([f"{made_of}, weights {_checksum(predictor.list_of_parameters)}", *unusual])


def _checksum(networks: Sequence[Mapping[str, Any]]) -> str:
    found = 0
    for weights in networks:
        for name, values in weights.items():
            found = zlib.crc32(values.cpu().numpy().tobytes(), zlib.crc32(name.encode(), found))
    return f"{found:08x}"


@dataclass(frozen=True)
class ImageFiles:
    """Images to be predicted.

    Attributes
    ----------
    cases
        One for each image; its first channel stands for the map that is not there yet.
    channels
        All files of each, by case.
    """

    cases: Dataset
    channels: Mapping[str, tuple[str, ...]]


def find_images(predictor: Any, images: Path, truths: Path | None = None) -> ImageFiles:
    """Find images as nnU-Net does, ``case_0000.nii.gz`` and so on, with their truths where there are any."""
    utils = require("nnunetv2.utilities.utils", extra="nnunet")
    if not images.is_dir():
        raise PairingError(f"{images}: expected a folder of images, got none.")
    ending = predictor.dataset_json["file_ending"]
    listed = utils.create_lists_from_splitted_dataset_folder(str(images), ending)
    named = {Path(each[0]).name.removesuffix(ending)[: -len("_0000")]: tuple(each) for each in listed}
    if not named:
        raise PairingError(f"{images}: expected images such as case_0000{ending}, got none.")
    places = {name: ArrayRef(Path(files[0])) for name, files in named.items()}
    cases = Dataset(tuple(CaseFiles(name, place, image=place) for name, place in places.items()))
    return ImageFiles(cases if truths is None else with_own_truths(cases, truths), named)


@dataclass(frozen=True)
class ScoringOptions:
    """How predictions are scored and written.

    Attributes
    ----------
    estimators
        Names of the confidences.
    read
        Which structures are scored, by nnU-Net's names.
    truths
        Folder of labels; then the table has the Dice of each case, ready for ``segtrust calibrate``.
    name
        Of the predictor; see `name_predictor`.
    workers
        Processes that prepare images, and as many that write masks and score.
    resume
        Whether cases that an earlier, stopped run has done are left as they are.
    """

    estimators: tuple[str, ...] = ("sdc", "idc", "amsp")
    read: ReadOptions = field(default_factory=ReadOptions)
    truths: Path | None = None
    name: str = ""
    workers: int = 1
    resume: bool = True


def score_predictions(
    predictor: Any,
    images: Path,
    output: Path,
    *,
    table: Path | None = None,
    options: ScoringOptions | None = None,
) -> ScoreTable:
    """Predict a folder of images, and write masks and one table of confidences, but no probabilities.

    A script that calls this needs ``if __name__ == "__main__":``, as for nnU-Net itself.

    Parameters
    ----------
    predictor
        An ``nnUNetPredictor`` that is initialised.
    images
        Folder of images, named as nnU-Net wants them.
    output
        Folder of the masks, which are those of ``nnUNetv2_predict --save_probabilities``.
    table
        ``scores.csv`` among them where nothing is given. What failed is listed beside it.
    options
        How they are scored.
    """
    how, folder = options or ScoringOptions(), Path(output)
    found = find_images(predictor, Path(images), how.truths)
    name = how.name or name_predictor(predictor)
    engine = PredictingEngine(how.workers, predictor=predictor, channels=found.channels, output=folder)
    engine.open_output(name)
    path = table or folder / "scores.csv"
    if how.resume:
        engine.check_masks(path)
    return score_cases(
        found.cases,
        how.estimators,
        output=path,
        made_by=name,
        doubt=doubt_about(predictor, found, images, ()),
        reading=how.read,
        resume=how.resume,
        executor=engine,
        progress=False,
    )


def doubt_about(predictor: Any, found: ImageFiles, images: Path, folds: Sequence[str]) -> str:
    """Return why the cases of a table certify nothing; empty if they may.

    Parameters
    ----------
    predictor
        Of nnU-Net, initialised.
    found, images
        What was predicted, and the folder that it is in.
    folds
        Whose networks are averaged; where they are not known, all cases of the data set were trained with.
    """
    labelled = [case for case in found.cases.cases if case.truth is not None]
    doubt = training_overlap(labelled, predictor.plans_manager.dataset_name, folds, Path(images))
    return doubt if labelled else ""
