"""Entropy of a pixel in bits, vectorised.

The entropy of p depends only on the *doubt* m = min(p, 1 - p), which is exact in floating point, and grows
with it. So order statistics of the entropy are order statistics of m, and

    u(m) = m · (h(m) - log2 m),    h(m) = -(1 - m) log2(1 - m) / m

has two positive parts for m <= 1/2 and no cancellation; u(0) = 0 exactly. h is a polynomial good to 6e-15
(``tools/entropy_coefficients.py`` makes it), because a call of a logarithm would not be vectorised. Its even
and odd powers are summed apart: each step of a sum waits for the one before. The logarithm of the binary
fraction of m is an odd function of a quotient: the division is done beside the multiplications and saves
eleven of them, a sixth of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from segtrust.compiled import elementwise, plain
from segtrust.kernels.patterns import float_from_pattern, prefer_wide_vectors, unsigned_pattern

__all__ = ["fill_doubts", "fill_entropies"]

_EXPONENT_AS_FLOAT = np.uint64(0x4330000000000000)  # 2**52: or-ing an integer below 2**52 into it adds it
_EXPONENT_BIAS = 4503599627371519.0  # 2**52 + 1023
_EXPONENT_PLACE = np.uint64(52)
_FRACTION_BITS = np.uint64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.uint64(0x3FF0000000000000)

_REST_CONSTANT = 1.2451124978365355
_CONSTANT = _REST_CONSTANT - 0.5
_ROOT_OF_TWO = math.sqrt(2.0)


@plain
def fill_doubts(block: Any, doubt: Any) -> None:
    """Give min(p, 1 - p): negative outside [0, 1], NaN for NaN, so that one look finds a bad value.

    Adding zero takes the sign from a negative zero, which is a good value.
    """
    for i in range(block.size):
        x = np.float64(block[i]) + 0.0
        rest = 1.0 - x
        doubt[i] = x if x < rest else rest


@elementwise
def _slope_of_rest(v: Any) -> Any:
    """Give (h(v + 1/4) - `_REST_CONSTANT`) / v, v in [-1/4, 1/4]; Chebyshev fit, error of h 6e-15."""
    square = v * v
    even = -0.49918358798107726
    even = even * square - 0.24251163227866326
    even = even * square - 0.20287882626511608
    even = even * square - 0.16786318211728182
    even = even * square - 0.1534566473057973
    even = even * square - 0.16399113764901477
    even = even * square - 0.23823088488667257
    even = even * square - 0.8698198249056425
    odd = -0.4262438314657602
    odd = odd * square - 0.21331917270546516
    odd = odd * square - 0.18316473919557852
    odd = odd * square - 0.15815311956997782
    odd = odd * square - 0.15463647093125993
    odd = odd * square - 0.18698365042603482
    odd = odd * square - 0.3679074760898821
    return even + odd * v


@elementwise
def _slope_of_fraction(w: Any) -> Any:
    """Give (log2 f - 1/2) / w at w = (f - √2)/(f + √2), f in [1, 2]; error of the log 1e-16.

    This is 2 artanh(w) / (w ln 2), an even function of w.
    """
    square = w * w
    slope = 0.2429160853987535
    slope = slope * square + 0.2614442493522915
    slope = slope * square + 0.32061638813224547
    slope = slope * square + 0.4121984020482752
    slope = slope * square + 0.5770780172463286
    slope = slope * square + 0.9617966939243345
    return slope * square + 2.885390081777927


@elementwise
def fill_entropies(block: Any, doubt: Any, entropy: Any) -> None:
    """Give the doubt and the entropy of each pixel; entropies of bad values mean nothing."""
    prefer_wide_vectors()
    for i in range(block.size):
        x = np.float64(block[i]) + 0.0
        rest = 1.0 - x
        m = x if x < rest else rest
        doubt[i] = m
        bits = unsigned_pattern(m)
        v = m - 0.25
        fraction = float_from_pattern((bits & _FRACTION_BITS) | _ONE_BITS)
        w = (fraction - _ROOT_OF_TWO) / (fraction + _ROOT_OF_TWO)
        exponent = float_from_pattern((bits >> _EXPONENT_PLACE) | _EXPONENT_AS_FLOAT) - _EXPONENT_BIAS
        entropy[i] = m * ((_CONSTANT - exponent) + v * _slope_of_rest(v) - w * _slope_of_fraction(w))
