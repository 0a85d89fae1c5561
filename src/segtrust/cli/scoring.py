"""``segtrust score`` and ``segtrust merge``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import counted, progress_bar
from segtrust.cli.options import (
    CaseFlags,
    DigestKind,
    PartFlags,
    ReadFlags,
    RunFlags,
    TruthFlags,
    with_options,
)
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.confidence.base import ConfidenceEstimator
    from segtrust.engine.decisions import Policies
    from segtrust.engine.outcomes import Failure
    from segtrust.engine.score_table import Scored, ScoreRun
    from segtrust.engine.scoring import ScoreJob
    from segtrust.io.cases import DataSet

__all__ = ["MERGE_EPILOG", "SCORE_EPILOG", "merge", "score"]

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
USUAL = "sdc,idc,amsp"


@dataclass
class HowFlags:
    """How cases are scored."""

    estimators: Annotated[
        str, typer.Option(help="Names, separated by commas; 'all' for all that need not learn.")
    ] = USUAL
    policy: Annotated[
        Path | None, typer.Option(help="Add what this policy decides: accept, defer, no finding.")
    ] = None
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; a policy's promise holds for its own.")
    ] = ""
    calibrate_maps: Annotated[
        Path | None, typer.Option(help="Recalibrate the maps first: a saved scaling (JSON).")
    ] = None
    empty: Annotated[
        str, typer.Option(help="What two empty masks are worth: 'paper' a Dice of 0, 'agree' of 1.")
    ] = "paper"
    digest: Annotated[DigestKind, typer.Option(help="Fingerprint of the maps' files.")] = DigestKind.QUICK


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
    from segtrust.engine.run import part_of
    from segtrust.engine.score_table import score_cases

    if output.resolve() in {path.resolve() for path in predictions}:
        raise ParameterError(f"{output}: expected another file than what is read, or that would be lost.")
    found = with_truth_of(find_data(predictions, files), files)
    job = replace(job_of(how, read), with_truth=bool(found.cases) and all(each.truth for each in found.cases))
    finish = list if how.policy is None else deciding(how)
    count = len(part_of(found.cases, run.part_id, run.num_parts))
    with progress_bar("cases", count) as advance:
        table = table_run(output, run, advance)
        scored = score_cases(found, job, table, finish=finish)
    if how.policy is not None and not run.as_json:
        for policy in _policies(how).values():
            typer.echo(str(policy.for_predictor(how.predictor)))
    tell(scored, table, as_json=run.as_json)


def with_truth_of(found: DataSet, files: TruthFlags) -> DataSet:
    """Give the cases their truths, where a folder of them is given."""
    from segtrust.io.datasets import with_truths

    return found if files.truth is None else with_truths(found, files.truth, patterns_of(files))


def find_data(paths: Sequence[Path], files: CaseFlags) -> DataSet:
    """Find the cases, with the delivered masks."""
    from segtrust.io.datasets import find_cases, with_masks

    patterns = patterns_of(files)
    found = find_cases(paths, patterns, allow_pickle=files.allow_pickle)
    return found if files.mask_dir is None else with_masks(found, files.mask_dir, patterns)


def patterns_of(files: CaseFlags) -> Any:
    """Give the patterns of names that were asked for."""
    from segtrust.io.datasets import Patterns
    from segtrust.io.names import Pattern

    texts = (files.pattern, files.mask_pattern, getattr(files, "truth_pattern", None))
    return Patterns(*(None if each is None else Pattern(each) for each in texts))


def job_of(how: HowFlags, read: ReadFlags) -> ScoreJob:
    """Say what is done with each case."""
    from segtrust.engine.calibration import check_reading, reference_beside
    from segtrust.engine.scoring import ScoreJob
    from segtrust.io.loading import ReadOptions
    from segtrust.maps import EmptyPolicy

    options = ReadOptions(
        regions=tuple(read.region or ()),
        channel=read.channel,
        labels=tuple(read.label) if read.label else None,
        mask=read.mask,  # type: ignore[arg-type]
        threshold=read.threshold,
        key=read.key,
        resample=read.resample,
        scheme=read.names,
    )
    if how.policy is not None:
        check_reading(reference_beside(how.policy), asdict(options))
    policies = _policies(how)
    estimators = _estimators(how, policies)
    return ScoreJob(
        estimators,
        options,
        _scaling(how, policies),
        digest=how.digest.value,
        empty=EmptyPolicy(how.empty),
    )


def _policies(how: HowFlags) -> Policies:
    from segtrust.engine.decisions import load_policies

    return {} if how.policy is None else load_policies(how.policy)


def _estimators(how: HowFlags, policies: Policies) -> tuple[ConfidenceEstimator, ...]:
    """Make the estimators that are asked for, and those of the policies, which win."""
    from segtrust.engine.decisions import estimator_of
    from segtrust.selective.scoring import Scoring

    names = [name.strip() for name in how.estimators.split(",") if name.strip()]
    if not names:
        raise ParameterError("estimators: expected at least one name, got none.")
    if names == ["all"]:
        names = list(_NOTHING_TO_LEARN)
    asked = {name: estimator_of(Scoring(name, empty=how.empty)) for name in names}
    needed = {each.scoring.estimator: estimator_of(each.scoring) for each in policies.values()}
    unfitted = [name for name in asked if name not in {*_NOTHING_TO_LEARN, *needed}]
    if unfitted:
        raise ParameterError(
            f"estimators: {unfitted[0]} learns from cases and has learned nothing here. Give a policy that "
            f"holds it (--policy), or one of {', '.join(_NOTHING_TO_LEARN)}."
        )
    return tuple({**asked, **needed}.values())


_NOTHING_TO_LEARN = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla")


def _scaling(how: HowFlags, policies: Policies) -> Any:
    """Give the recalibration of the maps: that of the file, or that of the policies."""
    from segtrust.calibration.scaling import Scaling
    from segtrust.engine.decisions import scaling_of
    from segtrust.saved import read_json

    of_policies = [scaling_of(policy.scoring) for policy in policies.values()]
    if how.calibrate_maps is not None:
        given = Scaling.from_dict(read_json(how.calibrate_maps), source=str(how.calibrate_maps))
        if any(each != replace(given, used_ids=frozenset()) for each in of_policies):
            raise ParameterError(
                f"{how.calibrate_maps}: expected the recalibration of the policy, got another."
            )
        return given
    if any(each != of_policies[0] for each in of_policies):
        raise ParameterError("policy: expected one recalibration of the maps for all structures.")
    return of_policies[0] if of_policies else None


def deciding(how: HowFlags) -> Callable[..., Any]:
    """Give what adds the decisions of a policy to rows."""
    from segtrust.engine.decisions import decide_rows

    return decide_rows(_policies(how))


def table_run(output: Path, run: RunFlags, advance: Callable[[int], object]) -> ScoreRun:
    """Say where results go, and how cases are run."""
    from segtrust.engine.run import Engine
    from segtrust.engine.score_table import ScoreRun

    engine = Engine(run.workers, run.dask, run.memory_bytes())
    part = (run.part_id, run.num_parts) if isinstance(run, PartFlags) else (0, 1)
    return ScoreRun(output, engine, run.resume, *part, advance)


def tell(scored: Scored, table: ScoreRun, *, as_json: bool) -> None:
    """Print what came of a run; the exit code tells whether some or all cases failed."""
    cases = len({row["case"] for row in scored.rows})
    failed = len(scored.failures)
    if as_json:
        about = {"cases": cases, "failed": failed, "table": str(table.out), "seconds": scored.seconds}
        typer.echo(json.dumps(about | {"failures": [each.row() for each in scored.failures]}))
    else:
        scored_cases = f"{counted(cases, 'case')} scored in {scored.seconds:.1f} s"
        typer.echo(f"{scored_cases}, {failed} failed. Table: {table.out}")
    tell_failures(scored.failures, table.failures_path, quiet=as_json, nothing=not cases)


_SHOWN = 5


def tell_failures(
    failures: Sequence[Failure], path: Path, *, quiet: bool = False, nothing: bool = False
) -> None:
    """Say which cases failed, and why; leave with exit code 1 for some and 2 for all."""
    if not failures:
        return
    if not quiet:
        for failure in failures[:_SHOWN]:
            typer.secho(f"  {failure.case}: {failure.reason}", err=True)
        told = counted(len(failures), "failure")
        typer.secho(f"{told}, with the reasons: {path}", err=True)
    raise typer.Exit(2 if nothing else 1)


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
