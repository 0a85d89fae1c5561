"""The most probable class of each pixel, compiled. A module of its own because it loads Numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust._compile import elementwise, entry, map_in_threads, plain
from segtrust.kernels.intrinsics import prefer_wide_vectors
from segtrust.kernels.map_view import contiguous, segments_of

_LABEL_BLOCK = 1 << 13
"""Pixels whose largest values and labels stay in the first-level cache while the classes pass by."""


def label_pixels(values: Any, number: int, highest: Any, labels: Any) -> None:
    """Compare further channels with the largest values so far; equal values keep the earlier label.

    Parameters
    ----------
    values
        Contiguous array of channels by pixels, of native floats, unsigned integers or bool.
    number
        Number of the first of these channels. Channel 0 fills both buffers again.
    highest
        Buffer of the type of ``values`` for the largest value of each pixel so far; updated.
    labels
        Channel of that value; updated.
    """
    half = values.dtype == np.float16
    if half or values.dtype == bool:
        stored = np.int16 if half else np.uint8  # patterns of half floats are compared as integers
        values, highest = values.view(stored), highest.view(stored)
    values = contiguous(values)

    def label_segment(segment: slice) -> None:
        bounds = segment.start, segment.stop
        _label_segment(values, bounds, number, highest, labels, True if half else None)

    map_in_threads(label_segment, segments_of(values.shape[1]))


@plain
def _key(value: Any, half: Any) -> Any:
    """Return a number that is ordered like the value: for the pattern of a half float a signed integer."""
    if half is None:
        return value
    return np.int16(value if value >= 0 else -(value & 0x7FFF))


@elementwise
def _compare(values: Any, number: int, highest: Any, labels: Any, half: Any) -> None:
    prefer_wide_vectors()
    for i in range(values.size):
        key = _key(values[i], half)
        is_higher = key > highest[i]
        labels[i] = number if is_higher else labels[i]
        highest[i] = key if is_higher else highest[i]


@elementwise
def _begin(values: Any, highest: Any, labels: Any, half: Any) -> None:
    for i in range(values.size):
        highest[i] = _key(values[i], half)
        labels[i] = 0


@entry
def _label_segment(values: Any, bounds: Any, number: int, highest: Any, labels: Any, half: Any) -> None:
    for first in range(bounds[0], bounds[1], _LABEL_BLOCK):
        last = min(first + _LABEL_BLOCK, bounds[1])
        for row in range(values.shape[0]):
            some = values[row, first:last]
            if number + row == 0:
                _begin(some, highest[first:last], labels[first:last], half)
            else:
                _compare(some, number + row, highest[first:last], labels[first:last], half)
