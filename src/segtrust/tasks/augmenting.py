"""Random changes of images and their labels, the same for both.

An augmentation takes an image (C, *spatial), its labels (*spatial), the size that is wanted, and random
numbers, and gives image and labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Augmentation", "flipped_and_turned", "none"]

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
