"""What commands print: which files were paired, which policies apply, what failed, and what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segtrust.cli.console import counted

if TYPE_CHECKING:
    from segtrust.engine import Policies, ScoreTable
    from segtrust.io import CaseFiles, Dataset, Failure, Table

__all__ = [
    "Images",
    "as_values",
    "exit_if_failed",
    "image_values",
    "images_in",
    "print_dataset",
    "print_failures",
    "print_questions",
    "tell_policies",
    "tell_unversioned",
    "warnings_of",
]

_SHOWN = 10


def tell_policies(policies: Policies) -> None:
    """Say what each policy promises."""
    for policy in policies.values():
        typer.echo(str(policy))


def as_values(policies: Policies) -> dict[str, Any]:
    """Say for machines how policies stand; nothing where there are none."""
    return {"standing": {name: str(each.status) for name, each in policies.items()}} if policies else {}


def warnings_of(scored: ScoreTable, images: Sequence[Images] = ()) -> list[str]:
    """Return what looks wrong about the input, and folders in which no image was found."""
    return [*scored.questions, *(str(each) for each in images if not each.found)]


def print_questions(scored: ScoreTable) -> None:
    """Print what looks wrong about the input, before the results."""
    for question in scored.questions:
        typer.secho(question, err=True, fg=typer.colors.YELLOW)


def tell_unversioned(table: Table) -> None:
    """Print that a table does not say how it was made, where it should."""
    from segtrust.engine import unversioned

    said = unversioned(table)
    if said:
        typer.secho(said, err=True)


def print_failures(failures: Sequence[Failure], path: Path | None) -> None:
    """Print the failures by reason, with a count and one example each; all reasons if no file lists them."""
    from segtrust.io import group_failures

    if not failures:
        return
    groups = group_failures(failures)
    shown = groups if path is None else groups[:_SHOWN]
    where = "" if path is None else f"; {path} lists all of them"
    typer.secho(f"{counted(len(failures), 'failure')}{where}:", err=True)
    for group in shown:
        typer.secho(f"  {group}", err=True)
    if len(groups) > len(shown):
        typer.secho(f"  and {counted(len(groups) - len(shown), 'other reason')}", err=True)


def exit_if_failed(failures: Sequence[Failure], *, nothing: bool = False) -> None:
    """Exit with code 1 if some cases failed, with 2 if there is no result."""
    if failures:
        raise typer.Exit(2 if nothing else 1)


def print_dataset(
    dataset: Dataset, images: Sequence[Images] = (), *, quiet: bool = False, err: bool = False
) -> None:
    """Print what was paired with what, on standard error if the table is printed; warn of missing images."""
    if not quiet:
        typer.secho(dataset.summary(), err=err)
        for each in images:
            if not each.found:
                typer.secho(str(each), err=True)


@dataclass(frozen=True)
class Images:
    """How many cases have found an image in a folder.

    Attributes
    ----------
    folder
        That was looked through.
    cases, found
        How many cases there are, and how many have one.
    example
        Name of a case.
    """

    folder: Path
    cases: int
    found: int
    example: str

    def __str__(self) -> str:
        """Say it; where there is none, how they should be called."""
        have = "has" if self.found == 1 else "have"
        told = f"{self.found} of {counted(self.cases, 'case')} {have} an image in {self.folder}."
        if self.found:
            return told
        return f"{told} Expected one file named as each case, such as {self.example}.png."


def images_in(folders: Sequence[str] | None, cases: Sequence[CaseFiles]) -> list[Images]:
    """Return how many cases have their image in each folder, given as DIR or NAME=DIR."""
    found = []
    for text in folders or () if cases else ():
        folder = Path(text) if Path(text).exists() else Path(text.partition("=")[2])
        images = [case.image.path for case in cases if case.image is not None]
        count = sum(path.is_relative_to(folder) for path in images)
        found.append(Images(folder, len(cases), count, cases[0].name))
    return found


def image_values(images: Sequence[Images]) -> dict[str, Any]:
    """Say the same for machines; nothing where no folder was given."""
    told = [{"folder": str(each.folder), "cases": each.cases, "found": each.found} for each in images]
    return {"images": told} if told else {}
