"""A map in memory as the compiled loops read it: checked for shape and type, contiguous, and not converted.

The values themselves are not checked here. The loops check their range while they sum, and
`raise_first_bad_value` is called if they met a value that is not a probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from operator import add
from typing import Any, NoReturn

import numpy as np

from segtrust.kernels.array_checks import (
    NearbyValues,
    as_binary,
    check_shapes,
    mask_name,
    raise_bad_value,
    raise_map_type,
)

SMALLEST_SEGMENT, _LARGEST_SEGMENT, _SEGMENTS = 1 << 19, 1 << 22, 8
"""Fewest and most pixels in a segment, which is summed in one call and is the unit that threads share; and
the number of segments of a map if both allow it, because each call takes time of its own."""
SEGMENT_UNIT = 4096
"""Segments, except the last of a map, are a multiple of this many pixels, and so of every loop's block."""

NO_CODES = np.empty(0)
_SEARCHED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class MapView:
    """One map in memory.

    Attributes
    ----------
    values
        Contiguous array with the map's shape: float32, float64 or unsigned integer codes. Its axes may be
        reversed; nothing that is computed depends on their order.
    codes
        Probability of each integer code; empty for floats.
    mask
        uint8 array of the same shape, or ``None`` for ``p >= threshold``.
    threshold
        Decision threshold, in the type in which the values are compared.
    source
        Name of the map in errors.
    reversed_axes
        Whether ``values`` is the transpose of the original map.
    origin
        Index at which this map begins in a larger one of which it is a tile; empty for a whole map.
    """

    values: Any
    codes: Any
    mask: Any
    threshold: Any
    source: str
    reversed_axes: bool = False
    origin: tuple[int, ...] = ()

    def cropped(self, shape: tuple[int, ...]) -> MapView:
        """Return the part of this map that begins at its first pixel and has the given shape."""
        corner = tuple(slice(length) for length in (shape[::-1] if self.reversed_axes else shape))
        mask = None if self.mask is None else contiguous(self.mask[corner])
        return replace(self, values=contiguous(self.values[corner]), mask=mask)

    def probabilities(self, values: Any) -> Any:
        """Return some of ``self.values`` as floats."""
        return self.codes[values] if self.codes.size else values


def view_map(p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p") -> MapView:
    """Check shape and type of a NumPy map and its mask and lay both out for the compiled loops."""
    p = np.asarray(p)
    if mask is None and p.dtype.char in "fd" and p.dtype.isnative and p.flags.c_contiguous and p.size:
        return MapView(contiguous(p), NO_CODES, None, p.dtype.type(threshold), source)
    check_shapes(p.shape, None if mask is None else np.shape(mask), source)
    if mask is not None:
        mask = np.atleast_1d(as_binary(np.asarray(mask), mask_name(source)))
    values, codes = _encode(np.atleast_1d(p), source)
    # The axes of a Fortran-ordered map are reversed instead of copying it; only a map with gaps is copied.
    reverse = values.flags.f_contiguous and not values.flags.c_contiguous
    if reverse:
        values, mask = values.T, None if mask is None else mask.T
    # A threshold is rounded as NumPy does in p >= threshold; codes are compared as doubles.
    rounded = p.dtype.type(threshold) if p.dtype.kind == "f" else threshold
    compared = np.float32 if p.dtype.kind == "f" and p.dtype.itemsize == 4 else np.float64
    mask = None if mask is None else contiguous(mask)
    return MapView(contiguous(values), codes, mask, compared(rounded), source, reverse)


def is_readable_in_place(p: Any, mask: Any) -> bool:
    """Return whether the loops can read a NumPy map and its mask without copying them."""
    is_stored_as_read = p.dtype.isnative and (p.dtype.kind != "f" or p.dtype.itemsize <= 8)
    arrays = [p] if mask is None else [p, mask]
    have_one_order = all(a.flags.c_contiguous for a in arrays) or all(a.flags.f_contiguous for a in arrays)
    return bool(is_stored_as_read and have_one_order and (mask is None or mask.dtype in (np.bool_, np.uint8)))


def contiguous(values: Any) -> Any:
    """Return a contiguous, read-only array with an axis: the one kind that loops are compiled for."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def code_probabilities(dtype: Any) -> Any:
    """Return the probability of each code of a map of integers or bool; ``None`` for a map of floats."""
    return None if dtype.kind == "f" else _probability_of_code(dtype.newbyteorder("=").name)


def _encode(p: Any, source: str) -> tuple[Any, Any]:
    """Split a map into values that the loops read and the table that turns codes into probabilities."""
    kind = p.dtype.newbyteorder("=").name
    if kind in ("float32", "float64"):
        return p.astype(kind, copy=False), NO_CODES
    if kind == "bool":
        return p.view(np.uint8), _probability_of_code(kind)
    if kind in ("uint8", "uint16"):
        return p.astype(kind, copy=False), _probability_of_code(kind)
    if kind == "float16":
        return p.astype(kind, copy=False).view(np.uint16), _probability_of_code(kind)
    if p.dtype.kind == "f":
        return p.astype(np.float64), NO_CODES
    raise_map_type(p.dtype, p.dtype.kind, source)


@cache
def _probability_of_code(kind: str) -> Any:
    if kind == "float16":
        codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
        codes[codes == 0.0] = 0.0  # removes the sign of a negative zero
    elif kind == "bool":
        codes = (np.arange(256) > 0).astype(np.float64)  # any byte but 0 is true
    else:
        levels = np.iinfo(kind).max
        codes = np.arange(levels + 1, dtype=np.float64) / levels
    codes.flags.writeable = False
    return codes


def segments_of(size: int) -> list[slice]:
    """Split a number of pixels into segments of whole blocks; where depends on the number alone.

    Examples
    --------
    >>> segments_of(600_000)
    [slice(0, 524288, None), slice(524288, 600000, None)]
    """
    step = min(max(-(-size // _SEGMENTS), SMALLEST_SEGMENT), _LARGEST_SEGMENT)
    step += -step % SEGMENT_UNIT
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def raise_first_bad_value(view: MapView, segment: slice = slice(None)) -> NoReturn:
    """Raise the error for the first bad value of a segment in which a loop has met one."""
    flat = view.values.reshape(-1)
    start, stop, _ = segment.indices(flat.size)
    first, p, bad = start, flat[:0], np.empty(0, np.intp)
    for first in range(start, stop, _SEARCHED_AT_ONCE):
        p = view.probabilities(flat[first : min(first + _SEARCHED_AT_ONCE, stop)])
        bad = np.flatnonzero(~((p >= 0) & (p <= 1)))
        if bad.size:
            break
    index = tuple(int(i) for i in np.unravel_index(first + bad[0], view.values.shape))
    if view.reversed_axes:
        index = index[::-1]
    if view.origin:
        index = tuple(map(add, view.origin, index))
    value = float(p[bad[0]])
    finite = p[np.isfinite(p)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (value, value)
    above = finite[finite > 1]
    nearby = NearbyValues(low, high, bool((above == np.floor(above)).all()))
    raise_bad_value(value, index, nearby, view.source)
