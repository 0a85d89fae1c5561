"""``segtrust calibrate`` and ``segtrust triage``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import progress_bar
from segtrust.cli.jobs import HowFlags, Plan, plan_of
from segtrust.cli.judging import FIRST
from segtrust.cli.options import CaseFlags, ReadFlags, RunFlags, with_options
from segtrust.cli.pipes import paths_of
from segtrust.cli.promising import PromiseFlags, certify_rows, tell_certified
from segtrust.cli.scoring import table_run
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
    tell_unversioned,
    warnings_of,
)
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import Policies, ScoreTable, Triage
    from segtrust.io import Dataset, Failure, ScoreRow, Table

__all__ = [
    "CALIBRATE_EPILOG",
    "TRIAGE_EPILOG",
    "TriageFlags",
    "calibrate",
    "finish_triage",
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
class RowFlags:
    """Which rows are learned from."""

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
    promise: PromiseFlags,
    rows: RowFlags,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Certify an acceptance threshold on cases with known loss, and write the policy."""
    chosen = _chosen_rows(scores, rows)
    found = certify_rows(chosen, scores, promise, output, reference=rows.reference)
    tell_unversioned(chosen)
    if as_json:
        typer.echo(json.dumps(found.values))
    else:
        tell_certified(found, output)
    if not found.certified:
        raise typer.Exit(1)


def _chosen_rows(path: Path, asked: RowFlags) -> Table:
    from segtrust.engine import PART, check_details
    from segtrust.io import read_table

    table = read_table(path)
    check_details(table)
    if PART in table.about:
        raise ParameterError(f"{path}: expected a whole run, got a part of one: segtrust merge.")
    chosen = asked.chosen_set if asked.chosen_set is not None else _in_distribution(table)
    wanted = {"set": chosen, "split": asked.split}
    splits = sorted({row.get("split") or "" for row in table.rows})
    if asked.split is None and len(splits) > 1:
        raise ParameterError(
            f"{path}: expected cases of one split, got {', '.join(map(repr, splits))}. Those that a model "
            "was trained on promise nothing: say which by --split."
        )
    rows = table.rows
    for column, value in wanted.items():
        if value is not None:
            rows = tuple(row for row in rows if row.get(column, "") == value)
    if not rows:
        raise ParameterError(f"{path}: expected rows with {wanted}, got none.")
    return replace(table, rows=rows)


def _in_distribution(table: Table) -> str | None:
    """Give the set in distribution, where a table tells sets apart: of another nothing is to be promised."""
    sets = list(dict.fromkeys(row.get("set") or "" for row in table.rows))
    if not any(sets):
        return None
    if FIRST not in sets:
        listed = ", ".join(sets)
        raise ParameterError(
            f"{table.source}: expected cases in distribution (set {FIRST}), got only {listed}. Say which set "
            "is meant: --set."
        )
    return FIRST


@dataclass
class TriageFlags:
    """How decisions are made."""

    policy: Annotated[Path, typer.Option(help="The policy, as `segtrust calibrate` writes it.")]
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; the promise holds for the policy's own.")
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
    found = files.find(paths_of(predictions))
    triage_cases(found, output, how, read, run, images_in(files.image_dir, found.cases))


def triage_cases(
    found: Dataset,
    output: Path,
    how: TriageFlags,
    read: ReadFlags,
    run: RunFlags,
    images: Sequence[Images] = (),
) -> None:
    """Score cases, decide on them, and tell what came of it."""
    from segtrust.engine import score_cases

    flags = HowFlags(estimators="", policy=how.policy, predictor=how.predictor)
    plan = plan_of(flags, read, found.cases)
    with progress_bar("cases", len(found.cases)) as advance:
        table = replace(table_run(output / "scores.csv", run, advance), details=how.details)
        print_dataset(found, images, quiet=run.as_json)
        scored = score_cases(found, replace(plan.job, with_truth=False), table, finish=plan.decided)
    finish_triage(scored, plan, output, how, run, images)


def finish_triage(
    scored: ScoreTable,
    plan: Plan,
    output: Path,
    how: TriageFlags,
    run: RunFlags,
    images: Sequence[Images] = (),
) -> None:
    """Write the lists of cases that a plan has decided on, tell of them, and leave with the exit code."""
    from segtrust.engine import failures_beside, write_lists

    plan = plan.after(scored.rows)
    decided = _triage(scored, plan.policies, how)
    write_lists(output, scored.rows, decided.decisions, link=how.link, failures=scored.failures)
    unjudged = _without_policy(scored.rows)
    listed = failures_beside(output / "scores.csv", None)
    if run.as_json:
        told = [*warnings_of(scored, images), *unjudged]
        more = {"output": str(output), "warnings": told, **image_values(images)}
        typer.echo(json.dumps(_as_values(decided, plan.policies, scored.failures) | more))
    else:
        print_failures(scored.failures, listed)
        print_questions(scored)
        _tell(decided, plan.policies, output)
        for warning in unjudged:
            typer.secho(warning, err=True)
    exit_if_failed(scored.failures, nothing=not scored.rows)
    if decided.alarm:
        raise typer.Exit(1)


def _without_policy(rows: Sequence[ScoreRow]) -> list[str]:
    """Say why cases are deferred that have structures nobody has calibrated for."""
    names = dict.fromkeys(row["structure"] for row in rows if not row["decision"])
    if not names:
        return []
    listed = ", ".join(names)
    return [
        f"The policy is not for {listed}: cases that have such a structure are deferred, whatever it says of "
        "others. Choose structures by --region, or calibrate for each."
    ]


def _triage(scored: ScoreTable, policies: Policies, how: TriageFlags) -> Triage:
    from segtrust.engine import Triage, check_drift, decisions_of_cases, read_reference, reference_path

    reference = read_reference(reference_path(how.policy), policies)
    failed = [failure.case for failure in scored.failures]
    drift = check_drift(scored.rows, policies, reference, alpha=how.alpha)
    beside = "the calibration confidences are not beside the policy"
    why = "it takes at least two new cases" if reference else beside
    return Triage(decisions_of_cases(scored.rows, failed), drift, "" if drift else why)


def _counts(decided: Triage) -> dict[str, int]:
    from segtrust.policy import Decision

    return {str(decision): decided.count(decision) for decision in Decision}


def _as_values(decided: Triage, policies: Policies, failures: Sequence[Failure]) -> dict[str, Any]:
    """Give for machines what `_tell` tells people."""
    return {
        "counts": _counts(decided),
        **as_values(policies),
        "drift": {name: test.to_dict() for name, test in decided.drift.items()},
        "alarm": decided.alarm,
        "failures": [each.row() for each in failures],
    }


def _tell(decided: Triage, policies: Policies, output: Path) -> None:
    tell_policies(policies)
    counted = ", ".join(f"{count} {name}" for name, count in _counts(decided).items())
    typer.echo(f"{counted}. Lists: {output}")
    for name, test in decided.drift.items():
        alarm = " DRIFT ALARM: what the policy says no longer holds for such cases." if test.alarm else ""
        typer.echo(f"{f'{name}: ' if name else ''}{test.explain()}{alarm}")
    if not decided.drift:
        typer.echo(f"No drift check: {decided.no_drift_test}.")
