"""``segtrust calibrate`` and ``segtrust triage``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import CaseFlags, ReadFlags, RunFlags, changed_options, with_options
from segtrust.cli.pipes import paths_of
from segtrust.cli.telling import (
    Images,
    as_values,
    exit_if_failed,
    image_values,
    images_in,
    print_dataset,
    print_failures,
    print_questions,
    tell_policies,
    warnings_of,
)

if TYPE_CHECKING:
    from segtrust.engine import Triage
    from segtrust.io import Dataset, ScoreRow
    from segtrust.workflows import CalibrationResult

__all__ = [
    "CALIBRATE_EPILOG",
    "TRIAGE_EPILOG",
    "CalibrationFlags",
    "TargetFlags",
    "TriageFlags",
    "calibrate",
    "calibration_values",
    "print_calibration",
    "print_triage",
    "triage",
    "triage_cases",
]

CALIBRATE_EPILOG = (
    "Examples:\n\n  segtrust calibrate evaluation/scores.parquet -o policy.json --target-risk 0.1\n\n"
    "  segtrust calibrate scores.csv -o policy.json --target-risk 0.05 --below-dice 0.8 --patients\n\n"
    "Exit codes: 0 certified, 1 not certifiable with these cases (it says how many are needed), 2 an error."
)
TRIAGE_EPILOG = (
    "Examples:\n\n  segtrust triage tonight/ --policy policy.json -o triage\n\n"
    "  segtrust triage tonight/ --policy policy.json -o triage --link --predictor 'fold 0'\n\n"
    "Exit codes: 0 all well, 1 some cases failed (they are deferred) or the drift alarm rings, 2 an error."
)


@dataclass
class TargetFlags:
    """What is to be guaranteed."""

    target_risk: Annotated[float, typer.Option(help="Limit on the mean loss of the accepted cases.")]
    below_dice: Annotated[
        float | None,
        typer.Option(help="Limit instead the share of accepted cases whose Dice is below this."),
    ] = None
    delta: Annotated[float, typer.Option(help="Probability that the guarantee does not hold.")] = 0.05
    start_coverage: Annotated[
        float,
        typer.Option(help="Where the search begins, fixed before a loss is seen; lower for hard targets."),
    ] = 0.5
    estimator: Annotated[str, typer.Option(help="Column of the confidence.")] = "sdc"


@dataclass
class CalibrationFlags(TargetFlags):
    """What is to be guaranteed, and for which rows."""

    loss: Annotated[
        str | None,
        typer.Option(help="Loss to limit: dice, iou, f2 or hamming; by default that of the table."),
    ] = None
    loss_column: Annotated[str, typer.Option(help="Column of the loss; else one minus 'dice'.")] = "loss"
    patients: Annotated[
        bool, typer.Option("--patients", help="The column 'group' is the patient, who is the unit.")
    ] = False
    predictor: Annotated[str, typer.Option(help="Which model made the maps, in words.")] = ""
    drop_unjudged: Annotated[
        bool,
        typer.Option(
            "--drop-unjudged",
            help="Leave out rows without a loss; the guarantee is about cases that have one.",
        ),
    ] = False
    chosen_set: Annotated[
        str | None, typer.Option("--set", help="Rows of this set; those in distribution unless given.")
    ] = None
    split: Annotated[str | None, typer.Option(help="Rows of this split only.")] = None
    reference: Annotated[
        Path | None, typer.Option(help="Scores of other, unlabelled cases, for candidate thresholds.")
    ] = None


@with_options
def calibrate(
    scores: Annotated[Path, typer.Argument(help="A table with losses, as `segtrust evaluate` writes it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy, a JSON file.")],
    what: CalibrationFlags,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Certify an acceptance threshold on cases with known loss, and write the policy."""
    from segtrust.workflows import certify_table

    options = asdict(what)
    result = certify_table(scores, output=output, model=options.pop("predictor"), **options)
    if as_json:
        for warning in result.warnings:
            typer.secho(warning, err=True)
        typer.echo(json.dumps(calibration_values(result)))
    else:
        print_calibration(result, output)
    if result.policy is None:
        raise typer.Exit(1)


def print_calibration(result: CalibrationResult, output: Path) -> None:
    """Print what is guaranteed, or why nothing is."""
    for warning in result.warnings:
        typer.secho(warning, err=True)
    if result.policy is not None:
        typer.echo(f"{result.policy}\n\nThe policy is in {output}.")
        return
    for name, certificate in result.certificates.items():
        if not certificate.certified:
            typer.secho(f"{name}: {certificate}" if name else str(certificate), err=True)
    typer.secho("No policy was written.", err=True)


def calibration_values(result: CalibrationResult) -> dict[str, Any]:
    """Return for machines what `print_calibration` prints, by structure."""
    values = {}
    for name, certificate in result.certificates.items():
        doubt = result.doubt or ("no confidence is left" if certificate.total_delta >= 1.0 else "")
        text = str(certificate)
        if doubt and certificate.certified:
            text = f"Estimated, and nothing is promised ({doubt}). Otherwise: {text}"
        status = "estimated" if doubt else "certified"
        values[name] = {
            "certified": certificate.certified and not doubt,
            "standing": status if certificate.certified else None,
            "doubt": doubt,
            "threshold": certificate.threshold,
            "coverage": certificate.coverage,
            "probability": 1.0 - certificate.total_delta,
            "looks": certificate.evidence.earlier_looks + 1,
            "cases": certificate.n,
            "text": text,
        }
    return values


@dataclass
class TriageFlags:
    """How decisions are made."""

    policy: Annotated[Path, typer.Option(help="The policy, as `segtrust calibrate` writes it.")]
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; the guarantee holds for the policy's own.")
    ] = ""
    link: Annotated[
        bool, typer.Option("--link", help="Fill folders accept/ and defer/ with links to the maps.")
    ] = False
    alpha: Annotated[float, typer.Option(help="Chance of a false drift alarm.")] = 0.05
    details: Annotated[
        bool, typer.Option("--details", help="Show internal columns in scores.csv: k, mu, lam, s, checksums.")
    ] = False


@with_options
def triage(
    predictions: Annotated[
        list[Path],
        typer.Argument(help="New maps, as for `segtrust score`; - reads their names from standard input."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the lists.")],
    how: TriageFlags,
    files: CaseFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Decide on new cases by a policy: lists of accepted and deferred ones, and whether they still fit it.

    A case that cannot be read is deferred, and listed in failures.csv.
    """
    run.get_ready()
    dataset = files.find(paths_of(predictions))
    triage_cases(dataset, output, how, read, run, images_in(files.image_dir, dataset.cases))


def triage_cases(
    dataset: Dataset,
    output: Path,
    how: TriageFlags,
    read: ReadFlags,
    run: RunFlags,
    images: Sequence[Images] = (),
) -> None:
    """Decide on cases, and print the result."""
    from segtrust.workflows import triage as decide

    options: Any = {**changed_options(read), **run.options(), "details": how.details}
    options["on_start"] = lambda: print_dataset(dataset, images, quiet=run.as_json)
    result = decide(
        dataset, how.policy, output=output, model=how.predictor, link=how.link, alpha=how.alpha, **options
    )
    print_triage(result, output, images, as_json=run.as_json)


def print_triage(
    result: Triage, output: Path, images: Sequence[Images] = (), *, as_json: bool = False
) -> None:
    """Print decisions, guarantee and drift, and leave with the exit code."""
    from segtrust.engine import failures_beside
    from segtrust.policy import Decision

    table = result.table
    counts = {str(decision): result.count(decision) for decision in Decision}
    unjudged = _structures_without_policy(table.rows)
    if as_json:
        values = {
            "counts": counts,
            **as_values(table.policies),
            "drift": {name: test.to_dict() for name, test in result.drift.items()},
            "alarm": result.alarm,
            "failures": [each.row() for each in table.failures],
            "output": str(output),
            "warnings": [*warnings_of(table, images), *unjudged],
            **image_values(images),
        }
        typer.echo(json.dumps(values))
    else:
        print_failures(table.failures, failures_beside(output / "scores.csv", None))
        print_questions(table)
        tell_policies(table.policies)
        typer.echo(f"{', '.join(f'{count} {name}' for name, count in counts.items())}. Lists: {output}")
        for name, test in result.drift.items():
            alarm = " DRIFT ALARM: what the policy says no longer holds for such cases." if test.alarm else ""
            typer.echo(f"{f'{name}: ' if name else ''}{test.explain()}{alarm}")
        if not result.drift:
            typer.echo(f"No drift check: {result.no_drift_test}.")
        for warning in unjudged:
            typer.secho(warning, err=True)
    exit_if_failed(table.failures, nothing=not table.rows)
    if result.alarm:
        raise typer.Exit(1)


def _structures_without_policy(rows: Sequence[ScoreRow]) -> list[str]:
    """Say why cases are deferred that have structures without a policy."""
    names = dict.fromkeys(row["structure"] for row in rows if not row["decision"])
    if not names:
        return []
    listed = ", ".join(names)
    return [
        f"The policy is not for {listed}: cases that have such a structure are deferred, whatever it says of "
        "others. Choose structures by --region, or calibrate for each."
    ]
