"""Many cases on a Dask cluster: one of one's own, or one that runs already."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from segtrust._optional import require
from segtrust.engine.chunks import spread_over_dask
from segtrust.engine.fleet import Fleet
from segtrust.engine.outcomes import Outcome
from segtrust.engine.pool import Work
from segtrust.engine.team import leaving_interrupts
from segtrust.errors import ParameterError, WorkerError
from segtrust.io import CaseFiles, Failure
from segtrust.kernels import TileMapper

__all__ = ["LOCAL", "dask_spread", "run_on_dask"]

LOCAL = "local"


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
            yield from _outcomes(Fleet(distributed, client, work, budget), cases)
    except (CancelledError, OSError) as error:
        reason = " ".join(str(error).split())
        raise WorkerError(
            f"{address}: the scheduler is gone ({reason}). Finished cases are kept; the same command goes on."
        ) from error


@contextmanager
def dask_spread(address: str, *, workers: int) -> Iterator[TileMapper]:
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


def _outcomes(fleet: Fleet, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    suspects = []
    for case, outcome in fleet.run(cases):
        if outcome is None:
            suspects.append(case)
        else:
            yield case, outcome
    for suspect in suspects:
        for case, outcome in fleet.run([suspect]):
            yield case, outcome or _left_alone(case)


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
            dashboard_address="127.0.0.1:0",  # any free port: another cluster may have the usual one
            silence_logs=logging.CRITICAL,
        )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client
