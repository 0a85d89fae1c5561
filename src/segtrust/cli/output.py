"""What commands print: tables, failures, questions and progress; and the exit codes.

Results go to standard output; warnings, failures and progress to standard error.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segtrust._progress import count_steps

if TYPE_CHECKING:
    from rich.console import Console

    from segtrust.engine import Policies, ScoreTable
    from segtrust.io import CaseFiles, Dataset, Failure

__all__ = [
    "DRIFT",
    "FAILED",
    "NOTHING",
    "Images",
    "counted",
    "digits_between",
    "exit_if_failed",
    "image_values",
    "images_in",
    "new_console",
    "policy_values",
    "print_dataset",
    "print_failures",
    "print_next",
    "print_questions",
    "print_table",
    "progress_bar",
    "warnings_of",
]

FAILED, NOTHING, DRIFT = 1, 2, 3
"""Exit codes: some cases failed, nothing could be done, drift was detected."""
_SHOWN = 10
_WIDTH = 110
"""Columns of tables if there is no terminal, and the environment does not set COLUMNS."""


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "case"), counted(0, "case")
    ('1 case', '0 cases')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def new_console() -> Console:
    """Return a console as wide as the terminal, or wide enough for tables if there is none."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return Console(width=None if is_known else _WIDTH, highlight=False)


def print_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, lines: Sequence[str] = ()
) -> None:
    """Print a table below its title and some lines.

    Columns of numbers are aligned to the right, except the first, which has names.
    """
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table

    rows = list(rows)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        is_number = place > 0 and all(_is_number(row[place]) for row in rows)  # cases may be called 007
        table.add_column(escape(head), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console = new_console()
    console.print(escape(title), style="bold")
    for line in lines:
        console.print(escape(line))
    console.print(table)


def _is_number(cell: str) -> bool:
    digits = cell.strip(" %−-").replace(".", "")
    return digits in ("", "–") or digits.isdecimal()


def digits_between(values: Iterable[float], limit: float) -> int:
    """Return how many decimals tell values from a limit that they are compared with; at least 3.

    Examples
    --------
    >>> digits_between([0.9694, 0.5], 0.96939), digits_between([0.5], 0.9)
    (5, 3)
    """
    distances = [abs(value - limit) for value in values if value != limit]
    return max(3, min(9, math.ceil(-math.log10(min(distances, default=1.0)))))


def print_next(*arguments: str | Path) -> None:
    """Print the next command to type."""
    typer.echo(f"Next: segtrust {shlex.join(map(str, arguments))}")


@contextmanager
def progress_bar(what: str, total: int, *, goes_on: bool = True) -> Iterator[Callable[[int], None]]:
    """Draw a bar; yield a function to call with the steps that were done.

    On Ctrl-C, the message says that the work can be resumed with the same command, if ``goes_on``.
    """
    try:
        with count_steps(True, what, total) as advance:
            yield advance
    except KeyboardInterrupt as interrupt:
        if goes_on and not interrupt.args:
            interrupt.args = ("Interrupted: finished parts are kept. Rerun the same command to resume.",)
        raise


def policy_values(policies: Policies) -> dict[str, Any]:
    """Return for machines whether each policy is certified or estimated; nothing if there are none."""
    return {"standing": {name: str(each.status) for name, each in policies.items()}} if policies else {}


def warnings_of(scored: ScoreTable, images: Sequence[Images] = ()) -> list[str]:
    """Return what looks wrong about the input, and folders in which no image was found."""
    return [*scored.questions, *(str(each) for each in images if not each.found)]


def print_questions(scored: ScoreTable) -> None:
    """Print what looks wrong about the input, before the results."""
    for question in scored.questions:
        typer.secho(question, err=True, fg=typer.colors.YELLOW)


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
        raise typer.Exit(NOTHING if nothing else FAILED)


def print_dataset(
    data: Dataset | ScoreTable, images: Sequence[Images] = (), *, quiet: bool = False, err: bool = False
) -> None:
    """Print what was paired with what, on standard error if the table is printed; warn of missing images."""
    from segtrust.io import Dataset

    if not quiet and isinstance(data, Dataset):
        typer.secho(data.summary(), err=err)
        for each in images:
            if not each.found:
                typer.secho(str(each), err=True)


@dataclass(frozen=True)
class Images:
    """Number of cases that have an image in a folder.

    Attributes
    ----------
    folder
        Folder that was searched.
    cases, found
        Number of cases, and how many of them have an image there.
    example
        Name of a case.
    """

    folder: Path
    cases: int
    found: int
    example: str

    def __str__(self) -> str:
        """Return the numbers, and if there is no image, how it should be named."""
        have = "has" if self.found == 1 else "have"
        text = f"{self.found} of {counted(self.cases, 'case')} {have} an image in {self.folder}."
        if self.found:
            return text
        return f"{text} Expected one file named as each case, such as {self.example}.png."


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
    """Return the same for machines; nothing if no folder was given."""
    values = [{"folder": str(each.folder), "cases": each.cases, "found": each.found} for each in images]
    return {"images": values} if values else {}
