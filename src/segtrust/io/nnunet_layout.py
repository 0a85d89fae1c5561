"""Where nnU-Net keeps its data sets, models and cross-validation: found by its own names and variables.

``nnUNet_raw``, ``nnUNet_preprocessed`` and ``nnUNet_results`` hold a folder ``Dataset027_ACDC`` each; below
that of the results a model is ``nnUNetTrainer__nnUNetPlans__3d_fullres``, with ``fold_0/validation`` in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from segtrust.errors import PairingError, ParameterError

__all__ = [
    "ALL",
    "DataSetFolders",
    "Fold",
    "Model",
    "ModelChoice",
    "Roots",
    "chosen_model",
    "find_folders",
    "is_data_set",
    "model_at",
]

ALL = "all"
"""The fold that was trained with all cases, those of its validation too."""
_VARIABLES = {"raw": "nnUNet_raw", "preprocessed": "nnUNet_preprocessed", "results": "nnUNet_results"}
_DATA_SET = re.compile(r"Dataset(\d{3,})_.+")
_PARTS = 3
"""Of a model's name: trainer, plans, configuration."""
_FOLD = "fold_"


@dataclass(frozen=True)
class Roots:
    """The folders that nnU-Net's variables name; ``None`` for one that is not set."""

    raw: Path | None = None
    preprocessed: Path | None = None
    results: Path | None = None

    @classmethod
    def from_environment(cls) -> Roots:
        """Read the variables; one that names no folder is as good as not set."""
        named = {name: Path(os.environ.get(variable) or "") for name, variable in _VARIABLES.items()}
        there = {name: path.absolute() for name, path in named.items() if path.parts and path.is_dir()}
        return cls(**there)

    def each(self) -> Mapping[str, Path | None]:
        """Give them by name."""
        return {name: getattr(self, name) for name in _VARIABLES}

    def __str__(self) -> str:
        """Say what the variables name, as an error should."""
        return ", ".join(
            f"{_VARIABLES[name]} {path or 'names no folder'}" for name, path in self.each().items()
        )


@dataclass(frozen=True)
class Fold:
    """One fold of a model.

    Attributes
    ----------
    folder
        Named ``fold_0`` and so on.
    """

    folder: Path

    @property
    def key(self) -> str:
        """Its number, or ``"all"``."""
        return self.folder.name.removeprefix(_FOLD)

    @property
    def validation(self) -> Path:
        """Where the predictions of its own cases are, if it was validated."""
        return self.folder / "validation"

    @cached_property
    def maps(self) -> tuple[Path, ...]:
        """Probabilities of the validation, which are there if it was made with ``--npz``."""
        return tuple(sorted(self.validation.glob("*.npz")))

    @property
    def is_validated(self) -> bool:
        """Whether there are predictions at all."""
        return (self.validation / "summary.json").exists() or bool(self.maps)


@dataclass(frozen=True)
class Model:
    """A trained configuration.

    Attributes
    ----------
    folder
        Named ``nnUNetTrainer__nnUNetPlans__3d_fullres``, in that of its data set.

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
        """Such as ``"3d_fullres"``."""
        return "__".join(self.folder.name.split("__")[2:])

    @property
    def name(self) -> str:
        """Its name, with that of its data set."""
        return f"{self.dataset}/{self.folder.name}"

    @cached_property
    def folds(self) -> Mapping[str, Fold]:
        """Its folds by number, ``"all"`` last."""
        found = [Fold(each) for each in self.folder.glob(f"{_FOLD}*") if each.is_dir()]
        return {each.key: each for each in sorted(found, key=lambda fold: (fold.key == ALL, fold.key))}

    def validating(self, fold: str) -> str:
        """Give the command that makes the maps of a fold that was trained without ``--npz``."""
        model = f"-tr {self.trainer} -p {self.plans}"
        return f"nnUNetv2_train {self.dataset} {self.configuration} {fold} {model} --val --npz"


@dataclass(frozen=True)
class DataSetFolders:
    """The folders of one data set.

    Attributes
    ----------
    name
        Such as ``"Dataset027_ACDC"``.
    raw, preprocessed, results
        ``None`` where there is none.
    """

    name: str
    raw: Path | None = None
    preprocessed: Path | None = None
    results: Path | None = None

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """All that were trained on it."""
        folders = () if self.results is None else sorted(self.results.iterdir())
        return tuple(Model(each) for each in folders if model_at(each) is not None)

    @property
    def truths(self) -> Path | None:
        """Labels of the training cases: those that nnU-Net itself compares with, else the raw ones."""
        kept = None if self.preprocessed is None else self.preprocessed / "gt_segmentations"
        raw = None if self.raw is None else self.raw / "labelsTr"
        return next((each for each in (kept, raw) if each is not None and each.is_dir()), None)

    @property
    def described(self) -> Path | None:
        """Its ``dataset.json``, wherever one is."""
        folders = [self.raw, self.preprocessed, *(model.folder for model in self.models)]
        files = [each / "dataset.json" for each in folders if each is not None]
        return next((each for each in files if each.is_file()), None)


def is_data_set(text: str) -> bool:
    """Tell the number or the name of a data set from a folder.

    Examples
    --------
    >>> is_data_set("27"), is_data_set("Dataset027_ACDC"), is_data_set("predictions/Dataset027_ACDC")
    (True, True, False)
    """
    return text.isdecimal() or _DATA_SET.fullmatch(text) is not None


def model_at(folder: Path) -> Model | None:
    """Give the model whose folder this is; ``None`` for any other."""
    parts = folder.name.split("__")
    is_one = len(parts) >= _PARTS and all(parts) and folder.is_dir()
    return Model(folder.absolute()) if is_one else None


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
    name = path.resolve().name if own is not None else _name_of(text, roots)
    found = {part: root / name for part, root in roots.each().items() if root is not None}
    there = {part: folder for part, folder in found.items() if folder.is_dir()}
    if own is not None:
        there.setdefault(_part_of(own), own)
    return DataSetFolders(name, **there)


def _name_of(text: str, roots: Roots) -> str:
    names = sorted(
        {
            each.name
            for root in roots.each().values()
            if root is not None
            for each in root.glob("Dataset*")
            if each.is_dir() and _is_meant(each.name, text)
        }
    )
    if len(names) == 1:
        return names[0]
    got = f"several: {', '.join(names)}" if names else "none"
    raise ParameterError(
        f"{text}: expected a data set of nnU-Net by number, name or folder, got {got} ({roots}). Set these "
        "variables as for nnU-Net, or give the folder of a model or of predictions."
    )


def _is_meant(name: str, text: str) -> bool:
    found = _DATA_SET.fullmatch(name)
    return found is not None and (int(found[1]) == int(text) if text.isdecimal() else name == text)


def _part_of(folder: Path) -> str:
    """Tell by what is in it below which of the roots a folder lies."""
    if any(model_at(each) is not None for each in folder.iterdir()):
        return "results"
    return "preprocessed" if (folder / "gt_segmentations").is_dir() else "raw"


@dataclass(frozen=True)
class ModelChoice:
    """Which model is meant; nothing where it does not matter, or there is one only.

    Attributes
    ----------
    configuration, trainer, plans
        As for nnU-Net's commands.
    """

    configuration: str = ""
    trainer: str = ""
    plans: str = ""

    def fits(self, model: Model) -> bool:
        """Tell whether a model may be the one."""
        asked = {"configuration": self.configuration, "trainer": self.trainer, "plans": self.plans}
        return all(not value or getattr(model, name) == value for name, value in asked.items())


def chosen_model(models: Sequence[Model], choice: ModelChoice, where: str) -> Model:
    """Give the one model that is meant, or say which there are."""
    fitting = [model for model in models if choice.fits(model)]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(model.folder.name for model in fitting or models)
    if not models:
        raise PairingError(
            f"{where}: expected a trained model, got none. Models are looked for in the folder that "
            "nnUNet_results names; or give the model's own folder."
        )
    raise ParameterError(
        f"{where}: expected one model, got {listed if fitting else f'none that fits among {listed}'}. Say "
        "which as for nnU-Net: -c CONFIGURATION, -tr TRAINER, -p PLANS."
    )
