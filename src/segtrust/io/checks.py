"""Moved to `segtrust.io.formats._common`."""

from segtrust.io.formats._common import check_complete, check_grid, check_numbers, check_shape  # moved

__all__ = ["check_complete", "check_grid", "check_numbers", "check_shape"]
