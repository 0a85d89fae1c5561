"""``segtrust evaluate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import progress_bar
from segtrust.cli.options import ReadFlags, RunFlags, TruthFlags, with_options
from segtrust.cli.scoring import USUAL, HowFlags, deciding, job_of, patterns_of, table_run, tell_failures
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine.score_table import Scored
    from segtrust.io.cases import DataSet
    from segtrust.io.structures import LabelScheme
    from segtrust.io.tables import Table

__all__ = ["EVALUATE_EPILOG", "evaluate"]

EVALUATE_EPILOG = (
    "Examples:\n\n  segtrust evaluate predictions/ --truth labelsTs/ -o evaluation\n\n"
    "  segtrust evaluate kvasir/ clinicdb/ -o polyp --ood etis=etis/ --drop-empty-truth --estimators all\n\n"
    "Exit codes: 0 all cases judged, 1 some failed (failures.csv tells why), 2 nothing could be done."
)
_FIRST = "ID"
_FILES = "Which files"
_JUDGING = "How it is judged"


@dataclass
class SetFlags(TruthFlags):
    """Which files belong to a case, of several sets."""

    ood: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=DIR, another set to judge as well; several times if wanted.", rich_help_panel=_FILES
        ),
    ] = None
    ood_truth: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the truths of that set.", rich_help_panel=_FILES),
    ] = None


@dataclass
class JudgeFlags(HowFlags):
    """How cases are scored and judged."""

    loss: Annotated[str, typer.Option(help="'dice' or 'iou': one minus it.", rich_help_panel=_JUDGING)] = (
        "dice"
    )
    losses: Annotated[
        Path | None,
        typer.Option(
            help="Losses from elsewhere: a table with 'case', or nnU-Net's summary.json.",
            rich_help_panel=_JUDGING,
        ),
    ] = None
    loss_column: Annotated[
        str | None, typer.Option(help="Its column, or the metric of summary.json.", rich_help_panel=_JUDGING)
    ] = None
    drop_empty_truth: Annotated[
        bool,
        typer.Option(
            "--drop-empty-truth",
            help="Leave out cases whose truth is empty, as the paper does.",
            rich_help_panel=_JUDGING,
        ),
    ] = False
    patients: Annotated[
        bool,
        typer.Option(
            "--patients",
            help="The manifest's 'group' is the patient: draw patients.",
            rich_help_panel=_JUDGING,
        ),
    ] = False
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.", rich_help_panel=_JUDGING)] = (
        2000
    )


@with_options
def evaluate(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            help="Maps as for `score`; folders of 'predictions' and 'masks' (or 'labels'); a table of scores."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, figures and report.")],
    how: JudgeFlags,
    files: SetFlags,
    read: ReadFlags,
    run: RunFlags,
) -> None:
    """Score cases with known truth and show how well each confidence ranks the errors.

    Writes the score table, risk-coverage curves, AURC with intervals, coverage at the risk of all cases,
    paired tests and bound statistics, for other sets (--ood) beside them.
    """
    from segtrust.engine.score_table import failures_beside, read_scores
    from segtrust.report.evaluation import tables_for_people, write_evaluation
    from segtrust.report.runs import mark_running, open_run, write_run

    if how.loss not in ("dice", "iou"):
        raise ParameterError(f"loss: expected 'dice' or 'iou', got {how.loss!r}.")
    open_run(output, command="evaluate")
    mark_running(output, command="evaluate")
    table = read_scores(predictions[0]) if len(predictions) == 1 else None
    if table is None:
        scored = _scored_now(predictions, output, (how, files, read, run))
    else:
        _refuse_void(how, files, read)
        scored = _scored_before(table, how, read)
    failures_path = failures_beside(output / "scores.parquet", None)
    scored = _with_lost(scored, how, failures_path)
    sets = _by_set([row for row in scored.rows if row["loss"] is not None])
    if not sets:
        tell_failures(scored.failures, failures_path, nothing=True)
        raise ParameterError(f"{predictions[0]}: expected cases to judge, got none.")
    tables = write_evaluation(output, sets, _evaluation(how, scored.rows[0]))
    parameters = {"sets": {name: len(rows) for name, rows in sets.items()}, "failed": len(scored.failures)}
    write_run(output, command="evaluate", parameters=parameters, seconds=scored.seconds)
    _tell(scored, tables, tables_for_people(tables), output, as_json=run.as_json)
    tell_failures(scored.failures, failures_path, quiet=run.as_json)


def _scored_now(
    predictions: Sequence[Path], output: Path, flags: tuple[JudgeFlags, SetFlags, ReadFlags, RunFlags]
) -> Scored:
    """Score the cases of all sets."""
    from segtrust.engine.score_table import score_cases

    how, files, read, run = flags
    found = _all_sets(predictions, files, with_truth=how.losses is None)
    job = replace(job_of(how, read), with_truth=how.losses is None)
    with progress_bar("cases", len(found.cases)) as advance:
        table = table_run(output / "scores.parquet", run, advance)
        return score_cases(found, job, table, finish=_finishing(how, _scheme(read, found)))


def _refuse_void(how: JudgeFlags, files: SetFlags, read: ReadFlags) -> None:
    """Refuse options that say how maps are read, where there are none."""
    given = {
        "--truth": files.truth,
        "--ood": files.ood,
        "--ood-truth": files.ood_truth,
        "--mask-dir": files.mask_dir,
        "--policy": how.policy,
        "--region": read.region,
        "--channel": read.channel,
    }
    void = [name for name, value in given.items() if value is not None]
    if void:
        raise ParameterError(f"{void[0]}: expected with maps only, got it with a table of scores.")


def _scored_before(table: Table, how: JudgeFlags, read: ReadFlags) -> Scored:
    """Take the rows of a table of scores, such as that of an array of jobs, merged."""
    from segtrust.engine.score_table import PART, Scored
    from segtrust.io.nnunet import read_scheme

    if PART in table.about:
        raise ParameterError(
            "expected a whole run, got a part of one. Put the parts together: segtrust merge."
        )
    if how.losses is None and not {"loss", how.loss} & set(table.columns):
        raise ParameterError(
            "losses: expected a table with losses. Score with --truth, or give them: --losses."
        )
    is_judged = how.losses is None and how.loss not in table.columns
    finish = _finishing(how, None if read.names is None else read_scheme(read.names))
    rows = table.rows if is_judged else finish(table.rows)
    usual = {"file": "", "group": "", "shape": ""}
    return Scored(tuple({**usual, **row, "set": row.get("set") or _FIRST} for row in rows), (), 0.0)


def _all_sets(paths: Sequence[Path], files: SetFlags, *, with_truth: bool) -> DataSet:
    """Find the cases of all sets, each under a name that tells its set."""
    others = _named(files.ood, "ood")
    truths = dict(_named(files.ood_truth, "ood-truth"))
    first = _one_set([*paths], files, files.truth, with_truth=with_truth)
    found = _of_set(first, _FIRST)
    unknown = sorted(truths.keys() - {name for name, _ in others})
    if unknown:
        raise ParameterError(f"ood-truth: expected the name of a set given by --ood, got {unknown[0]!r}.")
    files = replace(files, mask_dir=None)  # that of the first set
    for name in dict.fromkeys(name for name, _ in others):
        folders = [path for each, path in others if each == name]
        truth = truths.get(name)
        found = found + _of_set(_one_set(folders, files, truth, with_truth=with_truth), name, prefix=True)
    return found


def _named(texts: Sequence[str] | None, option: str) -> list[tuple[str, Path]]:
    pairs = [text.partition("=") for text in texts or ()]
    for name, sign, path in pairs:
        if not (name and sign and path) or name == _FIRST:
            raise ParameterError(
                f"{option}: expected NAME=DIR, with a name other than {_FIRST}, got {name!r}."
            )
    return [(name, Path(path)) for name, _, path in pairs]


def _one_set(paths: Sequence[Path], files: SetFlags, truth: Path | None, *, with_truth: bool) -> DataSet:
    from segtrust.io.cases import DataSet
    from segtrust.io.datasets import different_names, with_prefix

    found = DataSet()
    names = different_names(paths)
    for path, name in zip(paths, names, strict=True):
        part = _cases_of(path, files, truth, with_truth=with_truth)
        found = found + (with_prefix(part, name) if len(paths) > 1 else part)
    return found


def _cases_of(path: Path, files: SetFlags, truth: Path | None, *, with_truth: bool) -> DataSet:
    from segtrust.io.datasets import find_cases, with_layout, with_masks, with_truths

    maps, beside = with_layout(path)
    patterns = patterns_of(files)
    found = find_cases([maps], patterns, allow_pickle=files.allow_pickle)
    if files.mask_dir is not None:
        found = with_masks(found, files.mask_dir, patterns)
    folder = truth or beside
    if folder is not None:
        return with_truths(found, folder, patterns)
    if with_truth and not any(case.truth for case in found.cases):
        raise ParameterError(f"{path}: expected the truths of its cases. Give their folder: --truth.")
    return found


def _of_set(found: DataSet, name: str, *, prefix: bool = False) -> DataSet:
    from segtrust.io.datasets import with_prefix

    named = with_prefix(found, name) if prefix else found
    return replace(named, cases=tuple(replace(case, set=name) for case in named.cases))


def _scheme(read: ReadFlags, found: DataSet) -> LabelScheme | None:
    """Give the names of the structures, for losses that go by labels."""
    from segtrust.io.nnunet import read_scheme, scheme_beside

    if read.names is not None:
        return read_scheme(read.names)
    return scheme_beside(found.cases[0].probabilities.path) if found.cases else None


def _with_lost(scored: Scored, how: JudgeFlags, path: Path) -> Scored:
    """List cases without a loss among those that failed."""
    from segtrust.engine.outcomes import Failure
    from segtrust.engine.score_table import write_failures

    where = "" if how.losses is None else f" in {how.losses}"
    lost = [
        Failure(
            row["case"], row["file"], "NoLoss", f"expected its loss ({row['structure']}){where}, got none"
        )
        for row in scored.rows
        if row["loss"] is None
    ]
    if not lost:
        return scored
    failures = (*scored.failures, *lost)
    write_failures(path, failures, "scores.parquet")
    return replace(scored, failures=failures)


def _finishing(how: JudgeFlags, scheme: LabelScheme | None) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Add the loss to rows, and decisions where a policy is given."""
    from segtrust.io.losses import read_losses

    given = None if how.losses is None else read_losses(how.losses, how.loss_column, scheme)
    decide = list if how.policy is None else deciding(how)

    def loss_of(row: Mapping[str, Any]) -> float | None:
        if given is None:
            return None if row[how.loss] is None else 1.0 - float(row[how.loss])
        return given.get((row["case"], row["structure"]), given.get((row["case"], "")))

    return lambda rows: decide([{**row, "loss": loss_of(row)} for row in rows])


def _by_set(rows: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["set"], []).append(row)
    return found


def _evaluation(how: JudgeFlags, row: Mapping[str, Any]) -> Any:
    """Judge the estimators that were asked for, or all that the rows have."""
    from segtrust.confidence.registry import ESTIMATORS
    from segtrust.experiments.evaluation import Evaluation
    from segtrust.selective.resample import Bootstrap

    asked = ESTIMATORS if how.estimators == "all" else [name.strip() for name in how.estimators.split(",")]
    estimators = tuple(name for name in asked if name in row)
    missing = [name for name in asked if name not in row]
    if not estimators or (missing and how.estimators not in ("all", USUAL)):
        raise ParameterError(f"estimators: expected some that were scored, got {', '.join(missing)}.")
    return Evaluation(
        estimators,
        drop_empty=how.drop_empty_truth,
        by_patient=how.patients,
        bootstrap=Bootstrap(resamples=how.resamples),
    )


def _tell(scored: Scored, tables: Any, shown: Mapping[str, str], output: Path, *, as_json: bool) -> None:
    if as_json:
        about = {"failed": [each.row() for each in scored.failures], "output": str(output)}
        typer.echo(json.dumps({**tables, **about}))
        return
    for name in ("sets", "areas", "coverages"):
        if name in shown:
            typer.echo(f"{shown[name]}\n")
    typer.echo(f"Tables, figures and report are in {output.resolve()}.")
