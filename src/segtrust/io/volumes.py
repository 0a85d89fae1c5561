"""An array in a file: what it is, before a single pixel is read."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.grids import Grid

__all__ = ["Volume", "check_size", "largest_case"]

_GIB = 1 << 30
_LARGEST = 16 * _GIB


def largest_case() -> int:
    """Bytes that one array may take in memory: ``SEGTRUST_MAX_BYTES``, else 16 GiB.

    Examples
    --------
    >>> largest_case() // 2**30
    16
    """
    text = os.environ.get("SEGTRUST_MAX_BYTES", "")
    if not text:
        return _LARGEST
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"SEGTRUST_MAX_BYTES: expected a whole number of at least 1, got {text!r}.")
    return int(text)


def check_size(path: Path | str, count: int) -> None:
    """Refuse to read more bytes than one array may take; what a file says of itself may be a trap."""
    if count > largest_case():
        raise UnsafeFileError(
            f"{path}: expected an array of at most {largest_case() / _GIB:g} GiB, got one of "
            f"{count / _GIB:.3g} GiB. If that is right, allow it: SEGTRUST_MAX_BYTES={count}."
        )


@dataclass(frozen=True, eq=False)
class Volume:
    """An array in a file, with what the file says of it. Pixels are read by `read`.

    Attributes
    ----------
    path
        The file, or what else errors name it by.
    shape
        Of the whole array, as `read` gives it: channels first where there are any, then (z, y, x) or (y, x).
    dtype
        NumPy's.
    load
        Reads the whole array (``None``), or one channel of it. An array that is read as it is needed, as
        those of Zarr and HDF5, may be given as it is.
    has_channels
        Whether the first axis are channels; ``None`` where the file does not say.
    grid
        Where the pixels lie, channels left aside; ``None`` where the file does not say.
    channel_names
        Of each channel, where the file says them.
    lazy
        Whether `load` reads no pixels, so that an array larger than the memory is no danger.
    is_cropped
        Whether slices that hold nothing may be absent, as from DICOM segmentations.
    """

    path: Path | str
    shape: tuple[int, ...]
    dtype: Any
    load: Callable[[int | None], Any]
    has_channels: bool | None = None
    grid: Grid | None = None
    channel_names: tuple[str, ...] = ()
    lazy: bool = False
    is_cropped: bool = False

    @property
    def bytes(self) -> int:
        """Memory that the whole array takes."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)

    def read(self, channel: int | None = None) -> Any:
        """Read the array, or one of its channels."""
        if channel is not None:
            self.check_channel(channel)
        if not self.lazy:
            check_size(self.path, self.bytes if channel is None else self.bytes // self.shape[0])
        return self.load(channel)

    def check_channel(self, channel: int) -> None:
        """Refuse a channel that is not there; a row of a flat map is none."""
        fewest = 2 if self.has_channels else 3
        if self.has_channels is False or len(self.shape) < fewest:
            raise WrongContentError(
                f"{self.path}: expected channels to choose number {channel} from, got one map of shape "
                f"{self.shape}."
            )
        if not 0 <= channel < self.shape[0]:
            raise WrongContentError(
                f"{self.path}: expected a channel from 0 to {self.shape[0] - 1}, got {channel}."
            )
