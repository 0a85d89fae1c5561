"""Moved to `segtrust.engine.score_table`."""

from segtrust.engine.score_table import (  # moved
    UnfinishedRun,
    find_table,
    read_unfinished_run as unfinished_run,  # moved
)

__all__ = ["UnfinishedRun", "find_table", "unfinished_run"]
