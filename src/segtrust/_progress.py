"""How far a job is: a callback, or a bar in the terminal or notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

__all__ = ["Progress", "count_steps"]

Progress = Callable[[str, int, int], object]
"""Called with what is counted, the number that is done, and the number of all."""
_REDRAW_S = 0.1


def count_steps(
    progress: Progress | bool, what: str, total: int
) -> AbstractContextManager[Callable[[int], None]]:
    """Return a context that yields a function to call with the number of steps that were just done.

    Parameters
    ----------
    progress
        A callback; ``True`` for a bar in a terminal or notebook, and nothing elsewhere; ``False`` for none.
    what, total
        What is counted, and how many steps there are.

    Examples
    --------
    >>> with count_steps(lambda *values: print(*values), "cases", 2) as advance:
    ...     advance(1)
    cases 0 2
    cases 1 2
    """
    if progress is False:
        return _called(lambda *values: None, what, total)
    if progress is not True:
        return _called(progress, what, total)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _notebook_bar(what, total)
    return _terminal_bar(what, total)


@contextmanager
def _called(progress: Progress, what: str, total: int) -> Iterator[Callable[[int], None]]:
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        progress(what, done, total)

    progress(what, 0, total)
    yield advance


@contextmanager
def _notebook_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    display = import_module("IPython.display")

    def html(done: int) -> Any:
        return display.HTML(
            f'<progress max="{max(total, 1)}" value="{done}"></progress> {done} of {total} {what}'
        )

    done, drawn = 0, time.monotonic()
    handle = display.display(html(0), display_id=True)

    def advance(steps: int) -> None:
        nonlocal done, drawn
        done += steps
        if time.monotonic() - drawn > _REDRAW_S:
            drawn = time.monotonic()
            handle.update(html(done))

    try:
        yield advance
    finally:
        handle.update(html(done))


@contextmanager
def _terminal_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Draw on standard error, where a bar does not mix with results."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TimeRemainingColumn
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            if not speed:
                return Text("")
            return Text(f"{speed:.3g}/s" if speed >= 1.0 else f"{60.0 * speed:.3g}/min")

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)
