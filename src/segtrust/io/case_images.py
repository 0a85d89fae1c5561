"""The images that cases were segmented from; only people look at them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust.errors import PairingError, ReadError
from segtrust.io.grids import Grid, check_same_grid, is_same_grid
from segtrust.io.pictures import PICTURES, read_picture_values
from segtrust.io.places import Place
from segtrust.io.readers import open_volume
from segtrust.io.resampling import resampled_image
from segtrust.io.volumes import Volume

__all__ = ["read_case_image"]


def read_case_image(
    place: Place, shape: tuple[int, ...], grid: Grid | None = None, *, resample: bool = False
) -> Any:
    """Read the image of a map on the map's own grid, to be looked at.

    Parameters
    ----------
    place
        Where the image is.
    shape, grid
        Of the map. If the files of both say where in the body they lie, an image whose axes only have
        another order or direction is turned to those of the map; else shapes decide.
    resample
        Whether an image on another grid is brought to that of the map.

    Returns
    -------
    array
        Colours of 8 bits, (H, W, 1 or 3), or values of the map's shape: volumes, and pictures of more bits.

    Raises
    ------
    SegtrustError
        If it cannot be read, or lies on another grid. No result depends on it: say so, and go on without.
    """
    if not place.path.exists():
        raise ReadError(f"{place}: expected the image of the case, got no such file.")
    try:
        found = _image_values(place, len(shape), grid, resample)
    except OSError as error:
        raise ReadError(f"{place}: expected the image of the case, got: {error.strerror or error}.") from None
    has_colours = found.dtype == np.uint8 and found.shape in ((*shape, 1), (*shape, 3))
    if found.shape == shape or has_colours:
        return found
    raise PairingError(
        f"{place}: expected an image of the map's shape, {' × '.join(map(str, shape))}, got "
        f"{' × '.join(map(str, found.shape))}. Give the image that the map was made on."
    )


def _image_values(place: Place, dimensions: int, grid: Grid | None, resample: bool) -> Any:
    if dimensions == 2 and place.path.suffix.lower() in PICTURES:
        return read_picture_values(place.path)
    values = _placed(open_volume(place), grid, resample)
    while values.ndim > dimensions and values.shape[0] == 1:
        values = values[0]
    return values


def _placed(image: Volume, grid: Grid | None, resample: bool) -> Any:
    """Read an image with the axes of a map, where both lie in the body; refuse one that lies elsewhere."""
    if grid is None or image.grid is None or not (grid.is_oriented and image.grid.is_oriented):
        return np.asarray(image.read())
    turning = image.grid.turning_to(grid)
    if resample and not is_same_grid(grid, image.grid.turned(turning)) and not _has_channels(image):
        return resampled_image(image, grid)
    check_same_grid(grid, image.grid.turned(turning), ("the map", str(image.path)))
    return np.ascontiguousarray(turning.applied(np.asarray(image.read())))


def _has_channels(image: Volume) -> bool:
    return math.prod(image.shape) != math.prod(image.shape[-3:])
