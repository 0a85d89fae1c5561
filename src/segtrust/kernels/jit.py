"""How the loops are compiled, said once.

Two kinds of loop exist here. A *reduction* may be re-associated by the compiler, or it would not be
vectorised; its blocks are short and its accumulators double, so the order inside a block costs at most a
few units in the last place. An *element-wise* loop must keep its order (the exponent arithmetic of the
logarithm depends on it) and is vectorised anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic, overload

__all__ = ["as_floats", "bits_of", "elementwise", "float_from_pattern", "pattern", "plain", "prefer_wide_vectors", "reduction"]

_Function = TypeVar("_Function")


class _Compile(Protocol):
    """A decorator that keeps the type of what it compiles."""

    def __call__(self, function: _Function, /) -> _Function: ...


_common: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
reduction: _Compile = njit(fastmath=True, **_common)
elementwise: _Compile = njit(fastmath={"contract", "nnan", "ninf", "nsz"}, **_common)
plain: _Compile = njit(**_common)


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


def bits_of(block: Any) -> Any:
    """View floats as the unsigned integers of the same width; in [0, 1] both are ordered alike."""
    return block.view(np.uint32 if block.dtype.itemsize == 4 else np.uint64)  # noqa: PLR2004


@overload(bits_of, strict=False)
def _bits_of_compiled(block: Any) -> Any:
    if block.dtype == types.float32:
        return lambda block: block.view(np.uint32)
    return lambda block: block.view(np.uint64)


@intrinsic
def _reinterpret_as_integer(context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
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


@overload(pattern, strict=False)
def _pattern_compiled(value: Any) -> Any:
    return lambda value: _reinterpret_as_integer(value)


@overload(float_from_pattern, strict=False)
def _float_from_pattern_compiled(bits: Any) -> Any:
    return lambda bits: _reinterpret_as_float(bits)


def _nothing() -> None:
    """Stand in for the wish below where nothing is compiled."""


@intrinsic
def _ask_for_wide_vectors(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite lists the attributes it knows; this one is a string attribute, added past that list.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


prefer_wide_vectors: Callable[[], None] = _nothing if config.DISABLE_JIT else _ask_for_wide_vectors
"""Let the calling loop use 512-bit registers where the processor has them.

Compilers keep to 256 bits by default because early processors slowed down; the loops here gain 1.3 to 1.4
times from the full width. Elsewhere the wish has no effect. It must stand in the loop's own function.
"""
