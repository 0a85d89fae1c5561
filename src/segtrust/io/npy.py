"""Moved to `segtrust.io.formats.numpy`."""

from segtrust.io.formats.numpy import (  # moved
    NpyHeader as Header,
    open_npy,
    read_npy_header as header_of,
    recognises_npy,
)

__all__ = ["Header", "header_of", "open_npy", "recognises_npy"]
