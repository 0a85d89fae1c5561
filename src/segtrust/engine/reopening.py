"""Moved to `segtrust.engine.table_cases`."""

from segtrust.engine.table_cases import files_of_row, read_options_of, reopen_case

__all__ = ["files_of_row", "read_options_of", "reopen_case"]
