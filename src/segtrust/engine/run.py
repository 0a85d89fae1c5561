"""A whole run: what is done already is taken from the diary, the rest is shared out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust._files import max_bytes
from segtrust.engine.chunks import is_huge, spread_over_processes
from segtrust.engine.journal import Journal
from segtrust.engine.outcomes import Outcome
from segtrust.engine.packages import check_packages
from segtrust.engine.pool import Work, run_here, run_in_processes
from segtrust.errors import ParameterError
from segtrust.io import CaseFiles, memory_of, stamps_of
from segtrust.kernels import TileMapper, tiles_mapped_by

__all__ = ["Engine", "part_of", "run_cases", "stamps_for"]

_SHARE = 0.5
"""Of the free memory that cases in flight may take."""
_USUAL_MEMORY = 4 << 30


@dataclass(frozen=True)
class Engine:
    """Where and how cases are run.

    Attributes
    ----------
    workers
        Processes; 1 is this one.
    dask
        Address of a Dask scheduler, ``"local"`` for a cluster of one's own with so many workers, or nothing.
    memory
        Bytes that cases in flight may take together; where it is not given half of what is free, or of what
        the workers of a running cluster have.
    """

    workers: int = 1
    dask: str = ""
    memory: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not isinstance(self.workers, int) or self.workers < 1:
            raise ParameterError(f"workers: expected a whole number of at least 1, got {self.workers!r}.")
        if self.dask and self.dask != "local" and "://" not in self.dask:
            object.__setattr__(self, "dask", f"tcp://{self.dask}")

    @property
    def is_elsewhere(self) -> bool:
        """Whether others read the files, with packages of their own."""
        return self.dask not in ("", "local")

    @property
    def budget(self) -> int:
        """Bytes for cases in flight."""
        return self.memory or int(_SHARE * _free_memory())

    def run(self, work: Work, cases: Sequence[CaseFiles]) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        """Give the outcome of each case as soon as it is there; a huge map is cut into pieces instead."""
        if self.workers == 1 and not self.dask:
            return run_here(work, cases)
        huge = [case for case in cases if is_huge(case)]
        others = [case for case in cases if case not in huge]
        return self._run_both(work, huge, others)

    def _run_both(
        self, work: Work, huge: Sequence[CaseFiles], others: Sequence[CaseFiles]
    ) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        for case in huge:
            with self._spread() as spread, tiles_mapped_by(spread):
                outcome = work(case)
            yield case, outcome
        if others:
            yield from self._share_out(work, others)

    def _spread(self) -> AbstractContextManager[TileMapper]:
        """Give what lets others read the pieces of a map."""
        if self.dask:
            from segtrust.engine.cluster import dask_spread

            return dask_spread(self.dask, workers=self.workers)
        return spread_over_processes(self.workers)

    def _share_out(
        self, work: Work, cases: Sequence[CaseFiles]
    ) -> Generator[tuple[CaseFiles, Outcome], None, None]:
        if self.dask:
            from segtrust.engine.cluster import LOCAL, run_on_dask

            budget = self.budget if self.dask == LOCAL else self.memory
            return run_on_dask(work, cases, self.dask, workers=self.workers, budget=budget)
        return run_in_processes(work, cases, workers=self.workers, budget=self.budget, cost=memory_of)


def _free_memory() -> int:
    """Bytes that can be had, those among them that the system keeps files in until somebody needs them.

    A container, or a job of a batch system, may have less than the machine.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return _USUAL_MEMORY
    return min(free, _left_in_group(Path("/sys/fs/cgroup")) or free)


def _left_in_group(folder: Path) -> int | None:
    """Bytes that the group of this process may still take; ``None`` where nothing limits it."""
    try:
        most, used = (
            int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current")
        )
    except (OSError, ValueError):  # "max" is no number
        return None
    return max(most - used, 1)


def run_cases(
    work: Work,
    cases: Sequence[CaseFiles],
    *,
    engine: Engine,
    journal: Journal,
    advance: Callable[[int], object] = lambda done: None,
) -> dict[str, Outcome]:
    """Give the outcome of each case by its name, in the order of the cases.

    Parameters
    ----------
    work
        Gives the outcome of a case.
    cases
        With different names.
    engine
        Where they are run; the outcomes do not depend on it.
    journal
        Opened; holds what is done already, and takes the rest as it comes.
    advance
        Told of each case that is done.
    """
    max_bytes()  # a limit that makes no sense is told once, and not of each case
    stamps = stamps_for(work, cases)  # of before: a file that is written while it is scored is scored again
    found = {case.id: journal.find(case.id, stamps[case.id]) for case in cases}
    for outcome in found.values():
        if outcome is not None:
            advance(1)
    missing = [case for case in cases if found[case.id] is None]
    if len(missing) == len(cases) and not engine.is_elsewhere:
        check_packages(missing)
    with closing(engine.run(work, missing)) as finished:
        for case, outcome in finished:
            journal.add(outcome, stamps[case.id])
            found[case.id] = outcome
            advance(1)
    return {name: outcome for name, outcome in found.items() if outcome is not None}


def stamps_for(work: Work, cases: Sequence[CaseFiles]) -> dict[str, Any]:
    """Give what changes with each case: its files, and what was learned from its set, if anything was."""
    stamps = stamps_of(cases)
    learned_from = getattr(work, "learned_from", None)
    if learned_from is None:
        return stamps
    learned = {name: learned_from(name) for name in {case.set for case in cases}}
    return {
        case.id: {**stamps[case.id], **({"learned": learned[case.set]} if learned[case.set] else {})}
        for case in cases
    }


def part_of(cases: Sequence[CaseFiles], part: int, parts: int) -> list[CaseFiles]:
    """Give the cases of one job of an array of jobs: a stretch, so that parts in their order are the whole.

    Examples
    --------
    >>> part_of(["a", "b", "c", "d", "e"], 1, 2)
    ['c', 'd', 'e']
    """
    if not (parts >= 1 and 0 <= part < parts):
        raise ParameterError(f"part-id: expected a number from 0 to {parts - 1}, got {part}.")
    return list(cases[len(cases) * part // parts : len(cases) * (part + 1) // parts])
