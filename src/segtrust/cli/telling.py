"""What commands say at their end: of policies, of what failed, and of what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segtrust.cli.console import counted

if TYPE_CHECKING:
    from segtrust.engine.decisions import Policies
    from segtrust.engine.outcomes import Failure, Row
    from segtrust.io.cases import CaseFiles
    from segtrust.io.tables import Table

__all__ = [
    "Images",
    "as_values",
    "image_values",
    "images_in",
    "tell_failures",
    "tell_images",
    "tell_policies",
    "tell_unversioned",
    "tell_warnings",
    "warnings_of",
]

_SHOWN = 5


def tell_policies(policies: Policies) -> None:
    """Say what each policy promises."""
    for policy in policies.values():
        typer.echo(str(policy))


def as_values(policies: Policies) -> dict[str, Any]:
    """Say for machines how policies stand; nothing where there are none."""
    return {"standing": {name: str(each.status) for name, each in policies.items()}} if policies else {}


def warnings_of(rows: Sequence[Row], images: Sequence[Images] = ()) -> list[str]:
    """Say what is rare, unless labels were taken for maps: all masks empty, or no doubt at all.

    Folders in which no image was found are told too.

    Examples
    --------
    >>> warnings_of([{"k": 3, "mu": 0.9, "lam": 0.5}])
    []
    >>> warnings_of([{"k": 3}])  # a table of somebody else's
    []
    """
    return [*_of_rows(rows), *(str(each) for each in images if not each.found)]


def _of_rows(rows: Sequence[Row]) -> list[str]:
    filled = [row for row in rows if row["k"]]
    if rows and not filled:
        return [
            "All masks are empty: no map reaches the threshold. Are these probabilities? 8-bit numbers are "
            "divided by 255, so labels such as 0 and 1 would be next to nothing."
        ]
    if filled and all(row.get("mu") == 1.0 and row.get("lam") == 0.0 for row in filled):
        return [
            "All maps are 0 or 1 everywhere, and every confidence is 1. Are these probabilities, or masks?"
        ]
    cut = {row["mask"] for row in rows if row.get("mask")} - {"delivered"}
    bare = sum(row.get("mask") in cut for row in rows)
    if 0 < bare < len(rows):
        how = "decoded" if "dice-optimal" in cut else "cut at the threshold"
        return [f"{bare} of {len(rows)} have no delivered mask: their maps were {how}."]
    return []


def tell_warnings(rows: Sequence[Row]) -> None:
    """Print them where they do not mix with results."""
    for warning in warnings_of(rows):
        typer.secho(warning, err=True)


def tell_unversioned(table: Table) -> None:
    """Print that a table does not say how it was made, where it should."""
    from segtrust.engine.score_table import unversioned

    said = unversioned(table)
    if said:
        typer.secho(said, err=True)


def tell_failures(
    failures: Sequence[Failure], path: Path | None, *, quiet: bool = False, nothing: bool = False
) -> None:
    """Say which cases failed, and why, all of them where no file does; leave with code 1, or 2 for all.

    Those for lack of a package are counted: one thing is to be done about all of them.
    """
    from segtrust.engine.packages import split_missing

    if not failures:
        return
    if not quiet:
        others, lacking = split_missing(failures)
        for failure in others[: None if path is None else _SHOWN]:
            typer.secho(f"  {failure.case}: {failure.reason}", err=True)
        for reason, count in lacking.items():
            typer.secho(f"  {counted(count, 'case')}: {reason}", err=True)
        where = "" if path is None else f", with the reasons: {path}"
        typer.secho(f"{counted(len(failures), 'failure')}{where}", err=True)
    raise typer.Exit(2 if nothing else 1)


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


def images_in(folder: Path | None, cases: Sequence[CaseFiles]) -> list[Images]:
    """Count the cases whose image is from a folder; nothing where none was asked for."""
    if folder is None or not cases:
        return []
    found = sum(case.image is not None and case.image.path.is_relative_to(folder) for case in cases)
    return [Images(folder, len(cases), found, cases[0].name)]


def tell_images(images: Sequence[Images], *, quiet: bool = False) -> None:
    """Say how many images were found, before cases are run: a wrong folder is not seen in the numbers."""
    if not quiet:
        for each in images:
            typer.secho(str(each), err=True)


def image_values(images: Sequence[Images]) -> dict[str, Any]:
    """Say the same for machines; nothing where no folder was given."""
    told = [{"folder": str(each.folder), "cases": each.cases, "found": each.found} for each in images]
    return {"images": told} if told else {}
