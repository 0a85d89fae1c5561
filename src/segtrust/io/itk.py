"""Moved to `segtrust.io.formats.itk`."""

from segtrust.io.formats.itk import data_files_of, open_itk, recognises_itk  # moved

__all__ = ["data_files_of", "open_itk", "recognises_itk"]
