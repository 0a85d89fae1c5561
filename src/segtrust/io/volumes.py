"""Moved to `segtrust.io.volume`."""

from segtrust.io.volume import Volume  # moved

__all__ = ["Volume"]
