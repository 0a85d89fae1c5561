"""Where a mask lies and how its pixels are spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import entry, reduction

__all__ = ["bounding_box", "spread_of"]


@reduction
def _any(row: Any) -> Any:
    found = np.uint8(0)
    for value in row:
        found |= value
    return found


@entry
def bounding_box(mask: Any) -> Any:
    """Find the first pixel and one past the last along each axis of a 3-D mask; 0 and 0 where it is empty."""
    depth, height, width = mask.shape
    low = np.array([depth, height, width])
    high = np.zeros(3, np.int64)
    for z in range(depth):
        for y in range(height):
            row = mask[z, y]
            if not _any(row):
                continue
            low[0], high[0] = min(low[0], z), z + 1
            low[1], high[1] = min(low[1], y), max(high[1], y + 1)
            first, last = 0, width - 1
            while not row[first]:
                first += 1
            while not row[last]:
                last -= 1
            low[2], high[2] = min(low[2], first), max(high[2], last + 1)
    return np.minimum(low, high), high


@entry
def spread_of(cells: Any) -> Any:
    """Sum 1, the coordinates and their products over the pixels of a 3-D box: exact whole numbers.

    In the order 1, z, y, x, zz, zy, zx, yy, yx, xx.
    """
    sums = np.zeros(10, np.int64)
    for z in range(cells.shape[0]):
        for y in range(cells.shape[1]):
            n, s, q = np.int64(0), np.int64(0), np.int64(0)
            row = cells[z, y]
            for x in range(row.size):
                inside = np.int64(row[x])
                n += inside
                s += inside * x
                q += inside * x * x
            if n:
                terms = (n, n * z, n * y, s, n * z * z, n * z * y, s * z, n * y * y, s * y, q)
                for i in range(10):
                    sums[i] += terms[i]
    return sums
