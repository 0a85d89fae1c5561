"""The part of an image that lies inside a mask, cropped once for all features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segtrust._compile import entry, reduction
from segtrust.errors import ParameterError
from segtrust.kernels import contiguous


@dataclass(frozen=True, eq=False)
class Region:
    """A mask cropped to its bounding box, and the image values inside the mask.

    Attributes
    ----------
    mask
        uint8, 2-D or 3-D, cropped to the bounding box.
    values
        Image values at the pixels of the mask, float64.
    corner
        Index of the first pixel of the bounding box in the original array.
    """

    mask: Any
    values: Any
    corner: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of dimensions, 2 or 3."""
        return int(self.mask.ndim)

    @cached_property
    def padded(self) -> Any:
        """The mask with a border of zeros."""
        return np.pad(self.mask, 1)

    @cached_property
    def volume(self) -> Any:
        """The padded mask as a 3-D array; a 2-D mask becomes a single slice."""
        return self.padded.reshape((1,) * (3 - self.ndim) + self.padded.shape)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all values are equal."""
        return bool(self.values.min() == self.values.max())


def crop_region(image: Any, mask: Any) -> Region | None:
    """Crop an image and its uint8 mask to the bounding box of the mask.

    Returns ``None`` if the mask is empty. Raises if a value inside the mask is not finite.
    """
    low, high = bounding_box(contiguous(mask.reshape((1,) * (3 - mask.ndim) + mask.shape)))
    if not high.any():
        return None
    corner = tuple(low[-mask.ndim :].tolist())
    box = tuple(map(slice, corner, high[-mask.ndim :].tolist()))
    values = image[box][mask[box].astype(bool)].astype(np.float64)
    if not np.isfinite(values).all():
        index = tuple(int(axis[0]) for axis in np.nonzero(~np.isfinite(image) & (mask != 0)))
        raise ParameterError(
            f"image: expected finite values inside the mask, got {float(image[index])} at index {index}. "
            "Fix the map, or remove the pixel from the mask."
        )
    return Region(mask[box], values, corner)


@reduction
def _any(row: Any) -> Any:
    bits = np.uint8(0)
    for value in row:
        bits |= value
    return bits


@entry
def bounding_box(mask: Any) -> Any:
    """Return the first index and one past the last index of a 3-D mask per axis; zeros if it is empty."""
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
