"""Moved to `segtrust.io.manifest`."""

from segtrust.io.manifest import COLUMNS, is_manifest, read_manifest

__all__ = ["COLUMNS", "is_manifest", "read_manifest"]
