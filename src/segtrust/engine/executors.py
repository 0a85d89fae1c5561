"""Where cases are run: in worker processes, in this process, or on a Dask cluster.

Each worker process has a `concurrent.futures.ProcessPoolExecutor` of its own, so that a process that dies
(a signal, too little memory, a decompression bomb) concerns exactly one known case. A thread in this process
watches the memory and the time of the workers and kills the one that exceeds a limit.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import pickle
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing import connection, get_context
from multiprocessing.process import parent_process
from pathlib import Path
from queue import LifoQueue
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import psutil

from segtrust._files import format_bytes
from segtrust._optional import require
from segtrust._processes import START_METHOD, block_interrupts, preload_workers
from segtrust.engine.outcomes import Outcome
from segtrust.errors import ParameterError, WorkerError
from segtrust.io import CaseFiles, Failure, memory_of, open_volume
from segtrust.kernels import TileMapper, tiles_mapped_by

__all__ = [
    "CASE_SECONDS",
    "PICTURE_SECONDS",
    "DaskExecutor",
    "Executor",
    "InProcessExecutor",
    "Limits",
    "MemoryLimitError",
    "ProcessDiedError",
    "ProcessExecutor",
    "Sandbox",
    "TimeLimitError",
    "Work",
    "WorkerGroup",
    "available_memory",
    "compute_in_processes",
    "is_huge",
    "make_executor",
    "map_on_dask",
    "spread_over_processes",
]

_LOG = logging.getLogger(__name__)
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
Work = Callable[[CaseFiles], Outcome]
"""Scores one case. It can be pickled, and returns an outcome whatever happens."""

CASE_SECONDS = 30 * 60.0
"""Time that one case may take, unless a user says otherwise."""
PICTURE_SECONDS = 120.0
"""Time that one picture of a case may take: somebody is waiting for it."""
_WATCH_S, _TIMES_SWEEP = 0.1, 10.0
"""Memory and time are checked after so many seconds, and so many times as long as the last check took."""
_GRACE_S = 5.0
_HINTS = {-9: " (often out of memory)", -7: " (often a file that was truncated while it was read)"}
"""What some exit codes, that is signals of Linux, mean."""
_SHARE, _LIMIT_SHARE = 0.5, 0.8
"""Shares of the available memory: for the announced sizes of cases in flight, and for killing a case."""
_LEAST_LIMIT = 256 << 20
"""Smallest limit: small cases need this memory, too."""
_MOST_TIMES = 4 * 1032
"""Memory of a case, in sizes of its files, at most: deflate shrinks data to 1/1032, and there are copies."""
_HUGE = 1 << 30
_TILES = 16
"""Tiles of a huge map that are handed over together."""
_WINDOW = 1000
"""Cases that a Dask scheduler holds at a time."""
_SILENCE_S = 30.0
"""Time between warnings that a cluster has no workers."""


class Executor(Protocol):
    """Where cases are run. Outcomes do not depend on it."""

    @property
    def is_remote(self) -> bool:
        """Whether other machines, with packages of their own, read the files."""
        ...

    def run(self, work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Yield each case with its outcome, as soon as it is finished."""
        ...

    def close(self) -> None:
        """End all processes."""
        ...


def make_executor(
    workers: int = 1, dask: str = "", memory: int | None = None, seconds: float | None = CASE_SECONDS
) -> Executor:
    """Return the executor for some options of the command line.

    Parameters
    ----------
    workers
        Number of worker processes; 0 runs cases in this process, without any protection.
    dask
        Address of a Dask scheduler, ``"local"`` for a cluster of ``workers`` processes, or nothing.
    memory
        Bytes that all workers may take together. By default, a share of what is available.
    seconds
        Time limit per case; ``None`` for no limit.
    """
    if not isinstance(workers, int) or workers < 0:
        raise ParameterError(f"workers: expected a whole number, 0 or more, got {workers!r}.")
    limits = Limits(memory, seconds)
    if memory is not None and memory < _LEAST_LIMIT:
        raise ParameterError(
            f"memory: expected at least {format_bytes(_LEAST_LIMIT)}, which small cases take too, got "
            f"{format_bytes(memory)}."
        )
    if dask:
        return DaskExecutor(dask, workers, limits)
    return ProcessExecutor(workers, limits) if workers else InProcessExecutor()


def available_memory() -> int:
    """Return the available memory in bytes; a container or batch job may have less than the machine."""
    free = int(psutil.virtual_memory().available)
    try:
        group = Path("/sys/fs/cgroup")
        most, used = (int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no group, or "max", which is no limit
        return free
    return min(free, max(most - used, 1))


# Worker processes


_work: Callable[[Any], Any] | None = None
"""What this worker process does with its tasks."""
_hiding = threading.RLock()


def _prepare_worker(environment: dict[str, str], work: Callable[[Any], Any]) -> None:
    """Prepare a worker process: it ignores Ctrl-C and ends with the process that started it."""
    global _work  # noqa: PLW0603 - sent once per process, not with each task
    _work = work
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    with suppress(OSError, AttributeError, TypeError):  # not glibc
        # Keep up to 128 MiB from case to case: to return and request these pages again takes a quarter of the
        # time of a small map. The numbers are M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 64 << 20)
        libc.mallopt(-1, 128 << 20)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _run_task(task: Any) -> Any:
    """Do a task in a worker process; an exception that cannot be sent is replaced by its text."""
    assert _work is not None
    try:
        result = _work(task)
    except (KeyboardInterrupt, SystemExit):  # of a library: Ctrl-C does not come here
        os._exit(1)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # nosec B301
        except Exception:  # noqa: BLE001 - whatever its class does
            raise WorkerError(f"{type(error).__name__}: {error}") from None
        raise
    return result


@contextmanager
def _hide_main(*needed: Any) -> Iterator[None]:
    """Keep workers that start here from importing the user's script, unless something ``needed`` is from it.

    Otherwise a script that does not guard its code with ``if __name__ == "__main__"`` runs in each worker.
    """
    if b"__main__" in pickle.dumps(needed):
        yield
        return
    with _hiding:  # the desk starts workers from several threads
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _private_memory(pids: Sequence[int]) -> list[int]:
    """Return the bytes of each process and those below it that are not shared, as memory maps are."""
    below: dict[int, list[int]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has just ended
            below.setdefault(process.ppid(), []).append(process.pid)

    def size_of(pid: int) -> int:
        try:
            process = psutil.Process(pid)
            info = process.memory_info()
            shared = getattr(info, "shared", None)
            size = process.memory_full_info().uss if shared is None else info.rss - shared
        except psutil.Error:
            return 0
        return int(size) + sum(map(size_of, below.get(pid, ())))

    return [size_of(pid) for pid in pids]


class _Worker:
    """One process with one task at a time."""

    def __init__(self, work: Callable[[Any], Any], first_task: Any) -> None:
        self.started = 0.0
        self.killed_for = ""
        """The limit for which the process was killed: "memory", "time" or nothing."""
        if START_METHOD == "forkserver":
            preload_workers()
        arguments = (dict(os.environ), work)
        self._pool = ProcessPoolExecutor(
            1, mp_context=get_context(START_METHOD), initializer=_prepare_worker, initargs=arguments
        )
        with _hide_main(work, first_task):
            self._first = self._pool.submit(os.getpid)  # starts the process
        (self._process,) = self._pool._processes.values()
        # As long as this process could write results itself, it would wait forever for the rest of a result
        # whose writer was killed.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]
        self._usual: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the process was ready for tasks, whatever happened to it later."""
        return self._first.done() and self._first.exception() is None

    def submit(self, task: Any) -> Future[Any]:
        self.started = time.monotonic()
        return self._pool.submit(_run_task, task)

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def beyond_usual(self, memory: int) -> int:
        """Return how much of its private memory the process takes beyond what every worker takes."""
        if self._usual is None:
            self._usual = min(memory, _LEAST_LIMIT)
        return memory - self._usual

    def kill(self, reason: str = "") -> None:
        self.killed_for = self.killed_for or reason
        with suppress(OSError, ValueError):  # it has ended
            self._process.kill()

    def close(self) -> int | None:
        """End the process, whatever it does, and return its exit code."""
        self.kill()
        has_ended = bool(connection.wait([self._process.sentinel], _GRACE_S))
        self._pool.shutdown(wait=has_ended, cancel_futures=True)
        return self._process.exitcode if has_ended else None


@dataclass(frozen=True)
class Limits:
    """Limits of worker processes.

    Attributes
    ----------
    memory
        Bytes that all workers may take together. By default, 80 % of what is available at the start.
    seconds
        Time for one task; ``None`` for no limit.
    """

    memory: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the values: a limit that makes no sense would never be enforced."""
        for name, value, unit in (("memory", self.memory, "bytes"), ("timeout", self.seconds, "seconds")):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 < value < math.inf):
                raise ParameterError(f"{name}: expected a positive number of {unit}, got {value!r}.")

    def memory_limit(self) -> int:
        """Return the bytes above which the largest worker is killed."""
        return max(self.memory or int(_LIMIT_SHARE * available_memory()), _LEAST_LIMIT)


class WorkerGroup(AbstractContextManager["WorkerGroup[Any, Any]"], Generic[_Task, _Result]):
    """Worker processes that do tasks side by side; each task that ends its process is named.

    Parameters
    ----------
    work
        Function of one task that can be pickled. What it raises is raised by `finished`.
    workers
        Largest number of processes. They are started when they are needed.
    limits
        Of memory and time.
    """

    def __init__(self, work: Callable[[_Task], _Result], workers: int, limits: Limits | None = None) -> None:
        self.work, self.workers, self.limits = work, workers, limits or Limits()
        self.memory_limit = self.limits.memory_limit()
        self._all: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._busy: dict[Future[_Result], tuple[_Worker, _Task]] = {}
        self._has_begun = False
        self._assigning = threading.Lock()
        """Held while tasks are assigned to workers or taken from them, and while a worker is killed."""
        self._closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.close()

    @property
    def running(self) -> int:
        """Number of tasks that have been submitted and not returned."""
        return len(self._busy)

    def submit(self, task: _Task) -> None:
        """Send a task to an idle worker, or to a new one."""
        worker = self._idle.pop() if self._idle else self._start(task)
        try:
            future = worker.submit(task)
        except BrokenProcessPool:  # it died while it was idle
            worker.close()
            worker = self._start(task)
            future = worker.submit(task)
        with self._assigning:
            self._busy[future] = worker, task

    def _start(self, first_task: _Task) -> _Worker:
        with block_interrupts():  # until it is known, so that it is ended too
            worker = _Worker(self.work, first_task)
            self._all.append(worker)
        return worker

    def finished(self, timeout: float | None = None) -> list[tuple[_Task, _Result | ProcessDiedError]]:
        """Wait for a task, and return all that are done; a process that died is a `ProcessDiedError`."""
        results: list[tuple[_Task, _Result | ProcessDiedError]] = []
        for future in wait(self._busy, timeout, FIRST_COMPLETED).done:
            with self._assigning:
                worker, task = self._busy.pop(future)
            self._has_begun = self._has_begun or worker.has_begun
            try:
                results.append((task, future.result()))
            except BrokenProcessPool:
                results.append((task, self._death(worker)))
                continue
            except BaseException:
                self._idle.append(worker)
                raise
            if worker.killed_for:  # for a task that finished just in time
                worker.close()
                self._all.remove(worker)
            else:
                self._idle.append(worker)
        return results

    def _death(self, worker: _Worker) -> ProcessDiedError:
        code = worker.close()
        self._all.remove(worker)
        if worker.killed_for == "memory":
            return MemoryLimitError(f"needed more than {format_bytes(self.memory_limit)} of memory")
        if worker.killed_for == "time":
            return TimeLimitError(f"took longer than {_format_time(self.limits.seconds or 0)}")
        if not self._has_begun:
            raise WorkerError(
                f"Worker processes exit with code {code} before their first task. An estimator that is "
                "defined in a notebook or script must move into a module that workers can import, or the "
                "script must guard what it runs by `if __name__ == '__main__':`."
            )
        hint = _HINTS.get(code or 0, "")
        return ProcessDiedError(f"exited with code {code}{hint}")

    def _watch(self) -> None:
        """Kill the worker that exceeds a limit."""
        took_s = 0.0
        while not self._closed.wait(max(_WATCH_S, _TIMES_SWEEP * took_s)):
            begin = time.monotonic()
            with self._assigning:
                busy = [(future, worker) for future, (worker, _) in self._busy.items()]
            for future, worker in busy:
                if self.limits.seconds is not None and begin - worker.started > self.limits.seconds:
                    self._kill(future, worker, "time")
            sizes = _private_memory([worker.pid for _, worker in busy]) if busy else []
            sizes = [worker.beyond_usual(size) for (_, worker), size in zip(busy, sizes, strict=True)]
            if sum(sizes) > self.memory_limit:
                self._kill(*busy[sizes.index(max(sizes))], "memory")
            took_s = time.monotonic() - begin

    def _kill(self, future: Future[_Result], worker: _Worker, reason: str) -> None:
        """Kill a worker for its task, unless that is done: the next task of the worker is not to blame."""
        with self._assigning:
            if future in self._busy and not future.done():
                worker.kill(reason)

    def close(self) -> None:
        """End all processes, whatever they do."""
        self._closed.set()
        for worker in self._all:
            worker.kill()
        for worker in self._all:
            worker.close()
        self._all, self._idle, self._busy = [], [], {}


class ProcessDiedError(WorkerError):
    """A process ended during a task.

    Attributes
    ----------
    reason
        What it did, as the rest of a sentence: ``"took longer than 5 minutes"``.
    """

    def __init__(self, reason: str, subject: str = "the worker process") -> None:
        self.reason = reason
        super().__init__(f"{subject} {reason}.")


class MemoryLimitError(ProcessDiedError):
    """A task needed more memory than it may take."""


class TimeLimitError(ProcessDiedError):
    """A task took longer than it may."""


def _format_time(seconds: float) -> str:
    return f"{seconds / 60:.3g} minutes" if seconds >= 60 else f"{seconds:.3g} seconds"


def compute_in_processes(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int
) -> Generator[tuple[_Task, _Result], None, None]:
    """Yield each task with its result as soon as it is there, computed in worker processes.

    What ``work`` raises is raised here. A process that dies raises a `WorkerError` that names its task, by
    its ``name`` if it has one.
    """
    waiting = deque(tasks)
    with WorkerGroup(work, workers) as group:
        while waiting or group.running:
            while waiting and group.running < workers:
                group.submit(waiting.popleft())
            for task, result in group.finished():
                if waiting:
                    group.submit(waiting.popleft())
                if isinstance(result, ProcessDiedError):
                    raise WorkerError(
                        f"{getattr(task, 'name', task)}: the process that computed it {result.reason}. Run "
                        "it again, with fewer workers if memory was short."
                    )
                yield task, result


class Sandbox(AbstractContextManager["Sandbox"]):
    """Warm worker processes for single calls, such as reading a file that may be broken; thread-safe.

    Parameters
    ----------
    workers
        Number of processes: calls beyond it wait. They are started when they are needed.
    memory, seconds
        Limits of one call; the same defaults as for a case.

    Examples
    --------
    >>> with Sandbox() as sandbox:
    ...     sandbox.call(sum, [1, 2])
    3
    """

    def __init__(
        self, workers: int = 1, *, memory: int | None = None, seconds: float | None = CASE_SECONDS
    ) -> None:
        self._limits = Limits(memory, seconds)
        # Last in, first out: the process that has just opened a case draws its next tile.
        self._idle: LifoQueue[WorkerGroup[Any, Any] | None] = LifoQueue()
        self._workers = workers
        for _ in range(workers):
            self._idle.put(None)

    def call(
        self, function: Callable[..., _Result], *arguments: Any, files: Iterable[object] = ()
    ) -> _Result:
        """Return ``function(*arguments)``, computed in a worker process.

        What the function raises is raised here. If its process ends or exceeds a limit, that is a
        `ProcessDiedError`, or a `WorkerError` that names ``files``.
        """
        group = self._idle.get()
        try:
            group = group or WorkerGroup(_call, 1, self._limits)
            group.submit(partial(function, *arguments))
            ((_, result),) = group.finished()
        except KeyboardInterrupt:
            if group is not None:
                group.close()
                group = None
            raise
        finally:
            self._idle.put(group)
        if not isinstance(result, ProcessDiedError):
            return result  # type: ignore[no-any-return]
        if named := ", ".join(map(str, files)):
            raise WorkerError(
                f"{named}: expected files that can be read, but the process that read them {result.reason}. "
                "Check whether one is truncated or corrupt."
            )
        raise result

    def close(self) -> None:
        """End all processes, each after its call; the next call starts another."""
        groups = [self._idle.get() for _ in range(self._workers)]
        for group in groups:
            if group is not None:
                group.close()
            self._idle.put(None)

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.close()


def _call(function: Callable[[], Any]) -> Any:
    return function()


# Executors


@dataclass(frozen=True)
class InProcessExecutor:
    """Runs cases one after the other in this process, for tests and debugging: nothing is limited."""

    workers: int = 0
    is_remote: bool = False

    def run(self, work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Yield each case with its outcome."""
        for case in cases:
            yield case, work(case)

    def close(self) -> None:
        """Do nothing: there are no processes."""


@dataclass
class ProcessExecutor:
    """Runs cases in worker processes, also with one worker: this process reads no case itself.

    A case whose process dies, or is killed for its memory while others run, is tried again alone at the end,
    so that it is not blamed for another. If that process dies too, the case is a failure.

    Attributes
    ----------
    workers
        Number of processes.
    limits
        Of memory and time. The announced sizes of the cases in flight stay below the memory too.
    cost
        Returns the bytes that a case will take.
    """

    workers: int = 1
    limits: Limits = field(default_factory=lambda: Limits(seconds=CASE_SECONDS))
    cost: Callable[[CaseFiles], int] = memory_of
    is_remote: bool = field(default=False, init=False)
    _group: WorkerGroup[CaseFiles, Outcome] | None = field(default=None, init=False)
    _work: Work | None = field(default=None, init=False)

    def run(self, work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Yield each case with its outcome; processes stay for the next call unless this one is ended."""
        waiting = deque(cases)
        if not waiting:
            return
        group = self._group_for(work)
        budget = self.limits.memory or int(_SHARE * available_memory())
        load: dict[str, int] = {}
        alone: list[CaseFiles] = []

        cost = self._cost_of(waiting[0], budget)

        def submit_more() -> None:
            nonlocal cost
            while (
                waiting and group.running < self.workers and (not load or sum(load.values()) + cost <= budget)
            ):
                case = waiting.popleft()
                load[case.id] = cost
                group.submit(case)
                cost = self._cost_of(waiting[0], budget) if waiting else 0

        try:
            while waiting or load:
                submit_more()
                finished = group.finished()
                was_alone = len(load) == 1
                for case, _ in finished:
                    del load[case.id]
                submit_more()  # before the results are handled
                for case, result in finished:
                    final = (TimeLimitError, MemoryLimitError) if was_alone else (TimeLimitError,)
                    if isinstance(result, ProcessDiedError) and not isinstance(result, final):
                        alone.append(case)
                    else:
                        yield case, _outcome_of(case, result)
            for case in alone:
                group.submit(case)
                ((_, result),) = group.finished()
                yield case, _outcome_of(case, result)
        except BaseException:
            self.close()
            raise

    def _cost_of(self, case: CaseFiles, budget: int) -> int:
        """Return the bytes that a case will take; 0 if it is so small that it does not matter."""
        return 0 if _is_small(case, budget // self.workers) else self.cost(case)

    def _group_for(self, work: Work) -> WorkerGroup[CaseFiles, Outcome]:
        """Return the processes that do this work."""
        if self._group is None or self._work is not work:
            self.close()
            self._work = work
            self._group = WorkerGroup(_Spreading(work, self.workers), self.workers, self.limits)
        return self._group

    def close(self) -> None:
        """End all processes."""
        if self._group is not None:
            self._group.close()
            self._group = None


def _is_small(case: CaseFiles, most: int) -> bool:
    """Return whether a case cannot take more than some bytes, by the sizes of its files alone."""
    refs = [ref for ref in (*case.maps, case.mask, case.truth) if ref is not None]
    try:
        states = [ref.path.stat() for ref in refs]
    except OSError:
        return False
    are_files = all(stat.S_ISREG(state.st_mode) for state in states)
    return are_files and _MOST_TIMES * sum(state.st_size for state in states) <= most


def _outcome_of(case: CaseFiles, result: Outcome | ProcessDiedError) -> Outcome:
    """Return the outcome of a case that ran alone, as a failure if its process ended."""
    if not isinstance(result, ProcessDiedError):
        return result
    file, kind = str(case.probabilities), "Quarantined"
    reason = f"skipped, because the worker process died twice on this case: it {result.reason}."
    if isinstance(result, MemoryLimitError):
        kind = "MemoryLimit"
        reason = f"{result.reason}. Allow more with --memory, or use a machine that has more."
    elif isinstance(result, TimeLimitError):
        kind, reason = "TimeLimit", f"{result.reason}. Allow more with --timeout."
    return Outcome(case.id, failure=Failure(case.id, file, kind, f"{file}: {reason}"))


# Huge maps, whose tiles are spread over processes


def is_huge(case: CaseFiles) -> bool:
    """Return whether a case is one large map whose tiles can be read separately; only Zarr stores can.

    A mask in another format would have to be sent with each tile.
    """
    places = [place for place in (*case.maps, case.mask) if place is not None]
    if any(place.path.suffix.lower() != ".zarr" for place in places):
        return False
    try:
        volume = open_volume(case.probabilities, fill_missing=True)  # checked when it is read
    except (ValueError, OSError):
        return False  # reported when it is read
    return volume.lazy and volume.bytes > _HUGE


@dataclass(frozen=True)
class _Spreading:
    """Does some work in a worker process, with processes of its own for the tiles of a huge map."""

    work: Work
    workers: int

    def __call__(self, case: CaseFiles) -> Outcome:
        if self.workers < 2 or not is_huge(case):
            return self.work(case)
        with spread_over_processes(self.workers) as mapper, tiles_mapped_by(mapper):
            return self.work(case)


@contextmanager
def spread_over_processes(workers: int) -> Iterator[TileMapper]:
    """Yield a function that maps tiles in several processes, in their order."""
    pool = ProcessPoolExecutor(workers, get_context(START_METHOD), _prepare_worker, (dict(os.environ), _call))
    try:
        yield partial(pool.map, chunksize=_TILES)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


# Dask


@dataclass
class DaskExecutor:
    """Runs cases on a Dask cluster, a running one or one of its own; Dask schedules and retries them.

    The memory that a case will take is requested as Dask's resource ``memory``: workers of a cluster of its
    own declare their share; workers of a running cluster may (``dask worker … --resources memory=8e9``).
    A case larger than any share runs alone at the end. So does one whose workers have died as often as Dask
    allows (``distributed.scheduler.allowed-failures``): it blames all cases that were waiting there. A worker
    that exceeds a limit ends itself; one that is stopped from outside is Dask's to notice (``worker-ttl``).

    Attributes
    ----------
    address
        Of the scheduler, or ``"local"``.
    workers
        Processes of a cluster of its own.
    limits
        Time for one case, and memory: the announced sizes of the cases in flight on a cluster of its own stay
        below it (half of what is available by default), and so does what one worker really takes.
    """

    address: str
    workers: int = 1
    limits: Limits = field(default_factory=lambda: Limits(seconds=CASE_SECONDS))

    def __post_init__(self) -> None:
        """Complete an address."""
        if self.address != "local" and "://" not in self.address:
            self.address = f"tcp://{self.address}"

    @property
    def is_remote(self) -> bool:
        """Whether other machines, with packages of their own, read the files."""
        return self.address != "local"

    def close(self) -> None:
        """Do nothing: a cluster of its own ends with each run."""

    def run(self, work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Yield each case with its outcome; workers must see the files under the same names."""
        if not cases:
            return
        distributed = require("distributed", extra="dask")
        try:
            with _quiet_dask(), self._connect(distributed) as client, _warn_without_workers(client):
                others = []
                for case in cases:
                    if not is_huge(case):
                        others.append(case)
                        continue
                    with tiles_mapped_by(partial(map_on_dask, client)):
                        outcome = work(case)
                    yield case, outcome
                yield from self._run_cases(distributed, client, work, others)
        except (CancelledError, OSError) as error:
            reason = " ".join(str(error).split())
            raise WorkerError(
                f"{self.address}: the scheduler is gone ({reason}). Finished cases are kept. Rerun the same "
                "command to resume."
            ) from error

    def _run_cases(
        self, distributed: Any, client: Any, work: Work, cases: Sequence[CaseFiles]
    ) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        declared = [
            each["resources"].get("memory", 0)
            for each in client.scheduler_info(n_workers=-1)["workers"].values()
        ]
        most = max(declared, default=0)
        waiting, alone = deque(cases), deque[CaseFiles]()
        futures: dict[Any, CaseFiles] = {}

        def submit(case: CaseFiles, cost: int) -> Any:
            request = {"memory": min(cost, most)} if most else None
            # The work is sent along: put on the cluster once it would be lost with the worker that keeps it.
            future = client.submit(_apply_limited, work, self.limits, case, pure=False, resources=request)
            futures[future] = case
            return future

        def submit_next() -> Any:
            while waiting:
                case = waiting.popleft()
                cost = memory_of(case) if most else 0
                if cost <= most:
                    return submit(case, cost)
                alone.append(case)
            return None

        first = [future for _ in range(_WINDOW) if (future := submit_next()) is not None]
        done = distributed.as_completed(first, loop=client.loop)
        for future in done:
            case = futures.pop(future)
            following = submit_next()
            if following is not None:
                done.add(following)
            outcome = _outcome_on_dask(distributed, future)
            if outcome is None:
                alone.append(case)
            else:
                yield case, outcome
        for case in alone:
            begin = time.monotonic()
            outcome = _outcome_on_dask(distributed, submit(case, int(most)))
            took_s = time.monotonic() - begin
            yield case, outcome or _outcome_of(case, self._death_after(took_s))

    def _death_after(self, seconds: float) -> ProcessDiedError:
        """Return why a worker died that had one case only: all that is known is how long it took."""
        if self.limits.seconds is not None and seconds >= self.limits.seconds:
            return TimeLimitError(f"took longer than {_format_time(self.limits.seconds)}")
        return ProcessDiedError("was the only case on the cluster. It may need more memory (--memory)")

    @contextmanager
    def _connect(self, distributed: Any) -> Iterator[Any]:
        """Connect to a scheduler, or start one with processes of its own, and end both afterwards."""
        if self.address != "local":
            try:  # the client would wait forever for an address of an unknown kind
                distributed.comm.get_address_host_port(self.address, strict=True)
                client = distributed.Client(self.address, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ParameterError(
                    "dask: expected the address of a running scheduler, such as tcp://host:8786, or 'local'; "
                    f"got {self.address!r} ({error})."
                ) from error
            with client:
                yield client
            return
        budget = self.limits.memory or int(_SHARE * available_memory())
        dask = require("dask", extra="dask")
        with dask.config.set({"distributed.scheduler.allowed-failures": 0}), block_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=max(self.workers, 1),
                threads_per_worker=1,
                processes=True,
                memory_limit=0,  # workers watch themselves: Dask counts memory maps, too
                resources={"memory": budget / max(self.workers, 1)},
                dashboard_address="127.0.0.1:0",  # any free port: another cluster may have the usual one
                silence_logs=logging.CRITICAL,
            )
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


def _outcome_on_dask(distributed: Any, future: Any) -> Outcome | None:
    """Return the outcome of a case, or ``None`` if its workers died as often as Dask allows."""
    try:
        outcome: Outcome = future.result()
    except distributed.KilledWorker:
        return None
    except (CancelledError, OSError):
        raise
    except Exception as error:
        raise WorkerError(
            f"dask: the cluster could not run the work: {error.__cause__ or error!r}. Install the same "
            "versions of segtrust and its extras on the scheduler and all workers."
        ) from error
    return outcome


def _apply_limited(work: Callable[[_Task], _Result], limits: Limits, task: _Task) -> _Result:
    """Do a task in a Dask worker, which ends itself if it exceeds a limit."""
    done, most = threading.Event(), _private_memory([os.getpid()])[0] + limits.memory_limit()
    threading.Thread(target=_end_beyond, args=(most, limits.seconds, done), daemon=True).start()
    try:
        return work(task)
    finally:
        done.set()


def _end_beyond(memory: int, seconds: float | None, done: threading.Event) -> None:
    """End this process if it exceeds a limit before the work is done."""
    begin = time.monotonic()
    while not done.wait(_WATCH_S):
        is_late = seconds is not None and time.monotonic() - begin > seconds
        if is_late or _private_memory([os.getpid()])[0] > memory:
            os._exit(1)


def map_on_dask(client: Any, function: Callable[[Any], Any], tiles: Any) -> Any:
    """Apply a function to the tiles of a map on a cluster, and return the results in their order."""
    listed = list(tiles)
    batches = [listed[first : first + _TILES] for first in range(0, len(listed), _TILES)]
    return chain.from_iterable(client.gather(client.map(partial(_apply_all, function), batches, pure=False)))


def _apply_all(function: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> list[_Result]:
    return [function(task) for task in tasks]


@contextmanager
def _warn_without_workers(client: Any) -> Iterator[None]:
    """Write to the log while the cluster has no worker."""
    ended, address = threading.Event(), client.scheduler.address

    def watch() -> None:
        while not ended.wait(_SILENCE_S):
            with suppress(Exception):  # the scheduler is gone, which is reported elsewhere
                if not client.nthreads():
                    _LOG.warning(
                        "dask: the scheduler %s has no workers, and cases wait. Start some: dask worker %s. "
                        "Or stop this run: finished cases are kept.",
                        *(address, address),
                    )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """Keep Dask's own log of deaths and restarts from the terminal: what matters of it is reported here."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
