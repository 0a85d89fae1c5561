"""How many threads a call may use: a property of the place it runs in, not of the result.

Sums are taken over blocks whose borders depend on the map's shape alone, so the number of threads never
changes a digit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral

from segtrust.errors import ParameterError

__all__ = ["current_threads", "use_threads"]


def _threads_from_environment() -> int:
    text = os.environ.get("SEGTRUST_THREADS", "1")
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"SEGTRUST_THREADS: expected a whole number of at least 1, got {text!r}.")
    return int(text)


_threads: ContextVar[int | None] = ContextVar("segtrust_threads", default=None)


def current_threads() -> int:
    """Threads that a call made now would use: `use_threads`, else ``SEGTRUST_THREADS``, else 1.

    Examples
    --------
    >>> with use_threads(2):
    ...     current_threads()
    2
    """
    chosen = _threads.get()
    return _threads_from_environment() if chosen is None else chosen


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Let the calls inside the block use ``count`` threads for one map.

    Parameters
    ----------
    count
        At least 1. Results do not depend on it, to the last bit.

    Examples
    --------
    >>> import numpy as np, segtrust as st
    >>> with st.use_threads(2):
    ...     st.soft_dice_confidence(np.array([0.9, 0.8, 0.1]))
    0.8947368421052632
    """
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ParameterError(f"threads: expected a whole number of at least 1, got {count!r}.")
    token = _threads.set(int(count))
    try:
        yield
    finally:
        _threads.reset(token)
