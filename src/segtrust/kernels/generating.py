"""Compiled sums for the generating functions in `segtrust.kernels.integrals`, over pixels kept one by one.

A module of its own, because it loads Numba, which the integrals of a map on a device do not need.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import entry, plain, reduction
from segtrust.kernels.intrinsics import prefer_wide_vectors

__all__ = ["generating_sums"]

_FACTORS = 16
"""Number of factors that are multiplied before a logarithm is taken. Each is at least exp(-300)·p or 1 - p,
so the product underflows only if pixels are certain; the sum is then minus infinity, as it should be."""

_NEAR_ONE = 0.5


def generating_sums(values: Any, t: Any, u: Any) -> tuple[Any, Any]:
    """Return Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values`` for each ``t``; ``u`` is 1 - t."""
    logarithms, slopes = np.zeros(t.size), np.zeros(t.size)
    _add_generating_sums(values, t, u, logarithms, slopes)
    return logarithms, slopes


@entry
def _add_generating_sums(values: Any, t: Any, u: Any, logarithms: Any, slopes: Any) -> None:
    # A factor close to 1 is rounded by 1e-16, and equal pixels are rounded alike, which would show over
    # thousands of them. So where a product is close to 1 its distance from 1 is computed instead.
    for node in range(t.size):
        for first in range(0, values.size, _FACTORS):
            some = values[first : first + _FACTORS]
            product, slope = _product_and_slope(some, t[node])
            if product < _NEAR_ONE:
                logarithms[node] += np.log(product)
            else:
                logarithms[node] += np.log1p(-_distance_from_one(some, u[node]))
            slopes[node] += slope


@reduction
def _product_and_slope(values: Any, t: float) -> Any:
    prefer_wide_vectors()
    product = 1.0
    slope = 0.0
    for i in range(values.size):
        factor = (1.0 - values[i]) + values[i] * t
        product *= factor
        slope += values[i] / factor
    return product, slope


@plain
def _distance_from_one(values: Any, u: float) -> float:
    """Return one minus the product of all 1 - pu, accurate to the last digit where it is small."""
    distance = 0.0
    for i in range(values.size):
        part = values[i] * u
        distance += part - distance * part
    return distance
