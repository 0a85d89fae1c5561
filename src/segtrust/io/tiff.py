"""Moved to `segtrust.io.formats.tiff`."""

from segtrust.io.formats.tiff import open_tiff, recognises_tiff  # moved

__all__ = ["open_tiff", "recognises_tiff"]
