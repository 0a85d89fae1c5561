"""Cases with their losses: maps that are scored now, or a table that was scored before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segtrust.cli.console import progress_bar
from segtrust.cli.jobs import USUAL, HowFlags, Plan, names_of, plan_of
from segtrust.cli.options import ReadFlags, RunFlags, TruthFlags
from segtrust.cli.scoring import table_run
from segtrust.cli.telling import Images, images_in, print_dataset, tell_unversioned
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import LossSource, ScoreTable
    from segtrust.evaluation import EvaluatedSet, FileCase
    from segtrust.io import Dataset, LabelScheme, Table

__all__ = [
    "FIRST",
    "JudgeFlags",
    "Judged",
    "SetFlags",
    "check_loss",
    "estimators_in",
    "find_sets",
    "images_of_sets",
    "judge_scores",
    "refuse_unknown_loss",
    "score_and_judge",
]

FIRST = "ID"
"""Name of the set in distribution."""
_FILES = "Which files"
_JUDGING = "How it is judged"


@dataclass
class SetFlags(TruthFlags):
    """Which files belong to a case, of several sets."""

    ood: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, another set to evaluate as well; repeatable.", rich_help_panel=_FILES),
    ] = None
    ood_truth: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the ground truth of that set.", rich_help_panel=_FILES),
    ] = None
    ood_mask_dir: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the delivered masks of that set.", rich_help_panel=_FILES),
    ] = None
    ood_member: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=DIR, the maps of one more member of that set; repeatable.", rich_help_panel=_FILES
        ),
    ] = None
    ood_image_dir: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DIR, the images of that set.", rich_help_panel=_FILES),
    ] = None


@dataclass
class JudgeFlags(HowFlags):
    """How cases are scored and judged."""

    loss: Annotated[
        str | None,
        typer.Option(
            help="What the cases are judged by: dice (the default), iou, f2 or hamming.",
            rich_help_panel=_JUDGING,
        ),
    ] = None
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


@dataclass(frozen=True)
class Judged:
    """Cases with their losses.

    Attributes
    ----------
    scored
        With the cases that could not be judged among the failures.
    plan
        What the maps were scored by; ``None`` for a table that was scored before.
    table
        That table, with the losses; ``None`` for maps, whose table is written as they are scored.
    """

    scored: ScoreTable
    plan: Plan | None = None
    table: Table | None = None

    def files_of(self, found: Dataset | None) -> Callable[[EvaluatedSet], list[FileCase]] | None:
        """Tell of which files the cases of a set are; ``None`` where a table was judged."""
        from segtrust.evaluation import cases_of_set

        if self.plan is None or found is None:
            return None
        job, files = self.plan.job, {case.id: case for case in found.cases}
        return lambda judged: cases_of_set(judged, files, job.read, job.scaling)


def refuse_unknown_loss(how: JudgeFlags) -> None:
    """Raise an error for a loss that is not known, or one that is given twice."""
    if how.loss is not None:
        check_loss(how.loss)
    if how.loss is not None and (how.losses is not None or how.loss_column is not None):
        raise ParameterError("loss: expected --loss, or --losses and --loss-column; got both.")


def check_loss(name: str) -> str:
    """Return the short name of a risk; raise an error that lists the known ones if there is none."""
    from segtrust.risks import RISKS, find_risk

    risk = find_risk(name)
    if risk is None:
        listed = ", ".join(each.column for each in RISKS.values())
        raise ParameterError(f"loss: expected one of {listed}, got {name!r}.")
    return risk.column


def _judge(how: JudgeFlags, scheme: LabelScheme | None) -> LossSource:
    from segtrust.engine import DICE, LossSource

    if how.losses is not None:
        return LossSource.from_file(how.losses, how.loss_column, scheme)
    return LossSource(how.loss_column or (check_loss(how.loss) if how.loss else DICE))


def score_and_judge(
    found: Dataset,
    output: Path,
    how: JudgeFlags,
    read: ReadFlags,
    run: RunFlags,
    images: Sequence[Images] = (),
) -> Judged:
    """Score and judge the cases of all sets."""
    from segtrust.engine import drop_rows_without_loss, score_cases

    if how.loss_column is not None and how.losses is None:
        raise ParameterError("loss-column: expected with --losses, which has it, or with a table of scores.")
    if read.mask != "threshold":
        _refuse_mixed_masks(found)
    judge = _judge(how, _scheme(read, found))
    plan = plan_of(how, read, found.cases, found=found, drop_empty=how.drop_empty_truth)
    with progress_bar("cases", len(found.cases)) as advance:
        table = table_run(output / "scores.parquet", run, advance)
        print_dataset(found, images, quiet=run.as_json)
        scored = score_cases(
            found,
            plan.job,
            table,
            finish=lambda rows: plan.decided(judge.add_to(rows)),
            more=judge.about,
        )
    return Judged(drop_rows_without_loss(scored, judge), plan.after(scored.rows))


def _refuse_void(how: JudgeFlags, files: SetFlags, read: ReadFlags) -> None:
    """Refuse options that say how maps are read and scored, where there are none."""
    given = [
        each.name
        for flags in (files, read, how)
        for each in fields(flags)
        if each.name not in _OF_TABLES and getattr(flags, each.name) != each.default
    ]
    if given:
        name = given[0].replace("_", "-")
        raise ParameterError(f"--{name}: expected with maps only, got it with a table of scores.")


_OF_TABLES = (
    *("estimators", "loss", "losses", "loss_column", "drop_empty_truth", "patients", "resamples", "names"),
)
"""Options that mean something for a table of scores."""


def judge_scores(table: Table, how: JudgeFlags, files: SetFlags, read: ReadFlags) -> Judged:
    """Judge the rows of a table of scores, such as that of an array of jobs, merged."""
    from segtrust.engine import (
        PART,
        ScoreTable,
        check_no_text,
        check_unique_cases,
        drop_rows_without_loss,
        no_loss_message,
        questions_about,
    )
    from segtrust.io import Table, read_scheme
    from segtrust.risks import RISKS

    _refuse_void(how, files, read)
    if PART in table.about:
        raise ParameterError(
            "expected a whole run, got a part of one. Put the parts together: segtrust merge."
        )
    check_unique_cases(table)
    judge = _judge(how, None if read.names is None else read_scheme(read.names))
    metrics = [risk.column for risk in RISKS.values()]
    numbers = [*estimators_in(how, table.columns), *metrics, judge.column, "loss", "k", "truth_ratio"]
    check_no_text(table, numbers)
    is_asked = how.loss is not None or how.loss_column is not None
    has_losses = how.losses is None and not is_asked and "loss" in table.columns
    tell_unversioned(table)
    usual = {"file": "", "group": "", "shape": ""}
    rows = tuple({**usual, **row, "set": row.get("set") or FIRST} for row in table.rows)
    judged = rows if has_losses else tuple(judge.add_to(rows))
    if not has_losses and how.losses is None and all(row["loss"] is None for row in judged):
        raise ParameterError(no_loss_message(table.source, judge.column))
    about = table.about if has_losses else {**table.about, **judge.about}
    scored = replace(ScoreTable.of(judged, about), questions=tuple(questions_about(judged)))
    return Judged(drop_rows_without_loss(scored, judge), table=Table.of(judged, about))


def find_sets(paths: Sequence[Path], files: SetFlags, how: JudgeFlags) -> Dataset:
    """Find the cases of all sets; the ids of the cases of other sets begin with the name of their set."""
    from segtrust.io import without_duplicates

    others, truth, masks, images, members = (
        _named(values, option)
        for values, option in (
            (files.ood, "ood"),
            (files.ood_truth, "ood-truth"),
            (files.ood_mask_dir, "ood-mask-dir"),
            (files.ood_image_dir, "ood-image-dir"),
            (files.ood_member, "ood-member"),
        )
    )
    unknown = sorted({*truth, *masks, *images, *members} - {*others})
    if unknown:
        raise ParameterError(f"ood-truth: expected the name of a set given by --ood, got {unknown[0]!r}.")
    found = _find_set(paths, files, how, FIRST)
    for name, folders in others.items():
        own = replace(
            files,
            pattern=_only(files.pattern),
            mask_pattern=_only(files.mask_pattern),
            image_pattern=_only(files.image_pattern),
            truth_pattern=_only(files.truth_pattern),
            truth=truth.get(name),
            mask_dir=masks.get(name),
            image_dir=images.get(name),
            member=members.get(name),
        )
        found += _find_set([Path(folder) for folder in folders], own, how, name).with_prefix(name)
    return without_duplicates(found)


def _only(patterns: list[str] | None) -> list[str] | None:
    """Return a pattern that is for all maps; several are for the folders of the first set."""
    return patterns if patterns is not None and len(patterns) == 1 else None


def images_of_sets(files: SetFlags, found: Dataset) -> list[Images]:
    """Count the images that were found in each folder of images of each set."""
    by_set = {FIRST: files.image_dir or [], **_named(files.ood_image_dir, "ood-image-dir")}
    return [
        images
        for name, folders in by_set.items()
        for images in images_in(folders, [case for case in found.cases if case.set == name])
    ]


def _refuse_mixed_masks(found: Dataset) -> None:
    """Refuse to compare a set whose delivered masks are scored with one whose maps are cut."""
    sets = {case.set for case in found.cases}
    bare = sorted(sets - {case.set for case in found.cases if case.mask is not None})
    if bare and len(bare) < len(sets):
        raise ParameterError(
            f"ood-mask-dir: expected delivered masks of all sets or of none, got none of {bare[0]}. Give "
            "them (--mask-dir, --ood-mask-dir NAME=DIR), or cut all maps: --mask threshold."
        )


def _named(texts: Sequence[str] | None, option: str) -> dict[str, list[str]]:
    """Return the folders of each set, in their order."""
    found: dict[str, list[str]] = {}
    for text in texts or ():
        name, sign, path = text.partition("=")
        if not (name and sign and path) or name == FIRST:
            raise ParameterError(
                f"{option}: expected NAME=DIR, with a name other than {FIRST}, got {name!r}."
            )
        found.setdefault(name, []).append(path)
    return found


def _find_set(paths: Sequence[Path], files: SetFlags, how: JudgeFlags, name: str) -> Dataset:
    """Find the cases of a set; only those with ground truth, unless losses come from elsewhere."""
    from segtrust.io import only_with_truth

    found = files.find(paths, needs_truth=True if how.losses is None else None)
    if how.losses is None:
        if not any(case.truth for case in found.cases):
            raise ParameterError(_without_truth(paths, found, files))
        found = only_with_truth(found)
    return replace(found, cases=tuple(replace(case, set=name) for case in found.cases))


def _without_truth(paths: Sequence[Path], found: Dataset, files: SetFlags) -> str:
    """Say that no case has ground truth, and how to pass it, or how its files ought to be called."""
    listed = ", ".join(map(str, paths))
    folder = Path((files.truth or [""])[0].rpartition("=")[2])
    if not files.truth or not folder.is_dir():
        return " ".join(
            [f"{listed}: expected the ground truth of its cases. Pass its folder: --truth.", *found.notes]
        )
    there = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    got = f"files such as {there[0]}" if there else "an empty folder"
    wanted = f", by the same names, such as {found.cases[0].id}" if found.cases else ""
    return f"{folder}: expected the ground truth of the cases in {listed}{wanted}; got {got}."


def _scheme(read: ReadFlags, found: Dataset) -> LabelScheme | None:
    """Give the names of the structures, for losses that go by labels."""
    from segtrust.io import find_scheme, read_scheme

    if read.names is not None:
        return read_scheme(read.names)
    return find_scheme(found.cases[0].probabilities.path) if found.cases else None


def estimators_in(how: JudgeFlags, columns: Sequence[str]) -> list[str]:
    """Give the estimators that were asked for, or all that the rows have."""
    from segtrust.confidence import estimator_names

    asked = names_of(how.estimators, [name for name in estimator_names() if name in columns])
    found = [name for name in asked if name in columns]
    missing = [name for name in asked if name not in columns]
    if not found or (missing and how.estimators != USUAL):
        raise ParameterError(f"estimators: expected some that were scored, got {', '.join(missing)}.")
    return found
