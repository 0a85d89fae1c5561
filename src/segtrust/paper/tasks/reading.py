"""Images and masks of a case, from the files that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import (
    DamagedFileError,
    GeometryError,
    MaskShapeError,
    ReadError,
    SegtrustError,
    UnknownFormatError,
    WrongContentError,
)
from segtrust.io import ArrayRef, Grid, check_same_grid, open_volume, read_picture
from segtrust.paper.tasks.task import Sample, Task

__all__ = ["read_image", "read_labels", "read_picture", "read_sample"]


def read_image(task: Task, sample: Sample) -> Any:
    """Read the image of a case: (C, H, W) of 8 bits, or (C, D, H, W) of floats."""
    if sample.lacks:
        raise ReadError(f"{sample.id}: {sample.lacks}")
    if not sample.images:
        raise ReadError(f"{sample.id}: expected an image, got its mask only. Add the image, or remove it.")
    if task.dimensions == 2:
        channels = [read_picture(path) for path in sample.images]
    else:
        channels = [_volume(path)[None] for path in sample.images]
    for path, each in zip(sample.images, channels, strict=True):
        if each.shape[1:] != channels[0].shape[1:]:
            raise MaskShapeError(
                f"{path}: expected the size of {sample.images[0].name}, {channels[0].shape[1:]}, got "
                f"{each.shape[1:]}. Bring them to one grid, or fetch both again."
            )
    return channels[0] if len(channels) == 1 else np.concatenate(channels)


def _volume(path: Path) -> Any:
    values = np.asarray(open_volume(ArrayRef(path)).read(), np.float32)
    if values.ndim != 3:
        raise WrongContentError(
            f"{path}: expected a volume of 3 axes, got {values.ndim}. Save one time or channel."
        )
    if not np.isfinite(values).all():
        raise WrongContentError(
            f"{path}: expected finite intensities, got NaN or infinity. Replace them by 0."
        )
    return values


def read_labels(task: Task, sample: Sample, path: Path) -> Any:
    """Read one mask of a case as labels, uint8; that of a volume must lie where the image lies."""
    try:
        volume = open_volume(ArrayRef(path))
        values = np.asarray(volume.read())
    except UnknownFormatError:
        raise DamagedFileError(
            f"{path}: expected a mask, got a file of no known format. Fetch it again."
        ) from None
    if task.dimensions == 3 and sample.images:
        _check_place(sample.images[0], path, volume.grid)
    return (sample.labels or task.labels).of(values, str(path))


def _check_place(image: Path, path: Path, grid: Grid | None) -> None:
    """Refuse a mask of the image's size that lies elsewhere; other sizes are told by `check_shape`."""
    try:
        of_image = open_volume(ArrayRef(image)).grid
    except ReadError:
        return  # told where the image is read
    if grid is None or of_image is None or grid.shape != of_image.shape:
        return
    try:
        check_same_grid(of_image, grid, (image.name, str(path)))
    except GeometryError as error:
        said = str(error).partition(" Look whether")[0]
        raise GeometryError(f"{said} Look whether they belong together; if so, resample the mask.") from None


def read_sample(task: Task, sample: Sample) -> tuple[Any, Any]:
    """Read image and labels of a case; several masks are united, the highest label wins.

    Raises
    ------
    SegtrustError
        The first of what `segtrust.paper.tasks.checking.problems_of` lists.
    """
    image = read_image(task, sample)
    if not sample.masks:
        raise SegtrustError(f"{sample.id}: expected a mask, got none. Add it, or remove the image.")
    labels = read_labels(task, sample, sample.masks[0])
    check_shape(labels, image, sample.masks[0])
    for path in sample.masks[1:]:
        other = read_labels(task, sample, path)
        check_shape(other, image, path)
        labels = np.maximum(labels, other)
    return image, labels


def check_shape(labels: Any, image: Any, path: Path) -> None:
    """Refuse a mask of another size than the image."""
    if labels.shape != image.shape[1:]:
        raise MaskShapeError(
            f"{path}: expected a mask of the image's size {image.shape[1:]}, got {labels.shape}. "
            "Save it at that size, or fetch both again."
        )
