"""Moved to `segtrust.io.grid`."""

from segtrust.io.grid import Planes, stack_planes as stacked

__all__ = ["Planes", "stacked"]
