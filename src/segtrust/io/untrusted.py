"""Moved to `segtrust.io.formats.pickle`."""

from segtrust.io.formats.pickle import (  # moved
    LISTED,
    is_pickle,
    open_trusted as open_unpickled,
    read_trusted as unpickled,
)

__all__ = ["LISTED", "is_pickle", "open_unpickled", "unpickled"]
