"""Moved to `segtrust.engine.run_log`."""

from segtrust.engine.run_log import FORMAT, mark_of  # moved
from segtrust.engine.run_log import RunLog as Journal  # moved
from segtrust.engine.run_log import read_log as read_journal  # moved

__all__ = ["FORMAT", "Journal", "mark_of", "read_journal"]
