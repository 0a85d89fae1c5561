"""Times of both sides in one run, taken in turn; the shortest counts."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.timing import shortest_times
from docs.results.scripts.peers.tables import Table

HEADER = ("what", "segtrust", "neighbour", "neighbour / segtrust")
Pair = tuple[Callable[[], object], Callable[[], object]]


def times(pairs: dict[str, Pair], rounds: int = 5) -> Table:
    """Give the shortest times of pairs, segtrust's first, and their ratios."""
    rows = []
    for what, (own, other) in pairs.items():
        found = shortest_times({"own": own, "other": other}, rounds=rounds)
        ratio = found["other"] / found["own"]
        rows.append((what, _shown(found["own"]), _shown(found["other"]), f"{ratio:.3g}"))
    return Table("times", HEADER, tuple(rows))


def _shown(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
