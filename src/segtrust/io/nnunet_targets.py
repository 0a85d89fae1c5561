"""Moved to `segtrust.io.nnunet_folders`."""

from segtrust.io.nnunet_folders import NnunetTarget as Target, find_target

__all__ = ["Target", "find_target"]
