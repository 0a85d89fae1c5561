"""Moved to `segtrust.engine.table_cases`."""

from segtrust.engine.table_cases import write_masks

__all__ = ["write_masks"]
