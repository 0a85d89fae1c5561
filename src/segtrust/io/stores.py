"""Moved to `segtrust.io.formats._common`."""

from segtrust.io.formats._common import (  # moved
    MAPS,
    MASKS,
    TRUTHS,
    ChunkedArray as Stored,
    is_beside as beside,
    is_inside as inside,
    reading,
)

__all__ = ["MAPS", "MASKS", "TRUTHS", "Stored", "beside", "inside", "reading"]
