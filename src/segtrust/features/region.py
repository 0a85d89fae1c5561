"""A mask and what the image holds in it, cut out of both once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.kernels.device import on_host
from segtrust.kernels.inputs import as_array
from segtrust.kernels.refusals import check_shapes
from segtrust.kernels.view import as_binary, packed

__all__ = ["Region", "check_pair", "cut_out"]


@dataclass(frozen=True, eq=False)
class Region:
    """The box around a mask.

    Attributes
    ----------
    mask
        uint8 of the mask's box, 2-D or 3-D.
    values
        What the image holds at the mask's pixels, float64.
    corner
        Index of the box's first pixel in the array that it was cut out of.
    """

    mask: Any
    values: Any
    corner: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """2 or 3."""
        return int(self.mask.ndim)

    @cached_property
    def cells(self) -> Any:
        """The mask with a border of zeros."""
        return np.pad(self.mask, 1)

    @cached_property
    def volume(self) -> Any:
        """The cells as a volume; an image is one slice of it."""
        return self.cells.reshape((1,) * (3 - self.ndim) + self.cells.shape)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return bool(self.values.min() == self.values.max())


def check_pair(image: Any, mask: Any) -> tuple[Any, Any]:
    """Give an image and its mask as NumPy arrays, checked for shape and type."""
    image, mask = on_host(as_array(image, "image")), on_host(as_array(mask, "mask"))
    check_shapes(tuple(image.shape), tuple(mask.shape), "image")
    image, mask = np.asarray(image), np.asarray(mask)
    if image.ndim not in (2, 3):
        raise ParameterError(
            f"image: expected 2 or 3 dimensions, got the shape {image.shape}. Give one channel at a time."
        )
    if image.dtype.kind not in "fiu":
        raise ParameterError(f"image: expected floats or integers, got {image.dtype}. Convert it first.")
    return image, as_binary(mask)


def cut_out(image: Any, mask: Any) -> Region | None:
    """Cut the box of the mask out of an image; ``None`` where the mask is empty."""
    from segtrust.kernels.regions import bounding_box

    low, high = bounding_box(packed(mask.reshape((1,) * (3 - mask.ndim) + mask.shape)))
    if not high.any():
        return None
    corner = tuple(low[-mask.ndim :].tolist())
    box = tuple(map(slice, corner, high[-mask.ndim :].tolist()))
    values = image[box][mask[box].astype(bool)].astype(np.float64)
    if not np.isfinite(values).all():
        _refuse_values(image, mask)
    return Region(mask[box], values, corner)


def _refuse_values(image: Any, mask: Any) -> None:
    at = tuple(int(i[0]) for i in np.nonzero(~np.isfinite(image) & (mask != 0)))
    raise ParameterError(
        f"image: expected finite values inside the mask, got {float(image[at])} at index {at}. "
        "Mend the map, or leave the pixel out of the mask."
    )
