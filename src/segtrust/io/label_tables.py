"""Moved to `segtrust.io.structures`."""

from segtrust.io.structures import read_label_names as label_table

__all__ = ["label_table"]
