"""Moved to `segtrust.io.checksums`."""

from segtrust.io.checksums import stamps_of  # moved

__all__ = ["stamps_of"]
