"""Largest sum of entropies over a box in a map of any shape, slice by slice and in little memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust.compiled import elementwise, entry
from segtrust.kernels.layouts import long_axes
from segtrust.kernels.patches import window_sums
from segtrust.kernels.uncertainty import entropy_map
from segtrust.kernels.view import MapView

__all__ = ["largest_by_slices"]

_STRETCH = 1 << 15
"""Pixels whose entropies are held at once where slices are small."""


def largest_by_slices(view: MapView, sides: tuple[int, ...]) -> float:
    """Largest sum over a box that fits, in a pass along the longest axis; values are taken as checked."""
    shape, sides = long_axes(view.values.shape, sides)
    along = int(np.argmax(shape))
    slices, side = np.moveaxis(view.values.reshape(shape), along, 0), sides[along]
    inner = sides[:along] + sides[along + 1 :]
    together = max(1, _STRETCH // slices[0].size)
    largest = _largest_of_column if side > together else _largest_in_slabs
    return largest(slices, view.codes, (side, *inner), together)


def _largest_in_slabs(slices: Any, codes: Any, sides: tuple[int, ...], together: int) -> float:
    """Largest patch where a box has few slices: some at once, and those that the last boxes reach into."""
    firsts = range(0, len(slices) - sides[0] + 1, together)
    slabs = (slices[first : first + together + sides[0] - 1] for first in firsts)
    return max(float(window_sums(entropy_map(slab, codes), sides).max()) for slab in slabs)


def _largest_of_column(slices: Any, codes: Any, sides: tuple[int, ...], together: int) -> float:
    """Largest patch where a box has many slices, or large ones.

    The entropies of a slice are added when it enters the box and computed once more to be taken off when it
    leaves. All are positive, so that what rounding adds up to in a box is that of the largest sum, which is
    the one that counts.
    """
    side, inner = sides[0], sides[1:]
    column, largest = np.zeros(slices[0].size), -math.inf
    for first in range(0, len(slices), together):
        last = min(first + together, len(slices))
        columns = entropy_map(slices[first:last], codes)
        leaving = entropy_map(slices[max(first - side, 0) : max(last - side, 0)], codes)
        columns[len(columns) - len(leaving) :] -= leaving
        _pile_up(columns.reshape(-1, column.size), column, np.zeros(column.size))
        column = columns[-1].flatten()
        whole = columns[max(side - 1 - first, 0) :]
        if len(whole):
            largest = max(largest, float(window_sums(whole, (1, *inner)).max()))
    return largest


@entry
def _pile_up(steps: Any, start: Any, gain: Any) -> None:
    """Turn what each slice adds to ``start`` into what it comes to.

    Steps are added up in ``gain``, apart from where they started, so that rounding is that of one stretch.
    """
    _climb(steps, start, gain)


@elementwise
def _climb(steps: Any, start: Any, gain: Any) -> None:
    for z in range(steps.shape[0]):
        for i in range(steps.shape[1]):
            gain[i] += steps[z, i]
            steps[z, i] = start[i] + gain[i]
