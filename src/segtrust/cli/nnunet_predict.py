"""``segtrust nnunet predict``: predictions with confidences, and no probabilities on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.nnunet_options import ModelFlags, target_of
from segtrust.cli.options import USUAL, ReadFlags, RunFlags, changed_options, with_options
from segtrust.cli.score import print_scores
from segtrust.cli.triage import print_triage
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.io import Model

__all__ = ["PREDICT_EPILOG", "predict"]

PREDICT_EPILOG = (
    "Examples:\n\n  segtrust nnunet predict 27 -i imagesTs -o predictions -c 3d_fullres\n\n"
    "  segtrust nnunet predict 27 -i tonight -o predictions -c 3d_fullres -f 0 --policy policy.json\n\n"
    "Exit codes: 0 success, 1 some cases failed, 2 an error, 3 drift detected."
)
_PREDICTING = "How it is predicted"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PREDICTING, **more)


@dataclass(kw_only=True)
class PredictFlags(ModelFlags):
    """How images are predicted and scored."""

    estimators: Annotated[str, typer.Option(help="Names, separated by commas.")] = USUAL
    policy: Annotated[
        Path | None, typer.Option(help="Decide by this policy as well: lists of accepted and deferred ones.")
    ] = None
    truth: Annotated[
        Path | None, typer.Option(help="Folder of labels, for the Dice: a table for `segtrust calibrate`.")
    ] = None
    device: Annotated[str, _option("--device", "-device", help="cuda, cpu or mps.")] = "cuda"
    checkpoint: Annotated[str, _option("--checkpoint", "-chk", help="File of the weights.")] = (
        "checkpoint_final.pth"
    )
    step_size: Annotated[float, _option(help="Of the sliding window.")] = 0.5
    disable_tta: Annotated[bool, _option("--disable-tta", help="Without mirroring.")] = False
    previous_stage: Annotated[
        Path | None, _option(help="Folder of the masks of the stage before, for a cascade.")
    ] = None


@with_options
def predict(
    what: Annotated[
        str, typer.Argument(metavar="DATASET_OR_MODEL", help="Data set, or the folder of a model.")
    ],
    images: Annotated[Path, typer.Option("--images", "-i", help="Folder of images, named as for nnU-Net.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for masks, scores.csv and lists.")],
    how: PredictFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Predict images and score them in memory: masks and one table are written, but no probabilities.

    Needs nnU-Net in this environment. The numbers are those of `segtrust score` on what --save_probabilities
    would have written. With --policy it decides as well. The same command goes on with a stopped run.
    """
    from segtrust.engine import Limits
    from segtrust.integrations.nnunet import doubt_about, find_images, load_predictor, name_predictor
    from segtrust.integrations.nnunet_engine import PredictingEngine
    from segtrust.workflows import score_cases, triage

    model = target_of(what).chosen_model(how.choice)
    folds = how.folds or _trained_folds(model, how.checkpoint)
    settings = {"tile_step_size": how.step_size, "use_mirroring": not how.disable_tta}
    made = load_predictor(model.folder, folds, checkpoint=how.checkpoint, device=how.device, **settings)
    name = name_predictor(made, model.name, folds, checkpoint=how.checkpoint)
    found = find_images(made, images, how.truth)
    options: Any = {**changed_options(read), **run.options()}
    limits = Limits(options.pop("memory", None), options.pop("timeout"))
    workers, dask = options.pop("workers", 1), options.pop("dask", "")
    engine = PredictingEngine(workers, dask, made, found.channels, output, how.previous_stage, limits)
    table = output / "scores.csv"
    if run.resume:
        engine.check_masks(table)
    engine.open_output(name)
    doubt = doubt_about(made, found, images, folds)
    scored = score_cases(
        found.cases,
        "" if how.policy else how.estimators,
        output=table,
        policy=how.policy,
        model=name if how.policy else "",
        with_truth=how.truth is not None,
        made_by=name,
        doubt=doubt,
        executor=engine,
        **options,
    )
    if doubt and not run.as_json:
        typer.secho(f"Nothing can be certified with this table: {doubt}.", err=True)
    if how.policy is None:
        print_scores(scored, as_json=run.as_json)
    else:
        result = triage(scored, how.policy, output=output, model=name)
        print_triage(result, output, how.policy, as_json=run.as_json)


def _trained_folds(model: Model, checkpoint: str) -> tuple[str, ...]:
    """Give the folds that are trained, to be averaged; that of all cases where there is no other."""
    found = tuple(key for key, fold in model.folds.items() if (fold.folder / checkpoint).is_file())
    if not found:
        raise ParameterError(f"{model.folder}: expected {checkpoint} in one of its folds, got none.")
    return tuple(key for key in found if key != "all") or found
