"""Moved to `segtrust.io.structures`."""

from segtrust.io.structures import (
    PARTS_REMEDY as PARTS,
    TASK_PREFIX as PREFIX,
    is_task as names_task,
    read_task_scheme as task_scheme,
)

__all__ = ["PARTS", "PREFIX", "names_task", "task_scheme"]
