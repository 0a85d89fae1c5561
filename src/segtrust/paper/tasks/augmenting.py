"""Random changes of images and their labels, the same for both.

An augmentation takes an image (C, *spatial), its labels (*spatial), the size that is wanted, and random
numbers, and gives image and labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = [
    "Augmentation",
    "cut",
    "flipped_and_turned",
    "fundus_changed",
    "none",
    "padded",
    "patch_changed",
    "volume_changed",
    "warped",
]

Augmentation = Callable[[Any, Any, tuple[int, ...], np.random.Generator], tuple[Any, Any]]


def none(image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
    """Change nothing."""
    return image, labels


def flipped_and_turned(
    image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator
) -> tuple[Any, Any]:
    """Turn a square by a multiple of 90 degrees, and flip it: each in half of the cases, as for UNeXt.

    Of the turns none is as likely as the others; flips are upside down, left to right, or both.
    """
    if rng.random() < 0.5:
        turns = int(rng.integers(4))
        image, labels = np.rot90(image, turns, (1, 2)), np.rot90(labels, turns, (0, 1))
    if rng.random() < 0.5:
        axes = ((0,), (1,), (0, 1))[int(rng.integers(3))]
        image, labels = np.flip(image, tuple(axis + 1 for axis in axes)), np.flip(labels, axes)
    return image, labels


def fundus_changed(
    image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator
) -> tuple[Any, Any]:
    """Crop or pad, flip, turn, and change the colours of a photograph, as for Segtran.

    In half of the cases each side is cut or widened by up to a fifth, and the rest resized; flips have a
    probability of 0.2 each, turns of 0.3. Brightness, contrast, saturation, or a little of all, is changed.
    """
    if rng.random() < 0.5:
        image, labels = _cropped_or_padded(image, labels, rng)
    for axis in (0, 1):
        if rng.random() < 0.2:
            image, labels = np.flip(image, axis + 1), np.flip(labels, axis)
    if rng.random() < 0.3:
        turns = int(rng.integers(1, 4))
        image, labels = np.rot90(image, turns, (1, 2)), np.rot90(labels, turns, (0, 1))
    return _jittered(image, rng), labels


def _cropped_or_padded(image: Any, labels: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Move each side in or out by up to a fifth, with zeros outside, and resize to what it was."""
    from segtrust.paper.tasks.resizing import resized, resized_labels

    size = labels.shape
    moved = [[round(share * side) for share in rng.uniform(-0.2, 0.2, 2)] for side in size]
    around = [(max(before, 0), max(after, 0)) for before, after in moved]
    inside = tuple(
        slice(max(-before, 0), side + min(after, 0))
        for (before, after), side in zip(moved, size, strict=True)
    )
    image = np.pad(image[(slice(None), *inside)], [(0, 0), *around])
    labels = np.pad(labels[inside], around)
    return resized(image, size, "bilinear"), resized_labels(labels, size, "bilinear")


def _jittered(image: Any, rng: np.random.Generator) -> Any:
    """Change brightness, contrast or saturation by up to a fifth, or all of them by up to a tenth."""
    which = int(rng.integers(4))
    values = image.astype(np.float32)
    for kind, change in enumerate((_brighter, _sharper, _richer)):
        reach = 0.1 if which == 3 else 0.2 if which == kind else 0.0
        values = change(values, 1.0 + rng.uniform(-reach, reach)) if reach else values
    return np.rint(values.clip(0.0, 255.0)).astype(np.uint8)


def _brighter(values: Any, factor: float) -> Any:
    return values * factor


def _sharper(values: Any, factor: float) -> Any:
    middle = values.mean()
    return (values - middle) * factor + middle


def _richer(values: Any, factor: float) -> Any:
    grey = values.mean(0, keepdims=True)
    return (values - grey) * factor + grey


def patch_changed(
    image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator
) -> tuple[Any, Any]:
    """Cut a patch out of a volume, and change it as for the Shifts U-Net.

    Intensities are shifted and scaled by up to 0.1. All axes are flipped in half of the cases; each plane of
    equal sides is turned by 90, 180 or 270 degrees in half of the cases; then it is turned by up to 15
    degrees and scaled by up to a tenth.
    """
    image = (image + rng.uniform(-0.1, 0.1)) * (1.0 + rng.uniform(-0.1, 0.1))
    image, labels = cut(image, labels, size, rng)
    if rng.random() < 0.5:
        image, labels = np.flip(image, (1, 2, 3)), np.flip(labels)
    for plane in ((0, 1), (1, 2), (0, 2)):
        turns = int(rng.integers(1, 4)) if rng.random() < 0.5 else 0
        if size[plane[0]] == size[plane[1]]:
            image = np.rot90(image, turns, (plane[0] + 1, plane[1] + 1))
            labels = np.rot90(labels, turns, plane)
    return warped(image, labels, rng)


def volume_changed(
    image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator
) -> tuple[Any, Any]:
    """Change a volume as `patch_changed` does, but only from left to right, and never upside down."""
    image = (image + rng.uniform(-0.1, 0.1)) * (1.0 + rng.uniform(-0.1, 0.1))
    image, labels = cut(image, labels, size, rng)
    if rng.random() < 0.5:
        image, labels = np.flip(image, 3), np.flip(labels, 2)
    return warped(image, labels, rng)


def cut(image: Any, labels: Any, size: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
    """Cut a patch of a size out of a volume, which is filled up with zeros where it is smaller.

    A voxel is drawn, of the foreground four times of five; a window a third larger than the patch is placed
    about it as far as the volume reaches, and the patch anywhere in that.
    """
    image, labels = padded(image, labels, size)
    inside = np.flatnonzero(labels if rng.random() < 0.8 else labels == 0)
    voxel = int(rng.choice(inside)) if len(inside) else labels.size // 2
    starts = []
    for at, side, length in zip(np.unravel_index(voxel, labels.shape), size, labels.shape, strict=True):
        window = min(side * 4 // 3, length)
        begin = min(max(int(at) - window // 2, 0), length - window)
        starts.append(begin + int(rng.integers(window - side + 1)))
    place = tuple(slice(start, start + side) for start, side in zip(starts, size, strict=True))
    return image[(slice(None), *place)], labels[place]


def padded(image: Any, labels: Any, size: tuple[int, ...]) -> tuple[Any, Any]:
    """Put a volume into the middle of a larger one of zeros, along the axes where it is smaller than a size.

    Examples
    --------
    >>> padded(np.ones((1, 2, 2)), np.ones((2, 2)), (4, 2))[1].tolist()
    [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    lacking = [max(0, side - length) for side, length in zip(size, labels.shape, strict=True)]
    around = [(each // 2, each - each // 2) for each in lacking]
    return np.pad(image, [(0, 0), *around]), np.pad(labels, around)


def warped(image: Any, labels: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Turn a volume by up to 15 degrees about each axis, and scale it by up to a tenth."""
    from scipy.ndimage import affine_transform

    matrix = np.diag(1.0 / (1.0 + rng.uniform(-0.1, 0.1, 3)))
    for axis, angle in enumerate(np.radians(rng.uniform(-15.0, 15.0, 3))):
        turn = np.eye(3)
        first, second = ((axis + 1) % 3, (axis + 2) % 3)
        turn[first, first] = turn[second, second] = np.cos(angle)
        turn[first, second], turn[second, first] = -np.sin(angle), np.sin(angle)
        matrix = matrix @ turn
    centre = (np.array(labels.shape) - 1.0) / 2.0
    how = {"matrix": matrix, "offset": centre - matrix @ centre, "mode": "nearest"}
    channels = [affine_transform(np.ascontiguousarray(each), order=1, **how) for each in image]
    return np.stack(channels), affine_transform(np.ascontiguousarray(labels), order=0, **how)
