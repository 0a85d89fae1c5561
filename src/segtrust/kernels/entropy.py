"""Entropy of a pixel in bits, vectorised.

The entropy of p depends only on the *doubt* m = min(p, 1 - p), which is exact in floating point, and grows
with it. So order statistics of the entropy are order statistics of m, and

    u(m) = m · (h(m) - log2 m),    h(m) = -(1 - m) log2(1 - m) / m

has two positive parts for m <= 1/2 and no cancellation; u(0) = 0 exactly. Both h and the logarithm of the
binary fraction of m are polynomials good to 6e-15 (``tools/entropy_coefficients.py`` makes them), because a
call of a logarithm would not be vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.compiled import elementwise, plain
from segtrust.kernels.patterns import float_from_pattern, pattern, prefer_wide_vectors

__all__ = ["fill_doubts", "fill_entropies"]

_EXPONENT_AS_FLOAT = np.int64(0x4330000000000000)  # 2**52: or-ing an integer below 2**52 into it adds it
_EXPONENT_BIAS = 4503599627371519.0  # 2**52 + 1023
_FRACTION_BITS = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)


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
def _log_of_rest(v: Any) -> Any:
    """Give -(1 - m) log2(1 - m) / m for v = 4m - 1, m in [0, 1/2]; Chebyshev fit, error 6e-15."""
    value = -4.6490094436432916e-10
    value = value * v - 1.5878820101386317e-09
    value = value * v - 3.6137049239674697e-09
    value = value * v - 1.2714813512889454e-08
    value = value * v - 4.8370081487921734e-08
    value = value * v - 1.746795074420724e-07
    value = value * v - 6.403472218219064e-07
    value = value * v - 2.4132250910946323e-06
    value = value * v - 9.36625044591048e-06
    value = value * v - 3.775304466095214e-05
    value = value * v - 0.00016014759536036598
    value = value * v - 0.0007304048844766985
    value = value * v - 0.003722357576354259
    value = value * v - 0.022994217255617632
    value = value * v - 0.21745495622641062
    value = value * v + 1.2451124978365358
    return value


@elementwise
def _log_of_fraction(w: Any) -> Any:
    """Give log2 f for w = 2f - 3, f in [1, 2]; Chebyshev fit, error 4e-15."""
    value = 1.0477802267962706e-09
    value = value * w - 3.3297481076980114e-09
    value = value * w + 5.9044292557019584e-09
    value = value * w - 1.902153106757998e-08
    value = value * w + 7.044928180397367e-08
    value = value * w - 2.2888420346040147e-07
    value = value * w + 7.398603432844042e-07
    value = value * w - 2.441610604281517e-06
    value = value * w + 8.144234404879374e-06
    value = value * w - 2.7486752554389946e-05
    value = value * w + 9.423832410982419e-05
    value = value * w - 0.00032983414634698514
    value = value * w + 0.0011874033292725015
    value = value * w - 0.004452762482739806
    value = value * w + 0.017811049887388734
    value = value * w - 0.08014972449342275
    value = value * w + 0.4808983469629886
    value = value * w + 0.5849625007211536
    return value


@elementwise
def fill_entropies(block: Any, doubt: Any, entropy: Any) -> None:
    """Give the doubt and the entropy of each pixel; entropies of bad values mean nothing."""
    prefer_wide_vectors()
    for i in range(block.size):
        x = np.float64(block[i]) + 0.0
        rest = 1.0 - x
        m = x if x < rest else rest
        doubt[i] = m
        bits = pattern(m)
        fraction = float_from_pattern((bits & _FRACTION_BITS) | _ONE_BITS)
        exponent = float_from_pattern((bits >> 52) | _EXPONENT_AS_FLOAT) - _EXPONENT_BIAS
        log2_m = _log_of_fraction(2.0 * fraction - 3.0) + exponent
        entropy[i] = m * (_log_of_rest(4.0 * m - 1.0) - log2_m)
