"""One map that is larger than a case should be: its pieces are shared out, instead of cases."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import wait
from typing import Any

from segtrust._optional import require
from segtrust.engine.absence import Absence
from segtrust.engine.team import Worker
from segtrust.io import CaseFiles, open_volume
from segtrust.kernels import TileMapper

__all__ = ["is_huge", "spread_over_dask", "spread_over_processes"]

_HUGE = 1 << 30
_TILES = 16
"""Pieces that are handed over together."""
_LOOK_S = 1.0
"""How often it is looked whether a cluster has workers at all."""


def is_huge(case: CaseFiles) -> bool:
    """Tell whether a case is one large map whose pieces can be read elsewhere; only Zarr's can.

    A mask in memory would have to be sent with each piece.
    """
    places = [each for each in (*case.maps, case.mask) if each is not None]
    if any(each.path.suffix.lower() != ".zarr" for each in places):
        return False
    try:
        volume = open_volume(case.probabilities)
    except (ValueError, OSError):
        return False  # told when it is read
    return volume.lazy and volume.bytes > _HUGE


@contextmanager
def spread_over_processes(workers: int) -> Iterator[TileMapper]:
    """Give what applies a function to the pieces of a map in processes side by side."""
    team: list[Worker[Any, Any]] = [Worker(_apply) for _ in range(workers)]

    def spread(function: Callable[[Any], Any], tiles: Iterable[Any]) -> Iterable[Any]:
        return chain.from_iterable(_in_order(team, [(function, batch) for batch in _batches(tiles)]))

    try:
        yield spread
    finally:
        for worker in team:
            worker.end()


def _in_order(team: Sequence[Worker[Any, Any]], tasks: Sequence[Any]) -> list[Any]:
    """Let the team work off tasks; give the results in the order of the tasks."""
    waiting = deque(enumerate(tasks))
    found: dict[int, Any] = {}
    busy: dict[Any, tuple[Worker[Any, Any], int]] = {}
    idle = deque(team)
    while waiting or busy:
        while waiting and idle:
            worker, (number, task) = idle.popleft(), waiting.popleft()
            worker.begin(task)
            busy[worker.connection] = worker, number
        for connection in wait(list(busy)):
            worker, number = busy.pop(connection)
            _, found[number] = worker.finish()
            idle.append(worker)
    return [found[number] for number in range(len(tasks))]


def spread_over_dask(client: Any) -> TileMapper:
    """Give what applies a function to the pieces of a map on a Dask cluster."""

    def spread(function: Callable[[Any], Any], tiles: Iterable[Any]) -> Iterable[Any]:
        futures = client.map(_apply, [(function, batch) for batch in _batches(tiles)], pure=False)
        _await(client, futures)
        return chain.from_iterable(client.gather(futures))

    return spread


def _await(client: Any, futures: Sequence[Any]) -> None:
    """Wait for answers of a cluster, and tell where nobody is there to give them."""
    wait_for, absence = require("distributed", extra="dask").wait, Absence(client.scheduler.address)
    while futures:
        try:
            with client.as_current():  # it asks no other
                wait_for(futures, timeout=_LOOK_S)
        except TimeoutError:
            absence.look(len(client.nthreads()))
        else:
            return


def _apply(task: tuple[Callable[[Any], Any], Sequence[Any]]) -> list[Any]:
    function, batch = task
    return [function(tile) for tile in batch]


def _batches(tiles: Iterable[Any]) -> list[list[Any]]:
    listed = list(tiles)
    return [listed[first : first + _TILES] for first in range(0, len(listed), _TILES)]
