"""Files that belong to another: what changes with one of them changes the whole."""

from __future__ import annotations

from pathlib import Path

from segtrust.io.itk import data_files_of

__all__ = ["companions_of"]

_PAIRS = {".hdr": ".img", ".img": ".hdr"}


def companions_of(path: Path) -> list[Path]:
    """Give the files with the pixels of a header (MHD, NHDR), or the other one of a NIfTI pair.

    Examples
    --------
    >>> companions_of(Path("map.npy"))
    []
    """
    return [*data_files_of(path), *_other_of_pair(path)]


def _other_of_pair(path: Path) -> list[Path]:
    other = path.with_suffix(_PAIRS.get(path.suffix.lower(), path.suffix))
    return [other] if other != path and other.is_file() else []
