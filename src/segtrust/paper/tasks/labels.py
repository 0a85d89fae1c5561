"""What the values in files of masks mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.errors import NotBinaryError

__all__ = ["BINARY", "Labels", "disc_cup_target", "foreground_target"]

_MOST_LISTED = 8


@dataclass(frozen=True)
class Labels:
    """Values of a file, and the labels that they stand for: 0 is background.

    Attributes
    ----------
    values
        Label by value; other values are an error.
    at_least
        Instead: from this value on it is label 1. For soft maps, and masks that were resized.

    Examples
    --------
    >>> Labels({0: 2, 128: 1, 255: 0}).of(np.array([0, 128, 255]), "mask.bmp").tolist()
    [2, 1, 0]
    >>> Labels(at_least=128).of(np.array([0, 127, 128]), "soft.png").tolist()
    [0, 0, 1]
    """

    values: Mapping[int, int] = field(default_factory=dict)
    at_least: float | None = None

    def of(self, found: Any, source: str) -> Any:
        """Give the labels of an array of values, uint8; ``source`` names the file in errors."""
        if self.at_least is not None:
            return self._cut(found, source)
        labels = np.full(found.shape, 255, np.uint8)
        for value, label in self.values.items():
            labels[found == value] = label
        strange = np.unique(found[labels == 255])
        if len(strange):
            raise NotBinaryError(
                f"{source}: expected the values {_listed(sorted(self.values))}, got {_listed(strange)} as "
                "well. Is it of another data set, or was it resized or saved with losses?"
            )
        return labels

    def _cut(self, found: Any, source: str) -> Any:
        """Cut grey values; pixels of one bit are black and white, and 0 and 1 in 8 bits are a mistake."""
        if found.dtype == bool:
            return found.astype(np.uint8)
        if found.dtype.kind in "iu" and found.max(initial=0) == 1:
            raise NotBinaryError(
                f"{source}: expected grey values, foreground from {self.at_least:g} on, got 0 "
                "and 1. Save the mask as 0 and 255."
            )
        return (found >= self.at_least).astype(np.uint8)

    def __str__(self) -> str:
        """Tell people."""
        if self.at_least is not None:
            return f"foreground from {self.at_least:g} on"
        return ", ".join(f"{value} is {label}" for value, label in self.values.items())


BINARY = Labels({0: 0, 1: 1, 255: 1, 65535: 1})
"""Masks of 0 and 1, 0 and 255, or 0 and 65535."""


def _listed(values: Any) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:_MOST_LISTED])
    return f"{shown}, …" if len(values) > _MOST_LISTED else shown


def foreground_target(labels: Any) -> Any:
    """Give one channel, (N, 1, *spatial), 1 where there is any label.

    Examples
    --------
    >>> foreground_target(np.array([[[0, 2]]])).tolist()
    [[[[0.0, 1.0]]]]
    """
    return (labels > 0).astype(np.float32)[:, None]


def disc_cup_target(labels: Any) -> Any:
    """Give background, disc with cup, and cup, (N, 3, H, W), of labels 0, 1 and 2.

    Examples
    --------
    >>> disc_cup_target(np.array([[[0, 1, 2]]]))[0, :, 0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    return np.stack([labels == 0, labels > 0, labels > 1], axis=1).astype(np.float32)
