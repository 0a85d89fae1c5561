"""Arrays of NumPy: ``.npy`` files, and the same inside of others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from segtrust.errors import DamagedFileError, UnsafeFileError
from segtrust.io.checks import check_numbers, check_shape
from segtrust.io.volumes import Volume

__all__ = ["MAGIC", "Header", "header_of", "open_npy", "recognises_npy"]

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 12 + 16384
"""Bytes in which the header of an array of plain numbers must end."""

PICKLED = (
    "an array of Python objects, which is a pickle: to load it would run whatever code its author put in. "
    "Save the numbers themselves (float32), case by case."
)


@dataclass(frozen=True)
class Header:
    """What stands at the beginning of an array.

    Attributes
    ----------
    shape, dtype, fortran_order
        Of the array.
    length
        Bytes of the header.
    """

    shape: tuple[int, ...]
    dtype: Any
    fortran_order: bool
    length: int

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def view(self, values: Any) -> Any:
        """Give bytes as the array that they are."""
        flat = np.frombuffer(values, self.dtype)
        return flat.reshape(self.shape[::-1]).T if self.fortran_order else flat.reshape(self.shape)


def header_of(head: bytes, source: Path | str) -> Header:
    """Read a header from the first bytes of an array; nothing in it is run."""
    file = BytesIO(head)
    try:
        shape, fortran_order, dtype = _described(file)
    except Exception as error:  # noqa: BLE001 - NumPy raises nearly everything where a header is damaged
        raise DamagedFileError(
            f"{source}: expected the header of a NumPy array, got something else ({error}). Save it again."
        ) from None
    if dtype.hasobject:
        raise UnsafeFileError(f"{source}: expected an array of numbers, got {PICKLED}")
    check_numbers(source, dtype)
    check_shape(source, shape, dtype)
    return Header(shape, dtype, fortran_order, file.tell())


def _described(file: BytesIO) -> tuple[tuple[int, ...], bool, Any]:
    """Read shape, order and type; version 3 differs from 2 in names of fields alone, which are refused."""
    major, minor = npy.read_magic(file)
    if (major, minor) not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {major}.{minor}")
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    return read(file)


def recognises_npy(path: Path, head: bytes) -> bool:
    """Tell by the first bytes."""
    return head.startswith(MAGIC)


def open_npy(path: Path, key: str | None = None) -> Volume:
    """Open a ``.npy`` file; its pixels stay on the disk until they are needed."""
    with path.open("rb") as file:
        header = header_of(file.read(LONGEST_HEADER), path)
    there = path.stat().st_size - header.length
    if there < header.size:
        raise DamagedFileError(
            f"{path}: expected {header.size} bytes for an array of shape {header.shape}, got {there}. The "
            "file is truncated: copy it again."
        )

    def load(channel: int | None) -> Any:
        if not header.size:
            return np.empty(header.shape if channel is None else header.shape[1:], header.dtype)
        place = (header.length, header.shape)
        values = np.memmap(path, header.dtype, "r", *place, order="F" if header.fortran_order else "C")
        return values if channel is None else values[channel]

    return Volume(path, header.shape, header.dtype, load)
