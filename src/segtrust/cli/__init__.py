"""The command line: parse, call, print, exit code; the only place that prints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segtrust.cli.loader import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; Ctrl-C while modules are loaded ends it without a traceback."""
    try:
        from segtrust.cli import loader

        loader.main()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted. Rerun the same command.\n")
        sys.exit(130)


def __getattr__(name: str) -> Any:
    """Load the commands when they are first used: those of the paper import from this package."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segtrust.cli import loader

    return loader.app
