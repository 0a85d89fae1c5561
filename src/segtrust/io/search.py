"""Replaced by the parameters of `segtrust.io.dataset.find_cases`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from segtrust.io.names import Pattern

__all__ = ["Search"]


@dataclass(frozen=True)
class Search:
    """Parameters of `find_cases` as one value."""

    maps: Pattern | None = None
    masks: Pattern | None = None
    truths: Pattern | None = None
    mask_folder: Path | None = None
    truth_folder: Path | None = None
    image_folder: Path | None = None
    with_truths: bool = True
    may_be_empty: bool = False
    allow_pickle: bool = False
    member_folders: tuple[Path, ...] = ()
