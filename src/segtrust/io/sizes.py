"""Moved to `segtrust.io.checksums`."""

from segtrust.io.checksums import memory_of  # moved

__all__ = ["memory_of"]
