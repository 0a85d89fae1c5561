"""A Dask cluster of processes on this machine, whose parts can be killed, stopped and begun again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust._optional import require

__all__ = ["Cluster", "free_port"]

_PATIENCE_S = 120.0
"""For workers to come, on a machine that is busy."""


def free_port() -> int:
    """Give a port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """A scheduler and workers with one thread each, every one below a nanny that begins it again.

    Attributes
    ----------
    folder
        For the files of the workers, and all that they say.
    memory
        Limit of each worker, in MB.
    port
        Of the scheduler, which has it again when it is begun again.
    """

    folder: Path
    memory: Sequence[int]
    port: int = field(default_factory=free_port)
    _scheduler: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _nannies: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return f"tcp://127.0.0.1:{self.port}"

    def __enter__(self) -> Cluster:
        """Begin all parts, and wait for them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        """End all parts, also those that are stopped."""
        self.kill_workers()
        self.kill_scheduler()

    def begin(self) -> None:
        """Begin what is not there, and wait until all workers are."""
        if self._scheduler is None:
            self._scheduler = self._start("scheduler", "--port", self.port, "--no-show")
        self.mend()
        self.wait()

    def wait(self) -> None:
        """Wait until all workers have come."""
        with self._client() as client:
            client.wait_for_workers(len(self.memory), timeout=_PATIENCE_S)

    def mend(self) -> None:
        """Begin again each nanny that has ended: they do when a worker dies before it has come."""
        for number, limit in enumerate(self.memory):
            nanny = self._nannies.get(number)
            if nanny is None or nanny.poll() is not None:
                self._nannies[number] = self._start(
                    *("worker", self.address, "--nthreads", 1, "--memory-limit", f"{limit}MB"),
                    *("--resources", f"memory={limit * 10**6 // 2}"),
                    *("--local-directory", self.folder / f"worker{number}"),
                )

    def signal_worker(self, number: int, what: signal.Signals) -> bool:
        """Send a signal to a worker; tell whether there was one."""
        pid = self._pid_of(number)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, what)
                return True
        return False

    def kill_workers(self) -> int:
        """Kill all workers with their nannies; give how many there were."""
        count = len(self._nannies)
        for nanny in self._nannies.values():
            _kill_group(nanny)
        self._nannies.clear()
        return count

    def kill_scheduler(self) -> None:
        """Kill the scheduler alone."""
        if self._scheduler is not None:
            _kill_group(self._scheduler)
        self._scheduler = None

    def deaths_shared(self) -> int:
        """Count how many times a case was at a worker that died, and had to be begun again."""
        with self._client() as client:
            return int(
                client.run_on_scheduler(
                    lambda dask_scheduler: sum(
                        each.suspicious for each in dask_scheduler.task_prefixes.values()
                    )
                )
            )

    def killed_for_memory(self) -> int:
        """Count how many times a nanny has killed its worker because it took too much."""
        return (self.folder / "worker.log").read_text(encoding="utf-8").count("memory budget. Restarting")

    def _client(self) -> Any:
        distributed = require("distributed", extra="dask")
        return distributed.Client(self.address, set_as_default=False, timeout=_PATIENCE_S)

    def _pid_of(self, number: int) -> int | None:
        """Give the process of a worker, which its nanny has spawned, if it is there."""
        psutil = require("psutil", extra="dask")
        nanny = self._nannies.get(number)
        with suppress(psutil.Error):
            for each in psutil.Process(nanny.pid).children() if nanny is not None else ():
                if "spawn_main" in " ".join(each.cmdline()):
                    return int(each.pid)
        return None

    def _start(self, part: str, *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", part, *map(str, arguments)]
        command += ["--host", "127.0.0.1", "--no-dashboard"]
        with (self.folder / f"{part}.log").open("ab") as log:
            # A worker that hangs is given up after half a minute, not after five.
            settings = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s"}
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=settings)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
