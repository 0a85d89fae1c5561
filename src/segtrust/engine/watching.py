"""Moved to `segtrust.engine.watch`."""

from segtrust.engine.watch import Rhythm, Settling, watch_cases  # moved
from segtrust.engine.watch import WatchStatus as News  # moved

__all__ = ["News", "Rhythm", "Settling", "watch_cases"]
