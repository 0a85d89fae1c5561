"""Texture of a mask by itself: lengths of its runs, sizes of its zones, neighbours of its pixels.

What a grey-level matrix of an image with one grey level counts is a property of the mask alone. The mask
lies in *cells*, a flat array of 0 and 1 with a border of zeros, so that no step from a pixel leaves the
array; a neighbour is a *step* in that array, and of two opposite steps only one is listed.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from segtrust.compiled import entry

__all__ = ["count_dependences", "count_runs", "directions", "share_a_line", "steps_in", "zone_sizes"]


def directions(ndim: int) -> Any:
    """Give the offsets of the neighbours that come after a pixel, half of all: 4 in 2-D, 13 in 3-D.

    Examples
    --------
    >>> directions(2).tolist()
    [[0, 1], [1, -1], [1, 0], [1, 1]]
    """
    return np.array([offset for offset in product((-1, 0, 1), repeat=ndim) if offset > (0,) * ndim])


def steps_in(shape: tuple[int, ...]) -> Any:
    """Give the `directions` as steps in a flat box of this shape.

    Examples
    --------
    >>> steps_in((10, 20)).tolist()
    [1, 19, 20, 21]
    """
    strides = np.array([int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))])
    return directions(len(shape)) @ strides


def share_a_line(pixels: Any, shape: tuple[int, ...], direction: Any) -> bool:
    """Tell whether two pixels lie on one line of this direction, however far apart.

    Examples
    --------
    >>> share_a_line(np.array([0, 4]), (3, 3), np.array([1, 1]))
    True
    """
    places = np.array(np.unravel_index(pixels, shape))
    along = places[np.flatnonzero(direction)[0]]
    at = places - np.outer(direction, along)  # where the line meets the box's first slice, or would
    sides = at.max(axis=1) - at.min(axis=1) + 1
    lines = np.ravel_multi_index(tuple(at - at.min(axis=1)[:, None]), tuple(sides))
    return bool(np.bincount(lines).max() > 1)


@entry
def count_runs(cells: Any, pixels: Any, steps: Any, longest: int) -> Any:
    """Count straight runs of pixels: a row for each step, a column for each length from 0 to ``longest``.

    The pixels must ascend and the steps be positive.
    """
    counts = np.zeros((steps.size, longest + 1), np.int64)
    lengths = np.zeros(cells.size, np.int32)  # of the run up to a pixel; 0 outside the mask in all directions
    for direction in range(steps.size):
        step = steps[direction]
        for at in pixels:  # without a branch, which a ragged mask would make the processor guess wrong
            length = lengths[at - step] + np.int32(1)
            lengths[at] = length
            counts[direction, length] += 1 - cells[at + step]
    return counts


@entry
def count_dependences(cells: Any, pixels: Any, steps: Any) -> Any:
    """Count pixels by how many of the mask's pixels lie around them, themselves included."""
    counts = np.zeros(2 * steps.size + 2, np.int64)
    for at in pixels:
        around = 1
        for step in steps:
            around += cells[at + step] + cells[at - step]
        counts[around] += 1
    return counts


@entry
def zone_sizes(cells: Any, pixels: Any, steps: Any) -> Any:
    """Measure each connected part of the mask; diagonal neighbours are connected."""
    left = cells.copy()
    waiting = np.empty(pixels.size, np.int64)
    sizes = np.empty(pixels.size, np.int64)
    zones = 0
    for seed in pixels:
        if not left[seed]:
            continue
        left[seed] = 0
        waiting[0] = seed
        found, done = 1, 0
        while done < found:
            at = waiting[done]
            done += 1
            for step in steps:
                for neighbour in (at - step, at + step):
                    if left[neighbour]:
                        left[neighbour] = 0
                        waiting[found] = neighbour
                        found += 1
        sizes[zones] = found
        zones += 1
    return sizes[:zones].copy()
