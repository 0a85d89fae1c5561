"""``segtrust score`` and ``segtrust merge``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import counted, progress_bar
from segtrust.cli.jobs import Plan, plan_of
from segtrust.cli.options import PartFlags, ReadFlags, RunFlags, TruthFlags, with_options
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
from segtrust.cli.watching import WatchFlags, awaited, check_watch, watch_until_stopped
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import ScoreRun, ScoreTable

__all__ = ["MERGE_EPILOG", "SCORE_EPILOG", "finish_scoring", "merge", "score", "table_run"]

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
    """Give each case its confidence: one row a case, with bounds, counts and fingerprint.

    Reads nnU-Net's probabilities (v1, v2, TotalSegmentator), NumPy, NIfTI, MHA, NRRD, PNG, TIFF, HDF5, Zarr
    and DICOM-SEG. A case that cannot be read never stops the others. A run that was stopped goes on with the
    same command.
    """
    run.get_ready()
    from segtrust.engine import part_of, score_cases

    if is_pipe(output) and run.as_json:
        raise ParameterError("output: expected a file with --json, which is printed itself, got '-'.")
    paths = paths_of(predictions)
    if output.resolve() in {path.resolve() for path in paths}:
        raise ParameterError(f"{output}: expected another file than what is read, or that would be lost.")
    if how.watch:
        return _watch(paths, output, how, files, read, run)
    found = files.find(paths, needs_truth=None)
    images = images_in(files.image_dir, found.cases)
    plan = plan_of(how, read, found.cases)
    with table_place(output) as place:
        with progress_bar("cases", len(part_of(found.cases, run.part, run.num_parts))) as advance:
            table = table_run(place, run, advance)
            print_dataset(found, images, quiet=run.as_json, err=is_pipe(output))
            scored = score_cases(found, plan.job, table, finish=plan.decided)
        if how.write_masks is not None:
            scored = _with_masks(scored, how.write_masks, place, table.failures_path)
        finish = _finish_pipe if is_pipe(output) else finish_scoring
        finish(scored, plan, table, as_json=run.as_json, images=images)


def _watch(
    folders: Sequence[Path], output: Path, how: ScoreFlags, files: TruthFlags, read: ReadFlags, run: PartFlags
) -> None:
    """Score what arrives in folders until that is stopped."""
    check_watch(folders, output, run, writes_masks=how.write_masks is not None)
    plan = plan_of(how, read, [awaited(folders[0], files.member or ())])
    table = table_run(output, run, lambda done: None)
    scored = watch_until_stopped(
        lambda: files.find(folders, needs_truth=None, may_be_empty=True),
        plan,
        table,
        how.rhythm(),
        quiet=run.as_json,
    )
    finish_scoring(scored, plan, table, as_json=run.as_json)


def finish_scoring(
    scored: ScoreTable, plan: Plan, table: ScoreRun, *, as_json: bool, images: Sequence[Images] = ()
) -> None:
    """Tell what came of scoring cases, and leave with the exit code."""
    plan = plan.after(scored.rows)
    if as_json:
        typer.echo(json.dumps(_values(scored, table, images) | as_values(plan.policies)))
    else:
        print_failures(scored.failures, table.failures_path)
        print_questions(scored)
        tell_policies(plan.policies)
        _tell(scored, table)
    exit_if_failed(scored.failures, nothing=not scored.rows)


def _finish_pipe(scored: ScoreTable, *_: object, **__: object) -> None:
    """Tell on standard error what a table that is printed does not: which cases failed."""
    print_failures(scored.failures, None)
    print_questions(scored)
    exit_if_failed(scored.failures, nothing=not scored.rows)


def _with_masks(scored: ScoreTable, folder: Path, output: Path, failures_path: Path) -> ScoreTable:
    """Write the masks; those that could not be are added to what failed."""
    from segtrust.engine import write_failures, write_masks
    from segtrust.io import read_table

    with progress_bar("masks", len(scored.rows)) as advance:
        failures = write_masks(folder, scored.rows, read_table(output).about, advance)
    told = replace(scored, failures=(*scored.failures, *failures))
    write_failures(failures_path, told.failures, output.name)
    return told


def table_run(output: Path, run: RunFlags, advance: Callable[[int], object]) -> ScoreRun:
    """Say where results go, and how cases are run."""
    from segtrust.engine import ScoreRun

    part, parts = (run.part, run.num_parts) if isinstance(run, PartFlags) else (0, 1)
    command = tuple(sys.argv[1:])
    details = isinstance(run, PartFlags) and run.details
    return ScoreRun(output, run.executor(), run.resume, part, parts, advance, command, run.overwrite, details)


def _values(scored: ScoreTable, table: ScoreRun, images: Sequence[Images]) -> dict[str, Any]:
    return {
        "cases": scored.cases,
        "failed": len(scored.failures),
        "table": str(table.out),
        "seconds": scored.seconds,
        "failures": [each.row() for each in scored.failures],
        "warnings": [*warnings_of(scored, images), *scored.warnings],
        **image_values(images),
    }


def _tell(scored: ScoreTable, table: ScoreRun) -> None:
    done = f"{counted(scored.cases, 'case')} scored in {scored.seconds:.1f} s"
    typer.echo(f"{done}, {len(scored.failures)} failed. Table: {table.out}")
    for warning in scored.warnings:
        typer.secho(warning, err=True)


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
