"""Entropies and bit patterns of single doubts, by the standard library."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["binary_entropy", "bits_of_float", "doubt_at_entropy", "float_of_bits"]


def bits_of_float(value: float) -> int:
    """Bit pattern of a double; patterns of floats in [0, 1] are ordered like the floats."""
    return int(np.float64(value).view(np.int64))


def float_of_bits(bits: int) -> float:
    """Double that has this bit pattern."""
    return float(np.int64(bits).view(np.float64))


def binary_entropy(doubt: float) -> float:
    """Entropy in bits of one pixel with this doubt min(p, 1 - p).

    Examples
    --------
    >>> binary_entropy(0.5), binary_entropy(0.0)
    (1.0, 0.0)
    """
    if doubt <= 0.0:
        return 0.0
    return -(doubt * math.log2(doubt) + (1.0 - doubt) * math.log1p(-doubt) / math.log(2.0))


_EPS = float(np.finfo(float).eps)


def doubt_at_entropy(tau: float) -> float:
    """Largest doubt whose entropy is at most ``tau``, so that u > tau and m > doubt say the same.

    A ``tau`` that was computed as an entropy includes its pixel, and with p also 1 - p, whose doubt comes out
    different by a rounding of p. That is no more than 2⁻⁵³, and nothing where doubts are as small as that.
    """
    low, high = 0, bits_of_float(0.5)
    limit = tau * (1.0 + 4.0 * _EPS)
    while low < high:
        middle = (low + high + 1) // 2
        if binary_entropy(float_of_bits(middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    doubt = float_of_bits(low)
    return min(doubt + min(_EPS / 2.0, 1e-9 * doubt), 0.5)
