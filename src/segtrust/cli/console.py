"""Where the commands print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["counted", "new_console", "progress_bar"]


def counted(number: int, what: str) -> str:
    """Give a number of things in words.

    Examples
    --------
    >>> counted(1, "case"), counted(0, "case")
    ('1 case', '0 cases')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def new_console() -> Console:
    """Give a console of the terminal's width, or wide enough for the tables where there is none."""
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


class _RateColumn(ProgressColumn):
    """How many are done in a second, or in a minute where that is less than one."""

    def render(self, task: Task) -> Text:
        """Give the rate; nothing before the first is done."""
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.3g}/s" if speed >= 1.0 else f"{60.0 * speed:.3g}/min")


@contextmanager
def progress_bar(what: str, total: int, *, goes_on: bool = True) -> Iterator[Callable[[int], None]]:
    """Draw progress on standard error, where it does not mix with results; give what is told of each step.

    Nothing is drawn where that is no terminal.

    Who presses Ctrl-C is told that the work goes on with the same command, where it does.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        try:
            yield lambda done: progress.advance(task, done)
        except KeyboardInterrupt as interrupt:
            if goes_on and not interrupt.args:
                interrupt.args = ("Interrupted: finished parts are kept. Rerun the same command to resume.",)
            raise
