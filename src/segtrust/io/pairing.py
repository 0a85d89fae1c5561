"""Moved to `segtrust.io.partners` and `segtrust.io.case_files`."""

from __future__ import annotations

from pathlib import Path

from segtrust.io.case_files import Dataset, only_with_truth
from segtrust.io.names import Pattern
from segtrust.io.partners import add_files

__all__ = ["only_with_truth", "with_masks", "with_truths"]


def with_masks(found: Dataset, folder: Path, pattern: Pattern | None = None) -> Dataset:
    """Return ``add_files(found, "mask", folder, pattern)``."""
    return add_files(found, "mask", folder, pattern)


def with_truths(found: Dataset, folder: Path, pattern: Pattern | None = None) -> Dataset:
    """Return ``add_files(found, "truth", folder, pattern)``."""
    return add_files(found, "truth", folder, pattern)
