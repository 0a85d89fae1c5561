"""Moved to `segtrust.io.formats.zarr`."""

from segtrust.io.formats.zarr import open_zarr, recognises_zarr  # moved

__all__ = ["open_zarr", "recognises_zarr"]
