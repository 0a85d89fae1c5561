"""Moved to `segtrust.io.manifest`."""

from segtrust.io.manifest import MEMBER_SEPARATOR as SEPARATOR

__all__ = ["SEPARATOR"]
