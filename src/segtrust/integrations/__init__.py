"""Bridges to other libraries: thin, over the public functions; each needs the library it is named after."""

from importlib import import_module
from typing import Any

_MODULES = ("monai", "nnunet", "torch", "totalsegmentator")


def __getattr__(name: str) -> Any:
    """Import a bridge on first use; if its library is missing, the error names the extra to install."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
