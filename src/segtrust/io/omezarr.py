"""Moved to `segtrust.io.formats.zarr`."""

from segtrust.io.formats.zarr import OmeImage as Image, read_ome_image as image_of  # moved

__all__ = ["Image", "image_of"]
