"""Moved to `segtrust.engine.score_table`."""

from segtrust.engine.score_table import check_packages, split_missing  # moved

__all__ = ["check_packages", "split_missing"]
