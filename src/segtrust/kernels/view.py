"""A map as the loops want it: checked for shape and type, one stretch of memory, not copied to floats.

Values are not looked at here; the loops check their range while they sum, and call `explain_bad_values`
when they met one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn

import numpy as np

from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)

__all__ = ["MapView", "as_binary", "check_threshold", "explain_bad_values", "view_map"]

_NO_CODES = np.empty(0)
_PIECE = 1 << 20


@dataclass(frozen=True)
class MapView:
    """One map in memory.

    Attributes
    ----------
    values
        Contiguous; float32, float64 or unsigned integer codes, with the map's shape (its axes may be
        reversed: nothing computed here depends on their order).
    codes
        Probability of each code; empty for floats.
    mask
        uint8 of the same shape, or ``None`` for ``p >= threshold``.
    threshold
        In the type in which the values are compared.
    source
        How errors name the map.
    reversed_axes
        Whether ``values`` is the transpose of the map as it was given.
    """

    values: Any
    codes: Any
    mask: Any
    threshold: Any
    source: str
    reversed_axes: bool = False

    @property
    def unit(self) -> Any:
        """1 in the type in which the values are compared."""
        return type(self.threshold)(1)

    def cropped(self, shape: tuple[int, ...]) -> MapView:
        """Give the corner of this map at its origin, of the shape asked for."""
        corner = tuple(slice(length) for length in (shape[::-1] if self.reversed_axes else shape))
        mask = None if self.mask is None else np.ascontiguousarray(self.mask[corner])
        return replace(self, values=np.ascontiguousarray(self.values[corner]), mask=mask)

    def probabilities(self, piece: Any) -> Any:
        """Floats of a piece of ``values``."""
        return self.codes[piece] if self.codes.size else piece


@cache
def _codes_of(kind: str) -> Any:
    if kind == "float16":
        codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    else:
        levels = np.iinfo(kind).max
        codes = np.arange(levels + 1, dtype=np.float64) / levels
    codes.flags.writeable = False
    return codes


def check_threshold(threshold: float) -> None:
    """Refuse a decision threshold that is not a probability."""
    if not 0.0 <= threshold <= 1.0:
        raise ParameterError(f"threshold: expected a number in [0, 1], got {threshold!r}.")


def _code(p: Any, source: str) -> tuple[Any, Any]:
    """Split a map into values and the table that turns them into probabilities."""
    kind = p.dtype.newbyteorder("=").name
    if kind in ("float32", "float64"):
        return p.astype(kind, copy=False), _NO_CODES
    if kind == "bool":
        return p.view(np.uint8), np.array([0.0, 1.0])
    if kind in ("uint8", "uint16"):
        return p.astype(kind, copy=False), _codes_of(kind)
    if kind == "float16":
        return p.astype(kind, copy=False).view(np.uint16), _codes_of(kind)
    if p.dtype.kind == "f":
        return p.astype(np.float64), _NO_CODES
    _refuse_type(p.dtype, source)


def _refuse_type(dtype: Any, source: str) -> NoReturn:
    hint = "Convert the map to float32 probabilities first."
    if dtype.kind == "i":
        hint = "Signed integers have no agreed scale: divide by it and pass floats, or use uint8 or uint16."
    elif dtype.kind == "u":
        hint = "Only uint8 (/ 255) and uint16 (/ 65535) have an agreed scale: divide first and pass floats."
    elif dtype.kind == "c":
        hint = "Probabilities are real: take the real part or the modulus, whichever is meant."
    raise ProbabilityTypeError(
        f"{source}: expected float16, float32, float64, uint8, uint16 or bool, got {dtype}. {hint}"
    )


def as_binary(mask: Any, source: str = "mask") -> Any:
    """Give a mask as uint8 of 0 and 1, without a copy where it is bool or uint8 already.

    Examples
    --------
    >>> as_binary(np.array([0.0, 1.0])).tolist()
    [0, 1]
    """
    if mask.dtype == bool:
        return mask.view(np.uint8)
    if mask.dtype.kind not in "uif":
        raise MaskError(f"{source}: expected bool, integers or floats of 0 and 1, got {mask.dtype}.")
    binary = mask if mask.dtype == np.uint8 else (mask != 0).view(np.uint8)
    if mask.size and not _is_binary(mask, binary):
        raise NotBinaryError(
            f"{source}: expected only 0 and 1, got {_some_values(mask)}. "
            "Threshold or select the label first, for example mask > 0 or mask == label."
        )
    return binary


def _is_binary(mask: Any, binary: Any) -> bool:
    return bool(mask.max() <= 1) if mask is binary else bool((mask == binary).all())


def _some_values(mask: Any) -> str:
    values = np.unique(mask.reshape(-1)[:_PIECE])
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return f"the values {shown}" + (", …" if values.size > 6 else "")  # noqa: PLR2004


def view_map(p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p") -> MapView:
    """Check shape and type of a map and its mask and lay both out for the loops."""
    check_threshold(threshold)
    p = np.asarray(p)
    if p.size == 0:
        raise EmptyArrayError(f"{source}: expected at least one pixel, got an array of shape {p.shape}.")
    if mask is not None:
        mask = as_binary(np.asarray(mask))
        if mask.shape != p.shape:
            raise MaskShapeError(
                f"mask: expected the shape of {source}, {p.shape}, got {mask.shape}. "
                "Both must lie on the same grid; resample or transpose one of them first."
            )
    values, codes = _code(np.atleast_1d(p), source)
    mask = None if mask is None else np.atleast_1d(mask)
    # The axes of a Fortran-ordered map are reversed instead of copying it; only what has gaps is copied.
    reverse = values.flags.f_contiguous and not values.flags.c_contiguous
    if reverse:
        values, mask = values.T, None if mask is None else mask.T
    mask = None if mask is None else np.ascontiguousarray(mask)
    compared = values.dtype.type if codes.size == 0 else np.float64
    values = np.ascontiguousarray(values)
    return MapView(values, codes, mask, compared(threshold), source, reverse)


def explain_bad_values(view: MapView) -> None:
    """Raise for the first value that is no probability; return if there is none (a negative zero)."""
    flat = view.values.reshape(-1)
    for first in range(0, flat.size, _PIECE):
        piece = view.probabilities(flat[first : first + _PIECE])
        bad = ~((piece >= 0) & (piece <= 1))
        if bad.any():
            _raise_bad_value(view, piece, first, int(np.argmax(bad)))


def _raise_bad_value(view: MapView, piece: Any, first: int, at: int) -> NoReturn:
    index = tuple(int(i) for i in np.unravel_index(first + at, view.values.shape))
    if view.reversed_axes:
        index = index[::-1]
    value = float(piece[at])
    finite = piece[np.isfinite(piece)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (value, value)
    raise ProbabilityRangeError(
        f"{view.source}: expected probabilities in [0, 1], got {value:.6g} at index {index} "
        f"(finite values nearby span [{low:.3g}, {high:.3g}]). {_remedy(value, low, high)}"
    )


def _remedy(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "NaN is never ranked: mend the model's output or leave the case out."
    if low < 0.0:
        return "These look like logits: convert them first, with a sigmoid or softmax(logits, axis=0)."
    if 1.5 < high <= 255.0:  # noqa: PLR2004
        return "These look like 8-bit levels: divide by 255 or pass them as uint8."
    return "Clip rounding errors with numpy.clip(p, 0, 1); convert logits with a sigmoid or softmax."
