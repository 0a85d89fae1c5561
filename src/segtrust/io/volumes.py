"""An array in a file: what it is, before a single pixel is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size, format_bytes, max_bytes
from segtrust.errors import UnsafeFileError, WrongContentError
from segtrust.io.grids import Grid

__all__ = ["Volume", "check_pieces"]

_PIECEWISE = 64
"""How many times larger an array may be that is never in memory as a whole, and yet must be read."""


def check_pieces(path: Path | str, count: int) -> None:
    """Refuse an array that is read piece by piece and announces more bytes than anybody would wait for."""
    if count > _PIECEWISE * max_bytes():
        raise UnsafeFileError(
            f"{path}: expected at most {format_bytes(_PIECEWISE * max_bytes())} to be read piece by piece, "
            f"got an array of {format_bytes(count)}. If that is right, allow it: "
            f"SEGTRUST_MAX_BYTES={-(-count // _PIECEWISE)}."
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
    in_order
        Whether channels that are read in their order cost no more than all of them at once.
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
    in_order: bool = False

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

    def ready_for(self, structures: int) -> Volume:
        """Give a volume of which so many structures are read one after the other."""
        return self if structures < 2 or self.lazy or self.in_order else self.in_memory()

    def in_memory(self) -> Volume:
        """Read all channels at once: to unpack the third one, the first two are unpacked as well."""
        whole = self.read()
        return replace(self, load=lambda channel: whole if channel is None else whole[channel])

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
