"""Moved to `segtrust.io.table`."""

from segtrust.io.table import (
    Keep,
    Stream,
    map_rows as changed,
    read_csv_rows as csv_rows,
    read_parquet_rows as read_parquet,
    row_groups as pieces_of,
)

__all__ = ["Keep", "Stream", "changed", "csv_rows", "pieces_of", "read_parquet"]
