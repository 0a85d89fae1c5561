"""Moved to `segtrust.io.pictures`."""

from segtrust.io.pictures import Window, stretch as stretched, window_of

__all__ = ["Window", "stretched", "window_of"]
