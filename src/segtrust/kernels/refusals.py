"""What is said about an array that is no probability map or no mask: one wording, wherever the array lies."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)

__all__ = [
    "Nearby",
    "check_shapes",
    "check_type",
    "mask_name",
    "refuse_empty",
    "refuse_mask_type",
    "refuse_mask_values",
    "refuse_shape",
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


_NARROW = re.compile(r"float[468]_")
"""Floats of a few bits, with which no library computes."""


class Nearby(NamedTuple):
    """The finite values around one that is refused: their span, and whether all above 1 are whole numbers."""

    low: float
    high: float
    whole: bool


def mask_name(source: str) -> str:
    """Name the mask of a map in errors, by its case where the map has more than the name of an argument.

    Examples
    --------
    >>> mask_name("p"), mask_name("p[3]"), mask_name("case 7")
    ('mask', 'mask[3]', 'case 7: mask')
    """
    return f"mask{source[1:]}" if source == "p" or source.startswith("p[") else f"{source}: mask"


def check_shapes(shape: tuple[int, ...], mask_shape: tuple[int, ...] | None, source: str) -> None:
    """Refuse a map without a pixel, and a mask of another shape than its map."""
    if math.prod(shape) == 0:
        refuse_empty(shape, source)
    if mask_shape is not None and mask_shape != shape:
        refuse_shape(mask_shape, f"the shape of {source}, {shape}", mask_name(source))


def refuse_empty(shape: tuple[int, ...] | None, source: str) -> NoReturn:
    """Refuse an array without a pixel."""
    came = "an array without a shape" if shape is None else f"an array of shape {shape}"
    raise EmptyArrayError(
        f"{source}: expected at least one pixel, got {came}. "
        "Look where its pixels were lost (a crop, a file that was not filled), or leave the case out."
    )


def refuse_shape(shape: tuple[int, ...], expected: str, source: str) -> NoReturn:
    """Refuse a mask that does not lie on the grid of what it belongs to."""
    raise MaskShapeError(
        f"{source}: expected {expected}, got {shape}. "
        "Both must lie on the same grid; resample or transpose one of them first."
    )


def check_type(dtype: Any, source: str) -> None:
    """Refuse what no library would call a float, uint8, uint16 or bool."""
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    is_float = ("float" in name and not _NARROW.match(name)) or name == "longdouble"
    if not (is_float or name in ("uint8", "uint16", "bool")):
        refuse_type(dtype, name[:1] if name.startswith(("int", "uint", "complex")) else "", source)


def refuse_type(dtype: Any, kind: str, source: str) -> NoReturn:
    """Refuse a type that holds no probabilities; ``kind`` is its letter in NumPy."""
    hint = _TYPE_HINTS.get(kind, "Convert the map to float32 probabilities first.")
    raise ProbabilityTypeError(
        f"{source}: expected float16, float32, float64, uint8, uint16 or bool, got {dtype}. {hint}"
    )


def refuse_mask_type(dtype: Any, source: str) -> NoReturn:
    """Refuse a type that holds no mask."""
    raise MaskError(
        f"{source}: expected bool, integers or floats of 0 and 1, got {dtype}. "
        "Make it bool first, for example mask == 1."
    )


def refuse_mask_values(values: Sequence[float], source: str) -> NoReturn:
    """Refuse a mask that holds these values beside 0 and 1."""
    distinct = list(dict.fromkeys(_written(value, 6) for value in values))  # NaN differs from itself
    shown = ", ".join(distinct[:_SHOWN]) + (", …" if len(distinct) > _SHOWN else "")
    raise NotBinaryError(
        f"{source}: expected only 0 and 1, got the values {shown}. "
        "Threshold or select the label first, for example mask > 0 or mask == label."
    )


def refuse_value(value: float, index: tuple[int, ...], nearby: Nearby, source: str) -> NoReturn:
    """Refuse a value that is no probability."""
    raise ProbabilityRangeError(
        f"{source}: expected probabilities in [0, 1], got {_written(value, 6)} at index {index}"
        f"{_span(nearby)}. {_remedy(value, nearby)}"
    )


def _span(nearby: Nearby) -> str:
    """Say what the finite values around a bad one are like, where there are any."""
    if not nearby.low <= nearby.high:
        return ""
    return f" (finite values nearby span [{_written(nearby.low, 3)}, {_written(nearby.high, 3)}])"


def _written(value: float, digits: int) -> str:
    """Write a number with some digits, or with all where it lies beyond 0 or 1 and would not read so.

    Examples
    --------
    >>> _written(1.25, 3), _written(1.0000001, 6)
    ('1.25', '1.0000001')
    """
    text = f"{value:.{digits}g}"
    is_beyond = not 0.0 <= value <= 1.0 and float(text) in (0.0, 1.0)
    return repr(float(value)) if is_beyond else text


def _remedy(value: float, nearby: Nearby) -> str:
    low, high, whole = nearby
    if not math.isfinite(value):
        return "NaN and infinity are never ranked: mend the model's output or leave the case out."
    if low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        return "This looks like a rounding error: clip it first, numpy.clip(p, 0, 1)."
    if whole and low >= -_ROUNDING and high <= 255.0:
        return "These look like 8-bit levels: divide by 255 or pass them as uint8."
    return "These look like logits: convert them first, with a sigmoid or softmax(logits, axis=0)."
