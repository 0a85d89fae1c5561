"""Many cases in several processes, bounded in memory, none lost when a process dies."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from segtrust.engine.outcomes import Outcome
from segtrust.engine.team import Worker
from segtrust.errors import WorkerError
from segtrust.io import CaseFiles, Failure

__all__ = ["Work", "quarantined", "run_here", "run_in_processes"]

Work = Callable[[CaseFiles], Outcome]
_Result = TypeVar("_Result")
_CHANCES = 2
"""Processes that a case may kill before it is left alone."""


def run_here(work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
    """Give the outcome of each case, one after the other, in this process."""
    for case in cases:
        yield case, work(case)


@dataclass
class _Crew(Generic[_Result]):
    """The processes at work: who does what, and how much memory that takes."""

    work: Callable[[CaseFiles], _Result]
    budget: int
    idle: list[Worker[CaseFiles, _Result]]
    busy: dict[Any, tuple[Worker[CaseFiles, _Result], CaseFiles, int]]

    @property
    def load(self) -> int:
        """Bytes of the cases in flight."""
        return sum(cost for _, _, cost in self.busy.values())

    def fits(self, cost: int) -> bool:
        """Whether one more case may begin; a case that is larger than the budget runs alone."""
        return not self.busy or self.load + cost <= self.budget

    def begin(self, case: CaseFiles, cost: int) -> None:
        worker = self.idle.pop() if self.idle else Worker(self.work)
        worker.begin(case)
        self.busy[worker.connection] = worker, case, cost

    def finish(self, connection: Any) -> tuple[CaseFiles, _Result | WorkerError]:
        """Give what became of a case; a process that died is not used again."""
        worker, case, _ = self.busy.pop(connection)
        try:
            _, outcome = worker.finish()
        except WorkerError as error:
            worker.end()
            return case, error
        self.idle.append(worker)
        return case, outcome

    def end(self) -> None:
        for worker in (*self.idle, *(worker for worker, _, _ in self.busy.values())):
            worker.end()


def run_in_processes(
    work: Callable[[CaseFiles], _Result],
    cases: Sequence[CaseFiles],
    *,
    workers: int,
    budget: int,
    cost: Callable[[CaseFiles], int],
) -> Generator[tuple[CaseFiles, _Result | Outcome], None, None]:
    """Give what becomes of each case as soon as it is there.

    Parameters
    ----------
    work
        Something that can be sent to another process, and that returns an outcome whatever happens, or what
        else is made of a case.
    cases
        Begun in this order. One whose process dies is tried again at the end and alone, so that neither the
        memory nor the fault of another is laid to its charge.
    workers
        Processes.
    budget, cost
        Bytes that the cases in flight may take together, and what each takes.
    """
    crew: _Crew[_Result] = _Crew(work, budget, [], {})
    waiting, deaths, usual = deque(cases), Counter[str](), cache(cost)

    def share(case: CaseFiles) -> int:
        return budget if deaths[case.id] else usual(case)

    try:
        while waiting or crew.busy:
            while waiting and len(crew.busy) < workers and crew.fits(share(waiting[0])):
                case = waiting.popleft()
                crew.begin(case, share(case))
            for connection in wait(list(crew.busy)):
                case, found = crew.finish(connection)
                if not isinstance(found, WorkerError):
                    yield case, found
                    continue
                deaths[case.id] += 1
                if deaths[case.id] < _CHANCES:
                    waiting.append(case)
                else:
                    yield case, quarantined(case, str(found))
    finally:
        crew.end()


def quarantined(case: CaseFiles, last: str) -> Outcome:
    """Say of a case that it has killed every process that took it up, and what was seen of the last."""
    reason = f"the process that read it died {_CHANCES} times, and it was left alone. {last}"
    return Outcome(case.id, failure=Failure(case.id, str(case.probabilities), "Quarantined", reason))
