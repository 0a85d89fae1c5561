"""The workers of a Dask cluster: what they have, and the cases that are on their way to them and back."""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from segtrust.engine.absence import Absence
from segtrust.engine.outcomes import Outcome
from segtrust.engine.pool import Work
from segtrust.errors import WorkerError
from segtrust.io import CaseFiles, memory_of

__all__ = ["Fleet"]

_AHEAD = 4
"""Cases that wait at each thread of a worker, so that none has to wait for us."""
_LOOK_S = 1.0
"""How often it is looked which workers there are."""
_PATIENCE_S = 10.0
_TIMES_LONGEST = 4
_REMEMBERED = 100
"""A case is late when it is out for longer than the patience, and for so many times as long as any of those
that came back last. Further back would be those that had to wait until a worker had begun."""
_RETURN_S = 60.0
"""In which a worker that died may come back: a case that no other has room for waits for so long."""
_ALIKE = 0.9
"""Share of the memory of another worker with which one has as good as the same."""


@dataclass(eq=False)
class _Flight:
    """A case that was sent to the cluster, perhaps more than once.

    Attributes
    ----------
    futures
        Of each time that it was sent, and when that was.
    workers
        To which alone it may go; ``None`` is any.
    """

    case: CaseFiles
    futures: dict[Any, float] = field(default_factory=dict)
    workers: frozenset[str] | None = None

    @cached_property
    def cost(self) -> int:
        """Bytes that it takes while it is scored; its files are looked at when its turn comes."""
        return memory_of(self.case)

    @property
    def load(self) -> int:
        """Bytes of all times that it was sent."""
        return self.cost * len(self.futures)

    @property
    def sent(self) -> float:
        """When it was sent last."""
        return max(self.futures.values())

    def cancel(self) -> None:
        """Do not wait for it any more."""
        for future in self.futures:
            future.cancel()
        self.futures.clear()


@dataclass
class Fleet:
    """The workers of a cluster, and the work that they do.

    Attributes
    ----------
    distributed, client
        The module, and a client that is connected.
    work
        What is done with each case.
    budget
        Bytes that cases in flight may take together; ``None`` is half of what the workers have.
    """

    distributed: Any
    client: Any
    work: Work
    budget: int | None = None
    _looked: float = field(default=-math.inf, init=False)
    _threads: dict[str, int] = field(default_factory=dict, init=False)
    _limits: dict[str, float] = field(default_factory=dict, init=False)
    _seen: dict[str, float] = field(default_factory=dict, init=False)
    _took: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED), init=False)
    _absence: Absence = field(init=False)
    _flying: dict[str, _Flight] = field(default_factory=dict, init=False)
    _arrived: queue.SimpleQueue[tuple[_Flight, Any, Any]] = field(
        default_factory=queue.SimpleQueue, init=False
    )

    def __post_init__(self) -> None:
        """Know whom to name when nobody comes."""
        self._absence = Absence(self.client.scheduler.address)

    def run(self, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome | None], None, None]:
        """Give each case with its outcome, or with none where the scheduler has given it up.

        So many are on the cluster that it is never idle, and no more than the budget allows, or one.
        """
        waiting = deque(map(_Flight, cases))
        while waiting or self._flying:
            if time.monotonic() - self._looked > _LOOK_S:
                self._look()
                self._send_again()
            self._send_ahead(waiting)
            yield from self._next()

    def _look(self) -> None:
        """See which workers there are and how much memory new ones have; forget those that are long gone."""
        self._looked = time.monotonic()
        self._threads = {address: int(count) for address, count in self.client.nthreads().items()}
        self._seen |= dict.fromkeys(self._threads, self._looked)
        self._absence.look(len(self._threads))
        if self._threads.keys() - self._limits.keys():
            told = self.client.scheduler_info(n_workers=-1)["workers"]
            limits = {address: int(each["memory_limit"] or 0) for address, each in told.items()}
            self._limits |= {address: limit or math.inf for address, limit in limits.items()}
        for address in [
            each for each in self._limits if self._looked - self._seen.get(each, 0.0) > _RETURN_S
        ]:
            del self._limits[address]

    @property
    def _memory(self) -> dict[str, float]:
        """Bytes that each worker may take; without end where it does not tell."""
        return {address: self._limits.get(address, math.inf) for address in self._threads}

    def _send_ahead(self, waiting: deque[_Flight]) -> None:
        most = _AHEAD * max(1, sum(self._threads.values()))
        while waiting and len(self._flying) < most and self._has_room(waiting[0]):
            self._send(waiting.popleft())

    def _has_room(self, flight: _Flight) -> bool:
        """Tell whether a case may be sent beside those that are out: within the budget, or alone.

        Those that only some workers have room for share the memory of these, and wait when they are away.
        """
        if self._limits and not self._fitting(flight.cost):
            return False
        memory, workers = self._memory, self._workers_for(flight.cost)
        most = sum(memory.values()) / 2 if memory else math.inf
        theirs = math.inf if workers is None else sum(memory[each] for each in workers) / 2
        return _fits(flight, list(self._flying.values()), most if self.budget is None else self.budget) and (
            _fits(flight, self._choosy, theirs)
        )

    @property
    def _choosy(self) -> list[_Flight]:
        """Cases that only some workers may have."""
        return [each for each in self._flying.values() if each.workers is not None]

    def _send_again(self) -> None:
        """Send cases once more that wait for workers that are gone, or that somebody idle could do sooner.

        A worker that hangs, or is much slower than the others, is not waited for: whoever has it first gives
        the outcome. The scheduler itself gives up a worker that does not answer only after minutes
        (``distributed.scheduler.worker-ttl``).
        """
        for flight in self._choosy:
            is_lost = flight.workers is not None and not flight.workers & self._threads.keys()
            if is_lost and self._fitting(flight.cost):
                flight.cancel()
                self._send(flight)
        late = [each for each in self._flying.values() if self._is_late(each)]
        idle = sum(self._threads.values()) - (len(self._flying) - len(late))
        for flight in late[: max(0, idle)]:
            if self._has_room(flight):
                self._send(flight)

    def _is_late(self, flight: _Flight) -> bool:
        """Tell whether a case is out for so long that something may be wrong; longer with each time."""
        patience = max(_PATIENCE_S, _TIMES_LONGEST * max(self._took, default=math.inf))
        return time.monotonic() - flight.sent > patience * 2.0 ** (len(flight.futures) - 1)

    def _send(self, flight: _Flight) -> None:
        """Send a case, and the work with it.

        The work is small beside a map. Put on the cluster once, by ``scatter``, it would be lost with the
        worker that keeps it, and with it all cases that wait for it.
        """
        flight.workers = self._workers_for(flight.cost)
        only = None if flight.workers is None else sorted(flight.workers)
        future = self.client.submit(_apply, self.work, flight.case, pure=False, workers=only)
        flight.futures[future] = time.monotonic()
        self._flying[flight.case.id] = flight
        self.client.loop.add_callback(self._bring, flight, future)

    def _workers_for(self, cost: int) -> frozenset[str] | None:
        """Give the workers that a case may go to; ``None`` where all have room for it, or none is known.

        On one that has not it would be killed for its memory, again and again, and be given up in the end.
        """
        found = self._fitting(cost)
        return frozenset(found) if found and len(found) < len(self._threads) else None

    def _fitting(self, cost: int) -> set[str]:
        """Give the workers with twice the memory of a case, or about as much as any has, or had lately."""
        enough = min(2 * cost, _ALIKE * max(self._limits.values(), default=0))
        return {address for address, limit in self._memory.items() if limit >= enough}

    async def _bring(self, flight: _Flight, future: Any) -> None:
        """Wait for an answer, and for it alone: one at a worker that hangs must not hold up the others."""
        try:
            answer = await future
        except (Exception, CancelledError) as error:  # noqa: BLE001 - told where it is asked for
            answer = error
        self._arrived.put((flight, future, answer))

    def _next(self) -> Iterator[tuple[CaseFiles, Outcome | None]]:
        """Give what comes next, if something comes before it is time to look around."""
        try:
            flight, future, answer = self._arrived.get(timeout=_LOOK_S)
        except queue.Empty:
            return
        if future not in flight.futures:  # another was sooner, or it was sent elsewhere
            return
        sent = flight.futures.pop(future)
        outcome = self._outcome(answer)
        if outcome is None and flight.futures:
            return
        del self._flying[flight.case.id]
        flight.cancel()
        self._took.append(time.monotonic() - sent)  # the time that brought the answer, not the last
        yield flight.case, outcome

    def _outcome(self, answer: Any) -> Outcome | None:
        if isinstance(answer, self.distributed.KilledWorker):
            return None
        if isinstance(answer, CancelledError | OSError):
            raise answer
        if isinstance(answer, Exception):
            raise WorkerError(
                f"dask: the cluster could not take up the work: {answer.__cause__ or answer!r}. Install the "
                "same versions of segtrust and its extras on the scheduler and all workers."
            ) from answer
        outcome: Outcome = answer
        return outcome


def _fits(flight: _Flight, beside: Sequence[_Flight], most: float) -> bool:
    """Tell whether a case takes no more than that with those beside it; alone it may take any."""
    return not beside or flight.cost + sum(each.load for each in beside) <= most


def _apply(work: Work, case: CaseFiles) -> Outcome:
    return work(case)
