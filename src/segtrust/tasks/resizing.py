"""Pictures and labels of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.optional import require

__all__ = ["resized", "resized_labels"]


def resized(image: Any, size: tuple[int, ...], how: str) -> Any:
    """Resize 8-bit channels (C, H, W), with the weights of a bilinear interpolation.

    Examples
    --------
    >>> resized(np.array([[[0, 100]]], np.uint8), (1, 4), "bilinear").ravel().tolist()
    [0, 25, 75, 100]
    """
    if how == "none" or image.shape[1:] == size:
        return image
    return np.stack([_resized(channel, size, how) for channel in image])


def _resized(channel: Any, size: tuple[int, ...], how: str) -> Any:
    image_of = require("PIL.Image", extra="io")
    height, width = size
    image = image_of.fromarray(np.ascontiguousarray(channel))
    if how == "antialiased":
        return np.asarray(image.resize((width, height), image_of.Resampling.BILINEAR))
    matrix = (channel.shape[1] / width, 0.0, 0.0, 0.0, channel.shape[0] / height, 0.0)
    method, resample = image_of.Transform.AFFINE, image_of.Resampling.BILINEAR
    return np.asarray(image.transform((width, height), method, matrix, resample=resample))


def resized_labels(labels: Any, size: tuple[int, ...], how: str) -> Any:
    """Resize labels (H, W): those of the nearest pixels."""
    if how == "none" or labels.shape == size:
        return labels
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, labels.shape, strict=True)
    )
    return labels[np.ix_(rows, columns)]
