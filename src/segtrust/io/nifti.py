"""Moved to `segtrust.io.formats.nifti`."""

from segtrust.io.formats.nifti import open_nifti, recognises_nifti  # moved

__all__ = ["open_nifti", "recognises_nifti"]
