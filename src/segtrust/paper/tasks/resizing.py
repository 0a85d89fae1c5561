"""Pictures and labels of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust._optional import require

__all__ = ["resized", "resized_labels"]


def resized(image: Any, size: tuple[int, ...], how: str) -> Any:
    """Resize 8-bit channels (C, H, W), with the weights of a bilinear interpolation.

    Parameters
    ----------
    image
        Channels.
    size
        Height and width.
    how
        ``"bilinear"``: of the four nearest pixels; ``"antialiased"``: of all that a new pixel covers;
        ``"none"``.

    Examples
    --------
    >>> resized(np.array([[[0, 100]]], np.uint8), (1, 4), "bilinear").ravel().tolist()
    [0, 25, 75, 100]
    """
    if how == "none" or image.shape[1:] == size:
        return image
    if how == "antialiased":
        return np.stack([_antialiased(channel, size) for channel in image])
    rows, columns = (_places(new, old) for new, old in zip(size, image.shape[1:], strict=True))
    down, across = rows[2][:, None], columns[2]
    left, right = image[:, :, columns[0]], image[:, :, columns[1]]
    lines = left + (right - left.astype(np.float32)) * across
    return np.rint(lines[:, rows[0]] * (1.0 - down) + lines[:, rows[1]] * down).astype(np.uint8)


def _places(new: int, old: int) -> tuple[Any, Any, Any]:
    """Give the pixels before and after each new one, and the weight of the latter."""
    at = ((np.arange(new) + 0.5) * old / new - 0.5).clip(0, old - 1)
    before = at.astype(int)
    return before, (before + 1).clip(max=old - 1), (at - before).astype(np.float32)


def _antialiased(channel: Any, size: tuple[int, ...]) -> Any:
    image_of = require("PIL.Image", extra="io")
    image = image_of.fromarray(np.ascontiguousarray(channel))
    return np.asarray(image.resize(size[::-1], image_of.Resampling.BILINEAR))


def resized_labels(labels: Any, size: tuple[int, ...], how: str) -> Any:
    """Resize labels (H, W): those of the nearest pixels."""
    if how == "none" or labels.shape == size:
        return labels
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, labels.shape, strict=True)
    )
    return labels[np.ix_(rows, columns)]
