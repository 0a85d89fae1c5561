"""``segtrust reproduce medical``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segtrust._compile import available_cores
from segtrust.cli.options import with_options
from segtrust.cli.output import progress_bar
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.paper.medical.report import MedicalRun
    from segtrust.paper.medical.study import MedicalSettings

__all__ = ["MEDICAL_EPILOG", "medical"]

MEDICAL_EPILOG = (
    "Examples:\n\n  segtrust tasks predict polyp --data polyp/ --maps published/ -o runs/polyp\n\n"
    "  segtrust reproduce medical --data runs/ --out medical\n\n"
    "  segtrust reproduce medical --data runs/ --out quick --tasks polyp,nuclei --repeats 5\n\n"
    "Exit codes: 0 all cases judged, 1 some cases or tasks failed (tasks/*/failures.csv), 2 nothing done."
)


@dataclass
class MedicalFlags:
    """What is computed."""

    repeats: Annotated[
        int, typer.Option(min=0, help="Random splits for each size of a tuning set; 0 for no tuning.")
    ] = 50
    seed: Annotated[int, typer.Option(min=0, help="Of the first split.")] = 0
    resamples: Annotated[int, typer.Option(min=100, help="Of the bootstrap.")] = 2000
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published", help="Do what the authors' notebooks do otherwise than the paper says."
        ),
    ] = False
    deviations: Annotated[
        str,
        typer.Option(help="Some of that only, separated by commas: tla, aef, mmmc, stretched, interpolated."),
    ] = ""

    def settings(self) -> MedicalSettings:
        """Give them as the experiment takes them."""
        from segtrust.paper.medical.published import DEVIATIONS
        from segtrust.paper.medical.study import MedicalSettings

        if self.as_published and self.deviations:
            raise ParameterError(
                "deviations: expected --as-published, which is all of them, or some; got both."
            )
        named = [name.strip() for name in self.deviations.split(",") if name.strip()]
        unknown = [name for name in named if name not in DEVIATIONS]
        if unknown:
            raise ParameterError(f"deviations: expected some of {', '.join(DEVIATIONS)}, got {unknown[0]!r}.")
        return MedicalSettings(
            repeats=self.repeats,
            seed=self.seed,
            resamples=self.resamples,
            deviations=frozenset(DEVIATIONS if self.as_published else named),
        )


@with_options
def medical(
    data: Annotated[
        Path, typer.Option(help="Folder with the maps of each task: TASK/predictions/id.csv, or TASK.npz.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and run.json; a run goes on in it.")],
    tasks: Annotated[
        str, typer.Option(help="Names, separated by commas; all that are there unless given.")
    ] = "",
    *,
    what: MedicalFlags,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Load pickles. That runs whatever code is in them: only for files you made yourself.",
        ),
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core unless given.")] = None,
) -> None:
    """Make Tables 2 to 5 and Figures 1 and 7 to 11 of the paper from maps, with its numbers beside ours.

    Tasks whose maps are not there are left out, and named. Cases whose truth is empty are left out.
    """
    from segtrust.paper.medical.report import reproduce_medical, steps_of
    from segtrust.paper.medical.sources import find_tasks

    settings = what.settings()
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    found = find_tasks(data, names, allow_pickle=allow_pickle)
    with progress_bar("cases and splits", steps_of(found, settings)) as advance:
        run = reproduce_medical(out, found, settings, workers=workers or available_cores(), advance=advance)
    for grid in run.grids.values():
        typer.echo(f"{grid.title}\n\n{grid.markdown()}\n")
    for name, why in run.absent.items():
        typer.echo(f"{name} was left out: {why}")
    typer.echo(f"Tables and figures are in {out.resolve()}.")
    _tell_failures(run, out)


def _tell_failures(run: MedicalRun, out: Path) -> None:
    failed = {each.task.name: len(each.failures) for each in run.results if each.failures}
    if failed:
        listed = ", ".join(f"{name} {count}" for name, count in failed.items())
        typer.echo(f"Cases that failed: {listed}. See {out / 'tasks'}/*/failures.csv.", err=True)
    for name, why in run.unusable.items():
        typer.echo(f"{name} could not be judged: {why}", err=True)
    if failed or run.unusable:
        raise typer.Exit(1)
