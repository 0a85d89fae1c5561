"""Where the commands print."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["new_console", "new_progress"]


def new_console() -> Console:
    """Give a console of the terminal's width, or wide enough for the tables where there is none."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def new_progress() -> Progress:
    """Give a progress bar on standard error, where it does not mix with results."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
