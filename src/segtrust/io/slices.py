"""Moved to `segtrust.io.pictures`."""

from segtrust.io.pictures import middle_slice, slice_uncertainty as doubt_of

__all__ = ["doubt_of", "middle_slice"]
