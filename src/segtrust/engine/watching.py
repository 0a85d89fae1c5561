"""Moved to `segtrust.engine.watch`."""

from segtrust.engine.watch import (  # moved
    Rhythm,
    Settling,
    WatchStatus as News,  # moved
    watch_cases,
)

__all__ = ["News", "Rhythm", "Settling", "watch_cases"]
