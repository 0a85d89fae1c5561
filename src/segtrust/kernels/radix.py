"""Exact order statistics of doubts where Numba is missing: bit patterns counted sixteen bits at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from segtrust.kernels.bits import float_of_bits

__all__ = ["doubt_of_rank"]

_DIGIT = 16
_SHIFTS = (48, 32, 16, 0)


def doubt_of_rank(pieces: Callable[[], Iterable[Any]], rank: int) -> float:
    """Find the doubt of one rank, counted from 0, among all those of the pieces.

    Patterns of doubts are ordered like the doubts, so each pass over the pieces tells the next sixteen bits
    of the one that is sought; nothing but 65536 counts is held.

    Parameters
    ----------
    pieces
        Called four times; each time gives the same doubts, as arrays of doubles.
    rank
        Below the number of doubts.

    Examples
    --------
    >>> doubt_of_rank(lambda: [np.array([0.5, 0.1]), np.array([0.3])], 1)
    0.3
    """
    prefix = 0
    for shift in _SHIFTS:
        counts = np.zeros(1 << _DIGIT, np.int64)
        for doubts in pieces():
            counts += _count_digits(doubts, prefix, shift)
        upto = np.cumsum(counts)
        digit = int(np.searchsorted(upto, rank, side="right"))
        rank -= int(upto[digit] - counts[digit])
        prefix = prefix << _DIGIT | digit
    return float_of_bits(prefix)


def _count_digits(doubts: Any, prefix: int, shift: int) -> Any:
    """Count the digits at ``shift`` of the patterns that begin with ``prefix``."""
    patterns = np.abs(doubts).view(np.int64) >> shift  # a zero may have a sign
    digits = patterns[patterns >> _DIGIT == prefix] & ((1 << _DIGIT) - 1)
    return np.bincount(digits, minlength=1 << _DIGIT)
