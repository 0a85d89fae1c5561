"""``segtrust nnunet``: files found by nnU-Net's own layout, then scored, certified and decided on as any."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from segtrust.cli.apps import App
from segtrust.cli.calibrate import TargetFlags, calibration_values, print_calibration
from segtrust.cli.nnunet_options import ModelFlags, target_of
from segtrust.cli.nnunet_predict import PREDICT_EPILOG, predict
from segtrust.cli.nnunet_show import SHOW_EPILOG, show
from segtrust.cli.options import USUAL, ReadFlags, RunFlags, changed_options, with_options
from segtrust.cli.output import (
    counted,
    exit_if_failed,
    print_dataset,
    print_failures,
    print_questions,
    warnings_of,
)
from segtrust.cli.triage import TriageFlags, triage_cases
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.io import LabelledCases

__all__ = ["nnunet_app"]


class _ShowUnlessAsked(TyperGroup):
    """Takes what is no command for what is to be shown: ``segtrust nnunet 27``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the usual command first."""
        is_other = bool(args) and not args[0].startswith("-") and args[0] not in self.commands
        return list(super().parse_args(ctx, ["show", *args] if is_other else args))


nnunet_app = App(
    cls=_ShowUnlessAsked,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Data sets, models and predictions of nnU-Net, found by its own layout.",
)
_CALIBRATE_EPILOG = (
    "Examples:\n\n  segtrust nnunet calibrate 27 -o policy.json --target-risk 0.1 -c 3d_fullres -f 0\n\n"
    "  segtrust nnunet calibrate heldout/ -o policy.json --target-risk 0.1 -c 3d_fullres --truth labels/\n\n"
    "Exit codes: 0 a policy was written, 1 not certifiable with these cases, or some failed, 2 an error."
)
_TRIAGE_EPILOG = (
    "Examples:\n\n  segtrust nnunet triage tonight/ --policy policy.json -o triage -c 3d_fullres -f 0\n\n"
    "Exit codes: 0 success, 1 some cases failed (they are deferred), 2 an error, 3 drift detected."
)


@dataclass
class CalibrationFlags(ModelFlags):
    """Which cases are learned from."""

    truth: Annotated[
        Path | None, typer.Option(help="Folder of the labels, where nnU-Net's own layout does not tell it.")
    ] = None
    predictor: Annotated[
        str, typer.Option(help="Which model made the predictions, in words, instead of -c, -tr, -p and -f.")
    ] = ""
    reference: Annotated[
        Path | None, typer.Option(help="Scores of other, unlabelled cases, for candidate thresholds.")
    ] = None
    empty: Annotated[
        str, typer.Option(help="What two empty masks are worth: 'paper' a Dice of 0, 'agree' of 1.")
    ] = "paper"


@with_options
def calibrate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DATASET_OR_FOLDER",
            help="Data set (27, Dataset027_ACDC) or folder of a model: its cross-validation. Folder of "
            "predictions: held-out cases, with their labels.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy, a JSON file.")],
    promise: TargetFlags,
    source: CalibrationFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Score labelled cases, and certify an acceptance threshold on them.

    Of a cross-validation each case was predicted by its own fold. One fold gives a policy that is certified
    for predictions of that fold; several together one that is estimated only, since new cases are predicted
    otherwise: by a single fold, or the ensemble. Scores are kept beside the policy, for `segtrust evaluate`.
    """
    run.get_ready()
    from segtrust.engine import failures_beside
    from segtrust.workflows import certify_table, score_cases

    found = _labelled_cases(what, source)
    if not run.as_json:
        _tell_found(found)
    table = output.with_name(f"{output.stem}.scores.csv")
    options: Any = {**changed_options(read), **run.options()}
    scored = score_cases(
        found.cases,
        f"{promise.estimator},{USUAL}",
        output=table,
        made_by=found.predictor,
        doubt=found.doubt,
        empty=source.empty,
        on_start=lambda: print_dataset(found.cases, quiet=run.as_json),
        **options,
    )
    if not run.as_json:
        print_failures(scored.failures, failures_beside(table, None))
        print_questions(scored)
    if not scored.rows:
        exit_if_failed(scored.failures, nothing=True)
    result = certify_table(
        table, output=output, model=found.predictor, reference=source.reference, **asdict(promise)
    )
    if run.as_json:
        status = "estimated" if found.doubt else "certified"
        values = {
            "predictor": found.predictor,
            "standing": status if result.policy is not None else None,
            "structures": calibration_values(result),
            "cases": scored.cases,
            "unpredicted": found.unpredicted,
            "table": str(table),
            "failures": [each.row() for each in scored.failures],
            "warnings": warnings_of(scored),
        }
        typer.echo(json.dumps(values))
    else:
        print_calibration(result, output)
        typer.echo(f"Scores of {counted(scored.cases, 'case')}: {table}")
    exit_if_failed(scored.failures)
    if result.policy is None:
        raise typer.Exit(1)


def _tell_found(found: LabelledCases) -> None:
    """Say what a person should know of the cases before they are scored."""
    if not found.predictor:
        typer.secho(_UNNAMED, err=True)
    if found.unpredicted:
        told = f"{counted(found.unpredicted, 'label')} without a prediction here: not learned from."
        typer.secho(f"{told} Were these cases predicted, and failed, they are missed.", err=True)


_UNNAMED = (
    "Which model made these predictions is not written beside them, so no guarantee can be tied to it. "
    "Repeat what was given to nnUNetv2_predict (-c, -tr, -p, -f), or name it: --predictor."
)


def _labelled_cases(what: str, source: CalibrationFlags) -> LabelledCases:
    """Find the cases to learn from: of a cross-validation, or predictions of held-out ones."""
    from segtrust.io import find_cross_validation, find_held_out

    target = target_of(what)
    if target.predictions is not None:
        name = source.predictor or target.predictions.name_of(source.choice, source.folds)
        return find_held_out(target.predictions, name, source.truth, source.folds)
    model = target.chosen_model(source.choice)
    folds = source.folds or ((target.fold,) if target.fold else ())
    truths = source.truth or (None if target.folders is None else target.folders.truths)
    if source.predictor:
        raise ParameterError(
            "predictor: expected with a folder of predictions; that of a cross-validation is known."
        )
    return find_cross_validation(model, folds, truths)


@dataclass
class NnunetTriageFlags(ModelFlags, TriageFlags):
    """How decisions are made, and which model made the predictions."""


@with_options
def triage(
    predictions: Annotated[
        list[Path],
        typer.Argument(help="Folders of predictions, made with --save_probabilities."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the lists.")],
    how: NnunetTriageFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Decide on predictions by a policy: lists of accepted and deferred ones, and whether they still fit it.

    The guarantee of a policy holds for predictions of the model that it was made with. nnU-Net does not write
    down which model that was: repeat the options of nnUNetv2_predict (-c, -tr, -p, -f). Predictions of
    `segtrust nnunet predict` know it, and need no probabilities on the disk.
    """
    run.get_ready()
    from segtrust.io import find_cases

    numbers = [str(path) for path in predictions if str(path).isdecimal() and not path.exists()]
    if numbers:
        raise ParameterError(f"fold: expected several as -f 0,1, with commas, got {numbers}.")
    name = _common_name(predictions, how)
    if not name and not run.as_json:
        typer.secho(_UNNAMED, err=True)
    found = find_cases(predictions, needs_truth=False)
    triage_cases(found, output, TriageFlags(how.policy, name, how.link, how.alpha, how.details), read, run)


def _common_name(folders: Sequence[Path], how: NnunetTriageFlags) -> str:
    """Name the predictor of all folders; nothing where they were made by different ones."""
    if how.predictor:
        return how.predictor
    found = [target_of(str(folder)).predictions for folder in folders]
    wrong = [folder for folder, each in zip(folders, found, strict=True) if each is None]
    if wrong:
        raise ParameterError(f"{wrong[0]}: expected a folder of predictions, got one of a data set or model.")
    names = {each.name_of(how.choice, how.folds) for each in found if each is not None}
    return names.pop() if len(names) == 1 else ""


nnunet_app.command(epilog=SHOW_EPILOG)(show)
nnunet_app.command(epilog=_CALIBRATE_EPILOG)(calibrate)
nnunet_app.command(epilog=_TRIAGE_EPILOG)(triage)
nnunet_app.command(epilog=PREDICT_EPILOG)(predict)
