"""Work shared out among threads, for loops that release Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

from segtrust.settings import current_threads

__all__ = ["cores", "in_order"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def cores() -> int:
    """Give the number of cores that this process may use.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> list[_Result]:
    """Do the tasks, in as many threads as `use_threads` allows; results come in the order of the tasks.

    The calling thread takes tasks like the others and waits for nobody to wake up: a helper that comes late
    finds less to do. Of several faults the first in the order of the tasks is raised, as by one thread.

    Examples
    --------
    >>> in_order(abs, [-3, 2, -1])
    [3, 2, 1]
    """
    helpers = min(current_threads(), len(tasks)) - 1
    if helpers < 1:
        return [work(task) for task in tasks]
    queue = _Queue(work, deque(enumerate(tasks)))
    calls = []
    with suppress(RuntimeError):  # while the interpreter ends no thread begins: this one does it all
        calls += [_pool(helpers).submit(queue.empty) for _ in range(helpers)]
    queue.empty()
    wait([call for call in calls if not call.cancel()])
    return queue.results()


@dataclass(frozen=True)
class _Queue(Generic[_Task, _Result]):
    work: Callable[[_Task], _Result]
    waiting: deque[tuple[int, _Task]]
    done: dict[int, _Result] = field(default_factory=dict)
    faults: dict[int, BaseException] = field(default_factory=dict)

    def empty(self) -> None:
        """Take one task after the other until there is none, or one has failed.

        Tasks are begun in order: when one fails, all before it have been begun and will be finished.
        """
        while not self.faults:
            try:
                at, task = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.done[at] = self.work(task)
            except BaseException as fault:  # noqa: BLE001 - the calling thread raises it
                self.faults[at] = fault

    def results(self) -> list[_Result]:
        if self.faults:
            fault = self.faults[min(self.faults)]
            self.faults.clear()  # or fault and queue would hold each other, and with them the map
            try:
                raise fault
            finally:
                del fault
        return [self.done[at] for at in sorted(self.done)]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Keep the threads: starting them anew would cost as much as summing a small map."""
    return ThreadPoolExecutor(threads, thread_name_prefix="segtrust")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
