"""Moved to `segtrust.io.checksums`."""

from segtrust.io.checksums import companions_of  # moved

__all__ = ["companions_of"]
