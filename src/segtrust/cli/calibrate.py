"""``segtrust calibrate``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import share_of, with_options
from segtrust.cli.output import counted, print_next

if TYPE_CHECKING:
    from segtrust.selective import Certificate
    from segtrust.workflows import CalibrationResult

__all__ = [
    "CALIBRATE_EPILOG",
    "CalibrationFlags",
    "TargetFlags",
    "calibrate",
    "calibration_values",
    "print_calibration",
]

CALIBRATE_EPILOG = (
    "Examples:\n\n  segtrust calibrate evaluation/ -o policy.json --target-risk 0.1 --fraction 50%\n\n"
    "  segtrust calibrate scores.csv -o policy.json --target-risk 0.05 --below-dice 0.8 --patients\n\n"
    "Exit codes: 0 certified, 1 not certifiable with these cases (it says how many are needed), 2 an error."
)


def _share(help: str, **more: Any) -> Any:
    return typer.Option(parser=share_of, metavar="SHARE", help=help, **more)


@dataclass
class TargetFlags:
    """What is to be guaranteed."""

    target_risk: Annotated[float, _share("Limit on the mean loss of the accepted cases: 0.1 or 10%.")]
    below_dice: Annotated[
        float | None, _share("Limit instead the share of accepted cases whose Dice is below this.")
    ] = None
    delta: Annotated[float, _share("Probability that the guarantee does not hold.")] = 0.05
    start_coverage: Annotated[
        float, _share("Where the search begins, fixed before a loss is seen; lower for hard targets.")
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
    fraction: Annotated[
        float | None,
        _share("Calibrate with this share of the cases, drawn at random; the others are kept for a check."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Random seed of --fraction.")] = 0


@with_options
def calibrate(
    scores: Annotated[
        Path, typer.Argument(help="A score table with ground truth, or the folder of `segtrust evaluate`.")
    ],
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
        if result.policy is not None:
            model = ["--predictor", what.predictor] if what.predictor else []
            check = result.rest_path
            maps, folder = ("new-maps/", "triage") if check is None else (check, "check")
            print_next("triage", maps, "--policy", output, "-o", folder, *model)
    if result.policy is None:
        raise typer.Exit(1)


def print_calibration(result: CalibrationResult, output: Path) -> None:
    """Print what is guaranteed and how many cases were tested; or why nothing is, and what would be."""
    for warning in result.warnings:
        typer.secho(warning, err=True, fg=typer.colors.YELLOW)
    for name, certificate in result.certificates.items():
        where = f"{name}: " if len(result.certificates) > 1 else ""
        if tested := _describe_tested(certificate, result.cases.get(name, certificate.n)):
            typer.echo(f"{where}{tested}")
    if result.policy is not None:
        typer.echo(f"{result.policy}\n\nThe policy is in {output}.")
        if result.rest is not None:
            cases = len({row["case"] for row in result.rest.rows})
            typer.echo(f"{counted(cases, 'case')} that were not used: {result.rest_path}")
        return
    for name, certificate in result.certificates.items():
        if not certificate.certified:
            typer.secho(f"{name}: {certificate}" if name else str(certificate), err=True)
            targets = result.within_reach.get(name, ())
            if targets:
                cases = result.cases.get(name, certificate.n)
                typer.secho(f"With a chance of 90 %, {cases} new cases like these would certify:", err=True)
            for target in targets:
                below = "" if target.below_dice is None else f" --below-dice {target.below_dice:g}"
                typer.secho(f"  {target} (--target-risk {target.risk:g}{below})", err=True)
    typer.secho("No policy was written.", err=True)


def _describe_tested(certificate: Certificate, cases: int) -> str:
    """Return on how many of the cases a threshold was tested, if not on all, and why."""
    if certificate.n >= cases:
        return ""
    copies = certificate.evidence.copies
    reasons = [f"{copies} are copies"] if copies else []
    if others := cases - certificate.n - copies:
        reasons.append(f"{others} were set aside for candidate thresholds, or have no loss")
    return f"Tested on {certificate.n} of {cases} cases: {', '.join(reasons)}."


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
            "of": result.cases.get(name, certificate.n),
            "within_reach": [asdict(target) for target in result.within_reach.get(name, ())],
            "text": text,
        }
    return values
