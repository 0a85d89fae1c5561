"""Moved to `segtrust.io.grid`."""

from segtrust.io.grid import AS_STORED, Orientation, TurnedSlice, orientation_of, upright_affine

__all__ = ["AS_STORED", "Orientation", "TurnedSlice", "orientation_of", "upright_affine"]
