"""Moved to `segtrust.io.grid`."""

from segtrust.io.grid import Grid, Turning, check_same_grid, is_same_grid

__all__ = ["Grid", "Turning", "check_same_grid", "is_same_grid"]
