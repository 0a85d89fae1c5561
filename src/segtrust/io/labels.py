"""Moved to `segtrust.io.structures`."""

from segtrust.io.structures import LazyMask, mask_from_labels as mask_of_values

__all__ = ["LazyMask", "mask_of_values"]
