"""Where the commands print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["new_console", "progress_bar"]


def new_console() -> Console:
    """Give a console of the terminal's width, or wide enough for the tables where there is none."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


@contextmanager
def progress_bar(what: str, total: int, *, goes_on: bool = True) -> Iterator[Callable[[int], None]]:
    """Draw progress on standard error, where it does not mix with results; give what is told of each step.

    Who presses Ctrl-C is told that the work goes on with the same command, where it does.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        try:
            yield lambda done: progress.advance(task, done)
        except KeyboardInterrupt:
            if goes_on:
                progress.console.print("Stopped. Finished parts are kept; the same command goes on.")
            raise
