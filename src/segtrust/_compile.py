"""How loops are compiled by Numba, and how many threads they use.

There are two kinds of loop. The compiler may re-associate a *reduction*, or it would not be vectorised; its
blocks are short and its accumulators double, so the order inside a block costs at most a few units in the
last place. An *element-wise* loop must keep its order (the exponent arithmetic of the logarithm depends on
it) and is vectorised anyway.

The number of threads never changes a digit: sums are taken over segments, which depend on the map's shape
alone.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from segtrust._arguments import check_count
from segtrust.errors import ParameterError

__all__ = [
    "available_cores",
    "current_threads",
    "elementwise",
    "entry",
    "map_in_threads",
    "nan_reduction",
    "plain",
    "reduction",
    "use_threads",
]

_Function = TypeVar("_Function")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


# Compiling. Only `entry` is called from Python; the others are called by compiled functions, which halves
# compile time.

_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_EXACT = {"contract", "nnan", "ninf"}  # not "nsz": zeros lose their sign by adding 0


def _compile(function: _Function, **options: Any) -> _Function:
    from numba import njit  # here, because commands that only count cores need not wait for Numba

    decorate: Any = njit(nogil=True, error_model="numpy", **options)
    compiled: _Function = decorate(function)
    return compiled


def reduction(function: _Function) -> _Function:
    """Compile a loop that sums."""
    return _compile(function, fastmath=_EXACT | {"reassoc", "arcp"}, **_INNER)


def nan_reduction(function: _Function) -> _Function:
    """Compile a loop whose sum must be NaN where any term is."""
    return _compile(function, fastmath={"contract", "reassoc"}, **_INNER)


def elementwise(function: _Function) -> _Function:
    """Compile a loop without a sum."""
    return _compile(function, fastmath=_EXACT, **_INNER)


def plain(function: _Function) -> _Function:
    """Compile a function that calls the loops."""
    return _compile(function, **_INNER)


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and cache it on disk until any file of its package changes.

    Numba itself looks only at the file of the function. It would miss a change in a file that the function
    calls into, and an upgrade that restores the modification times of changed files.
    """
    try:
        dispatcher = _compile(function, cache=True)
    except RuntimeError:  # no folder for the cache, as in a container under an arbitrary user
        return _compile(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        folder = Path(function.__code__.co_filename).parent  # type: ignore[attr-defined]
        cache_file._source_stamp = _source_checksum(folder)
    return dispatcher


@cache
def _source_checksum(folder: Path) -> str:
    """Return the checksum of every file that a compiled loop of a package may have been inlined from."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# Threads

_threads: ContextVar[int | None] = ContextVar("segtrust_threads", default=None)


def available_cores() -> int:
    """Return the number of cores that this process may use.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def current_threads() -> int:
    """Return how many threads a call would use now: `use_threads`, or ``SEGTRUST_THREADS``, or 1.

    Examples
    --------
    >>> with use_threads(2):
    ...     current_threads()
    2
    """
    threads = _threads.get()
    if threads is not None:
        return threads
    text = os.environ.get("SEGTRUST_THREADS", "1")
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"SEGTRUST_THREADS: expected a whole number of at least 1, got {text!r}.")
    return int(text)


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Use ``count`` threads per map for all calls inside the block.

    Parameters
    ----------
    count
        Number of threads, at least 1. Results do not depend on it, to the last bit.

    Examples
    --------
    >>> import numpy as np, segtrust as st
    >>> with st.use_threads(2):
    ...     st.soft_dice_confidence(np.array([0.9, 0.8, 0.1]))
    0.8947368421052632
    """
    token = _threads.set(check_count(count, "threads"))
    try:
        yield
    finally:
        _threads.reset(token)


def map_in_threads(work: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> list[_Result]:
    """Return the results of all tasks in their order, computed in as many threads as `use_threads` allows.

    ``work`` should release Python's lock. The calling thread takes tasks like the others and never waits for
    a helper to wake up: one that comes late finds less to do. If several tasks fail, the error of the first
    one in their order is raised, as with one thread.

    Examples
    --------
    >>> map_in_threads(abs, [-3, 2, -1])
    [3, 2, 1]
    """
    helpers = min(current_threads(), len(tasks)) - 1
    if helpers < 1:
        return [work(task) for task in tasks]
    queue = _Queue(work, deque(enumerate(tasks)))
    futures = []
    with suppress(RuntimeError):  # no thread can start while the interpreter exits: this one does it all
        futures += [_pool(helpers).submit(queue.drain) for _ in range(helpers)]
    queue.drain()
    wait([future for future in futures if not future.cancel()])
    return queue.collect()


@dataclass(frozen=True)
class _Queue(Generic[_Task, _Result]):
    work: Callable[[_Task], _Result]
    waiting: deque[tuple[int, _Task]]
    done: dict[int, _Result] = field(default_factory=dict)
    errors: dict[int, BaseException] = field(default_factory=dict)

    def drain(self) -> None:
        """Run one task after the other until none is left, or one has failed.

        Tasks start in order: when one fails, all before it have started and will finish.
        """
        while not self.errors:
            try:
                number, task = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.done[number] = self.work(task)
            except BaseException as error:  # noqa: BLE001 - the calling thread raises it
                self.errors[number] = error

    def collect(self) -> list[_Result]:
        if self.errors:
            error = self.errors[min(self.errors)]
            self.errors.clear()  # or error and queue would refer to each other, and keep the map alive
            try:
                raise error
            finally:
                del error
        return [self.done[number] for number in sorted(self.done)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Keep the threads: starting them again would cost as much as summing a small map."""
    return ThreadPoolExecutor(threads, thread_name_prefix="segtrust")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
