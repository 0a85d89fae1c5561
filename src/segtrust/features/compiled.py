"""The compiled backend: all features of an image with one grey level, in one go over the mask's box."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.errors import GreyLevelsError
from segtrust.features.firstorder import first_order_features
from segtrust.features.names import SHAPE_CLASSES, Features
from segtrust.features.region import Region
from segtrust.features.shape import shape_features
from segtrust.features.texture import texture_features

__all__ = ["compiled_features", "has_one_level"]


_VAST = 1e300


def has_one_level(values: Any, bin_width: float) -> bool:
    """Tell whether PyRadiomics would give these values the grey level 1 and no other.

    Its bins are half open and begin at the largest multiple of the width that is not above the smallest
    value; a value on an edge belongs to the bin above. The edges are computed as it computes them, because
    rounding decides where a value lies on an edge.

    Examples
    --------
    >>> has_one_level(np.array([0.0, 1.0]), 25.0), has_one_level(np.array([0.0, 25.0]), 25.0)
    (True, False)
    """
    low, high = values.min(), values.max()
    first = low - low % bin_width
    if bin_width > _VAST:  # its multiples may be infinite; no image has values as large
        return bool(low >= 0.0 or high < 0.0)
    if high > first + 2.0 * bin_width:
        return False
    edges = np.arange(first, high + 2.0 * bin_width, bin_width)
    return bool((np.digitize((low, high), edges) == 1).all())


def compiled_features(region: Region, bin_width: float) -> Features:
    """Compute all classes, or refuse an image with several grey levels."""
    if not has_one_level(region.values, bin_width):
        low, high = float(region.values.min()), float(region.values.max())
        raise GreyLevelsError(
            f"bin_width: the backend 'compiled' expects one grey level inside the mask, and a width of "
            f"{bin_width:g} makes several of the values from {low:g} to {high:g}. Use a wider bin, such as "
            "25 for a map in [0, 1], or the backend 'pyradiomics'."
        )
    return {
        SHAPE_CLASSES[region.ndim]: shape_features(region),
        "firstorder": first_order_features(region),
        **texture_features(region),
    }
