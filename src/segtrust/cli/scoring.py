"""``segtrust score`` and ``segtrust merge``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import counted, progress_bar
from segtrust.cli.jobs import HowFlags, plan_of
from segtrust.cli.options import PartFlags, ReadFlags, RunFlags, TruthFlags, with_options
from segtrust.cli.telling import as_values, tell_failures, tell_policies, tell_warnings, warnings_of
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine.score_table import Scored, ScoreRun

__all__ = ["MERGE_EPILOG", "SCORE_EPILOG", "merge", "score", "table_run"]

SCORE_EPILOG = (
    "Examples:\n\n  segtrust score predictions/ -o scores.parquet\n\n"
    "  segtrust score predictions/ -o scores.csv --region each --estimators sdc,idc --workers 4\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (failures.csv tells why), 2 nothing could be done."
)
MERGE_EPILOG = (
    "Examples:\n\n  segtrust merge part-0.parquet part-1.parquet -o scores.parquet\n\n"
    "  segtrust merge part-*.csv -o scores.csv   (after segtrust score … -o part-$K.csv --num-parts 8 "
    "--part-id $K for each K from 0 to 7)\n\n"
    "Exit codes: 0 all cases scored, 1 some failed (failures.csv tells why), 2 the parts are not one run."
)


@with_options
def score(
    predictions: Annotated[
        list[Path],
        typer.Argument(help="Maps, folders of maps, nnU-Net's output, or manifests (CSV, Parquet)."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table: .parquet, .csv or .json.")],
    how: HowFlags,
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
    from segtrust.engine.run import part_of
    from segtrust.engine.score_table import score_cases
    from segtrust.io.datasets import find_cases

    if output.resolve() in {path.resolve() for path in predictions}:
        raise ParameterError(f"{output}: expected another file than what is read, or that would be lost.")
    found = find_cases(predictions, files.search())
    plan = plan_of(how, read)
    with progress_bar("cases", len(part_of(found.cases, run.part, run.num_parts))) as advance:
        table = table_run(output, run, advance)
        scored = score_cases(found, plan.job, table, finish=plan.decided)
    plan = plan.after(scored.rows)
    if run.as_json:
        typer.echo(json.dumps(_values(scored, table) | as_values(plan.policies)))
    else:
        tell_policies(plan.policies)
        _tell(scored, table)
    tell_failures(scored.failures, table.failures_path, quiet=run.as_json, nothing=not scored.rows)


def table_run(output: Path, run: RunFlags, advance: Callable[[int], object]) -> ScoreRun:
    """Say where results go, and how cases are run."""
    from segtrust.engine.run import Engine
    from segtrust.engine.score_table import ScoreRun

    engine = Engine(workers=run.workers, dask=run.dask, memory=run.memory_bytes())
    part, parts = (run.part, run.num_parts) if isinstance(run, PartFlags) else (0, 1)
    return ScoreRun(output, engine, resume=run.resume, part=part, parts=parts, advance=advance)


def _values(scored: Scored, table: ScoreRun) -> dict[str, Any]:
    return {
        "cases": scored.cases,
        "failed": len(scored.failures),
        "table": str(table.out),
        "seconds": scored.seconds,
        "failures": [each.row() for each in scored.failures],
        "warnings": warnings_of(scored.rows),
    }


def _tell(scored: Scored, table: ScoreRun) -> None:
    done = f"{counted(scored.cases, 'case')} scored in {scored.seconds:.1f} s"
    typer.echo(f"{done}, {len(scored.failures)} failed. Table: {table.out}")
    tell_warnings(scored.rows)


def merge(
    tables: Annotated[list[Path], typer.Argument(help="Tables of the parts of one run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table: .parquet, .csv or .json.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Put the tables of an array of jobs together, and the lists of what failed."""
    from segtrust.engine.merging import merge_tables
    from segtrust.engine.score_table import failures_beside

    merged, failures = merge_tables(tables, output)
    if as_json:
        about = {"rows": len(merged.rows), "failed": len(failures), "table": str(output)}
        typer.echo(json.dumps(about | {"failures": [each.row() for each in failures]}))
    else:
        typer.echo(
            f"{len(merged.rows)} rows of {len(tables)} tables, {len(failures)} cases failed. Table: {output}"
        )
    tell_failures(failures, failures_beside(output, None), quiet=as_json, nothing=not merged.rows)
