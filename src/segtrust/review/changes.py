"""Files that are no longer those that were scored: what is shown would not be what the confidence is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segtrust.engine import files_of_row
from segtrust.errors import SegtrustError
from segtrust.io import ChecksumKind, ScoreRow, checksum_of_all

__all__ = ["change_of"]

_KINDS: tuple[ChecksumKind, ...] = ("quick", "sha256")


def change_of(row: ScoreRow, about: Mapping[str, Any]) -> str:
    """Return a sentence if the map or mask of a row has changed since it was scored; empty if not.

    It is also empty if that is not known: for a file that is gone, and for one without a checksum, such as a
    Zarr store of more than 64 MiB without ``--digest sha256``.
    """
    kind = about.get("checksum")
    if kind not in _KINDS or not row.get("file"):
        return ""
    files = files_of_row(row, about)
    masks = () if files.mask is None else (files.mask,)
    for what, column, places in (("map", "checksum", files.maps), ("mask", "mask_checksum", masks)):
        if not row.get(column) or not places:
            continue
        try:
            is_same = checksum_of_all([place.path for place in places], kind) == row[column]
        except (OSError, SegtrustError):
            continue  # told by who opens it
        if not is_same:
            return (
                f"{places[0]}: the {what} of this case is no longer the one that was scored. Score it again, "
                "then look at it again."
            )
    return ""
