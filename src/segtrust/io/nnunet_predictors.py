"""Which model made predictions: the name of a predictor, and what a folder of predictions tells of it.

A promise holds for the predictor that it was made with, so the name says all that makes another one: data
set, trainer, plans, configuration, folds, and settings that are not nnU-Net's usual ones. What nnU-Net writes
beside its predictions names the data set and the plans, and neither the configuration nor the folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from segtrust._files import read_json, write_json
from segtrust.errors import ParameterError, WrongContentError
from segtrust.io.nnunet_layout import ALL, Model, ModelChoice, Roots

__all__ = [
    "NOTE",
    "PredictionFolder",
    "cross_validation_name",
    "keep_predictor",
    "parse_folds",
    "predictor_name",
]

NOTE = "segtrust_predictor.json"
"""Beside predictions that were made here: by what."""
_LONGEST = 8 << 20
"""Bytes of a file that nnU-Net writes about predictions."""
_USUAL = ModelChoice(trainer="nnUNetTrainer", plans="nnUNetPlans")
_USUAL_FOLDS = ("0", "1", "2", "3", "4")


def parse_folds(text: str) -> tuple[str, ...]:
    """Read folds as they are written for nnU-Net, with commas or spaces between them.

    Examples
    --------
    >>> parse_folds("0,00"), parse_folds("2, 0,1"), parse_folds("all"), parse_folds("")
    (('0',), ('0', '1', '2'), ('all',), ())
    """
    named = [each.removeprefix("fold_") for each in text.replace(",", " ").split()]
    wrong = [each for each in named if not each.isdecimal() and each != ALL]
    if wrong or (ALL in named and len(set(named)) > 1):
        raise ParameterError(f"fold: expected numbers such as 0 or 0,1,2, or all alone, got {text!r}.")
    if ALL in named:
        return (ALL,)
    return tuple(map(str, sorted({int(each) for each in named})))


def predictor_name(model: str, folds: Sequence[str], unusual: Sequence[str] = ()) -> str:
    """Name the predictor of a model: a fold, or an ensemble of several.

    Parameters
    ----------
    model
        With its data set.
    folds
        Whose networks are averaged.
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
    """Name what made the maps of a cross-validation: a fold, or of several for each case its own.

    Examples
    --------
    >>> cross_validation_name("Dataset001_A/T__P__2d", ["0", "1"])
    'Dataset001_A/T__P__2d/cross-validation of folds 0,1'
    """
    if len(folds) == 1:
        return predictor_name(model, folds)
    return f"{model}/cross-validation of folds {','.join(folds)}"


def keep_predictor(folder: Path, name: str) -> None:
    """Write beside predictions what made them."""
    write_json(folder / NOTE, {"predictor": name})


@dataclass(frozen=True)
class PredictionFolder:
    """A folder of predictions, and what is written there about them.

    Attributes
    ----------
    folder
        With masks, with maps where these were saved, and with what nnU-Net writes beside them.
    """

    folder: Path

    @cached_property
    def plans(self) -> Mapping[str, Any]:
        """The plans of the model; nothing where they are not there, as with version 1."""
        return self._read("plans.json")

    @property
    def dataset(self) -> str:
        """Name of the data set that the model was trained with; nothing where it is not noted."""
        return str(self.plans.get("dataset_name") or "")

    @property
    def kept_name(self) -> str:
        """Name of the predictor, where it was noted here; else nothing."""
        return str(self._read(NOTE).get("predictor") or "")

    @property
    def images(self) -> Path | None:
        """Folder of the images that were predicted, where nnU-Net noted one that is still there."""
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
        """Name the predictor, from what was asked of ``nnUNetv2_predict`` and is not noted here.

        What is left out is taken as ``nnUNetv2_predict`` takes it: folds 0 to 4, the usual trainer. Nothing
        is named where not even the configuration is said.

        Raises
        ------
        ParameterError
            If what is noted here says otherwise.
        """
        if not choice.configuration:
            if folds or choice.trainer or choice.plans:
                raise ParameterError(
                    f"{self.folder}: expected with -f, -tr or -p also -c, the configuration."
                )
            return self.kept_name
        dataset, plans = self._noted("dataset_name"), choice.plans or _USUAL.plans
        self._check(plans, choice.configuration)
        model = f"{dataset}/{choice.trainer or _USUAL.trainer}__{plans}__{choice.configuration}"
        name = predictor_name(model, folds or self._usual_folds(model))
        if self.kept_name and self.kept_name != name:
            raise ParameterError(f"{self.folder}: was predicted by {self.kept_name}, not by {name}.")
        return name

    def _usual_folds(self, model: str) -> tuple[str, ...]:
        """Give the folds that ``nnUNetv2_predict`` takes unless told; it cannot where they are not there."""
        results = Roots.from_environment().results
        there = {} if results is None else Model(results / model).folds
        if there and not set(_USUAL_FOLDS) <= set(there):
            raise ParameterError(
                f"{self.folder}: expected with -c also -f, the folds that made these predictions: nnU-Net "
                f"takes 0 to 4 unless told, and {model} has {', '.join(there)} here."
            )
        return _USUAL_FOLDS

    def _check(self, plans: str, configuration: str) -> None:
        """Refuse a model that these plans are not of."""
        if plans != self._noted("plans_name"):
            raise ParameterError(
                f"{self.folder}: expected its own plans, {self.plans['plans_name']}, got {plans}. Repeat -p."
            )
        found = self.plans.get("configurations")
        there = found if isinstance(found, Mapping) else {}
        if configuration not in there:
            raise ParameterError(
                f"{self.folder}: expected a configuration of its plans ({', '.join(there)}), got "
                f"{configuration!r}."
            )

    def _noted(self, name: str) -> str:
        if not self.plans.get(name):
            raise WrongContentError(
                f"{self.folder}: expected nnU-Net's plans.json, which tells the data set, got none. Name the "
                "predictor in words instead: --predictor."
            )
        return str(self.plans[name])

    def _read(self, name: str) -> Mapping[str, Any]:
        path = self.folder / name
        found = read_json(path, error=WrongContentError, most=_LONGEST) if path.is_file() else {}
        return found if isinstance(found, Mapping) else {}
