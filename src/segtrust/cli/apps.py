"""Groups of commands whose help flows to the width of the terminal."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import typer

__all__ = ["App"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class App(typer.Typer):
    """Like Typer's own, which keeps the line ends of docstrings: those are for who reads the code."""

    def command(self, *names: Any, **how: Any) -> Callable[[_Command], _Command]:
        """Add a command; its docstring is the help."""

        def added(function: _Command) -> _Command:
            decorate: Callable[[_Command], _Command] = super(App, self).command(
                *names, help=_flowing(function), **how
            )
            return decorate(function)

        return added


def _flowing(function: Callable[..., Any]) -> str:
    r"""Give a docstring with one line a paragraph.

    Examples
    --------
    >>> def command():
    ...     '''Do it.
    ...
    ...     All of it, and
    ...     at once.
    ...     '''
    >>> _flowing(command)
    'Do it.\n\nAll of it, and at once.'
    """
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function) or "").strip()
