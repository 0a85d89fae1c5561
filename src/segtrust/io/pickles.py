"""Moved to `segtrust.io.formats.pickle`."""

from segtrust.io.formats.pickle import read_plain_pickle  # moved

__all__ = ["read_plain_pickle"]
