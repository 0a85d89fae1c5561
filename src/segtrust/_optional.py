"""Optional packages: they are imported on first use, and a missing one names the extra that installs it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from segtrust.errors import MissingExtraError

__all__ = ["install_hint", "require"]


def require(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional package, or raise an error that names the extra that installs it.

    Examples
    --------
    >>> require("math", extra="none").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]  # the package that can be installed
        raise MissingExtraError(f"This needs {package!r}: {install_hint(extra)}.") from error


def install_hint(extra: str) -> str:
    """Return how to install an extra.

    Examples
    --------
    >>> install_hint("io")
    "pip install 'segtrust[io]', or in a checkout '.[io]'"
    """
    return f"pip install 'segtrust[{extra}]', or in a checkout '.[{extra}]'"
