"""``segtrust nnunet show``: what is there, and what can be done with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.nnunet_options import target_of
from segtrust.cli.output import counted

if TYPE_CHECKING:
    from segtrust.io import DataSetFolders, Fold, Model, PredictionFolder

__all__ = ["SHOW_EPILOG", "show"]

SHOW_EPILOG = "Examples:\n\n  segtrust nnunet 27\n\n  segtrust nnunet show predictions/ --json"


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DATASET_OR_FOLDER", help="Data set (27, Dataset027_ACDC), model or predictions."
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Show what is found: models, folds, which have probabilities, labels or regions, and what is missing."""
    target = target_of(what)
    if target.predictions is not None:
        values, tell = _of_predictions(target.predictions), _tell_predictions
    else:
        assert target.folders is not None
        models = target.folders.models if target.model is None else [target.model]
        values, tell = _of_data_set(target.folders, models), _tell_data_set
    if as_json:
        typer.echo(json.dumps(values))
    else:
        tell(values)


def _of_data_set(folders: DataSetFolders, models: Sequence[Model]) -> dict[str, Any]:
    parts = {"raw": folders.raw, "preprocessed": folders.preprocessed, "results": folders.results}
    return {
        "dataset": folders.name,
        **_structures(folders.described),
        "folders": {name: None if path is None else str(path) for name, path in parts.items()},
        "truth": None if folders.truths is None else str(folders.truths),
        "models": [_of_model(model) for model in models],
    }


def _of_model(model: Model) -> dict[str, Any]:
    return {
        "model": model.folder.name,
        "folds": {key: _of_fold(model, fold) for key, fold in model.folds.items()},
    }


def _of_fold(model: Model, fold: Fold) -> dict[str, Any]:
    masks = _masks_in(fold.validation) if fold.validation.is_dir() else []
    makes_maps = model.validation_command(fold.key) if masks and not fold.maps else None
    return {"validated": len(masks), "maps": len(fold.maps), "makes_maps": makes_maps}


def _of_predictions(found: PredictionFolder) -> dict[str, Any]:
    described = found.folder / "dataset.json"
    return {
        "predictions": str(found.folder),
        **_structures(described if described.is_file() else None),
        "masks": len(_masks_in(found.folder)),
        "maps": len(list(found.folder.glob("*.npz"))),
        "dataset": found.plans.get("dataset_name"),
        "plans": found.plans.get("plans_name"),
        "configurations": list(found.plans.get("configurations") or ()),
        "predictor": found.kept_name or None,
        "images": None if found.images is None else str(found.images),
        "truth": None if found.truths is None else str(found.truths),
    }


def _structures(described: Path | None) -> dict[str, Any]:
    from segtrust.io import read_scheme

    if described is None:
        return {"structures": [], "usual": None, "is_regions": None}
    scheme = read_scheme(described)
    names = [each.name for each in scheme.structures]
    return {"structures": names, "usual": scheme.usual.name, "is_regions": scheme.is_regions}


def _masks_in(folder: Path) -> list[Path]:
    from segtrust.io import is_data_file

    return [each for each in folder.iterdir() if is_data_file(each) and each.suffix != ".npz"]


def _tell_data_set(values: Mapping[str, Any]) -> None:
    typer.echo(f"{values['dataset']}: {_named(values)}")
    for name, path in values["folders"].items():
        typer.echo(f"  {name:<13} {path or 'not found (nnUNet_' + name + ')'}")
    typer.echo(f"  {'labels':<13} {values['truth'] or 'not found'}")
    for model in values["models"]:
        typer.echo(f"{model['model']}")
        for key, fold in model["folds"].items():
            typer.echo(f"  {'fold_' + key:<13} {_told_fold(fold)}")
    if not values["models"]:
        typer.echo("No trained model.")
    commands = [fold["makes_maps"] for model in values["models"] for fold in model["folds"].values()]
    for command in filter(None, commands):
        typer.echo(f"To make probabilities: {command}")


def _told_fold(fold: Mapping[str, Any]) -> str:
    if not fold["validated"]:
        return "not validated"
    return f"{counted(fold['validated'], 'case')} validated, {fold['maps']} with probabilities"


def _named(values: Mapping[str, Any]) -> str:
    if not values["structures"]:
        return "no dataset.json"
    kind = "regions" if values["is_regions"] else "labels"
    return f"{kind} {', '.join(values['structures'])}; scored unless --region is given: {values['usual']}"


def _tell_predictions(values: Mapping[str, Any]) -> None:
    typer.echo(f"{values['predictions']}: {_named(values)}")
    unknown = "not noted by nnU-Net: repeat -c, -tr, -p and -f of nnUNetv2_predict"
    told = {
        "predictions": f"{counted(values['masks'], 'mask')}, {values['maps']} with probabilities",
        "data set": values["dataset"] or "not noted",
        "plans": values["plans"] or "not noted",
        "predictor": values["predictor"] or unknown,
        "images": values["images"] or "not found",
        "labels": values["truth"] or "not found",
    }
    for name, text in told.items():
        typer.echo(f"  {name:<13} {text}")
    if values["masks"] and not values["maps"] and not values["predictor"]:
        typer.echo("Predict with --save_probabilities, or score while predicting: segtrust nnunet predict.")
