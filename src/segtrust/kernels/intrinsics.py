"""Instructions that Numba does not offer, for compiled loops: bit patterns, extremes, vector width.

With ``NUMBA_DISABLE_JIT=1`` nothing is compiled, and plain Python functions do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, overload


class _Inline(Protocol):
    """A decorator whose result is called without the first argument of the decorated function."""

    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]: ...


_intrinsic: _Inline = intrinsic


def as_floats(values: Any, codes: Any, scratch: Any) -> Any:
    """Return the probabilities of ``values``: floats as they are, integer codes looked up in ``codes``."""
    if values.dtype.kind == "f":
        return values
    scratch[: values.size] = codes[values]
    return scratch[: values.size]


@overload(as_floats, strict=False)
def _as_floats_compiled(values: Any, codes: Any, scratch: Any) -> Any:
    if isinstance(values.dtype, types.Float):
        return lambda values, codes, scratch: values

    def look_up(values: Any, codes: Any, scratch: Any) -> Any:
        for i in range(values.size):
            scratch[i] = codes[values[i]]
        return scratch[: values.size]

    return look_up


def _choose(inline: Callable[..., Any], in_python: Callable[..., Any]) -> Callable[..., Any]:
    """Return the intrinsic, or the same function in Python if nothing is compiled.

    An overload would be compiled as a function of its own wherever it is called.
    """
    return in_python if getattr(config, "DISABLE_JIT", 0) else inline


@_intrinsic
def _inline_unsigned_pattern(context: Any, value: Any) -> Any:
    width = 32 if value == types.float32 else 64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(width))

    return (types.uint32 if width == 32 else types.uint64)(value), generate


@_intrinsic
def _inline_float_from_pattern(context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(bits), generate


def _inline_extreme(name: str) -> Callable[..., Any]:
    @_intrinsic
    def extreme(context: Any, first: Any, second: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double, double])
            function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), generate

    return extreme


def _unsigned_pattern(value: Any) -> Any:
    """Return the bit pattern; accepts Python's own floats, too, as compiled loops do."""
    number = np.asarray(value)
    return number.view(np.uint32 if number.itemsize == 4 else np.uint64)[()]


unsigned_pattern = _choose(_inline_unsigned_pattern, _unsigned_pattern)
"""Bit pattern of a float or double as an unsigned integer of the same width.

Patterns of floats in [0, 1] are ordered like the floats. Those of NaN, of values above 1 and of negative
values, including negative zero, all lie above the pattern of 1.
"""

float_from_pattern = _choose(_inline_float_from_pattern, lambda bits: np.uint64(bits).view(np.float64))
"""Double with this bit pattern."""

larger = _choose(_inline_extreme("llvm.maxnum.f64"), max)
"""The larger of two doubles, neither of them NaN.

``a if a > b else b``, stored where b came from, is compiled to a masked store, which takes some processors
ten times as long; and the compiler must not assume the absence of NaN in a loop that also sums.
"""

smaller = _choose(_inline_extreme("llvm.minnum.f64"), min)
"""The smaller of two doubles, neither of them NaN; see `larger`."""


@_intrinsic
def _ask_for_wide_vectors(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite lists the attributes it knows; this one is a string attribute, added past that list.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


prefer_wide_vectors: Callable[[], None] = _choose(_ask_for_wide_vectors, lambda: None)
"""Allow the calling loop to use 512-bit registers if the processor has them.

Compilers use 256 bits by default because early processors slowed down; the loops here gain a factor of 1.3 to
1.4 from the full width. It has no effect on other processors, and must be called in the function of the loop.
"""
