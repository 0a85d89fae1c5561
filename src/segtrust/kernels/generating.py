"""Products over the few pixels that are put into the integrals one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import entry, reduction
from segtrust.kernels.patterns import prefer_wide_vectors

__all__ = ["generating_sums"]

_FACTORS = 16
"""Factors multiplied before a logarithm is taken; each is at least exp(-300)·p or 1 - p, so none underflows
unless the pixel is certain, and then the sum is minus infinity as it should be."""


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


@entry
def _generating_sums(values: Any, t: Any, logarithms: Any, slopes: Any) -> None:
    for node in range(t.size):
        for first in range(0, values.size, _FACTORS):
            product, slope = _product_and_slope(values[first : first + _FACTORS], t[node])
            logarithms[node] += np.log(product)
            slopes[node] += slope


def generating_sums(values: Any, t: Any) -> tuple[Any, Any]:
    """Give Σ log(1 - p + pt) and Σ p/(1 - p + pt) over ``values`` for each ``t``."""
    logarithms, slopes = np.zeros(t.size), np.zeros(t.size)
    _generating_sums(values, t, logarithms, slopes)
    return logarithms, slopes
