"""Moved to `segtrust.engine.executors`."""

from segtrust.engine.executors import (
    block_interrupts as leaving_interrupts,  # moved
    compute_in_processes as compute_side_by_side,  # moved
    preload_workers as get_ready,  # moved
)

__all__ = ["compute_side_by_side", "get_ready", "leaving_interrupts"]
