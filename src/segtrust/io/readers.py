"""Moved to `segtrust.io.volume`."""

from segtrust.io.volume import (  # moved
    READERS,
    Reader,
    missing_package,
    open_labels,
    open_volume,
    reader_of_ending,
)

__all__ = ["READERS", "Reader", "missing_package", "open_labels", "open_volume", "reader_of_ending"]
