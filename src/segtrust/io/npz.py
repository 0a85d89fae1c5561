"""Moved to `segtrust.io.formats.numpy`."""

from segtrust.io.formats.numpy import (  # moved
    Member,
    choose_member as chosen_member,
    open_member,
    open_npz,
    read_members as read_directory,
    recognises_npz,
)

__all__ = ["Member", "chosen_member", "open_member", "open_npz", "read_directory", "recognises_npz"]
