"""``segtrust score`` and ``segtrust merge``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import PartFlags, ReadFlags, TruthFlags, changed_options, with_options
from segtrust.cli.output import (
    Images,
    counted,
    exit_if_failed,
    image_values,
    images_in,
    print_dataset,
    print_failures,
    print_next,
    print_questions,
    print_table,
    warnings_of,
)
from segtrust.cli.pipes import is_pipe, paths_of, table_place
from segtrust.cli.triage import exit_after, print_triage_text, triage_values
from segtrust.cli.watch import WatchFlags, watch_until_stopped
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import ScoreTable
    from segtrust.io import ScoreRow

__all__ = ["MERGE_EPILOG", "SCORE_EPILOG", "merge", "print_scores", "score"]

SCORE_EPILOG = (
    "Examples:\n\n  segtrust score predictions/ -o scores.parquet\n\n"
    "  segtrust score predictions/ -o scores.csv --region each --estimators sdc,idc --workers 4\n\n"
    "  find . -name '*.npz' | segtrust score - -o - | sort -t, -k6 -g | head\n\n"
    "  segtrust score predictions/ -o scores.csv --decode dice-optimal --write-masks masks/\n\n"
    "  segtrust score --watch inbox/ -o scores.csv --policy policy.json   (until Ctrl-C)\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (see failures.csv), 2 nothing could be done, 3 drift "
    "detected (with --policy)."
)
MERGE_EPILOG = (
    "Examples:\n\n  segtrust merge part-0.parquet part-1.parquet -o scores.parquet\n\n"
    "  segtrust merge part-*.csv -o scores.csv   (after segtrust score … -o part-$K.csv --num-parts 8 "
    "--part-id $K for each K from 0 to 7)\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (failures.csv tells why), 2 the parts are not one run."
)


_SHOWN = 10
"""Cases that are shown."""
_BLOCKS, _BARS = " ▁▂▃▄▅▆▇█", 20


@dataclass
class ScoreFlags(WatchFlags):
    """How cases are scored, whether folders are watched, and whether the masks are kept."""

    write_masks: Annotated[
        Path | None,
        typer.Option(help="Write the mask of each map that was scored into this folder, named by its case."),
    ] = None


@with_options
def score(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            help="Maps, folders of maps, nnU-Net's output, or manifests (CSV, Parquet); - reads their names "
            "from standard input."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The table: .parquet, .csv or .json; - prints it as CSV.")
    ],
    how: ScoreFlags,
    files: TruthFlags,
    read: ReadFlags,
    run: PartFlags,
) -> None:
    """Score each case, and write one row per case.

    Reads nnU-Net's probabilities (v1, v2, TotalSegmentator), NumPy, NIfTI, MHA, NRRD, PNG, TIFF, HDF5, Zarr
    and DICOM-SEG. A case that cannot be read never stops the others. Rerun the same command to resume a run
    that was stopped.
    """
    run.get_ready()
    from segtrust.engine import Triage
    from segtrust.workflows import score_cases

    if is_pipe(output) and run.as_json:
        raise ParameterError("output: expected a file with --json, which is printed itself, got '-'.")
    if not how.watch and (how.idle is not None or how.settle != ScoreFlags.settle):
        raise ParameterError("settle, idle: expected with --watch only.")
    paths = paths_of(predictions)
    if output.resolve() in {path.resolve() for path in paths}:
        raise ParameterError(f"{output}: expected another file than what is read, or that would be lost.")
    options: Any = {**how.score_options(), **changed_options(read), **run.options()}
    if how.watch:
        table = watch_until_stopped(paths, output, how, files, run, options)
        print_scores(table, policy=how.policy, model=how.predictor, is_watch=True, as_json=run.as_json)
        return
    dataset = files.find(paths, needs_truth=None)
    images = images_in(files.image_dir, dataset.cases)
    options["on_start"] = lambda: print_dataset(dataset, images, quiet=run.as_json, err=is_pipe(output))
    with table_place(output) as place:
        table = score_cases(
            dataset,
            how.estimators,
            output=place,
            policy=how.policy,
            model=how.predictor,
            write_masks_to=how.write_masks,
            **options,
        )
        if is_pipe(output):  # the table itself is printed
            print_failures(table.failures, None)
            result = Triage.of(table, model=how.predictor) if table.policies else None
            print_questions(table if result is None else result.table)
            if result is not None:
                for text in (result.drift_text, result.counts_text, result.guarantee_text):
                    typer.secho(text, err=True)
                exit_after(result)
            exit_if_failed(table.failures, nothing=not table.rows)
        else:
            print_scores(
                table,
                policy=how.policy,
                model=how.predictor,
                part=run.part_id,
                as_json=run.as_json,
                images=images,
            )


def print_scores(
    table: ScoreTable,
    *,
    policy: Path | None = None,
    model: str = "",
    is_watch: bool = False,
    part: int | None = None,
    as_json: bool = False,
    images: Sequence[Images] = (),
) -> None:
    """Print what came of scoring cases, and leave with the exit code.

    With a policy, decisions are printed as `segtrust triage` prints them.
    """
    from segtrust.engine import Triage, failures_beside

    result = None
    if table.policies:
        result = Triage.of(table, alpha=None if is_watch else 0.05, model=model)
        table = result.table
    if as_json:
        values = {
            "cases": table.cases,
            "failed": len(table.failures),
            "table": table.source,
            "seconds": table.seconds,
            "failures": [each.row() for each in table.failures],
            "warnings": [*warnings_of(table, images), *table.warnings],
            "least_confident": [_brief(row, table.estimators) for row in table.least_confident().rows],
            **image_values(images),
            **(triage_values(result) if result is not None else {}),
        }
        typer.echo(json.dumps(values))
    else:
        print_failures(table.failures, failures_beside(Path(table.source), part))
        print_questions(table)
        done = f"{counted(table.cases, 'case')} scored in {table.seconds:.1f} s"
        typer.echo(f"{done}, {len(table.failures)} failed. Table: {table.source}")
        for warning in table.warnings:
            typer.secho(warning, err=True)
        if result is not None:
            print_triage_text(result)
        elif table.rows and part is None:
            _print_confidences(table)
        if table.rows and part is None and (result is None or result.deferred.rows):
            _print_next(table, policy)
    if result is not None:
        exit_after(result)
    exit_if_failed(table.failures, nothing=not table.rows)


def _brief(row: ScoreRow, estimators: Sequence[str]) -> ScoreRow:
    """Return what identifies a row, its confidences and its Dice."""
    names = ("case", "structure", "set", *estimators, "dice")
    return {name: row[name] for name in names if name in row}


def _print_confidences(table: ScoreTable) -> None:
    """Print the distribution of the first confidence, by structure, and the least confident cases."""
    from segtrust.confidence import label_of

    name = next(iter(table.estimators), "sdc")
    structures = list(dict.fromkeys(row["structure"] for row in table.rows))
    for structure in structures[:_SHOWN]:
        rows = [row for row in table.rows if row["structure"] == structure]
        values = sorted(row[name] for row in rows if row.get(name) is not None)
        if len(values) > 1:
            where = f" in {structure}" if len(structures) > 1 else ""
            ends = f"{values[0]:.3f} {_histogram(values)} {values[-1]:.3f}"
            typer.echo(f"Confidence ({label_of(name)}{where}): {ends}, median {median(values):.3f}")
    shown = table.least_confident(_SHOWN, name).rows
    columns = {"case": [f"{row['case']}{' (empty mask)' if row.get('k') == 0 else ''}" for row in shown]}
    for each in ("structure", "set"):
        if len({row.get(each) for row in table.rows}) > 1:
            columns[each] = [str(row.get(each) or "") for row in shown]
    for each in table.estimators:
        cells = [_number(row.get(each)) for row in shown]
        if cells not in columns.values():  # the IDC often equals the SDC to these digits
            columns[label_of(each)] = cells
    if any(row.get("dice") is not None for row in shown):
        columns["Dice"] = [_number(row.get("dice")) for row in shown]
    title = "Least confident cases" if len(table.rows) > len(shown) else "Cases, least confident first"
    print_table(title, list(columns), zip(*columns.values(), strict=True))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _histogram(values: Sequence[float]) -> str:
    """Return the distribution of sorted values in one line.

    Examples
    --------
    >>> _histogram([0.0, 0.5, 1.0, 1.0])
    '▄         ▄        █'
    """
    low, high = values[0], values[-1]
    counts = [0] * _BARS
    for value in values:
        counts[min(_BARS - 1, int(_BARS * (value - low) / (high - low))) if high > low else 0] += 1
    highest = max(counts)
    return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // highest)] for count in counts)


def _print_next(table: ScoreTable, policy: Path | None) -> None:
    """Print the next command: review what was decided, evaluate if there is ground truth, or see a report."""
    if policy is not None:
        print_next("review", table.source, "--policy", policy)
    elif any(row.get("dice") is not None for row in table.rows):
        print_next("evaluate", table.source, "-o", "evaluation")
    else:
        print_next("report", table.source)


def merge(
    tables: Annotated[list[Path], typer.Argument(help="Tables of the parts of one run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table: .parquet, .csv or .json.")],
    details: Annotated[
        bool,
        typer.Option("--details", help="Show internal columns in CSV: k, mu, lam, s, checksums, seconds."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Merge the tables and failure lists of a job array."""
    from segtrust.engine import failures_beside, merge_tables

    merged, failures = merge_tables(tables, output, command=sys.argv[1:], details=details)
    if as_json:
        about = {"rows": len(merged.rows), "failed": len(failures), "table": str(output)}
        typer.echo(json.dumps(about | {"failures": [each.row() for each in failures]}))
    else:
        print_failures(failures, failures_beside(output, None))
        typer.echo(
            f"{len(merged.rows)} rows of {len(tables)} tables, {len(failures)} cases failed. Table: {output}"
        )
    exit_if_failed(failures, nothing=not merged.rows)
