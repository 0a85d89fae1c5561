"""Moved to `segtrust.io.array_ref`."""

from segtrust.io.array_ref import ArrayRef as Place  # moved

__all__ = ["Place"]
