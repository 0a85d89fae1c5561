"""Input that can be scored but is probably not what was meant: masks, other scales, batches and classes.

These checks look at the shape, at about a thousand pixels, and at statistics that have been computed anyway.
The pixels are read again only if those leave the suspicion open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from segtrust._arguments import warn_caller
from segtrust.errors import ProbabilityError
from segtrust.kernels.array_checks import dtype_name
from segtrust.kernels.classes import is_normalised
from segtrust.kernels.device import FULL_SCALE, is_device_array, on_host
from segtrust.kernels.selection import select_pixels
from segtrust.kernels.statistics import host_number
from segtrust.kernels.tiles import is_chunked, read_tile, tiles_of

_SMALLEST_SIDE = 8
"""Images with fewer pixels along a side are no reason for a warning."""
_MOST_CLASSES = 256
_MOST_CHUNKED_CLASSES = 32
_SCALES = {
    "uint8": {100: "per cent"},
    "uint16": {100: "per cent", 255: "8-bit levels", 1023: "10-bit levels", 4095: "12-bit levels"},
}
"""Largest values that show that an integer map was saved on another scale than that of its type."""
_LEAST_AT_TOP = 50
"""Fewest pixels with the largest value that make another scale more than a coincidence."""
_CERTAIN_AT_TOP = 1000
"""From this many pixels on, 1 % of all pixels above 0 is enough; below, 2 % is required."""


def warn_of_surprises(p: Any, may_be_below: Callable[[float], bool], where: Any = None) -> None:
    """Warn if an array that was scored as one map is probably none, by its shape or by its values.

    Parameters
    ----------
    p
        The map; plain numbers and lists are never a surprise.
    may_be_below
        Whether all probabilities may be at most some number, judged by statistics of the map.
    where
        The pixels that count, ``None`` for all.
    """
    warn_of_shape(p)
    dtype = getattr(p, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") != "f":  # floats have one scale
        check_levels(parts_of(p, where), dtype, may_be_below)


def warn_of_shape(p: Any) -> None:
    """Warn if an array that was scored as one map looks like a batch or a softmax, see `suspect_shape`."""
    suspicion = suspect_shape(p)
    if suspicion is not None:
        found, remedy = suspicion
        warn_caller(f"p: {found}, but it was scored as one map. {remedy}")


def suspect_shape(p: Any) -> tuple[str, str] | None:
    """Return what an array is if it looks like a batch or like the classes of a softmax, and what to do.

    The rule: (B, 1, H, W, …) is a batch if B is above 1 and H and W are at least 8. An array with at least
    three axes is a softmax if its first or last axis, or the second of at least four, has 2 to 256 entries
    that add up to 1 in about a thousand pixels. The slices of a volume do not: where it is background, all of
    them are 0.
    """
    shape: tuple[int, ...] = tuple(getattr(p, "shape", ()))
    if len(shape) < 3:
        return None
    if len(shape) > 3 and shape[1] == 1 and shape[0] > 1 and min(shape[2:4]) >= _SMALLEST_SIDE:
        return (
            f"the shape {shape} looks like a batch (B, 1, …)",
            "Pass one image at a time, or use st.score_batch(p[:, 0]) for one confidence per image.",
        )
    for axis in (0, len(shape) - 1, 1)[: 3 if len(shape) > 3 else 2]:
        if _are_classes(p, axis):
            return (
                f"axis {axis} of {shape} adds up to 1, as the classes of a softmax do",
                "Pass one channel, or use st.score_classes(p, names).",
            )
    return None


def _are_classes(p: Any, axis: int) -> bool:
    """Return whether the values along an axis add up to 1: in one pixel, and then in about a thousand."""
    classes = p.shape[axis]
    if is_chunked(p):
        return axis == 0 and 1 < classes <= _MOST_CHUNKED_CLASSES and is_normalised(p)
    if not 1 < classes <= _MOST_CLASSES or not (isinstance(p, np.ndarray) or is_device_array(p)):
        return False
    if math.prod(p.shape) < classes * _SMALLEST_SIDE**2:
        return False
    middle = tuple(slice(None) if at == axis else length // 2 for at, length in enumerate(p.shape))
    total = float(np.asarray(on_host(p[middle])).sum(dtype=np.float64))
    if not 0.9 < total / FULL_SCALE.get(dtype_name(p.dtype), 1) < 1.1:
        return False
    return is_normalised(array_namespace(p).moveaxis(p, axis, 0))


def check_levels(
    parts: Iterable[Any],
    dtype: Any,
    may_be_below: Callable[[float], bool] | None = None,
    *,
    source: str = "p",
) -> None:
    """Warn about an integer map that looks like a 0/1 mask; raise for one that was saved on another scale.

    Parameters
    ----------
    parts
        The map, or its parts, read only if needed and only up to the first with larger values.
    dtype
        Type of the map.
    may_be_below
        Whether all probabilities may be at most some number, judged by statistics of the map.
    source
        Name of the map in the message.
    """
    kind = dtype_name(dtype)
    scales = _SCALES.get(kind)
    if scales is None:
        return
    limit = max(scales)
    if may_be_below is not None and not may_be_below(limit / FULL_SCALE[kind]):
        return
    top, above_0 = 0, 0
    at_level = dict.fromkeys(scales, 0)
    for part in parts:
        xp = array_namespace(part)
        values = part if isinstance(part, np.ndarray) else xp.astype(part, xp.int32)
        top = max(top, int(host_number(xp.max(values))))
        if top > limit:
            return
        above_0 += int(xp.sum(xp.astype(values > 0, xp.int64)))
        for level in at_level:
            at_level[level] += int(xp.sum(xp.astype(values == level, xp.int64)))
    if top == 1:
        warn_caller(
            f"{source}: the largest value of this {kind} map is 1, so it looks like a 0/1 mask; "
            f"it was read as probabilities of at most 1/{FULL_SCALE[kind]:g}. "
            "Pass a mask as bool, probabilities as floats."
        )
    at_top = at_level.get(top, 0)
    share = 0.01 if at_top >= _CERTAIN_AT_TOP else 0.02
    if at_top >= max(_LEAST_AT_TOP, share * above_0):
        raise ProbabilityError(
            f"{source}: expected {kind} probabilities times {FULL_SCALE[kind]:g}, got values up to {top} in "
            f"{at_top} pixels, which look like {scales[top]}. Divide by {top} and pass floats."
        )


def parts_of(p: Any, where: Any = None) -> Iterable[Any]:
    """Yield the pixels of a map that count, tile by tile if it is in chunks."""
    if is_chunked(p):
        for tile in tiles_of(p):
            values = read_tile(p, tile)
            values = values if where is None else values[read_tile(where, tile).astype(bool)]
            if values.size:
                yield values
    elif where is None:
        yield p
    else:
        yield select_pixels(p, where)
