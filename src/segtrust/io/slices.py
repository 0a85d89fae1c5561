"""Which slices of a volume are worth a look first."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["doubt_of", "middle_slice"]


def middle_slice(is_filled: Any) -> int:
    """Give the slice in the middle of those that hold something, or of all where none does.

    Parameters
    ----------
    is_filled
        Whether mask or truth have a pixel in each slice.

    Examples
    --------
    >>> middle_slice([False, False, False, True, True, True]), middle_slice([False] * 6)
    (4, 3)
    """
    filled = np.flatnonzero(is_filled)
    return int(filled[filled.size // 2]) if filled.size else len(is_filled) // 2


def doubt_of(p: Any) -> float:
    """Give how uncertain the pixels of a slice are, taken together: 0 where all are 0 or 1.

    Examples
    --------
    >>> doubt_of(np.array([[0.0, 0.5], [0.75, 1.0]]))
    0.75
    """
    return float(np.minimum(p, 1.0 - p).sum())
