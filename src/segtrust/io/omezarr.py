"""What OME-Zarr (0.4 and 0.5) says of an image: its finest level, its axes, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, GeometryError, WrongContentError
from segtrust.io.grids import Grid

__all__ = ["Image", "image_of"]

_ORDER = "czyx"
"""Axes as arrays are given: channels first, then space."""

_MILLIMETRES = {
    "angstrom": 1e-7,
    "nanometer": 1e-6,
    "micrometer": 1e-3,
    "millimeter": 1.0,
    "centimeter": 10.0,
    "decimeter": 100.0,
    "meter": 1000.0,
    "inch": 25.4,
}


@dataclass(frozen=True)
class Image:
    """An image of OME-Zarr.

    Attributes
    ----------
    level
        Path of the finest array, from the group of the image.
    axes
        Name of each axis of the array: t, c, z, y, x.
    units
        Of each axis; "" where the file does not say.
    transformations
        From pixels to the world, in the order in which they are applied.
    channel_names
        Of each channel, where the file says them.
    """

    level: str
    axes: tuple[str, ...]
    units: tuple[str, ...]
    transformations: tuple[Mapping[str, Any], ...]
    channel_names: tuple[str, ...]

    @property
    def has_channels(self) -> bool:
        """Whether there is an axis of channels."""
        return "c" in self.axes

    def kept(self, shape: Sequence[int], path: Path) -> tuple[int, ...]:
        """Give the axes of the array that are channels, z, y and x, in this order."""
        if len(set(self.axes)) != len(shape) or not {"y", "x"} <= set(self.axes) <= set("tczyx"):
            raise WrongContentError(
                f"{path}: expected axes of t, c, z, y, x, one for each length of {tuple(shape)}, got "
                f"{', '.join(self.axes) or 'none'}."
            )
        if "t" in self.axes and (times := shape[self.axes.index("t")]) != 1:
            raise WrongContentError(
                f"{path}: expected an image of one time, got {times} times. Save each as an image of its own."
            )
        return tuple(self.axes.index(name) for name in _ORDER if name in self.axes)

    def names_of(self, count: int) -> tuple[str, ...]:
        """Give the channels' names if there is one for each."""
        return self.channel_names if self.has_channels and len(self.channel_names) == count else ()

    def grid(self, shape: Sequence[int], path: Path) -> Grid | None:
        """Give the place of the pixels, if all its lengths have a unit and it is made by scale and shift."""
        space = [self.axes.index(name) for name in "xyz" if name in self.axes]
        placed = _applied(self.transformations, len(self.axes))
        if placed is None or not all(self.units[axis] in _MILLIMETRES for axis in space):
            return None
        to_mm = np.array([_MILLIMETRES[self.units[axis]] for axis in space])
        spacing, origin = (values[space] * to_mm for values in placed)
        if not (np.isfinite(origin).all() and np.isfinite(spacing).all() and (spacing > 0.0).all()):
            raise GeometryError(
                f"{path}: expected finite steps above 0, got {spacing.tolist()} mm from {origin.tolist()} mm "
                "for x, y, z. Correct the scale of the image."
            )
        missing = 3 - len(space)
        return Grid.of_itk(
            tuple(int(shape[axis]) for axis in reversed(space)),
            spacing=np.pad(spacing, (0, missing), constant_values=1.0),
            origin=np.pad(origin, (0, missing)),
            is_oriented=False,
        )


def _applied(transformations: Sequence[Mapping[str, Any]], count: int) -> tuple[Any, Any] | None:
    """Give the step and the origin of each axis; ``None`` if there is none, or more than scale and shift."""
    steps, origin = np.ones(count), np.zeros(count)
    for each in transformations:
        match each:
            case {"type": "scale", "scale": values}:
                steps, origin = steps * np.asarray(values, float), origin * np.asarray(values, float)
            case {"type": "translation", "translation": values}:
                origin = origin + np.asarray(values, float)
            case {"type": "identity"}:
                pass
            case _:
                return None
    return (steps, origin) if transformations else None


def image_of(attributes: Mapping[str, Any], path: Path) -> Image | None:
    """Read the attributes of a group; ``None`` if it is no image.

    Examples
    --------
    >>> level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 0.5]}]}
    >>> axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    >>> image = image_of({"multiscales": [{"axes": axes, "datasets": [level]}]}, Path("cells.zarr"))
    >>> image.level, image.grid((7, 8), Path("cells.zarr")).spacing_mm
    ('0', (0.002, 0.0005))
    """
    ome = attributes.get("ome", attributes)
    if "multiscales" not in ome:
        return None
    try:
        return _image(ome)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path}: expected the description of an OME-Zarr image, got one that cannot be read ({error!r})."
        ) from None


def _image(ome: Mapping[str, Any]) -> Image:
    scales = ome["multiscales"][0]
    finest = scales["datasets"][0]
    axes = [each if isinstance(each, dict) else {"name": each} for each in scales.get("axes", "tczyx")]
    applied = [
        *finest.get("coordinateTransformations", ()),
        *scales.get("coordinateTransformations", ()),
    ]
    channels = ome.get("omero", {}).get("channels", ())
    return Image(
        level=str(finest["path"]),
        axes=tuple(str(each["name"]).lower() for each in axes),
        units=tuple(str(each.get("unit") or "") for each in axes),
        transformations=tuple(applied),
        channel_names=tuple(str(each.get("label", "")) for each in channels),
    )
