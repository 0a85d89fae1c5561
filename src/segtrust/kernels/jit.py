"""How the loops are compiled, said once.

Two kinds of loop exist here. A *reduction* may be re-associated by the compiler, or it would not be
vectorised; its blocks are short and its accumulators double, so the order inside a block costs at most a
few units in the last place. An *element-wise* loop must keep its order (the exponent arithmetic of the
logarithm depends on it) and is vectorised anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic, overload

__all__ = [
    "as_floats",
    "elementwise",
    "entry",
    "float_from_pattern",
    "pattern",
    "plain",
    "prefer_wide_vectors",
    "reduction",
    "unsigned_pattern",
]

_Function = TypeVar("_Function")


class _Compile(Protocol):
    """A decorator that keeps the type of what it compiles."""

    def __call__(self, function: _Function, /) -> _Function: ...


class _Inline(Protocol):
    """A decorator whose result is called with one argument fewer than what it decorates."""

    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]: ...


_intrinsic: _Inline = intrinsic


def _digest_of_kernels() -> str:
    """Fingerprint of every file that a compiled loop may have been inlined from."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_DIGEST = _digest_of_kernels()
_inner: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiled(**options: Any) -> _Compile:
    decorator: _Compile = njit(nogil=True, error_model="numpy", **options)
    return decorator


_exact: set[str] = {"contract", "nnan", "ninf"}  # not "nsz": zeros lose their sign by adding 0

reduction = _compiled(fastmath=_exact | {"reassoc", "arcp"}, **_inner)
"""For sums; called by other compiled functions only, which saves half of the compiler's time."""

elementwise = _compiled(fastmath=_exact, **_inner)
"""For loops without a sum; called by other compiled functions only."""

plain = _compiled(**_inner)
"""For what calls the loops; called by other compiled functions only."""


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep it on disk with all it calls until any kernel changes.

    Numba itself looks only at the file of the function; a change in a file it calls into would go unnoticed,
    and so would an upgrade that restores the times of unchanged files.
    """
    try:
        dispatcher = _compiled(cache=True)(function)
    except RuntimeError:  # nowhere to write to, as in a container under an arbitrary user: compile each time
        return _compiled()(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _DIGEST
    return dispatcher


def as_floats(source: Any, table: Any, scratch: Any) -> Any:
    """Give the probabilities of ``source``: floats as they are, integer codes through ``table``."""
    if source.dtype.kind == "f":
        return source
    scratch[: source.size] = table[source]
    return scratch[: source.size]


@overload(as_floats, strict=False)
def _as_floats_compiled(source: Any, table: Any, scratch: Any) -> Any:
    if isinstance(source.dtype, types.Float):
        return lambda source, table, scratch: source

    def look_up(source: Any, table: Any, scratch: Any) -> Any:
        for i in range(source.size):
            scratch[i] = table[source[i]]
        return scratch[: source.size]

    return look_up


@_intrinsic
def _reinterpret_as_unsigned(context: Any, value: Any) -> Any:
    width = 32 if value == types.float32 else 64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(width))

    return (types.uint32 if width == 32 else types.uint64)(value), generate


@_intrinsic
def _reinterpret_as_integer(context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@_intrinsic
def _reinterpret_as_float(context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


def pattern(value: Any) -> Any:
    """Bit pattern of a double as an integer."""
    return np.float64(value).view(np.int64)


def float_from_pattern(bits: Any) -> Any:
    """Double that has this bit pattern."""
    return np.int64(bits).view(np.float64)


def unsigned_pattern(value: Any) -> Any:
    """Bit pattern of a float or double as an unsigned integer of its width.

    Patterns of floats in [0, 1] are ordered like the floats; those of NaN, of values above 1 and of negative
    values, negative zero among them, all lie above the pattern of 1.
    """
    return value.view(np.uint32 if value.itemsize == 4 else np.uint64)


@overload(unsigned_pattern, strict=False)
def _unsigned_pattern_compiled(value: Any) -> Any:
    def reinterpret(value: Any) -> Any:
        return _reinterpret_as_unsigned(value)

    return reinterpret


@overload(pattern, strict=False)
def _pattern_compiled(value: Any) -> Any:
    def reinterpret(value: Any) -> Any:
        return _reinterpret_as_integer(value)

    return reinterpret


@overload(float_from_pattern, strict=False)
def _float_from_pattern_compiled(bits: Any) -> Any:
    def reinterpret(bits: Any) -> Any:
        return _reinterpret_as_float(bits)

    return reinterpret


def _nothing() -> None:
    """Stand in for the wish below where nothing is compiled."""


@_intrinsic
def _ask_for_wide_vectors(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite lists the attributes it knows; this one is a string attribute, added past that list.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


prefer_wide_vectors: Callable[[], None] = (
    _nothing if getattr(config, "DISABLE_JIT", 0) else _ask_for_wide_vectors
)
"""Let the calling loop use 512-bit registers where the processor has them.

Compilers keep to 256 bits by default because early processors slowed down; the loops here gain 1.3 to 1.4
times from the full width. Elsewhere the wish has no effect. It must stand in the loop's own function.
"""
