"""``segtrust triage``: decide on new cases, and say whether the guarantee applies to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import CaseFlags, ReadFlags, RunFlags, changed_options, share_of, with_options
from segtrust.cli.output import (
    DRIFT,
    Images,
    digits_between,
    exit_if_failed,
    image_values,
    images_in,
    policy_values,
    print_dataset,
    print_failures,
    print_next,
    print_questions,
    print_table,
    warnings_of,
)
from segtrust.cli.pipes import paths_of

if TYPE_CHECKING:
    from segtrust.engine import ScoreTable, Triage
    from segtrust.io import Dataset, ScoreRow

__all__ = [
    "TRIAGE_EPILOG",
    "TriageFlags",
    "exit_after",
    "print_triage",
    "print_triage_text",
    "triage",
    "triage_cases",
    "triage_values",
]

TRIAGE_EPILOG = (
    "Examples:\n\n  segtrust triage tonight/ --policy policy.json -o triage\n\n"
    "  segtrust triage tonight/ --policy policy.json -o triage --link --predictor 'fold 0'\n\n"
    "Exit codes: 0 success, 1 some cases failed (they are deferred), 2 an error, 3 drift detected."
)
_URGENT = 10
"""Deferred cases that are shown."""


@dataclass
class TriageFlags:
    """How decisions are made."""

    policy: Annotated[Path, typer.Option(help="The policy, as `segtrust calibrate` writes it.")]
    predictor: Annotated[
        str, typer.Option(help="Model that made the maps; the guarantee holds for the model of the policy.")
    ] = ""
    link: Annotated[
        bool, typer.Option("--link", help="Fill folders accept/ and defer/ with links to the maps.")
    ] = False
    alpha: Annotated[
        float,
        typer.Option(parser=share_of, metavar="SHARE", help="Probability of a false drift alarm."),
    ] = 0.05
    details: Annotated[
        bool, typer.Option("--details", help="Show internal columns in scores.csv: k, mu, lam, s, checksums.")
    ] = False


@with_options
def triage(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            help="New maps, as for `segtrust score`, or their score table; - reads names from standard input."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the lists.")],
    how: TriageFlags,
    files: CaseFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Decide on new cases by a policy: lists of accepted and deferred cases, and whether they still fit it.

    A case that cannot be read is deferred, and listed in failures.csv.
    """
    run.get_ready()
    from segtrust.workflows import find_score_table, reject_map_options

    paths = paths_of(predictions)
    table = find_score_table(paths)
    if table is not None:
        reject_map_options(changed_options(files))
        triage_cases(table, output, how, read, run)
        return
    dataset = files.find(paths)
    triage_cases(dataset, output, how, read, run, images_in(files.image_dir, dataset.cases))


def triage_cases(
    data: Dataset | ScoreTable,
    output: Path,
    how: TriageFlags,
    read: ReadFlags,
    run: RunFlags,
    images: Sequence[Images] = (),
) -> None:
    """Decide on cases, or on the rows of a score table, and print the result."""
    from segtrust.workflows import triage as decide

    options: Any = {**changed_options(read), **run.options(), "details": how.details}
    options["on_start"] = lambda: print_dataset(data, images, quiet=run.as_json)
    result = decide(
        data, how.policy, output=output, model=how.predictor, link=how.link, alpha=how.alpha, **options
    )
    print_triage(result, output, how.policy, images, as_json=run.as_json)


def print_triage(
    result: Triage, output: Path, policy: Path, images: Sequence[Images] = (), *, as_json: bool = False
) -> None:
    """Print drift, decisions and guarantee, and leave with the exit code."""
    from segtrust.engine import failures_beside

    table = result.table
    if as_json:
        values = {**triage_values(result), "output": str(output)}
        values["warnings"] = [*warnings_of(table, images), *_structures_without_policy(table.rows)]
        typer.echo(json.dumps({**values, **image_values(images)}))
    else:
        print_failures(table.failures, failures_beside(output / "scores.csv", None))
        print_questions(table)
        print_triage_text(result)
        typer.echo(f"Lists: {output / 'accept.csv'}, {output / 'defer.csv'}")
        if result.deferred.rows:
            print_next("review", output, "--policy", policy)
    exit_after(result)


def exit_after(result: Triage) -> None:
    """Exit with code 3 if there is drift, 2 if nothing was decided, 1 if some cases failed."""
    if result.alarm:
        raise typer.Exit(DRIFT)
    exit_if_failed(result.table.failures, nothing=not result.table.rows)


def triage_values(result: Triage) -> dict[str, Any]:
    """Return for machines what `print_triage_text` prints."""
    from segtrust.policy import Decision

    return {
        "counts": {str(decision): result.count(decision) for decision in Decision},
        **policy_values(result.table.policies),
        "guarantee": result.guarantee_text,
        "drift": {name: test.to_dict() for name, test in result.drift.items()},
        "alarm": result.alarm,
        "calibration_cases": list(result.calibration_cases),
        "failures": [each.row() for each in result.table.failures],
    }


def print_triage_text(result: Triage) -> None:
    """Print drift first, then the decisions, the guarantee, and the most urgent cases."""
    drift = typer.colors.RED if result.alarm else None if result.drift else typer.colors.YELLOW
    typer.secho(result.drift_text, fg=drift, bold=result.alarm)
    typer.secho(result.counts_text, bold=True)
    typer.secho(result.guarantee_text, fg=None if _applies(result) else typer.colors.YELLOW)
    for warning in _structures_without_policy(result.table.rows):
        typer.secho(warning, err=True, fg=typer.colors.YELLOW)
    _print_urgent(result)


def _applies(result: Triage) -> bool:
    statuses = {str(policy.status) for policy in result.table.policies.values()}
    return not result.alarm and statuses == {"certified"}


def _print_urgent(result: Triage) -> None:
    """Print the deferred cases with the lowest confidence, and why they are deferred."""
    from segtrust.confidence import label_of

    policies, rows = result.table.policies, result.deferred.rows
    rows = [row for row in rows if row["decision"] in ("", "defer")]  # not their accepted structures
    if not rows:
        return
    shown, cells = rows[:_URGENT], []
    margins = [row["margin"] for row in shown if row.get("margin") is not None]
    digits = digits_between(margins, 0.0)  # enough to tell each confidence from its threshold
    has_structures = len({row["structure"] for row in rows}) > 1
    for row in shown:
        policy = policies.get(row["structure"], policies.get(""))
        confidence = None if policy is None else row.get(policy.scoring.estimator)
        numbers = ["–", "–"]
        if policy is not None and confidence is not None:
            numbers = [f"{confidence:.{digits}f}", f"{policy.threshold:.{digits}f}"]
        structure = [row["structure"]] if has_structures else []
        cells.append([row["case"], *structure, *numbers, result.reason_of(row)])
    names = {label_of(policy.scoring.estimator) for policy in policies.values()}
    confidence = f"confidence ({names.pop()})" if len(names) == 1 else "confidence"
    heads = ["case", *(["structure"] if has_structures else []), confidence, "threshold", "reason"]
    more = f" of {len(rows)}" if len(rows) > len(shown) else ""
    print_table(f"Most urgent: {len(shown)}{more}", heads, cells)


def _structures_without_policy(rows: Sequence[ScoreRow]) -> list[str]:
    """Return why cases are deferred that have structures without a policy."""
    names = dict.fromkeys(row["structure"] for row in rows if not row["decision"])
    if not names:
        return []
    listed = ", ".join(names)
    return [
        f"The policy is not for {listed}: cases that have such a structure are deferred, whatever it says "
        "about others. Choose structures by --region, or calibrate for each."
    ]
