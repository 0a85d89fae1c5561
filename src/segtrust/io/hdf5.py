"""Moved to `segtrust.io.formats.hdf5`."""

from segtrust.io.formats.hdf5 import open_hdf5, recognises_hdf5  # moved

__all__ = ["open_hdf5", "recognises_hdf5"]
