"""Many cases on a Dask cluster: one of one's own, or one that runs already."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from segtrust.engine.chunks import spread_over_dask
from segtrust.engine.outcomes import Failure, Outcome
from segtrust.engine.pool import Work
from segtrust.engine.team import leaving_interrupts
from segtrust.errors import ParameterError, WorkerError
from segtrust.io.cases import CaseFiles
from segtrust.io.sizes import memory_of
from segtrust.kernels.tiles import Spread
from segtrust.optional import require

__all__ = ["LOCAL", "dask_spread", "run_on_dask"]

LOCAL = "local"
_AHEAD = 4
"""Cases that wait at each thread of a worker, so that none has to wait for us."""


def run_on_dask(
    work: Work, cases: Sequence[CaseFiles], address: str, *, workers: int, budget: int | None
) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    """Give the outcome of each case as soon as it is there.

    Parameters
    ----------
    work
        Something that can be sent to another process, and that returns an outcome whatever happens.
    cases
        Begun in this order; all workers must see their files under the same names.
    address
        Of the scheduler, or ``"local"`` for a cluster of one's own.
    workers, budget
        Processes of one's own cluster, and the bytes that cases in flight may take together; where none are
        given so many as the workers of the cluster have.

    Notes
    -----
    Dask gives up a case when so many workers have died with it (``distributed.scheduler.allowed-failures``)
    and blames all cases that were waiting at them. So each of those is tried once more at the end, with
    nothing else on the cluster: the one that kills its worker also then is left alone, the others are scored.
    """
    distributed = require("distributed", extra="dask")
    try:
        with _quiet(), _client(distributed, address, workers) as client:
            fleet = _Fleet(distributed, client, work)
            yield from _outcomes(fleet, cases, fleet.memory if budget is None else budget)
    except (CancelledError, OSError) as error:
        reason = " ".join(str(error).split())
        raise WorkerError(
            f"{address}: the scheduler is gone ({reason}). Finished cases are kept; the same command goes on."
        ) from error


@contextmanager
def dask_spread(address: str, *, workers: int) -> Iterator[Spread]:
    """Give what applies a function to the pieces of a map on a cluster."""
    with _client(require("distributed", extra="dask"), address, workers) as client:
        yield spread_over_dask(client)


def _left_alone(case: CaseFiles) -> Outcome:
    """Say of a case that the scheduler has given it up twice, the second time with nothing else to do."""
    reason = (
        "the workers that read it died as often as the scheduler allows, also when no other case was on the "
        "cluster, and it was left alone."
    )
    return Outcome(case.id, failure=Failure(case.id, str(case.probabilities), "Quarantined", reason))


def _outcomes(
    fleet: _Fleet, cases: Sequence[CaseFiles], budget: int
) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    suspects = []
    for case, outcome in fleet.run(cases, budget):
        if outcome is None:
            suspects.append(case)
        else:
            yield case, outcome
    for suspect in suspects:
        for case, outcome in fleet.run([suspect], budget):
            yield case, outcome or _left_alone(case)


@dataclass
class _Fleet:
    """The workers of a cluster, and the work that they do."""

    distributed: Any
    client: Any
    work: Work
    _asked: float = field(default=-math.inf, init=False)
    _threads: int = field(default=1, init=False)

    @property
    def threads(self) -> int:
        """Cases that can be worked on at the same time; it may change, and is asked for once a second."""
        now = time.monotonic()
        if now - self._asked > 1.0:
            self._asked, self._threads = now, max(1, sum(map(int, self.client.nthreads().values())))
        return self._threads

    @property
    def memory(self) -> int:
        """Bytes that cases in flight may take: half of what the workers have; any where they do not tell."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        limits = [int(each["memory_limit"] or 0) for each in workers.values()]
        return sum(limits) // 2 if limits and all(limits) else sys.maxsize

    def run(
        self, cases: Sequence[CaseFiles], budget: int
    ) -> Generator[tuple[CaseFiles, Outcome | None], None, None]:
        """Give each case with its outcome, or with none where its worker died.

        So many are on the cluster that it is never idle, and no more than the budget allows, or one.
        """
        waiting, flying = deque(cases), dict[Any, tuple[CaseFiles, int]]()
        finished = self.distributed.as_completed(loop=self.client.loop)
        while waiting or flying:
            most = _AHEAD * self.threads
            while waiting and len(flying) < most:
                load, cost = sum(each for _, each in flying.values()), memory_of(waiting[0])
                if flying and load + cost > budget:
                    break
                future = self._submit(waiting[0])
                flying[future] = waiting.popleft(), cost
                finished.add(future)
            future = next(finished)
            case, _ = flying.pop(future)
            yield case, self._outcome(future)

    def _submit(self, case: CaseFiles) -> Any:
        """Send a case, and the work with it.

        The work is small beside a map. Put on the cluster once, by ``scatter``, it would be lost with the
        worker that keeps it, and with it all cases that wait for it.
        """
        return self.client.submit(_apply, self.work, case, pure=False)

    def _outcome(self, future: Any) -> Outcome | None:
        try:
            outcome: Outcome = future.result()
        except self.distributed.KilledWorker:
            return None
        except (CancelledError, OSError):
            raise
        except Exception as error:
            raise WorkerError(
                f"dask: the cluster could not take up the work: {error.__cause__ or error!r}. Install the "
                "same versions of segtrust and its extras on the scheduler and all workers."
            ) from error
        return outcome


def _apply(work: Work, case: CaseFiles) -> Outcome:
    return work(case)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own account of deaths and restarts from the terminal: what matters of it is told here."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _client(distributed: Any, address: str, workers: int) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of its own, and take both down afterwards."""
    if address != LOCAL:
        try:  # an address of a kind that is not known would let the client wait for ever
            distributed.comm.get_address_host_port(address, strict=True)
            client = distributed.Client(address, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ParameterError(
                f"dask: expected the address of a running scheduler, such as tcp://host:8786, or {LOCAL!r}; "
                f"got {address!r} ({error})."
            ) from error
        with client:
            yield client
        return
    dask = require("dask", extra="dask")
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), leaving_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,  # cases in flight are limited by the budget; one alone may take it all
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client
