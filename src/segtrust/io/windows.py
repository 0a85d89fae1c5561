"""Between which values an image is shown, so that desk and report show it alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Window", "stretched", "window_of"]

_LOOKED_AT = 1 << 20
"""Values from which the usual window of an image is told."""
_USUAL = (0.005, 0.995)
"""Shares of the values that are darker than black and white."""


@dataclass(frozen=True)
class Window:
    """Values of an image that are black and white, and the range within which these can be."""

    low: float
    high: float
    least: float
    most: float


def window_of(image: Any, *, has_colours: bool = False) -> Window | None:
    """Give the usual window of an image: from nearly the darkest to nearly the brightest of its values.

    Parameters
    ----------
    image
        Values of any shape; those that are not finite do not count.
    has_colours
        Whether its last axis are colours. One window is for all of them, and its black stays black: colours
        are only made brighter, which keeps their hue.

    Returns
    -------
    Window or None
        ``None`` where there is no finite value.

    Examples
    --------
    >>> window_of(np.array([[0, 2, 4], [1, 3, 5]]), has_colours=True).low
    0.0
    """
    some = image.reshape(-1)[:: max(1, image.size // _LOOKED_AT)].astype(np.float64)
    some = some[np.isfinite(some)]
    if not some.size:
        return None
    low, high = np.quantile(some, _USUAL)
    least, most = some.min(), some.max()
    if has_colours:
        low = least = min(0.0, least)
    if high <= low:
        low, high = least, most
    return Window(*(float(each) for each in (low, high, least, most)))


def stretched(values: Any, low: float, high: float) -> Any:
    """Give values as 0 (black) to 255 (white), rounded; what is no number is black.

    Examples
    --------
    >>> stretched(np.array([-5.0, 10.0, 20.0, np.nan]), 0.0, 20.0).tolist()
    [0.0, 128.0, 255.0, 0.0]
    """
    shares = (np.nan_to_num(values, nan=low) - low) / (high - low if high > low else 1.0)
    return np.rint(255.0 * np.clip(shares, 0.0, 1.0))
