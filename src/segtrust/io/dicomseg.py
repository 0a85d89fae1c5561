"""Moved to `segtrust.io.formats.dicom`."""

from segtrust.io.formats.dicom import (  # moved
    open_dicom as open_dicomseg,
    recognises_dicom as recognises_dicomseg,
)

__all__ = ["open_dicomseg", "recognises_dicomseg"]
