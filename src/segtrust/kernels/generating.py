"""Products over the few pixels that are put into the integrals one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import entry, plain, reduction
from segtrust.kernels.patterns import prefer_wide_vectors

__all__ = ["generating_sums"]

_FACTORS = 16
"""Factors multiplied before a logarithm is taken; each is at least exp(-300)·p or 1 - p, so none underflows
unless the pixel is certain, and then the sum is minus infinity as it should be."""

_NEAR_ONE = 0.5


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
def _lack(values: Any, u: float) -> float:
    """Give one minus the product of all 1 - pu, to its last digit where it is small."""
    lack = 0.0
    for i in range(values.size):
        part = values[i] * u
        lack += part - lack * part
    return lack


@entry
def _generating_sums(values: Any, t: Any, u: Any, logarithms: Any, slopes: Any) -> None:
    """Add up.

    A factor close to 1 is rounded to 1e-16, and equal pixels are rounded alike: over thousands of them that
    would show. So where a product is close to 1 its distance from 1 is gathered instead.
    """
    for node in range(t.size):
        for first in range(0, values.size, _FACTORS):
            some = values[first : first + _FACTORS]
            product, slope = _product_and_slope(some, t[node])
            logarithms[node] += np.log(product) if product < _NEAR_ONE else np.log1p(-_lack(some, u[node]))
            slopes[node] += slope


def generating_sums(values: Any, t: Any, u: Any) -> tuple[Any, Any]:
    """Give Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values`` for each ``t``; ``u`` is 1 - t."""
    logarithms, slopes = np.zeros(t.size), np.zeros(t.size)
    _generating_sums(values, t, u, logarithms, slopes)
    return logarithms, slopes
