"""The command line: parse, call, print, exit code; the only place that prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segtrust.cli.loader import app, main

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """Load the commands when they are first used: those of the paper import from this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segtrust.cli import loader

    return getattr(loader, name)
