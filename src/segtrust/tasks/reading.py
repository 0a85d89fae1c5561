"""Images and masks of a case, from the files that hold them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, MaskShapeError, ReadError, SegtrustError, WrongContentError
from segtrust.io.places import Place
from segtrust.io.readers import open_volume
from segtrust.optional import require
from segtrust.tasks.task import Sample, Task

__all__ = ["read_image", "read_labels", "read_picture", "read_sample"]

_GREY = ("1", "L", "LA", "I;16", "I;16B")


def read_picture(path: Path) -> Any:
    """Read a picture as 8-bit colours, (3, H, W), or grey, (1, H, W); JPEG too, and what is seen through.

    Raises
    ------
    DamagedFileError
        If it cannot be read to its end.
    """
    image_of = require("PIL.Image", extra="io")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with image_of.open(path) as image:
                grey = image.mode in _GREY
                values = np.asarray(image.convert("L" if grey else "RGB"))
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        UserWarning,
        image_of.DecompressionBombError,
    ) as error:
        raise DamagedFileError(
            f"{path}: expected a picture, got one that cannot be read ({error}). Fetch it again."
        ) from None
    return values[None] if grey else np.ascontiguousarray(values.transpose(2, 0, 1))


def read_image(task: Task, sample: Sample) -> Any:
    """Read the image of a case: (C, H, W) of 8 bits, or (C, D, H, W) of floats."""
    if not sample.images:
        raise ReadError(f"{sample.id}: expected an image, got its mask only. Add the image, or remove it.")
    if task.dimensions == 2:
        channels = [read_picture(path) for path in sample.images]
    else:
        channels = [_volume(path)[None] for path in sample.images]
    return channels[0] if len(channels) == 1 else np.concatenate(channels)


def _volume(path: Path) -> Any:
    values = np.asarray(open_volume(Place(path)).read(), np.float32)
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
    """Read one mask of a case as labels, uint8."""
    return (sample.labels or task.labels).of(np.asarray(open_volume(Place(path)).read()), str(path))


def read_sample(task: Task, sample: Sample) -> tuple[Any, Any]:
    """Read image and labels of a case; several masks are united, the highest label wins.

    Raises
    ------
    SegtrustError
        The first of what `segtrust.tasks.checking.problems_of` lists.
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
