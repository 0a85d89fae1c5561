"""Fair times on a noisy machine: candidates take turns, and the shortest of several runs counts.

A turn is a few runs in a row. The first of them finds the caches as another candidate left them, the others
as they themselves did, so a light candidate is not punished for running after a heavy one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Ratio", "shortest_times"]

_IN_A_ROW = 3


@dataclass(frozen=True)
class Ratio:
    """One line of a benchmark.

    Attributes
    ----------
    what, against
        What was timed and the yardstick.
    map
        The map it was timed on.
    seconds, ratio
        Shortest time, and that time in units of the yardstick's.
    target
        Words such as ``"<= 1.5"``, empty where there is none.
    """

    what: str
    against: str
    map: str
    seconds: float
    ratio: float
    target: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` without one."""
        if not self.target:
            return None
        sign, limit = self.target.split()
        return self.ratio <= float(limit) if sign == "<=" else self.ratio >= float(limit)


def shortest_times(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int = 9, least: float = 0.0
) -> dict[str, float]:
    """Run each candidate a few times per round, in turn, and return its shortest time in seconds.

    Each is called once before, so that nothing is compiled or loaded while the clock runs.

    Parameters
    ----------
    candidates
        Functions by name.
    rounds
        Number of turns of each.
    least
        Seconds that a measurement takes at least: a shorter function is called so often that it does, and
        its time is divided by the number of calls.

    Examples
    --------
    >>> times = shortest_times({"nothing": lambda: None, "a sum": lambda: sum(range(1000))}, rounds=3)
    >>> sorted(times)
    ['a sum', 'nothing']
    """
    for candidate in candidates.values():
        candidate()
    calls = {
        name: 1 + int(least / _seconds(candidate)) if least else 1 for name, candidate in candidates.items()
    }
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, candidate in candidates.items():
            best[name] = min(best[name], *(_seconds(candidate, calls[name]) for _ in range(_IN_A_ROW)))
    return best


def _seconds(candidate: Callable[[], object], calls: int = 1) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        candidate()
    return (time.perf_counter() - begin) / calls
