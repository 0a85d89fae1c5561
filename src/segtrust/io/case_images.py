"""Moved to `segtrust.io.pictures`."""

from segtrust.io.pictures import read_case_image

__all__ = ["read_case_image"]
