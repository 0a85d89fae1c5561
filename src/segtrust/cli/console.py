"""Where the commands print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from segtrust._progress import count_steps

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
