"""Moved to `segtrust.io.formats._deflate`."""

from segtrust.io.formats._deflate import crc32, deflate_library, gunzip, is_gzip  # moved

__all__ = ["crc32", "deflate_library", "gunzip", "is_gzip"]
