"""``segtrust score`` and ``segtrust merge``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import counted
from segtrust.cli.options import PartFlags, ReadFlags, TruthFlags, changed_options, with_options
from segtrust.cli.pipes import is_pipe, paths_of, table_place
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
from segtrust.cli.watching import WatchFlags, watch_until_stopped
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import ScoreTable

__all__ = ["MERGE_EPILOG", "SCORE_EPILOG", "merge", "print_scores", "score"]

SCORE_EPILOG = (
    "Examples:\n\n  segtrust score predictions/ -o scores.parquet\n\n"
    "  segtrust score predictions/ -o scores.csv --region each --estimators sdc,idc --workers 4\n\n"
    "  find . -name '*.npz' | segtrust score - -o - | sort -t, -k6 -g | head\n\n"
    "  segtrust score predictions/ -o scores.csv --decode dice-optimal --write-masks masks/\n\n"
    "  segtrust score --watch inbox/ -o scores.csv --policy policy.json   (until Ctrl-C)\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (failures.csv tells why), 2 nothing could be done."
)
MERGE_EPILOG = (
    "Examples:\n\n  segtrust merge part-0.parquet part-1.parquet -o scores.parquet\n\n"
    "  segtrust merge part-*.csv -o scores.csv   (after segtrust score … -o part-$K.csv --num-parts 8 "
    "--part-id $K for each K from 0 to 7)\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (failures.csv tells why), 2 the parts are not one run."
)


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
        print_scores(table, as_json=run.as_json)
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
            print_questions(table)
            exit_if_failed(table.failures, nothing=not table.rows)
        else:
            print_scores(table, part=run.part_id, as_json=run.as_json, images=images)


def print_scores(
    table: ScoreTable, *, part: int | None = None, as_json: bool = False, images: Sequence[Images] = ()
) -> None:
    """Print what came of scoring cases, and leave with the exit code."""
    from segtrust.engine import failures_beside

    if as_json:
        values = {
            "cases": table.cases,
            "failed": len(table.failures),
            "table": table.source,
            "seconds": table.seconds,
            "failures": [each.row() for each in table.failures],
            "warnings": [*warnings_of(table, images), *table.warnings],
            **image_values(images),
            **as_values(table.policies),
        }
        typer.echo(json.dumps(values))
    else:
        print_failures(table.failures, failures_beside(Path(table.source), part))
        print_questions(table)
        tell_policies(table.policies)
        done = f"{counted(table.cases, 'case')} scored in {table.seconds:.1f} s"
        typer.echo(f"{done}, {len(table.failures)} failed. Table: {table.source}")
        for warning in table.warnings:
            typer.secho(warning, err=True)
    exit_if_failed(table.failures, nothing=not table.rows)


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
