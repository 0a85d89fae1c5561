"""What is said about an array that is no probability map or no mask: one wording, wherever the array lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)

__all__ = [
    "check_shapes",
    "mask_name",
    "refuse_mask_type",
    "refuse_mask_values",
    "refuse_type",
    "refuse_value",
]

_SHOWN = 6
_ROUNDING = 0.01
"""Values outside [0, 1] by no more than this are taken for rounding: half precision, resampling."""
_TYPE_HINTS = {
    "i": "Signed integers have no agreed scale: divide by it and pass floats, or use uint8 or uint16.",
    "u": "Only uint8 (/ 255) and uint16 (/ 65535) have an agreed scale: divide first and pass floats.",
    "c": "Probabilities are real: take the real part or the modulus, whichever is meant.",
}


def mask_name(source: str) -> str:
    """Name the mask of a map in errors, by its case where the map has more than the name of an argument.

    Examples
    --------
    >>> mask_name("p"), mask_name("case 7")
    ('mask', 'case 7: mask')
    """
    return "mask" if source == "p" else f"{source}: mask"


def check_shapes(shape: tuple[int, ...], mask_shape: tuple[int, ...] | None, source: str) -> None:
    """Refuse a map without a pixel, and a mask of another shape than its map."""
    if math.prod(shape) == 0:
        raise EmptyArrayError(f"{source}: expected at least one pixel, got an array of shape {shape}.")
    if mask_shape is not None and mask_shape != shape:
        raise MaskShapeError(
            f"{mask_name(source)}: expected the shape of {source}, {shape}, got {mask_shape}. "
            "Both must lie on the same grid; resample or transpose one of them first."
        )


def refuse_type(dtype: Any, kind: str, source: str) -> NoReturn:
    """Refuse a type that holds no probabilities; ``kind`` is its letter in NumPy."""
    hint = _TYPE_HINTS.get(kind, "Convert the map to float32 probabilities first.")
    raise ProbabilityTypeError(
        f"{source}: expected float16, float32, float64, uint8, uint16 or bool, got {dtype}. {hint}"
    )


def refuse_mask_type(dtype: Any, source: str) -> NoReturn:
    """Refuse a type that holds no mask."""
    raise MaskError(f"{source}: expected bool, integers or floats of 0 and 1, got {dtype}.")


def refuse_mask_values(values: Sequence[float], source: str) -> NoReturn:
    """Refuse a mask that holds these values beside 0 and 1."""
    shown = ", ".join(f"{value:g}" for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
    raise NotBinaryError(
        f"{source}: expected only 0 and 1, got the values {shown}. "
        "Threshold or select the label first, for example mask > 0 or mask == label."
    )


def refuse_value(value: float, index: tuple[int, ...], nearby: tuple[float, float], source: str) -> NoReturn:
    """Refuse a value that is no probability; ``nearby`` is the span of the finite values around it."""
    low, high = nearby
    raise ProbabilityRangeError(
        f"{source}: expected probabilities in [0, 1], got {value:.6g} at index {index} "
        f"(finite values nearby span [{low:.3g}, {high:.3g}]). {_remedy(value, low, high)}"
    )


def _remedy(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "NaN and infinity are never ranked: mend the model's output or leave the case out."
    if low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        return "This looks like a rounding error: clip it first, numpy.clip(p, 0, 1)."
    if low >= -_ROUNDING and 1.5 < high <= 255.0:
        return "These look like 8-bit levels: divide by 255 or pass them as uint8."
    return "These look like logits: convert them first, with a sigmoid or softmax(logits, axis=0)."
