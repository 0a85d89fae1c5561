"""Moved to `segtrust.io.table`."""

from segtrust.io.table import (
    ENDINGS,
    SCORES,
    TEXTS,
    Table,
    about_path as about_beside,
    check_table_path as check_ending,
    printable,
    read_table,
    write_table,
)

__all__ = [
    "ENDINGS",
    "SCORES",
    "TEXTS",
    "Table",
    "about_beside",
    "check_ending",
    "printable",
    "read_table",
    "write_table",
]
