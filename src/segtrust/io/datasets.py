"""Moved to `segtrust.io.dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from segtrust.io import dataset
from segtrust.io.case_files import Dataset, without_duplicates as without_doubles
from segtrust.io.dataset import short_names as different_names
from segtrust.io.search import Search

__all__ = ["Search", "different_names", "find_cases", "without_doubles"]


def find_cases(paths: Sequence[Path], search: Search | None = None) -> Dataset:
    """Find cases by a `Search`."""
    asked = search or Search()
    return dataset.find_cases(
        paths,
        truth=asked.truth_folder,
        masks=asked.mask_folder,
        images=asked.image_folder,
        members=asked.member_folders or None,
        pattern=None if asked.maps is None else asked.maps.text,
        truth_pattern=None if asked.truths is None else asked.truths.text,
        mask_pattern=None if asked.masks is None else asked.masks.text,
        needs_truth=None if asked.with_truths else False,
        may_be_empty=asked.may_be_empty,
        allow_pickle=asked.allow_pickle,
    )
