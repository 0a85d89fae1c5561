"""``segtrust evaluate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.judging import (
    FIRST,
    Judged,
    JudgeFlags,
    SetFlags,
    check_loss,
    estimators_in,
    find_sets,
    images_of_sets,
    judge_scores,
    refuse_unknown_loss,
    score_and_judge,
)
from segtrust.cli.options import ReadFlags, RunFlags, with_options
from segtrust.cli.telling import (
    Images,
    as_values,
    exit_if_failed,
    image_values,
    print_failures,
    print_questions,
    tell_policies,
    warnings_of,
)
from segtrust.cli.tuning import TuneFlags, told_tuning
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.evaluation import Evaluation
    from segtrust.io import ScoreRow

__all__ = ["EVALUATE_EPILOG", "EvaluateFlags", "evaluate"]

EVALUATE_EPILOG = (
    "Examples:\n\n  segtrust evaluate predictions/ --truth labelsTs/ -o evaluation\n\n"
    "  segtrust evaluate kvasir/ clinicdb/ -o polyp --ood etis=etis/ --drop-empty-truth --estimators all\n\n"
    "  segtrust evaluate kvasir/ -o tuned --drop-empty-truth --tune pla-tuned,aef,aef-sdc\n\n"
    "Exit codes: 0 all cases judged, 1 some failed (failures.csv tells why) or are too few to be ranked, "
    "2 nothing could be done."
)


@dataclass
class EvaluateFlags(JudgeFlags, TuneFlags):
    """How cases are scored and judged, and which estimators learn from them."""


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
    from segtrust.engine import failures_beside, read_scores, write_failures
    from segtrust.evaluation import rankable_sets
    from segtrust.io import Dataset, write_table
    from segtrust.report.evaluation import tables_for_people, write_evaluation
    from segtrust.report.examples import save_examples
    from segtrust.report.html.page import write_report
    from segtrust.report.runs import fresh_results, mark_running, open_run, write_run

    refuse_unknown_loss(how)
    if how.tune and how.loss is not None and check_loss(how.loss) != "dice":
        raise ParameterError(
            f"--tune: estimators learn from the Dice and are judged by it, got --loss {how.loss}. Leave out "
            "one of them."
        )
    run.get_ready()
    table = read_scores(predictions[0]) if len(predictions) == 1 else None
    before = None if table is None else judge_scores(table, how, files, read)
    open_run(output, command="evaluate")
    mark_running(output, command="evaluate")
    found = None if before is not None else find_sets(predictions, files, how)
    images = images_of_sets(files, found or Dataset())
    how.refuse_without_truth(found)
    judged = before or score_and_judge(found or Dataset(), output, how, read, run, images)
    if judged.table is not None:
        write_table(output / "scores.parquet", judged.table)
    failures_path = failures_beside(output / "scores.parquet", None)
    write_failures(failures_path, judged.scored.failures, "scores.parquet")
    sets = _by_set(judged.scored.rows)
    if not sets or (files.ood and FIRST not in sets):
        print_failures(judged.scored.failures, failures_path)
        exit_if_failed(judged.scored.failures, nothing=True)
        raise ParameterError(f"{predictions[0]}: expected cases to judge, got none.")
    evaluation = _evaluation(how, judged.scored.rows)
    files_of = judged.files_of(found)
    judged_sets, unranked = rankable_sets(sets, evaluation)
    summary = []
    with fresh_results(output):
        tables = write_evaluation(output, sets, evaluation)
        if files_of is not None:
            save_examples(judged_sets, files_of, output / "figures" / "examples")
            summary = how.draw_tuning(judged_sets, files_of, output, run)
        counts = {name: len(rows) for name, rows in sets.items()}
        parameters = {"sets": counts, "failed": len(judged.scored.failures), **_parameters(how, evaluation)}
        write_run(output, command="evaluate", parameters=parameters, seconds=judged.scored.seconds)
        write_report(output, policy=how.policy, predictor=how.predictor)
    if run.as_json:
        results = {**tables, "tuning": summary, "unranked": unranked, **image_values(images)}
        typer.echo(json.dumps(_values(judged, results, images) | {"output": str(output)}))
    else:
        print_failures(judged.scored.failures, failures_path)
        print_questions(judged.scored)
        _tell(judged, tables_for_people(tables) | told_tuning(summary), output)
        _tell_unranked(unranked)
    exit_if_failed(judged.scored.failures)
    if unranked:
        raise typer.Exit(1)


def _by_set(rows: Sequence[ScoreRow]) -> dict[str, list[ScoreRow]]:
    """Sort rows by their set; that in distribution, whose risk the others are held against, is the first."""
    found: dict[str, list[ScoreRow]] = {}
    for row in sorted(rows, key=lambda row: row["set"] != FIRST):
        found.setdefault(row["set"], []).append(row)
    return found


def _evaluation(how: JudgeFlags, rows: Sequence[ScoreRow]) -> Evaluation:
    from segtrust.evaluation import Evaluation
    from segtrust.selective import Bootstrap

    unknown = [row["case"] for row in rows if row.get("truth_ratio") is None]
    if how.drop_empty_truth and unknown:
        raise ParameterError(
            f"drop-empty-truth: expected the truths, which tell the empty ones, got none of {unknown[0]}. "
            "Give them (--truth); losses may come from elsewhere all the same."
        )
    return Evaluation(
        tuple(estimators_in(how, list(rows[0]))),
        drop_empty=how.drop_empty_truth,
        by_patient=how.patients,
        bootstrap=Bootstrap(resamples=how.resamples),
    )


def _parameters(how: JudgeFlags, evaluation: Evaluation) -> dict[str, Any]:
    """Give how cases were judged, so that a report of the folder can judge them likewise."""
    return {
        "estimators": list(evaluation.estimators),
        "drop_empty_truth": how.drop_empty_truth,
        "patients": how.patients,
        "resamples": how.resamples,
        "seed": evaluation.bootstrap.seed,
        "arguments": sys.argv[1:],
    }


def _values(judged: Judged, results: Mapping[str, Any], images: Sequence[Images]) -> dict[str, Any]:
    standing = {} if judged.plan is None else as_values(judged.plan.policies)
    failed = [each.row() for each in judged.scored.failures]
    warnings = warnings_of(judged.scored, images)
    return {**results, **standing, "failed": failed, "warnings": warnings}


def _tell_unranked(unranked: Sequence[str]) -> None:
    """Say what is in the report, but neither in a table nor in a curve."""
    for text in unranked:
        typer.secho(f"Not ranked: {text}", err=True)


def _tell(judged: Judged, shown: Mapping[str, str], output: Path) -> None:
    if judged.plan is not None:
        tell_policies(judged.plan.policies)
    for name in ("sets", "areas", "coverages", "tuning"):
        if name in shown:
            typer.echo(f"{shown[name]}\n")
    typer.echo(f"Tables, figures and report are in {output.resolve()}.")
    typer.echo(f"To be read in a browser: {output.resolve() / 'report.html'}")
