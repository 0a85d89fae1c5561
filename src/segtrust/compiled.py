"""How loops are compiled, said once.

Two kinds of loop exist here. A *reduction* may be re-associated by the compiler, or it would not be
vectorised; its blocks are short and its accumulators double, so the order inside a block costs at most a
few units in the last place. An *element-wise* loop must keep its order (the exponent arithmetic of the
logarithm depends on it) and is vectorised anyway.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from numba import njit

__all__ = ["elementwise", "entry", "plain", "reduction", "wary"]

_Function = TypeVar("_Function")


class _Compile(Protocol):
    """A decorator that keeps the type of what it compiles."""

    def __call__(self, function: _Function, /) -> _Function: ...


@cache
def _digest_of(folder: Path) -> str:
    """Fingerprint of every file that a compiled loop of a package may have been inlined from."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_inner: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiled(**options: Any) -> _Compile:
    decorator: _Compile = njit(nogil=True, error_model="numpy", **options)
    return decorator


_exact: set[str] = {"contract", "nnan", "ninf"}  # not "nsz": zeros lose their sign by adding 0

reduction = _compiled(fastmath=_exact | {"reassoc", "arcp"}, **_inner)
"""For sums; called by other compiled functions only, which saves half of the compiler's time."""

wary = _compiled(fastmath={"contract", "reassoc"}, **_inner)
"""For sums that must come out as NaN where anything summed is; called by other compiled functions only."""

elementwise = _compiled(fastmath=_exact, **_inner)
"""For loops without a sum; called by other compiled functions only."""

plain = _compiled(**_inner)
"""For what calls the loops; called by other compiled functions only."""


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep it on disk until any file of its package changes.

    Numba itself looks only at the file of the function; a change in a file it calls into would go unnoticed,
    and so would an upgrade that restores the times of unchanged files.
    """
    try:
        dispatcher = _compiled(cache=True)(function)
    except RuntimeError:  # nowhere to write to, as in a container under an arbitrary user: compile each time
        return _compiled()(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _digest_of(Path(function.__code__.co_filename).parent)  # type: ignore[attr-defined]
    return dispatcher
