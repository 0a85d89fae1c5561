"""Normal draws of many seeds at once, number for number those of ``numpy.random.RandomState(seed)``.

Every image of the paper has a seed of its own. To seed NumPy's generator means to fill 624 words and to make
624 more of them, for ten normals that use about 26. Here the recurrences of many seeds run side by side, and
only the words that can be needed are made. Long vectors are left to NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust._compile import elementwise, entry, plain

__all__ = ["standard_normals"]

_LANES = 64
"""Seeds side by side; a few vectors of them hide the time that one multiplication takes."""
_SHIFT = 397
"""Distance within the state of the Mersenne twister from which a new word takes half of its bits."""
_MOST_WORDS = 227
"""Words that are made of the seeded state alone: 624 - 397."""


def _words_for(n: int) -> int:
    """Words that are kept for ``n`` normals: two and a half times the mean; who needs more is drawn by NumPy.

    A pair of normals takes four words, and 1.27 attempts on average.
    """
    return 16 * ((n + 1) // 2) + 16


@elementwise
def _seed_states(first: int, low: Any, high: Any, state: Any) -> None:
    """Fill the beginning of each state, and the stretch `_SHIFT` further on, from the seeds."""
    words = high.shape[0]
    for lane in range(_LANES):
        state[lane] = first + lane
    for at in range(_SHIFT + words):
        if at <= words:
            for lane in range(_LANES):
                low[at, lane] = state[lane]
        if at >= _SHIFT:
            for lane in range(_LANES):
                high[at - _SHIFT, lane] = state[lane]
        for lane in range(_LANES):
            mixed = np.uint32(state[lane] ^ np.uint32(state[lane] >> np.uint32(30)))
            state[lane] = np.uint32(np.uint32(np.uint32(1812433253) * mixed) + np.uint32(at + 1))


@elementwise
def _twist(low: Any, high: Any) -> None:
    """Turn the state into the generator's words, which replace ``high``."""
    for at in range(high.shape[0]):
        for lane in range(_LANES):
            joined = np.uint32(
                (low[at, lane] & np.uint32(0x80000000)) | (low[at + 1, lane] & np.uint32(0x7FFFFFFF))
            )
            word = np.uint32(high[at, lane] ^ (joined >> np.uint32(1)))
            word = np.uint32(word ^ np.uint32(np.uint32(joined & np.uint32(1)) * np.uint32(0x9908B0DF)))
            word = np.uint32(word ^ (word >> np.uint32(11)))
            word = np.uint32(word ^ (np.uint32(word << np.uint32(7)) & np.uint32(0x9D2C5680)))
            word = np.uint32(word ^ (np.uint32(word << np.uint32(15)) & np.uint32(0xEFC60000)))
            high[at, lane] = np.uint32(word ^ (word >> np.uint32(18)))


@plain
def _uniform(words: Any, at: int, lane: int) -> Any:
    """Give a double in [-1, 1) from 53 bits of two words."""
    upper, lower = words[at, lane] >> np.uint32(5), words[at + 1, lane] >> np.uint32(6)
    return 2.0 * ((upper * 67108864.0 + lower) / 9007199254740992.0) - 1.0


@plain
def _polar_normals(words: Any, lane: int, normals: Any) -> bool:
    """Fill one row by Marsaglia's polar method; tell whether the words were enough."""
    at, filled = 0, 0
    while filled < normals.size:
        if at + 4 > words.shape[0]:
            return False
        x, y = _uniform(words, at, lane), _uniform(words, at + 2, lane)
        at += 4
        square = x * x + y * y
        if square >= 1.0 or square == 0.0:
            continue
        factor = np.sqrt(-2.0 * np.log(square) / square)
        normals[filled] = factor * y  # the second of a pair comes first, as in NumPy
        if filled + 1 < normals.size:
            normals[filled + 1] = factor * x
        filled += 2
    return True


@entry
def _fill_normals(first: int, words: int, normals: Any, enough: Any) -> None:
    low, high = np.empty((words + 1, _LANES), np.uint32), np.empty((words, _LANES), np.uint32)
    state = np.empty(_LANES, np.uint32)
    for begin in range(0, normals.shape[0], _LANES):
        _seed_states(first + begin, low, high, state)
        _twist(low, high)
        for lane in range(min(_LANES, normals.shape[0] - begin)):
            enough[begin + lane] = _polar_normals(high, lane, normals[begin + lane])


def standard_normals(first_seed: int, count: int, n: int) -> Any:
    """Draw ``n`` standard normals from each of ``count`` consecutive seeds.

    Parameters
    ----------
    first_seed
        Row i is drawn from the seed ``first_seed + i``, which must stay below 2³².
    count, n
        Rows and columns.

    Returns
    -------
    ndarray of shape (count, n)
        ``numpy.random.RandomState(first_seed + i).normal(size=n)`` in row i.

    Examples
    --------
    >>> drawn = standard_normals(7, 2, 10)
    >>> np.allclose(drawn[1], np.random.RandomState(8).normal(size=10), rtol=1e-15, atol=0)
    True
    """
    words = _words_for(n)
    if words > _MOST_WORDS:
        return np.stack([_numpy_normals(first_seed + row, n) for row in range(count)])
    normals, enough = np.empty((count, n)), np.empty(count, np.bool_)
    _fill_normals(first_seed, words, normals, enough)
    for row in np.flatnonzero(~enough):
        normals[row] = _numpy_normals(first_seed + int(row), n)
    return normals


def _numpy_normals(seed: int, n: int) -> Any:
    return np.random.RandomState(seed).normal(size=n)  # the paper's generator
