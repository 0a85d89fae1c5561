"""Labels brought to the grid of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.io.grids import Grid
from segtrust.io.volumes import Volume, check_size
from segtrust.optional import require

__all__ = ["resampled_labels"]


def resampled_labels(labels: Volume, grid: Grid) -> Any:
    """Give labels on another grid, by the nearest neighbour; 0 where there are none.

    Masks and truths are brought to the grid of the map, never the probabilities: those are what the model
    said, and interpolation would blur them.
    """
    if labels.grid is None:
        return np.asarray(labels.read())
    check_size(labels.path, labels.bytes)
    sitk = require("SimpleITK", extra="io")
    image = _image(sitk, np.asarray(labels.read()), labels.grid)
    target = _image(sitk, np.zeros(grid.shape, np.uint8), grid)
    found = sitk.Resample(image, target, sitk.Transform(3, sitk.sitkIdentity), sitk.sitkNearestNeighbor, 0)
    return sitk.GetArrayFromImage(found).reshape(grid.shape)


def _image(sitk: Any, values: Any, grid: Grid) -> Any:
    """Make an image in space, also of a slice, of a type that ITK knows."""
    kind = {"b": "u1", "f": "f4"}.get(values.dtype.kind, values.dtype.newbyteorder("="))
    plain = np.ascontiguousarray(values, kind).reshape(grid.lengths[::-1])
    image = sitk.GetImageFromArray(plain)
    about = grid.itk()
    image.SetSpacing(about["spacing"])
    image.SetOrigin(about["origin"])
    image.SetDirection(about["direction"])
    return image
