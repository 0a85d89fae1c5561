"""Many cases on a Dask cluster: one of one's own, or one that runs already."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from segtrust.engine.chunks import spread_over_dask
from segtrust.engine.outcomes import Outcome
from segtrust.engine.pool import Work, quarantined
from segtrust.io.cases import CaseFiles
from segtrust.io.sizes import memory_of
from segtrust.kernels.tiles import Spread
from segtrust.optional import require

__all__ = ["LOCAL", "dask_spread", "run_on_dask"]

LOCAL = "local"
_AHEAD = 4
"""Cases that wait at each worker, so that none has to wait for us."""


def run_on_dask(
    work: Work, cases: Sequence[CaseFiles], address: str, *, workers: int, budget: int
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
        Processes of one's own cluster, and the bytes that cases in flight may take together.

    Notes
    -----
    A worker that dies has its cases done elsewhere by Dask. A case that kills its worker twice is given up:
    on one's own cluster that is set here, on another by its ``distributed.scheduler.allowed-failures``.
    """
    distributed = require("distributed", extra="dask")
    with _client(distributed, address, workers) as client:
        shared = client.scatter(work, broadcast=True) if cases else None
        yield from _outcomes(distributed, client, shared, cases, budget)


@contextmanager
def dask_spread(address: str, *, workers: int) -> Iterator[Spread]:
    """Give what applies a function to the pieces of a map on a cluster."""
    with _client(require("distributed", extra="dask"), address, workers) as client:
        yield spread_over_dask(client)


def _outcomes(
    distributed: Any, client: Any, work: Any, cases: Sequence[CaseFiles], budget: int
) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    """Keep so many cases on the cluster that it is never idle, and no more than fit into the memory."""
    waiting, of_future = iter(cases), {}
    finished = distributed.as_completed([])
    costs: dict[Any, int] = {}

    def submit(case: CaseFiles) -> None:
        future = client.submit(_apply, work, case, pure=False)
        of_future[future], costs[future] = case, memory_of(case)
        finished.add(future)

    most = _AHEAD * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    for case in islice(waiting, most):
        submit(case)
    for future in finished:
        case = of_future.pop(future)
        costs.pop(future)
        yield case, _outcome(distributed, future, case)
        future.release()
        while sum(costs.values()) < budget and len(costs) < most and (case := next(waiting, None)):  # type: ignore[assignment]
            submit(case)


def _apply(work: Work, case: CaseFiles) -> Outcome:
    return work(case)


def _outcome(distributed: Any, future: Any, case: CaseFiles) -> Outcome:
    error = future.exception()
    if error is None:
        outcome: Outcome = future.result()
        return outcome
    if isinstance(error, distributed.KilledWorker):
        return quarantined(case, error)
    raise error


@contextmanager
def _client(distributed: Any, address: str, workers: int) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of its own, and take both down afterwards."""
    if address != LOCAL:
        with distributed.Client(address, set_as_default=False) as client:
            yield client
        return
    dask = require("dask", extra="dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
