"""NIfTI, versions 1 and 2: ``.nii``, ``.nii.gz`` and pairs of ``.hdr`` and ``.img``.

In NIfTI x changes fastest: its axes in reverse order, (t, z, y, x), are those of the array in memory.
"""

from __future__ import annotations

import logging
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.formats._common import (
    Volume,
    check_complete,
    check_grid,
    check_numbers,
    check_shape,
    is_beside,
    reading,
)
from segtrust.io.formats._deflate import GZIP, Stream, gunzip, is_gzip
from segtrust.io.grid import Grid

__all__ = ["open_nifti", "pair_of", "recognises_nifti"]

_LENGTHS = {1: 348, 2: 540}
"""Bytes of the header by version."""
_MAGIC = {b"n+1\0": (1, ""), b"ni1\0": (1, "Pair"), b"n+2\0": (2, ""), b"ni2\0": (2, "Pair")}
_LATEST = 64 << 20
"""Last byte at which pixels may begin."""
_MILLIMETRES = {"meter": 1000.0, "micron": 0.001}
_FATAL = 40
"""Severity of a fault at which nibabel gives up; it repairs lesser ones."""
_SILENT = logging.Logger("nibabel's repairs", logging.CRITICAL + 1)


def recognises_nifti(path: Path, head: bytes) -> bool:
    """Recognise a file by its header, also a compressed one, or by its name if the header is elsewhere."""
    if is_gzip(head):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, max(_LENGTHS.values()))
        except zlib.error:
            head = b""
    name = path.name.lower()
    if _version(head) is not None or name.endswith((".nii", ".nii.gz")):
        return True
    return name.endswith((".img", ".img.gz")) and pair_of(path) is not None


def open_nifti(path: Path, key: str | None = None) -> Volume:
    """Open a NIfTI file, or a pair by either of its files.

    Axes after the third that have length 1 are left out; a longer one (time, or the vector's) holds channels.
    Scaled numbers are returned scaled, as float32; all others as they are stored.
    """
    is_pixels = path.name.lower().endswith((".img", ".img.gz"))
    header_path = _partner(path) if is_pixels else path
    header = _read_header(header_path)
    with reading(header_path, "the header of a NIfTI file"):
        lengths = tuple(int(length) for length in header.get_data_shape())
        offset, dtype = int(header.get_data_offset()), header.get_data_dtype()
        slope, intercept = header.get_slope_inter()
        affine = np.array(header.get_best_affine(), np.float64)
        affine[:3] *= _MILLIMETRES.get(header.get_xyzt_units()[0], 1.0)
        is_placed = bool(int(header["qform_code"]) or int(header["sform_code"])) and len(lengths) > 2
        earliest = int(header.single_vox_offset) if header.is_single else 0
    if len(lengths) < 2 or min(lengths) < 0:
        raise DamagedFileError(f"{path}: expected at least 2 axes, got lengths {lengths} by its own header.")
    channels = tuple(length for length in lengths[3:] if length != 1)
    if len(channels) > 1:
        raise WrongContentError(
            f"{path}: expected one axis besides x, y and z, got lengths {lengths}. Save one file per time."
        )
    if not earliest <= offset <= _LATEST:
        raise DamagedFileError(
            f"{path}: expected pixels between byte {earliest} and byte {_LATEST}, got byte {offset} "
            "(vox_offset). Save it again, for example with nibabel, and compare the pixels."
        )
    data = path if header.is_single or is_pixels else _partner(path)
    shape = channels + lengths[:3][::-1]
    check_shape(path, shape, check_numbers(path, dtype))
    scale = None
    if slope is not None and intercept is not None and (slope, intercept) != (1.0, 0.0):
        scale = (float(slope), float(intercept))

    def load(channel: int | None) -> Any:
        wanted = shape if channel is None else shape[1:]
        begin = offset + (channel or 0) * math.prod(wanted) * int(dtype.itemsize)
        values = _read_pixels(data, begin, wanted, dtype)
        return values if scale is None else _scaled(values, *scale)

    grid = check_grid(path, Grid(lengths[:3][::-1], affine, is_placed))
    result_type = dtype if scale is None else np.dtype(np.float32)
    return Volume(path, shape, result_type, load, len(shape) > len(grid.shape), grid)


def pair_of(path: Path) -> Path | None:
    """Return the other file of a pair (``.hdr`` or ``.img``, either may be compressed), if it exists."""
    stem, _, ending = path.name.removesuffix(".gz").rpartition(".")
    other = {"hdr": "img", "img": "hdr"}.get(ending.lower())
    if not stem or other is None:
        return None
    names = (f"{stem}.{form}{packed}" for form in (other, other.upper()) for packed in ("", ".gz"))
    return next((path.with_name(name) for name in names if path.with_name(name).exists()), None)


def _partner(path: Path) -> Path:
    """Return the other file of a pair, which must be a file in the same folder."""
    partner = pair_of(path)
    if partner is None:
        raise DamagedFileError(
            f"{path}: expected the other file of the pair (.hdr and .img) next to it, got none. Copy it "
            "there."
        )
    if not partner.is_file() or not is_beside(path, partner):
        raise UnsafeFileError(
            f"{path}: expected the other file of the pair in its own folder, got {partner.name!r}, which "
            "leads out of it or is no file. Copy it there with links followed: cp -L."
        )
    return partner


def _version(start: bytes) -> tuple[int, str] | None:
    """Return the version and the kind of header that the first bytes belong to."""
    for version, magic in ((1, start[344:348]), (2, start[4:8])):
        length = _LENGTHS[version]
        if start[:4] in (length.to_bytes(4, "little"), length.to_bytes(4, "big")):
            return _MAGIC.get(magic)
    return None


def _read_header(path: Path) -> Any:
    """Read the header, and let nibabel repair it where that is safe."""
    longest = max(_LENGTHS.values())
    with path.open("rb") as file:
        start = file.read(longest)
    start = gunzip(path, most=longest) if is_gzip(start) else start
    kind = _version(start)
    if kind is None or len(start) < _LENGTHS[kind[0]]:
        raise DamagedFileError(
            f"{path}: expected the header of a NIfTI file, got {len(start)} bytes of something else. It may "
            "be truncated, or only have such a name."
        )
    version, pair = kind
    header_class = getattr(require(f"nibabel.nifti{version}", extra="io"), f"Nifti{version}{pair}Header")
    with reading(path, "the header of a NIfTI file"):
        header = header_class(start[: _LENGTHS[version]], check=False)
        header.check_fix(logger=_SILENT, error_level=_FATAL)
    return header


def _read_pixels(path: Path, begin: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Read numbers as they are stored; those that are not compressed stay on the disk until needed."""
    count = math.prod(shape) * int(dtype.itemsize)
    if not count:
        return np.empty(shape, dtype)
    check_size(path, count)
    with path.open("rb") as file:
        is_packed = is_gzip(file.read(2))
        if not is_packed:
            check_complete(path, begin + count, path.stat().st_size)
            return np.memmap(path, dtype, "r", begin, shape)
        file.seek(0)
        values = np.empty(count, np.uint8)
        stream = Stream(file, path, wbits=GZIP)
        stream.skip(begin)
        stream.fill(values.data)
        stream.finish()  # where the checksum is
    return values.view(dtype).reshape(shape)


def _scaled(stored: Any, slope: float, intercept: float) -> Any:
    """Scale slice by slice in double precision, so that only the result is rounded to single precision."""
    scaled = np.empty(stored.shape, np.float32)
    for index in range(len(stored) if stored.size else 0):  # an empty array may have any number of slices
        scaled[index] = stored[index] * np.float64(slope) + intercept
    return scaled
