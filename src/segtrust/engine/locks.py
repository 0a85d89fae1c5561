"""Moved to `segtrust.engine.run_log`."""

from segtrust.engine.run_log import (
    is_running as is_taken,  # moved
    lock_file as take,  # moved
)

__all__ = ["is_taken", "take"]
