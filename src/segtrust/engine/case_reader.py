"""Reading case files for pictures in worker processes, so that no file can end or stop the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from queue import LifoQueue
from typing import Any, TypeVar

from segtrust.engine.executors import ProcessDiedError, Sandbox
from segtrust.errors import WorkerError

__all__ = ["CaseReader"]

_Result = TypeVar("_Result")
SECONDS = 120.0
"""Time that one call may take: somebody is waiting for a picture."""


class CaseReader:
    """Warm worker processes that read files of cases; thread-safe.

    Parameters
    ----------
    workers
        Number of processes: calls beyond it wait. They are started when they are needed.
    seconds
        Time limit of one call.
    """

    def __init__(self, workers: int = 1, seconds: float = SECONDS) -> None:
        self._sandboxes = [Sandbox(seconds=seconds) for _ in range(workers)]
        # Last in, first out: the process that has just opened a case draws its next tile.
        self._idle: LifoQueue[Sandbox] = LifoQueue()
        for sandbox in self._sandboxes:
            self._idle.put(sandbox)

    def call(self, files: Iterable[object], function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Return ``function(*arguments)``, computed in a worker process.

        What the function raises is raised here. If its process ends or exceeds a limit, that is a
        `WorkerError` which names ``files``.
        """
        sandbox = self._idle.get()
        try:
            return sandbox.call(function, *arguments)
        except ProcessDiedError as error:
            raise WorkerError(
                f"{', '.join(map(str, files))}: expected files that can be read, but the process that read "
                f"them {error.reason}. Check whether one is truncated or corrupt."
            ) from None
        finally:
            self._idle.put(sandbox)

    def close(self) -> None:
        """End all processes, each after its call."""
        for sandbox in self._sandboxes:
            sandbox.close()

    def __enter__(self) -> CaseReader:
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self.close()
