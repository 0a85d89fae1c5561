"""Moved to `segtrust.engine.run_log`."""

from segtrust.engine.run_log import (  # moved
    FORMAT,
    RunLog as Journal,  # moved
    mark_of,
    read_log as read_journal,  # moved
)

__all__ = ["FORMAT", "Journal", "mark_of", "read_journal"]
