"""Masks of one structure, from the labels that a file holds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import NotBinaryError

__all__ = ["LazyMask", "mask_of_values"]

_WHITE = (1, 255, 65535)
"""What stands for foreground in a mask of two values."""
_MOST_LISTED = 8
_TABLE = 1 << 16


def mask_of_values(
    labels: Any, values: Collection[int] | None, source: str, *, known: Collection[int] = ()
) -> Any:
    """Give where labels are those of a structure, as an array of truth values.

    Parameters
    ----------
    labels
        Whole numbers, also as floats; a binary mask may hold 0 and 1, 0 and 255, or 0 and 65535.
    values
        Labels of the structure; ``None`` for a binary mask.
    source
        Names the file in errors.
    known
        All labels that may occur; nothing where that is not known.

    Examples
    --------
    >>> mask_of_values(np.array([0, 1, 2, 3]), (2, 3), "labels.nii.gz").tolist()
    [False, False, True, True]
    >>> mask_of_values(np.array([0, 2], np.uint8), None, "mask.png")
    Traceback (most recent call last):
    ...
    segtrust.errors.NotBinaryError: mask.png: expected a mask of 0 and 1, or 0 and 255, got labels 0, 2. ...
    """
    found = np.asarray(labels)
    if found.dtype == bool and values is None:
        return found
    found = _whole_numbers(found, source)
    if values is None:
        return _binary(found, source)
    if known:
        _check_known(found, {0, *known, *values}, source)
    mask = np.zeros(found.shape, bool)
    for value in values:
        mask |= found == value
    return mask


@dataclass(frozen=True, eq=False)
class LazyMask:
    """A mask of labels that are read piece by piece, as those of a map larger than the memory.

    Attributes
    ----------
    labels
        An array in chunks.
    values, known, source
        As for `mask_of_values`.
    """

    labels: Any
    values: tuple[int, ...] | None
    source: str
    known: tuple[int, ...] = ()
    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        """Pixels along each axis."""
        return tuple(self.labels.shape)

    @property
    def chunks(self) -> Any:
        """Those of the labels."""
        return self.labels.chunks

    def __getitem__(self, tile: tuple[slice, ...]) -> Any:
        """Read a piece."""
        return mask_of_values(np.asarray(self.labels[tile]), self.values, self.source, known=self.known)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read it all, for who needs it in memory."""
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype=dtype)


def _binary(labels: Any, source: str) -> Any:
    highest = int(labels.max(initial=0))
    mask = labels != 0
    white = labels == highest if highest else labels > 0
    if highest not in (0, *_WHITE) or not np.array_equal(white, mask):
        raise NotBinaryError(
            f"{source}: expected a mask of 0 and 1, or 0 and 255, got labels {_listed(labels)}. Say which of "
            "them are meant: --label."
        )
    return mask


def _whole_numbers(labels: Any, source: str) -> Any:
    """Give integers as they are, and floats that are whole numbers as integers."""
    if labels.dtype.kind in "iu":
        return labels
    if labels.dtype == bool:
        return labels.view(np.uint8)
    if labels.dtype.kind != "f":
        raise NotBinaryError(
            f"{source}: expected labels, which are whole numbers, got {labels.dtype}. Save them as integers."
        )
    with np.errstate(invalid="ignore"):
        rounded = labels.astype(np.int32)
    if np.array_equal(rounded, labels):
        return rounded
    raise NotBinaryError(
        f"{source}: expected labels, which are whole numbers, got {labels.dtype} from {labels.min():.3g} to "
        f"{labels.max():.3g}. If these are probabilities, they are no mask: threshold them."
    )


def _check_known(labels: Any, known: set[int], source: str) -> None:
    lowest, highest = int(labels.min(initial=0)), int(labels.max(initial=0))
    if lowest >= 0 and highest <= max(known) and len(known) == max(known) + 1:
        return  # all from 0 on are known
    strange = sorted(set(_values(labels)) - known)
    if strange:
        raise NotBinaryError(
            f"{source}: expected the labels {_shown(sorted(known))}, got {_shown(strange)} as well. Is it of "
            "another data set? A dataset.json beside the predictions says which labels there are; one that "
            "it calls 'ignore' marks pixels nobody has annotated, and a case that has any cannot be judged."
        )


def _values(labels: Any) -> list[int]:
    if labels.dtype.kind == "u" and labels.dtype.itemsize <= 2:
        seen = np.zeros(_TABLE, bool)
        seen[labels.reshape(-1)] = True
        return [int(value) for value in np.flatnonzero(seen)]
    return [int(value) for value in np.unique(labels)]


def _listed(labels: Any) -> str:
    return _shown(_values(labels))


def _shown(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:_MOST_LISTED]))
    return f"{shown}, …" if len(values) > _MOST_LISTED else shown
