"""Processes that compute side by side, with nothing between them and the one that asks.

Each process has a pipe of its own and no thread stands in between, so that work can be broken off at any
moment (Ctrl-C, a full disk, a fault elsewhere) without waiting for anybody. A pool that is stopped while one
of its processes writes a large result into a shared pipe may wait for the rest of it for ever.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from segtrust.errors import WorkerError

__all__ = ["Worker", "compute_side_by_side", "get_ready", "leaving_interrupts"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_GRACE_S = 5.0


def compute_side_by_side(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int
) -> Generator[tuple[_Task, _Result], None, None]:
    """Give each task with its result as soon as it is there.

    Parameters
    ----------
    work
        Something that can be sent to another process, as can each task and result. What it raises is raised
        here, with the place where it happened as a note.
    tasks
        Begun in this order.
    workers
        Processes, at most one a task. They end when this generator does.
    """
    waiting = deque(tasks)
    team: list[Worker[_Task, _Result]] = []
    busy: dict[Any, Worker[_Task, _Result]] = {}
    try:
        for _ in range(min(workers, len(tasks))):
            team.append(Worker(work))
            team[-1].begin(waiting.popleft())
            busy[team[-1].connection] = team[-1]
        while busy:
            for connection in wait(list(busy)):
                worker = busy[connection]
                task, result = worker.finish()
                if waiting:
                    worker.begin(waiting.popleft())
                else:
                    del busy[worker.connection]
                yield task, result
    finally:
        for worker in team:
            worker.end()


class Worker(Generic[_Task, _Result]):
    """A process, and the task that it has."""

    def __init__(self, work: Callable[[_Task], _Result]) -> None:
        get_ready()
        context: Any = get_context(_METHOD)
        self.connection, other_end = context.Pipe()
        arguments = (work, other_end, dict(os.environ))
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        with leaving_interrupts():
            self._process.start()
        other_end.close()  # so that the pipe ends with the process
        self._task: Any = None

    def begin(self, task: _Task) -> None:
        """Hand it a task."""
        self._task = task
        with suppress(BrokenPipeError):  # it has died: `finish` will tell
            self.connection.send(task)

    def finish(self) -> tuple[_Task, _Result]:
        """Wait for the result, and give it with its task; `WorkerError` if the process died."""
        try:
            result, fault = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(_GRACE_S)
            name, code = _name_of(self._task), self._process.exitcode
            raise WorkerError(
                f"{name}: the process that computed it ended with exit code {code} (-9 is often a lack of "
                "memory; 1 a script that does not guard its own code by `if __name__ == '__main__'`). Run it "
                "again, with fewer workers if memory was short."
            ) from None
        if fault is not None:
            raise fault
        return self._task, result

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self._process.terminate()
        self._process.join(_GRACE_S)
        self.connection.close()


# A copy of this process would inherit locks that its threads hold. So processes are copies of one that has no
# threads and has imported what they need, where the system can do that; elsewhere new interpreters.
_METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"


def get_ready(*modules: str) -> None:
    """Let the process begin of which workers are copies, and do not wait for it; once is enough.

    Parameters
    ----------
    modules
        Imported there beside what scoring needs.
    """
    if _METHOD != "forkserver":
        return
    get_context(_METHOD).set_forkserver_preload(["segtrust.engine.ready", *modules])
    with leaving_interrupts():
        forkserver.ensure_running()


def _name_of(task: Any) -> Any:
    names = (getattr(task, name, None) for name in ("name", "id"))
    return next((name for name in names if name is not None), task)


@contextmanager
def leaving_interrupts() -> Iterator[None]:
    """Let a process begin in which Ctrl-C does nothing, from its first moment on."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which itself would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Callable[[Any], Any], connection: Connection, environment: dict[str, str]) -> None:
    """Do one task after the other, in a process of its own."""
    os.environ.clear()
    os.environ.update(environment)
    _keep_memory()
    _end_with_parent()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # who asked is gone
        while True:
            answer = _attempt(work, connection.recv())
            try:
                connection.send(answer)
            except (TypeError, AttributeError, pickle.PicklingError) as fault:
                connection.send(
                    (None, WorkerError(f"The result cannot be sent to another process: {fault}."))
                )


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's ``mallopt``."""


def _keep_memory() -> None:
    """Let a process keep up to 128 MiB from case to case, where its C library can be told so.

    Else what a map needs is given back after each case, and its pages are made anew for the next: a quarter
    of the time of a small map.
    """
    with suppress(OSError, AttributeError, TypeError):  # not glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, 64 << 20)
        libc.mallopt(_TRIM_THRESHOLD, 128 << 20)


def _attempt(work: Callable[[Any], Any], task: Any) -> tuple[Any, Exception | None]:
    try:
        return work(task), None
    except Exception as fault:  # noqa: BLE001 - raised by who asked
        fault.add_note(traceback.format_exc())
        return None, _sendable(fault)


def _sendable(fault: Exception) -> Exception:
    """Give a fault that arrives as it is: some cannot be sent, or cannot be put together again."""
    try:
        pickle.loads(pickle.dumps(fault))  # nosec B301  # what this process has just written itself
    except Exception:  # noqa: BLE001 - whatever its class does
        return WorkerError(f"{type(fault).__name__}: {fault}\n{traceback.format_exc()}")
    return fault


def _end_with_parent() -> None:
    """See to it that this process ends with the one that started it, and leaves Ctrl-C to that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.sentinel,), daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
