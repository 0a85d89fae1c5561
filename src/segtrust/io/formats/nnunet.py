"""Probabilities that nnU-Net (versions 1 and 2) and TotalSegmentator write with ``--save_probabilities``.

Next to each ``case.npz`` lies ``case.pkl`` with the geometry, and the delivered mask.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError
from segtrust.io.formats._common import Volume, check_grid
from segtrust.io.formats.numpy import choose_member, open_member, read_members, recognises_npz
from segtrust.io.formats.pickle import read_plain_pickle
from segtrust.io.grid import Grid

__all__ = ["AXES", "KEYS", "open_nnunet", "recognises_nnunet", "volume_in_memory"]

KEYS = ("probabilities", "softmax")
"""Name of the array in version 2 and in version 1."""
AXES = 4
"""Number of axes of nnU-Net's arrays, including those of flat images."""
_LENGTHS = {"spacing": 3, "origin": 3, "direction": 9}
"""Numbers that SimpleITK keeps about an image in space."""


def recognises_nnunet(path: Path, head: bytes) -> bool:
    """Recognise an archive of nnU-Net by the name of its array."""
    return recognises_npz(path, head) and not set(KEYS).isdisjoint(read_members(path))


def open_nnunet(path: Path, key: str | None = None) -> Volume:
    """Open the probabilities of a case: channels first, on the grid of the image that was segmented.

    nnU-Net's arrays have four axes, even those of flat images. An array with fewer axes was written by
    another program under the same name, and does not say whether it has channels.
    """
    members = read_members(path)
    usual = next((name for name in KEYS if name in members), None)
    volume = open_member(path, choose_member(path, members, key or usual))
    if len(volume.shape) != AXES:
        return volume
    beside = path.with_suffix(".pkl")
    properties = _Properties(beside, read_plain_pickle(beside) if beside.exists() else {})
    if properties.values.get("crop_bbox") is not None:
        return _uncropped(volume, properties)
    return replace(volume, has_channels=True, grid=properties.grid(volume.shape[1:]))


def volume_in_memory(path: Path, probabilities: Any, properties: Mapping[str, Any]) -> Volume:
    """Return probabilities that nnU-Net holds in memory as `open_nnunet` would if they had been saved.

    Parameters
    ----------
    path
        Where they would be saved; errors name it.
    probabilities
        Channels first, on the grid of the image.
    properties
        nnU-Net's properties of the case, which it would save next to them.

    Examples
    --------
    >>> p = np.full((2, 1, 3, 4), 0.5, np.float32)
    >>> volume = volume_in_memory(Path("case.npz"), p, {"spacing": [999.0, 1.0, 1.0]})
    >>> volume.shape, volume.has_channels, volume.read(1).shape
    ((2, 1, 3, 4), True, (1, 3, 4))
    """
    grid = _Properties(path, properties).grid(probabilities.shape[1:])

    def load(channel: int | None) -> Any:
        return probabilities if channel is None else probabilities[channel]

    return Volume(path, probabilities.shape, probabilities.dtype, load, has_channels=True, grid=grid)


@dataclass(frozen=True)
class _Properties:
    """nnU-Net's properties of a case; empty if there is no such file."""

    path: Path
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise DamagedFileError(
                f"{self.path}: expected the geometry of a case, got {type(self.values).__name__}."
            )

    def grid(self, shape: tuple[int, ...]) -> Grid | None:
        """Return the grid of the whole image; ``None`` if nothing is known, as for flat images.

        One of nnU-Net's readers based on nibabel turns images to a common orientation. It turns the mask
        back, but not the probabilities.
        """
        noted = self.values.get("nibabel_stuff")
        for name in ("reoriented_affine", "original_affine"):
            if isinstance(noted, Mapping) and noted.get(name) is not None:
                return check_grid(self.path, Grid(shape, self.numbers(name, noted[name], (4, 4))))
        itk = self.values.get("sitk_stuff")
        if not isinstance(itk, Mapping):  # version 1
            itk = {name: self.values.get(f"itk_{name}") for name in _LENGTHS}
        if any(itk.get(name) is None for name in _LENGTHS):
            return None
        if isinstance(itk["spacing"], Sized) and len(itk["spacing"]) == 2:  # a flat image
            return None
        numbers = {name: self.numbers(name, itk[name], (length,)) for name, length in _LENGTHS.items()}
        return check_grid(self.path, Grid.of_itk(shape, **numbers))

    def numbers(self, name: str, values: Any, shape: tuple[int, ...]) -> Any:
        """Return values as finite numbers of the shape that they must have."""
        try:
            numbers = np.array(values, np.float64)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise DamagedFileError(
                f"{self.path}: expected {math.prod(shape)} numbers as {name!r}, got {reprlib.repr(values)}."
            )
        return numbers


def _uncropped(volume: Volume, properties: _Properties) -> Volume:
    """Put the array of version 1, cropped to where the image is not zero, back into the whole image."""
    name = "original_size_of_raw_data"
    shape = tuple(int(n) for n in properties.numbers(name, properties.values.get(name), (3,)))
    corners = properties.numbers("crop_bbox", properties.values["crop_bbox"], (3, 2))
    box = [(int(low), int(high)) for low, high in corners]
    if any(not 0 <= low <= high <= length for (low, high), length in zip(box, shape, strict=True)):
        raise DamagedFileError(
            f"{properties.path}: expected a box in an image of the shape {shape}, got {box}."
        )
    if tuple(high - low for low, high in box) != volume.shape[1:]:
        raise DamagedFileError(
            f"{volume.path}: expected the shape of the box {box} in its .pkl file, got {volume.shape[1:]}. "
            "Do they belong to one case?"
        )
    is_regions = properties.values.get("regions_class_order") is not None

    def load(channel: int | None) -> Any:
        if channel is None:
            return np.stack([load(number) for number in range(volume.shape[0])])
        part = volume.read(channel)
        whole = np.full(shape, 0.0 if is_regions else float(channel == 0), part.dtype)
        whole[tuple(slice(low, high) for low, high in box)] = part
        return whole

    size = (volume.shape[0], *shape)
    return replace(volume, shape=size, load=load, has_channels=True, grid=properties.grid(shape))
