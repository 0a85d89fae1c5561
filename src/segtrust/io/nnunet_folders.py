"""The folders of nnU-Net: data sets, models, folds, predictions, and the name of the model that made them.

``nnUNet_raw``, ``nnUNet_preprocessed`` and ``nnUNet_results`` each contain a folder ``Dataset027_ACDC``. In
that of the results, a model is ``nnUNetTrainer__nnUNetPlans__3d_fullres``, with ``fold_0/validation`` in it.

A guarantee holds for the model that it was computed with, so its name contains everything that makes another
one: data set, trainer, plans, configuration, folds, and settings that are not nnU-Net's usual ones. What
nnU-Net writes beside its predictions names the data set and the plans, but not configuration or folds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from segtrust._files import read_json, write_json
from segtrust.errors import PairingError, ParameterError, WrongContentError

__all__ = [
    "ALL",
    "NOTE",
    "DataSetFolders",
    "Fold",
    "Model",
    "ModelChoice",
    "NnunetTarget",
    "PredictionFolder",
    "Roots",
    "choose_model",
    "cross_validation_name",
    "find_folders",
    "find_target",
    "is_data_set",
    "model_at",
    "parse_folds",
    "predictor_name",
    "write_predictor",
]

ALL = "all"
"""The fold that was trained with all cases, including those of its validation."""
NOTE = "segtrust_predictor.json"
"""File beside predictions that were made here: the name of the model."""
_VARIABLES = {"raw": "nnUNet_raw", "preprocessed": "nnUNet_preprocessed", "results": "nnUNet_results"}
_DATA_SET = re.compile(r"Dataset(\d{3,})_.+")
_FOLD = "fold_"
_MAX_JSON_BYTES = 8 << 20
_USUAL_TRAINER, _USUAL_PLANS = "nnUNetTrainer", "nnUNetPlans"
_USUAL_FOLDS = ("0", "1", "2", "3", "4")


@dataclass(frozen=True)
class Roots:
    """The folders that nnU-Net's variables name; ``None`` for one that is not set."""

    raw: Path | None = None
    preprocessed: Path | None = None
    results: Path | None = None

    @classmethod
    def from_environment(cls) -> Roots:
        """Read the variables; one that names no folder counts as not set."""
        named = {name: Path(os.environ.get(variable) or "") for name, variable in _VARIABLES.items()}
        return cls(**{name: path.absolute() for name, path in named.items() if path.parts and path.is_dir()})

    def by_name(self) -> Mapping[str, Path | None]:
        """Return the folders by name."""
        return {name: getattr(self, name) for name in _VARIABLES}

    def __str__(self) -> str:
        """Return what the variables name, for an error."""
        return ", ".join(
            f"{_VARIABLES[name]} {path or 'names no folder'}" for name, path in self.by_name().items()
        )


@dataclass(frozen=True)
class Fold:
    """One fold of a model, in a folder such as ``fold_0``."""

    folder: Path

    @property
    def key(self) -> str:
        """Number of the fold, or ``"all"``."""
        return self.folder.name.removeprefix(_FOLD)

    @property
    def validation(self) -> Path:
        """Folder of the predictions of its validation cases, if it was validated."""
        return self.folder / "validation"

    @cached_property
    def maps(self) -> tuple[Path, ...]:
        """Probabilities of the validation, which exist if it was run with ``--npz``."""
        return tuple(sorted(self.validation.glob("*.npz")))

    @property
    def is_validated(self) -> bool:
        """Whether there are any predictions."""
        return (self.validation / "summary.json").exists() or bool(self.maps)


@dataclass(frozen=True)
class Model:
    """A trained configuration, in a folder such as ``nnUNetTrainer__nnUNetPlans__3d_fullres``.

    Examples
    --------
    >>> model = Model(Path("results/Dataset027_ACDC/nnUNetTrainer__nnUNetPlans__3d_fullres"))
    >>> model.configuration, model.name
    ('3d_fullres', 'Dataset027_ACDC/nnUNetTrainer__nnUNetPlans__3d_fullres')
    """

    folder: Path

    @property
    def dataset(self) -> str:
        """Name of its data set."""
        return self.folder.parent.name

    @property
    def trainer(self) -> str:
        """Class that trained it."""
        return self.folder.name.split("__")[0]

    @property
    def plans(self) -> str:
        """Name of its plans."""
        return self.folder.name.split("__")[1]

    @property
    def configuration(self) -> str:
        """Configuration, such as ``"3d_fullres"``."""
        return "__".join(self.folder.name.split("__")[2:])

    @property
    def name(self) -> str:
        """Name of the data set and of the model."""
        return f"{self.dataset}/{self.folder.name}"

    @cached_property
    def folds(self) -> Mapping[str, Fold]:
        """Its folds by number, ``"all"`` last."""
        folds = [Fold(folder) for folder in self.folder.glob(f"{_FOLD}*") if folder.is_dir()]
        return {fold.key: fold for fold in sorted(folds, key=lambda fold: (fold.key == ALL, fold.key))}

    def validation_command(self, fold: str) -> str:
        """Return the command that creates the maps of a fold that was trained without ``--npz``."""
        model = f"-tr {self.trainer} -p {self.plans}"
        return f"nnUNetv2_train {self.dataset} {self.configuration} {fold} {model} --val --npz"


def model_at(folder: Path) -> Model | None:
    """Return the model in a folder; ``None`` if it is not the folder of a model."""
    parts = folder.name.split("__")
    is_model = len(parts) >= 3 and all(parts) and folder.is_dir()
    return Model(folder.absolute()) if is_model else None


@dataclass(frozen=True)
class ModelChoice:
    """Which model is meant, in the terms of nnU-Net's commands; empty for any."""

    configuration: str = ""
    trainer: str = ""
    plans: str = ""

    def fits(self, model: Model) -> bool:
        """Return whether a model may be the one that is meant."""
        return all(
            not (wanted := getattr(self, name)) or getattr(model, name) == wanted
            for name in ("configuration", "trainer", "plans")
        )


def choose_model(models: Sequence[Model], choice: ModelChoice, where: str) -> Model:
    """Return the one model that is meant; if there is not exactly one, the error lists them."""
    fitting = [model for model in models if choice.fits(model)]
    if len(fitting) == 1:
        return fitting[0]
    if not models:
        raise PairingError(
            f"{where}: expected a trained model, got none. Models are looked for in the folder that "
            "nnUNet_results names; or pass the model's own folder."
        )
    listed = ", ".join(model.folder.name for model in fitting or models)
    raise ParameterError(
        f"{where}: expected one model, got {listed if fitting else f'none that fits among {listed}'}. Say "
        "which, as for nnU-Net: -c CONFIGURATION, -tr TRAINER, -p PLANS."
    )


@dataclass(frozen=True)
class DataSetFolders:
    """The folders of one data set, such as ``"Dataset027_ACDC"``; ``None`` if there is none."""

    name: str
    raw: Path | None = None
    preprocessed: Path | None = None
    results: Path | None = None

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """All models that were trained on it."""
        folders = () if self.results is None else sorted(self.results.iterdir())
        return tuple(Model(folder) for folder in folders if model_at(folder) is not None)

    @property
    def truths(self) -> Path | None:
        """Labels of the training cases: those that nnU-Net itself compares with, else the raw ones."""
        preprocessed = None if self.preprocessed is None else self.preprocessed / "gt_segmentations"
        raw = None if self.raw is None else self.raw / "labelsTr"
        return next((each for each in (preprocessed, raw) if each is not None and each.is_dir()), None)

    @property
    def described(self) -> Path | None:
        """Its ``dataset.json``, in any of its folders."""
        folders = [self.raw, self.preprocessed, *(model.folder for model in self.models)]
        files = [folder / "dataset.json" for folder in folders if folder is not None]
        return next((path for path in files if path.is_file()), None)


def is_data_set(text: str) -> bool:
    """Return whether a text is the number or the name of a data set, not a path.

    Examples
    --------
    >>> is_data_set("27"), is_data_set("Dataset027_ACDC"), is_data_set("predictions/Dataset027_ACDC")
    (True, True, False)
    """
    return text.isdecimal() or _DATA_SET.fullmatch(text) is not None


def find_folders(text: str, roots: Roots) -> DataSetFolders:
    """Find the folders of a data set.

    Parameters
    ----------
    text
        Its number, its name, or its folder below any of the roots.
    roots
        Where nnU-Net keeps its data.

    Raises
    ------
    ParameterError
        If there is none of that name or number, or several.
    """
    path = Path(text)
    own = path.absolute() if not text.isdecimal() and path.is_dir() else None
    name = path.resolve().name if own is not None else _data_set_name(text, roots)
    folders = {part: root / name for part, root in roots.by_name().items() if root is not None}
    existing = {part: folder for part, folder in folders.items() if folder.is_dir()}
    if own is not None:  # its contents say below which of the roots it lies
        part = "preprocessed" if (own / "gt_segmentations").is_dir() else "raw"
        if any(model_at(folder) is not None for folder in own.iterdir()):
            part = "results"
        existing.setdefault(part, own)
    return DataSetFolders(name, **existing)


def _data_set_name(text: str, roots: Roots) -> str:
    names = set()
    for root in roots.by_name().values():
        for folder in () if root is None else root.glob("Dataset*"):
            match = _DATA_SET.fullmatch(folder.name)
            if match is not None and folder.is_dir():
                is_meant = int(match[1]) == int(text) if text.isdecimal() else folder.name == text
                names.update([folder.name] if is_meant else [])
    if len(names) == 1:
        return names.pop()
    got = f"several: {', '.join(sorted(names))}" if names else "none"
    raise ParameterError(
        f"{text}: expected a data set of nnU-Net by number, name or folder, got {got} ({roots}). Set these "
        "variables as for nnU-Net, or pass the folder of a model or of predictions."
    )


# The model that made predictions


def parse_folds(text: str) -> tuple[str, ...]:
    """Read folds as they are written for nnU-Net, separated by commas or spaces.

    Examples
    --------
    >>> parse_folds("0,00"), parse_folds("2, 0,1"), parse_folds("all"), parse_folds("")
    (('0',), ('0', '1', '2'), ('all',), ())
    """
    folds = [fold.removeprefix(_FOLD) for fold in text.replace(",", " ").split()]
    is_wrong = any(not fold.isdecimal() and fold != ALL for fold in folds)
    if is_wrong or (ALL in folds and len(set(folds)) > 1):
        raise ParameterError(f"fold: expected numbers such as 0 or 0,1,2, or all alone, got {text!r}.")
    return (ALL,) if ALL in folds else tuple(map(str, sorted({int(fold) for fold in folds})))


def predictor_name(model: str, folds: Sequence[str], unusual: Sequence[str] = ()) -> str:
    """Return the name of a model with its folds: a single one, or an ensemble.

    Parameters
    ----------
    model
        Name with that of its data set.
    folds
        Folds whose networks are averaged.
    unusual
        Settings of the prediction that are not those of nnU-Net's validation, in words.

    Examples
    --------
    >>> predictor_name("Dataset001_A/T__P__2d", ["0"])
    'Dataset001_A/T__P__2d/fold_0'
    >>> predictor_name("Dataset001_A/T__P__2d", ["0", "1"], ["without mirroring"])
    'Dataset001_A/T__P__2d/ensemble of folds 0,1 (without mirroring)'
    """
    made_of = f"fold_{folds[0]}" if len(folds) == 1 else f"ensemble of folds {','.join(folds)}"
    return f"{model}/{made_of} ({', '.join(unusual)})" if unusual else f"{model}/{made_of}"


def cross_validation_name(model: str, folds: Sequence[str]) -> str:
    """Return the name for the maps of a cross-validation: a fold, or for several the fold of each case.

    Examples
    --------
    >>> cross_validation_name("Dataset001_A/T__P__2d", ["0", "1"])
    'Dataset001_A/T__P__2d/cross-validation of folds 0,1'
    """
    if len(folds) == 1:
        return predictor_name(model, folds)
    return f"{model}/cross-validation of folds {','.join(folds)}"


def write_predictor(folder: Path, name: str) -> None:
    """Write the name of the model beside its predictions."""
    write_json(folder / NOTE, {"predictor": name})


@dataclass(frozen=True)
class PredictionFolder:
    """A folder of predictions, and what is written there about them.

    Attributes
    ----------
    folder
        Folder with masks, with maps if they were saved, and with what nnU-Net writes beside them.
    """

    folder: Path

    @cached_property
    def plans(self) -> Mapping[str, Any]:
        """Plans of the model; empty if there are none, as with version 1."""
        return self._read("plans.json")

    @property
    def dataset(self) -> str:
        """Name of the data set that the model was trained with; empty if unknown."""
        return str(self.plans.get("dataset_name") or "")

    @property
    def kept_name(self) -> str:
        """Name of the model, if it was written here; else empty."""
        return str(self._read(NOTE).get("predictor") or "")

    @property
    def images(self) -> Path | None:
        """Folder of the predicted images, if nnU-Net wrote it down and it still exists."""
        noted = self._read("predict_from_raw_data_args.json").get("list_of_lists_or_source_folder")
        return Path(noted) if isinstance(noted, str) and Path(noted).is_dir() else None

    @property
    def truths(self) -> Path | None:
        """Folder of labels beside that of the images: ``labelsTs`` beside ``imagesTs``."""
        if self.images is None or not self.images.name.startswith("images"):
            return None
        beside = self.images.with_name(self.images.name.replace("images", "labels", 1))
        return beside if beside.is_dir() else None

    def name_of(self, choice: ModelChoice, folds: Sequence[str]) -> str:
        """Return the name of the model, from the options of ``nnUNetv2_predict`` that are not noted here.

        Omitted options have the defaults of ``nnUNetv2_predict``: folds 0 to 4, the usual trainer. Without
        even a configuration, the name that was written here is returned.

        Raises
        ------
        ParameterError
            If what is noted here contradicts the options.
        """
        if not choice.configuration:
            if folds or choice.trainer or choice.plans:
                raise ParameterError(
                    f"{self.folder}: expected with -f, -tr or -p also -c, the configuration."
                )
            return self.kept_name
        if not self.plans.get("dataset_name") or not self.plans.get("plans_name"):
            raise WrongContentError(
                f"{self.folder}: expected nnU-Net's plans.json, which names the data set, got none. Name the "
                "model in words instead: --predictor."
            )
        plans = choice.plans or _USUAL_PLANS
        if plans != self.plans["plans_name"]:
            raise ParameterError(
                f"{self.folder}: expected its own plans, {self.plans['plans_name']}, got {plans}. Repeat -p."
            )
        configurations = self.plans.get("configurations")
        known = configurations if isinstance(configurations, Mapping) else {}
        if choice.configuration not in known:
            raise ParameterError(
                f"{self.folder}: expected a configuration of its plans ({', '.join(known)}), got "
                f"{choice.configuration!r}."
            )
        model = f"{self.dataset}/{choice.trainer or _USUAL_TRAINER}__{plans}__{choice.configuration}"
        name = predictor_name(model, folds or self._usual_folds(model))
        if self.kept_name and self.kept_name != name:
            raise ParameterError(f"{self.folder}: was predicted by {self.kept_name}, not by {name}.")
        return name

    def _usual_folds(self, model: str) -> tuple[str, ...]:
        """Return the default folds of ``nnUNetv2_predict``, which fails if they do not exist."""
        results = Roots.from_environment().results
        existing = {} if results is None else Model(results / model).folds
        if existing and not set(_USUAL_FOLDS) <= set(existing):
            raise ParameterError(
                f"{self.folder}: expected with -c also -f, the folds that made these predictions: nnU-Net "
                f"takes 0 to 4 by default, and {model} has {', '.join(existing)} here."
            )
        return _USUAL_FOLDS

    def _read(self, name: str) -> Mapping[str, Any]:
        path = self.folder / name
        content = read_json(path, error=WrongContentError, most=_MAX_JSON_BYTES) if path.is_file() else {}
        return content if isinstance(content, Mapping) else {}


# What a person means by a number, a name or a folder


@dataclass(frozen=True)
class NnunetTarget:
    """What is meant: the folders of a data set, or those of predictions.

    Attributes
    ----------
    text
        What was typed.
    folders
        Folders of the data set; ``None`` for predictions.
    model, fold
        Model and fold, if the folder of one was given.
    predictions
        Folder of predictions; ``None`` for a data set.
    """

    text: str
    folders: DataSetFolders | None = None
    model: Model | None = None
    fold: str = ""
    predictions: PredictionFolder | None = None

    def chosen_model(self, choice: ModelChoice) -> Model:
        """Return the one model that is meant."""
        models = self.folders.models if self.folders is not None else ()
        return choose_model([self.model] if self.model is not None else models, choice, self.text)


def find_target(text: str, roots: Roots) -> NnunetTarget:
    """Return what is meant by a text.

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
        return NnunetTarget(text, find_folders(text, roots))
    if not path.is_dir():
        raise ParameterError(
            f"{text}: expected the number or name of a data set of nnU-Net, or a folder, got neither."
        )
    path = path.absolute()
    if any((path / name).exists() for name in ("predict_from_raw_data_args.json", NOTE)):
        return NnunetTarget(text, predictions=PredictionFolder(path))
    fold = path.parent if path.name == "validation" else path
    model = model_at(path)
    if model is None and fold.name.startswith(_FOLD):
        model = model_at(fold.parent)
    if model is not None:
        key = "" if fold == model.folder else fold.name.removeprefix(_FOLD)
        return NnunetTarget(text, find_folders(str(model.folder.parent), roots), model, key)
    if is_data_set(path.name):
        return NnunetTarget(text, find_folders(str(path), roots))
    return NnunetTarget(text, predictions=PredictionFolder(path))
