"""Labels brought to the grid of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.io.grids import Grid
from segtrust.io.volumes import Volume
from segtrust.optional import require

__all__ = ["resampled_labels"]


def resampled_labels(labels: Volume, grid: Grid) -> Any:
    """Give labels on another grid, by the nearest neighbour; 0 where there are none.

    Masks and truths are brought to the grid of the map, never the probabilities: those are what the model
    said, and interpolation would blur them.
    """
    if labels.grid is None:
        return np.asarray(labels.read())
    sitk = require("SimpleITK", extra="io")
    image = _image(sitk, np.asarray(labels.read()), labels.grid)
    target = _image(sitk, np.zeros(grid.shape, np.uint8), grid)
    return sitk.GetArrayFromImage(sitk.Resample(image, target, sitk.Transform(), sitk.sitkNearestNeighbor, 0))


def _image(sitk: Any, values: Any, grid: Grid) -> Any:
    plain = values.astype(np.uint8) if values.dtype == bool else values
    image = sitk.GetImageFromArray(np.ascontiguousarray(plain))
    about = grid.itk()
    image.SetSpacing(about["spacing"])
    image.SetOrigin(about["origin"])
    image.SetDirection(about["direction"])
    return image
