"""What nnU-Net, versions 1 and 2, and TotalSegmentator write with ``--save_probabilities``.

Beside each ``case.npz`` lies ``case.pkl`` with the geometry, and the mask that was delivered, ``case.nii.gz``
or of another format. ``dataset.json`` names the labels; it lies in the same folder, or where the model is.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError
from segtrust.io.checks import check_grid
from segtrust.io.grids import Grid
from segtrust.io.npz import chosen_member, open_member, read_directory
from segtrust.io.pickles import read_plain_pickle
from segtrust.io.structures import (  # moved
    check_channels,
    find_dataset_json as dataset_json_of,
    find_scheme as scheme_beside,
    read_scheme,
)
from segtrust.io.volumes import Volume

__all__ = [
    "AXES",
    "KEYS",
    "check_channels",
    "dataset_json_of",
    "open_nnunet",
    "read_scheme",
    "recognises_nnunet",
    "scheme_beside",
    "volume_in_memory",
]

KEYS = ("probabilities", "softmax")
"""Name of the array in version 2, and in version 1."""
AXES = 4
"""Of its arrays, also of those of flat images."""
_LENGTHS = {"spacing": 3, "origin": 3, "direction": 9}
"""Numbers that SimpleITK tells of an image in space."""


def recognises_nnunet(path: Path, head: bytes) -> bool:
    """Tell by the name of the array."""
    return (
        head[:2] == b"PK" and path.suffix.lower() == ".npz" and not set(KEYS).isdisjoint(read_directory(path))
    )


def open_nnunet(path: Path, key: str | None = None) -> Volume:
    """Open the probabilities of a case: channels first, on the grid of the image that was segmented.

    nnU-Net's arrays have four axes, also those of flat images. One of fewer is of somebody else who calls it
    so, and does not say whether it has channels.
    """
    members = read_directory(path)
    usual = next((name for name in KEYS if name in members), None)
    volume = open_member(path, chosen_member(path, members, key or usual))
    if len(volume.shape) != AXES:
        return volume
    about = _About.beside(path)
    if about.noted.get("crop_bbox") is not None:
        return _uncropped(volume, about)
    return replace(volume, has_channels=True, grid=about.grid(volume.shape[1:]))


def volume_in_memory(path: Path, probabilities: Any, properties: Mapping[str, Any]) -> Volume:
    """Give probabilities that nnU-Net holds in memory as `open_nnunet` would if they had been saved.

    Parameters
    ----------
    path
        Where they would be; errors name it.
    probabilities
        Channels first, on the grid of the image.
    properties
        What nnU-Net notes about the case, which it would save beside them.

    Examples
    --------
    >>> p = np.full((2, 1, 3, 4), 0.5, np.float32)
    >>> volume = volume_in_memory(Path("case.npz"), p, {"spacing": [999.0, 1.0, 1.0]})
    >>> volume.shape, volume.has_channels, volume.read(1).shape
    ((2, 1, 3, 4), True, (1, 3, 4))
    """
    grid = _About(path, properties).grid(probabilities.shape[1:])

    def load(channel: int | None) -> Any:
        return probabilities if channel is None else probabilities[channel]

    return Volume(path, probabilities.shape, probabilities.dtype, load, has_channels=True, grid=grid)


class _About:
    """What nnU-Net notes about a case beside its array; nothing where there is no such file."""

    def __init__(self, path: Path, noted: Any) -> None:
        self.path = path
        if not isinstance(noted, Mapping):
            raise DamagedFileError(
                f"{self.path}: expected the geometry of a case, got {type(noted).__name__}."
            )
        self.noted: Mapping[str, Any] = noted

    @classmethod
    def beside(cls, path: Path) -> _About:
        beside = path.with_suffix(".pkl")
        return cls(beside, read_plain_pickle(beside) if beside.exists() else {})

    def grid(self, shape: tuple[int, ...]) -> Grid | None:
        """Give the grid of the whole image; ``None`` where nothing is noted, as of flat images."""
        affine = self._affine()
        if affine is not None:
            return check_grid(self.path, Grid(shape, affine))
        found = self._itk()
        return None if found is None else check_grid(self.path, Grid.of_itk(shape, **found))

    def numbers(self, name: str, values: Any, shape: tuple[int, ...]) -> Any:
        """Give what is noted as numbers, of the shape that they must have."""
        try:
            found = np.array(values, np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != shape or not np.isfinite(found).all():
            raise DamagedFileError(
                f"{self.path}: expected {math.prod(shape)} numbers as {name!r}, got {reprlib.repr(values)}."
            )
        return found

    def _itk(self) -> dict[str, Any] | None:
        """Give what the reader of SimpleITK has noted: version 2 in a mapping, version 1 by longer names."""
        found = self.noted.get("sitk_stuff")
        if not isinstance(found, Mapping):
            found = {name: self.noted.get(f"itk_{name}") for name in _LENGTHS}
        if any(found.get(name) is None for name in _LENGTHS):
            return None
        if isinstance(found["spacing"], Sized) and len(found["spacing"]) == 2:  # a flat image
            return None
        return {name: self.numbers(name, found[name], (length,)) for name, length in _LENGTHS.items()}

    def _affine(self) -> Any:
        """Give what a reader of nibabel has noted.

        One of these readers turns images to a common orientation; the mask is then turned back, the
        probabilities are not.
        """
        noted = self.noted.get("nibabel_stuff")
        for name in ("reoriented_affine", "original_affine"):
            if isinstance(noted, Mapping) and noted.get(name) is not None:
                return self.numbers(name, noted[name], (4, 4))
        return None


def _uncropped(volume: Volume, about: _About) -> Volume:
    """Put the array of version 1, cut to where the image is not zero, back into the whole image."""
    shape, box = _box(volume, about)
    is_regions = about.noted.get("regions_class_order") is not None

    def load(channel: int | None) -> Any:
        if channel is not None:
            outside = 0.0 if is_regions else float(channel == 0)
            return _padded(volume.read(channel), box, shape, outside=outside)
        return np.stack([load(i) for i in range(volume.shape[0])])

    whole = (volume.shape[0], *shape)
    return replace(volume, shape=whole, load=load, has_channels=True, grid=about.grid(shape))


def _box(volume: Volume, about: _About) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    """Give the shape of the whole image, and the part of it that an array fills."""
    name = "original_size_of_raw_data"
    shape = tuple(int(each) for each in about.numbers(name, about.noted.get(name), (3,)))
    box = [(int(a), int(b)) for a, b in about.numbers("crop_bbox", about.noted["crop_bbox"], (3, 2))]
    if any(not 0 <= low <= high <= length for (low, high), length in zip(box, shape, strict=True)):
        raise DamagedFileError(f"{about.path}: expected a box in an image of the shape {shape}, got {box}.")
    if tuple(high - low for low, high in box) != volume.shape[1:]:
        raise DamagedFileError(
            f"{volume.path}: expected the shape of the box {box} in its .pkl file, got {volume.shape[1:]}. "
            "Do they belong to one case?"
        )
    return shape, tuple(slice(low, high) for low, high in box)


def _padded(part: Any, box: tuple[slice, ...], shape: tuple[int, ...], *, outside: float) -> Any:
    """Lay a part into an image that is background elsewhere."""
    whole = np.full(shape, outside, part.dtype)
    whole[box] = part
    return whole
