"""``segtrust evaluate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import HowFlags, ReadFlags, RunFlags, TruthFlags, changed_options, with_options
from segtrust.cli.output import (
    Images,
    exit_if_failed,
    image_values,
    images_in,
    policy_values,
    print_dataset,
    print_failures,
    print_questions,
    print_table,
    warnings_of,
)
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.io import Dataset
    from segtrust.workflows import Evaluation

__all__ = ["EVALUATE_EPILOG", "EvaluateFlags", "SetFlags", "evaluate"]

_FILES = "Which files"
_JUDGING = "How it is evaluated"
_PANEL = "Estimators that learn"
_TUNABLE = ("sdc-tuned", "pla-tuned", "aef", "aef-sdc")
EVALUATE_EPILOG = (
    "Examples:\n\n  segtrust evaluate predictions/ --truth labelsTs/ -o evaluation\n\n"
    "  segtrust evaluate kvasir/ clinicdb/ -o polyp --ood etis=etis/ --drop-empty-truth --estimators all\n\n"
    "  segtrust evaluate kvasir/ -o tuned --drop-empty-truth --tune pla-tuned,aef,aef-sdc\n\n"
    "Exit codes: 0 all cases judged, 1 some failed (failures.csv tells why) or are too few to be ranked, "
    "2 nothing could be done."
)


@dataclass
class SetFlags(TruthFlags):
    """Which files belong to a case, of several sets."""

    ood: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, another set to evaluate as well; repeatable.", rich_help_panel=_FILES),
    ] = None
    ood_truth: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the ground truth of that set.", rich_help_panel=_FILES),
    ] = None
    ood_mask_dir: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the delivered masks of that set.", rich_help_panel=_FILES),
    ] = None
    ood_member: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=DIR, the maps of one more member of that set; repeatable.", rich_help_panel=_FILES
        ),
    ] = None
    ood_image_dir: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the images of that set.", rich_help_panel=_FILES),
    ] = None


@dataclass
class JudgeFlags(HowFlags):
    """How cases are scored and judged."""

    loss: Annotated[
        str | None,
        typer.Option(
            help="What the cases are evaluated by: dice (the default), iou, f2 or hamming.",
            rich_help_panel=_JUDGING,
        ),
    ] = None
    losses: Annotated[
        Path | None,
        typer.Option(
            help="Losses from elsewhere: a table with 'case', or nnU-Net's summary.json.",
            rich_help_panel=_JUDGING,
        ),
    ] = None
    loss_column: Annotated[
        str | None, typer.Option(help="Its column, or the metric of summary.json.", rich_help_panel=_JUDGING)
    ] = None
    drop_empty_truth: Annotated[
        bool,
        typer.Option(
            "--drop-empty-truth",
            help="Leave out cases whose ground truth is empty, as the paper does.",
            rich_help_panel=_JUDGING,
        ),
    ] = False
    patients: Annotated[
        bool,
        typer.Option(
            "--patients",
            help="The manifest's 'group' is the patient: draw patients.",
            rich_help_panel=_JUDGING,
        ),
    ] = False
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.", rich_help_panel=_JUDGING)] = (
        2000
    )


@dataclass
class TuneFlags:
    """Which estimators learn from parts of each set, and how often."""

    tune: Annotated[
        str,
        typer.Option(
            help=f"Evaluate them on random splits of each set: {', '.join(_TUNABLE)}, or 'all'.",
            rich_help_panel=_PANEL,
        ),
    ] = ""
    repeats: Annotated[
        int, typer.Option(min=1, help="Random splits for each size.", rich_help_panel=_PANEL)
    ] = 50
    seed: Annotated[int, typer.Option(min=0, help="Of the first split.", rich_help_panel=_PANEL)] = 0


@dataclass
class EvaluateFlags(JudgeFlags, TuneFlags):
    """How cases are scored and evaluated, and which estimators learn from them."""


@with_options
def evaluate(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            help="Maps as for `score`: a folder with x-pred.png and x-mask.png, or with 'predictions' and "
            "'masks' (or 'labels'), or maps and --truth; or a table of scores."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, figures and report.")],
    how: EvaluateFlags,
    files: SetFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Score cases with known truth and show how well each confidence ranks the errors.

    Writes the score table, risk-coverage curves, AURC with intervals, coverage at the risk of all cases,
    paired tests and bound statistics, for other sets (--ood) beside them; with --tune also what estimators
    that learn make of parts of each set.
    """
    run.get_ready()
    from segtrust.workflows import evaluate as evaluate_cases, find_score_table, reject_map_options

    table = find_score_table(predictions)
    data: Any = table
    images: list[Images] = []
    if table is None:
        data, images = _find_sets(predictions, files, needs_truth=how.losses is None)
    else:
        reject_map_options(changed_options(files))
    names = ("loss", "losses", "loss_column", "drop_empty_truth", "patients", "resamples", "tune", "repeats")
    options: Any = {name: getattr(how, name) for name in (*names, "seed")}
    options |= {**how.score_options(), **changed_options(read), **run.options()}
    options["on_start"] = lambda: print_dataset(data, images, quiet=run.as_json)
    evaluation = evaluate_cases(
        data,
        output=output,
        estimators=how.estimators,
        policy=how.policy,
        model=how.predictor,
        **options,
    )
    if run.as_json:
        print_values(evaluation, output, images)
    else:
        print_evaluation(evaluation, output)
    exit_if_failed(evaluation.scores.failures)
    if evaluation.unranked:
        raise typer.Exit(1)


def print_evaluation(evaluation: Evaluation, output: Path) -> None:
    """Print failures, questions, and the tables for people."""
    from segtrust.engine import failures_beside
    from segtrust.report.tuned_sets import tuning_for_people

    scores = evaluation.scores
    print_failures(scores.failures, failures_beside(output / "scores.parquet", None))
    print_questions(scores)
    for warning in scores.warnings:
        typer.secho(warning, err=True)
    for policy in scores.policies.values():
        typer.echo(str(policy))
    counts = evaluation.counts
    typer.secho(str(counts), bold=True, fg=None if counts.is_complete else typer.colors.RED)
    for summary in evaluation.summaries:
        typer.echo("")
        print_table(summary.title, summary.heads, summary.cells, lines=summary.lines)
    tuned = tuning_for_people(evaluation.tuning)
    if tuned:
        cells = [[str(value).replace(r"\*", "*") for value in row.values()] for row in tuned]
        typer.echo("")
        print_table("Estimators that learn from some of the cases", list(tuned[0]), cells)
    typer.echo(f"\nReport: {output / 'report.html'} (tables and figures: {output})")
    for text in evaluation.unranked:
        typer.secho(f"Not ranked: {text}", err=True)


def print_values(evaluation: Evaluation, output: Path, images: Sequence[Images]) -> None:
    """Print the same for machines."""
    values = {
        **evaluation.tables,
        "evaluated": asdict(evaluation.counts),
        "calibration": list(evaluation.calibration.rows),
        "tuning": list(evaluation.tuning),
        "unranked": list(evaluation.unranked),
        **image_values(images),
        **policy_values(evaluation.scores.policies),
        "failed": [each.row() for each in evaluation.scores.failures],
        "warnings": warnings_of(evaluation.scores, images),
        "output": str(output),
    }
    typer.echo(json.dumps(values))


def _find_sets(paths: Sequence[Path], files: SetFlags, *, needs_truth: bool) -> tuple[Dataset, list[Images]]:
    """Find the cases of all sets, and count the images in each folder of images."""
    from segtrust.workflows import FIRST, check_truth, join_sets

    folders, truth, masks, image_dirs, members = (
        _folders_by_set(getattr(files, name), name)
        for name in ("ood", "ood_truth", "ood_mask_dir", "ood_image_dir", "ood_member")
    )
    unknown = sorted({*truth, *masks, *image_dirs, *members} - {*folders})
    if unknown:
        raise ParameterError(f"ood-truth: expected the name of a set given by --ood, got {unknown[0]!r}.")

    def find(maps: Sequence[Path], flags: SetFlags, option: str) -> Dataset:
        dataset = flags.find(maps, needs_truth=needs_truth or None)
        if needs_truth:
            check_truth(dataset, ", ".join(map(str, maps)), option)
        return dataset

    others = {}
    for name, maps in folders.items():
        flags = replace(
            files,
            pattern=_single(files.pattern),
            mask_pattern=_single(files.mask_pattern),
            image_pattern=_single(files.image_pattern),
            truth_pattern=_single(files.truth_pattern),
            truth=truth.get(name),
            mask_dir=masks.get(name),
            image_dir=image_dirs.get(name),
            member=members.get(name),
        )
        own = " (--truth is for the first set only)" if files.truth else ""
        others[name] = find([Path(folder) for folder in maps], flags, f"--ood-truth {name}=DIR{own}")
    joined = join_sets(find(paths, files, "--truth DIR"), others, needs_truth=needs_truth)
    images = [
        found
        for name, dirs in {FIRST: files.image_dir or [], **image_dirs}.items()
        for found in images_in(dirs, [case for case in joined.cases if case.set == name])
    ]
    return joined, images


def _single(patterns: list[str] | None) -> list[str] | None:
    """Return a pattern that is for all maps; several are for the folders of the first set."""
    return patterns if patterns is not None and len(patterns) == 1 else None


def _folders_by_set(texts: Sequence[str] | None, name: str) -> dict[str, list[str]]:
    """Return the folders of each set, in their order, given as NAME=DIR."""
    from segtrust.workflows import FIRST

    folders: dict[str, list[str]] = {}
    for text in texts or ():
        key, sign, path = text.partition("=")
        if not (key and sign and path) or key == FIRST:
            raise ParameterError(
                f"{name.replace('_', '-')}: expected NAME=DIR, with a name other than {FIRST}, got {key!r}."
            )
        folders.setdefault(key, []).append(path)
    return folders
