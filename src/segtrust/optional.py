"""Optional packages: they fail at first use and name the extra that brings them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from segtrust.errors import MissingExtraError

__all__ = ["require"]


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
        message = f"This needs {module!r}: pip install 'segtrust[{extra}]'."
        raise MissingExtraError(message) from error
