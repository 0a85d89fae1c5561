"""NIfTI, of both versions: ``.nii``, ``.nii.gz`` and pairs of ``.hdr`` and ``.img``.

In NIfTI x changes fastest: its axes turned around, (t, z, y, x), are those of an array as it lies in memory.
"""

from __future__ import annotations

import logging
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.checks import check_complete, check_grid, check_numbers, check_shape
from segtrust.io.grids import Grid
from segtrust.io.inflate import gunzip, gunzip_into, is_gzip
from segtrust.io.stores import beside
from segtrust.io.volumes import Volume

__all__ = ["open_nifti", "recognises_nifti"]

_LENGTHS = {1: 348, 2: 540}
"""Bytes of the header, by version."""

_MAGIC = {b"n+1\0": (1, ""), b"ni1\0": (1, "Pair"), b"n+2\0": (2, ""), b"ni2\0": (2, "Pair")}
_LATEST = 64 << 20
"""Byte at which pixels begin at the latest: what is packed before them is unpacked in vain."""
_MILLIMETRES = {"meter": 1000.0, "micron": 0.001}
_FATAL = 40
"""How grave a fault nibabel must find to give up; lesser ones it mends."""

_SILENT = logging.Logger("nibabel's repairs", logging.CRITICAL + 1)


@dataclass(frozen=True)
class _Pixels:
    """Where the numbers of an image are, and what they mean.

    Attributes
    ----------
    path, offset
        The file that holds them, and the byte in it, or in what is packed in it, where they begin.
    shape, dtype
        As they are kept, the axis that changes slowest first.
    scale
        Slope and intercept, where numbers are to be multiplied and shifted.
    """

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: Any
    scale: tuple[float, float] | None

    def read(self, channel: int | None) -> Any:
        """Give the array, or one step of its first axis."""
        shape = self.shape if channel is None else self.shape[1:]
        kept = self._kept(shape, (channel or 0) * math.prod(shape) * int(self.dtype.itemsize))
        return kept if self.scale is None else _scaled(kept, *self.scale)

    def _kept(self, shape: tuple[int, ...], skip: int) -> Any:
        """Give numbers as they are kept; those that are not packed stay on the disk until they are needed."""
        begin, count = self.offset + skip, math.prod(shape) * int(self.dtype.itemsize)
        if not count:
            return np.empty(shape, self.dtype)
        check_size(self.path, count)
        if not is_gzip(_first(self.path, 2)):
            check_complete(self.path, begin + count, self.path.stat().st_size)
            return np.memmap(self.path, self.dtype, "r", begin, shape)
        values = np.empty(count, np.uint8)
        check_complete(self.path, begin + count, gunzip_into(self.path, values.data, skip=begin))
        return values.view(self.dtype).reshape(shape)


def _scaled(kept: Any, slope: float, intercept: float) -> Any:
    """Scale slice by slice in double floats, so that only the result is rounded to single ones."""
    scaled = np.empty(kept.shape, np.float32)
    for index in range(len(kept) if kept.size else 0):  # of nothing there may be any number of slices
        scaled[index] = kept[index] * np.float64(slope) + intercept
    return scaled


def recognises_nifti(path: Path, head: bytes) -> bool:
    """Tell by the header, also by one that is packed; by the name where the header is not in sight."""
    if _kind(_unpacked(head)):
        return True
    name = path.name.lower()
    return name.endswith((".nii", ".nii.gz")) or (name.endswith(".img") and path.with_suffix(".hdr").exists())


def open_nifti(path: Path, key: str | None = None) -> Volume:
    """Open a NIfTI file, or a pair by either of its two.

    Axes after the third that are of length 1 are left out; one that is longer (time, or the vector's) are
    channels. Numbers to be scaled are given scaled, as float32; all others as they are kept.
    """
    header_path = _partner(path, ".hdr") if path.suffix.lower() == ".img" else path
    header = _header(header_path)
    try:
        pixels, grid = _pixels(header_path, header), _grid(header)
    except _header_errors() as error:
        raise _damaged(header_path, error) from None
    check_shape(path, pixels.shape, check_numbers(path, pixels.dtype))
    dtype = pixels.dtype if pixels.scale is None else np.dtype(np.float32)
    has_channels = len(pixels.shape) > len(grid.shape)
    return Volume(path, pixels.shape, dtype, pixels.read, has_channels, check_grid(path, grid))


def _partner(path: Path, ending: str) -> Path:
    """Give the other file of a pair, and refuse one that lies elsewhere, or is none: a pipe is waited for."""
    partner = path.with_suffix(ending)
    if partner.exists() and not (partner.is_file() and beside(path, partner)):
        raise UnsafeFileError(
            f"{path}: expected the other file of the pair in its own folder, got {partner.name!r}, which "
            "leads out of it or is no file. Copy it there with links followed: cp -L."
        )
    return partner


def _first(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def _unpacked(head: bytes) -> bytes:
    """Give what the first bytes of a file hold, packed or not."""
    if not is_gzip(head):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, max(_LENGTHS.values()))
    except zlib.error:
        return b""


def _kind(start: bytes) -> tuple[int, str] | None:
    """Tell version, and whether the pixels are in another file, by the first bytes of a header."""
    size = start[:4]
    for version, magic in ((1, start[344:348]), (2, start[4:8])):
        length = _LENGTHS[version]
        if size in (length.to_bytes(4, "little"), length.to_bytes(4, "big")):
            return _MAGIC.get(magic)
    return None


def _header(path: Path) -> Any:
    """Read the header, and mend it where that is safe."""
    longest = max(_LENGTHS.values())
    start = _first(path, longest)
    start = gunzip(path, most=longest) if is_gzip(start) else start
    kind = _kind(start)
    if kind is None or len(start) < _LENGTHS[kind[0]]:
        raise DamagedFileError(
            f"{path}: expected the header of a NIfTI file, got {len(start)} bytes of something else. It may "
            "be truncated, or only be called so."
        )
    version, pair = kind
    made = getattr(require(f"nibabel.nifti{version}", extra="io"), f"Nifti{version}{pair}Header")
    try:
        header = made(start[: _LENGTHS[version]], check=False)
        header.check_fix(logger=_SILENT, error_level=_FATAL)
    except _header_errors() as error:
        raise _damaged(path, error) from None
    return header


def _header_errors() -> tuple[type[Exception], ...]:
    """Give what nibabel raises when a header makes no sense."""
    images = require("nibabel.spatialimages", extra="io")
    structures = require("nibabel.wrapstruct", extra="io")
    return images.HeaderDataError, structures.WrapStructError, ValueError, OverflowError, KeyError


def _damaged(path: Path, error: Exception) -> Exception:
    if isinstance(error, ReadError):
        return error
    return DamagedFileError(
        f"{path}: expected the header of a NIfTI file, got one that makes no sense ({error}). Save it again."
    )


def _pixels(path: Path, header: Any) -> _Pixels:
    """Say where the numbers are, with the axes as an array has them."""
    lengths = tuple(int(each) for each in header.get_data_shape())
    if len(lengths) < 2 or min(lengths) < 0:
        raise DamagedFileError(f"{path}: expected at least 2 axes, got lengths {lengths} by its own header.")
    channels = tuple(length for length in lengths[3:] if length != 1)
    if len(channels) > 1:
        raise WrongContentError(
            f"{path}: expected one axis beside x, y and z, got lengths {lengths}. Save a file for each time."
        )
    offset = int(header.get_data_offset())
    if not 0 <= offset <= _LATEST:
        raise DamagedFileError(
            f"{path}: expected pixels after the header, from byte {_LATEST} on at most, got {offset}."
        )
    data = path if header.is_single else _partner(path, ".img")
    return _Pixels(data, offset, channels + lengths[:3][::-1], header.get_data_dtype(), _scale(header))


def _scale(header: Any) -> tuple[float, float] | None:
    slope, intercept = header.get_slope_inter()
    return None if slope is None or (slope, intercept) == (1.0, 0.0) else (float(slope), float(intercept))


def _grid(header: Any) -> Grid:
    """Give the place of the pixels in millimetres, whatever the unit of the header."""
    affine = np.array(header.get_best_affine(), np.float64)
    affine[:3] *= _MILLIMETRES.get(header.get_xyzt_units()[0], 1.0)
    shape = tuple(int(each) for each in header.get_data_shape()[:3][::-1])
    is_placed = bool(int(header["qform_code"]) or int(header["sform_code"]))
    return Grid(shape, affine, is_placed and len(shape) == 3)
