"""A map as the loops want it: checked for shape and type, one stretch of memory, not copied to floats.

Values are not looked at here; the loops check their range while they sum, and call `explain_bad_values`
when they met one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from operator import add
from typing import Any, NoReturn

import numpy as np

from segtrust.kernels.inputs import check_fraction
from segtrust.kernels.refusals import (
    Nearby,
    check_shapes,
    mask_name,
    refuse_mask_type,
    refuse_mask_values,
    refuse_type,
    refuse_value,
)

__all__ = ["MapView", "as_binary", "explain_bad_values", "is_packed", "packed", "view_map"]

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
    origin
        Where this map begins in a larger one of which it is a tile; nothing for a whole map.
    """

    values: Any
    codes: Any
    mask: Any
    threshold: Any
    source: str
    reversed_axes: bool = False
    origin: tuple[int, ...] = ()

    @property
    def unit(self) -> Any:
        """1 in the type in which the values are compared."""
        return type(self.threshold)(1)

    def cropped(self, shape: tuple[int, ...]) -> MapView:
        """Give the corner of this map at its origin, of the shape asked for."""
        corner = tuple(slice(length) for length in (shape[::-1] if self.reversed_axes else shape))
        mask = None if self.mask is None else packed(self.mask[corner])
        return replace(self, values=packed(self.values[corner]), mask=mask)

    def probabilities(self, piece: Any) -> Any:
        """Floats of a piece of ``values``."""
        return self.codes[piece] if self.codes.size else piece


@cache
def _codes_of(kind: str) -> Any:
    if kind == "float16":
        codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
        codes[codes == 0.0] = 0.0  # a zero that has a sign loses it
    elif kind == "bool":
        codes = (np.arange(256) > 0).astype(np.float64)  # any byte but 0 is true
    else:
        levels = np.iinfo(kind).max
        codes = np.arange(levels + 1, dtype=np.float64) / levels
    codes.flags.writeable = False
    return codes


def _code(p: Any, source: str) -> tuple[Any, Any]:
    """Split a map into values and the table that turns them into probabilities."""
    kind = p.dtype.newbyteorder("=").name
    if kind in ("float32", "float64"):
        return p.astype(kind, copy=False), _NO_CODES
    if kind == "bool":
        return p.view(np.uint8), _codes_of(kind)
    if kind in ("uint8", "uint16"):
        return p.astype(kind, copy=False), _codes_of(kind)
    if kind == "float16":
        return p.astype(kind, copy=False).view(np.uint16), _codes_of(kind)
    if p.dtype.kind == "f":
        return p.astype(np.float64), _NO_CODES
    refuse_type(p.dtype, p.dtype.kind, source)


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
        refuse_mask_type(mask.dtype, source)
    binary = mask if mask.dtype == np.uint8 else (mask != 0).view(np.uint8)
    if mask.size and not _is_binary(mask, binary):
        refuse_mask_values(np.unique(mask[(mask != 0) & (mask != 1)]).tolist(), source)
    return binary


def _is_binary(mask: Any, binary: Any) -> bool:
    return bool(mask.max() <= 1) if mask is binary else bool((mask == binary).all())


def view_map(p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p") -> MapView:
    """Check shape and type of a map and its mask and lay both out for the loops."""
    check_fraction(threshold, "threshold")
    p = np.asarray(p)
    check_shapes(p.shape, None if mask is None else np.shape(mask), source)
    mask = None if mask is None else np.atleast_1d(as_binary(np.asarray(mask), mask_name(source)))
    values, codes = _code(np.atleast_1d(p), source)
    # The axes of a Fortran-ordered map are reversed instead of copying it; only what has gaps is copied.
    reverse = values.flags.f_contiguous and not values.flags.c_contiguous
    if reverse:
        values, mask = values.T, None if mask is None else mask.T
    mask = None if mask is None else packed(mask)
    return MapView(packed(values), codes, mask, _as_compared(threshold, p.dtype), source, reverse)


def is_packed(p: Any, mask: Any) -> bool:
    """Tell whether the loops can read a map and its mask where they lie."""
    as_stored = p.dtype.isnative and (p.dtype.kind != "f" or p.dtype.itemsize <= 8)
    arrays = [p] if mask is None else [p, mask]
    together = all(a.flags.c_contiguous for a in arrays) or all(a.flags.f_contiguous for a in arrays)
    return bool(as_stored and together and (mask is None or mask.dtype in (np.bool_, np.uint8)))


def packed(values: Any) -> Any:
    """Give an array without gaps that nobody writes to, so that loops are compiled for one kind only."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _as_compared(threshold: float, dtype: Any) -> Any:
    """Round a threshold as NumPy does in ``p >= threshold``; codes are compared as doubles."""
    if dtype.kind != "f":
        return np.float64(threshold)
    rounded = dtype.type(threshold)
    return rounded if dtype.itemsize == 4 else np.float64(rounded)


def explain_bad_values(view: MapView, stretch: slice = slice(None)) -> NoReturn:
    """Raise for the first bad value of a stretch in which a loop has met one."""
    flat = view.values.reshape(-1)
    start, stop, _ = stretch.indices(flat.size)
    firsts = range(start, stop, _PIECE)
    pieces = (view.probabilities(flat[first : min(first + _PIECE, stop)]) for first in firsts)
    first, piece = next(pair for pair in zip(firsts, pieces, strict=True) if _is_bad(pair[1]).any())
    _raise_bad_value(view, piece, first, int(np.argmax(_is_bad(piece))))


def _is_bad(piece: Any) -> Any:
    return ~((piece >= 0) & (piece <= 1))


def _raise_bad_value(view: MapView, piece: Any, first: int, at: int) -> NoReturn:
    index = tuple(int(i) for i in np.unravel_index(first + at, view.values.shape))
    if view.reversed_axes:
        index = index[::-1]
    if view.origin:
        index = tuple(map(add, view.origin, index))
    value = float(piece[at])
    finite = piece[np.isfinite(piece)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (value, value)
    above = finite[finite > 1]
    refuse_value(value, index, Nearby(low, high, bool((above == np.floor(above)).all())), view.source)
