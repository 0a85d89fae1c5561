"""Moved to `segtrust.io.formats.image`."""

from segtrust.io.formats.image import open_image, recognises_image  # moved

__all__ = ["open_image", "recognises_image"]
