"""Moved to `segtrust.engine.executors` and `segtrust.engine.score_table`."""

from segtrust.engine.executors import make_executor as Engine  # noqa: N812  # moved
from segtrust.engine.score_table import part_of, run_cases  # moved

__all__ = ["Engine", "part_of", "run_cases"]
