"""Labels brought to the grid of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import GeometryError
from segtrust.io.grids import Grid
from segtrust.io.volumes import Volume

__all__ = ["resampled_image", "resampled_labels"]

_ROUNDING = 0.05
"""Pixels that headers round by."""


def resampled_labels(labels: Volume, grid: Grid) -> Any:
    """Give labels on another grid, by the nearest neighbour; 0 where there are none.

    Masks and truths are brought to the grid of the map, never the probabilities: those are what the model
    said, and interpolation would blur them.

    Labels beyond the grid would be lost, and are an error.
    """
    if labels.grid is None:
        return np.asarray(labels.read())
    check_size(labels.path, labels.bytes)
    found = np.asarray(labels.read())
    _refuse_outside(found, labels, grid)
    return _moved(found, labels.grid, grid, "sitkNearestNeighbor")


def resampled_image(image: Volume, grid: Grid) -> Any:
    """Give an image on another grid, to be looked at: between pixels in proportion, beyond it the darkest."""
    if image.grid is None:
        return np.asarray(image.read())
    check_size(image.path, image.bytes)
    found = np.asarray(image.read())
    return _moved(found.reshape(found.shape[-3:]), image.grid, grid, "sitkLinear", float(found.min()))


def _moved(values: Any, grid: Grid, target: Grid, interpolation: str, beyond: float = 0.0) -> Any:
    sitk = require("SimpleITK", extra="io")
    image, place = _image(sitk, values, grid), _image(sitk, np.zeros(target.shape, np.uint8), target)
    identity, kind = sitk.Transform(3, sitk.sitkIdentity), getattr(sitk, interpolation)
    return sitk.GetArrayFromImage(sitk.Resample(image, place, identity, kind, beyond)).reshape(target.shape)


def _refuse_outside(values: Any, labels: Volume, grid: Grid) -> None:
    """Refuse labels that lie where the map is not."""
    if labels.grid is None:
        return
    places = np.argwhere(values.reshape(labels.grid.lengths[::-1]) != 0)[:, ::-1]
    step = np.linalg.inv(grid.affine) @ labels.grid.affine
    inside = places @ step[:3, :3].T + step[:3, 3]
    pixel = np.maximum(np.abs(step[:3, :3]).sum(axis=1), 1.0)  # the larger one, of labels and map
    margin = 0.5 * pixel + _ROUNDING
    beyond = (inside < -margin) | (inside > np.array(grid.lengths) - 1 + margin)
    count = int(np.count_nonzero(beyond.any(axis=1)))
    if count:
        raise GeometryError(
            f"{labels.path}: expected labels inside of the map, {grid}, got {count} of {len(places)} "
            f"labelled pixels outside of it; they lie on {labels.grid}. Do both belong to one case?"
        )


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
