"""Optional packages: they fail at first use and name the extra that brings them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from segtrust.errors import MissingExtraError

__all__ = ["remedy", "require"]


def require(module: str, *, extra: str) -> ModuleType:
    """Import ``module`` or say which extra installs it.

    Examples
    --------
    >>> require("math", extra="none").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]  # which is what can be installed
        raise MissingExtraError(f"This needs {package!r}: {remedy(extra)}.") from error


def remedy(extra: str) -> str:
    """Say how an extra is installed.

    Examples
    --------
    >>> remedy("io")
    "pip install 'segtrust[io]', or in a checkout '.[io]'"
    """
    return f"pip install 'segtrust[{extra}]', or in a checkout '.[{extra}]'"
