"""TIFF, also of many pages and of floats, with the axes that ImageJ, OME and others write into it."""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, MissingExtraError, ReadError, WrongContentError
from segtrust.io.checks import check_complete, check_numbers
from segtrust.io.volumes import Volume
from segtrust.optional import require

__all__ = ["open_tiff", "recognises_tiff"]

_BEGINNINGS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RuntimeError,
    AssertionError,
    ZeroDivisionError,
    MemoryError,
    struct.error,
    zlib.error,
)
"""What tifffile and its decoders raise when a file is not what it seems."""


def recognises_tiff(path: Path, head: bytes) -> bool:
    """Tell by the first bytes."""
    return head.startswith(_BEGINNINGS)


def open_tiff(path: Path, key: str | None = None) -> Volume:
    """Open an image, or a stack of pages.

    Channels come first where the file names them (``C``, or samples side by side in a pixel). Pages whose
    axis has no name may be slices or channels: ``has_channels`` is then unknown. Pixels that are not packed
    stay on the disk until they are needed.
    """
    with _opened(path) as file:
        series = _only_series(path, file)
        _check_kept(path, series)
        axes, shape = _trimmed(series.axes, series.shape)
        order, dtype = _order(path, axes), check_numbers(path, series.dtype)

    def load(channel: int | None) -> Any:
        values = _values(path).reshape(shape).transpose(order)
        return values if channel is None else values[channel]

    return Volume(path, tuple(shape[axis] for axis in order), dtype, load, _has_channels(axes))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, never others that it names; what tifffile complains of is an error or nothing."""
    tifffile = require("tifffile", extra="io")
    try:
        with _logged() as grave, tifffile.TiffFile(path, _multifile=False) as file:
            yield file
    except _DAMAGE as error:
        if isinstance(error, ReadError):
            raise
        raise _refusal(path, error) from None
    if grave:
        raise _refusal(path, grave[0])


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Keep tifffile's log from the terminal, and give those of its messages that are errors."""
    logger, grave = logging.getLogger("tifffile"), _Grave(logging.ERROR)
    logger.addHandler(grave)
    kept, logger.propagate = logger.propagate, False
    try:
        yield grave.messages
    finally:
        logger.propagate = kept
        logger.removeHandler(grave)


class _Grave(logging.Handler):
    """Keeps messages."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _refusal(path: Path, error: object) -> Exception:
    if "'imagecodecs' package" in str(error):
        return MissingExtraError(
            f"{path}: expected pixels plain or packed by deflate, got others ({error}). Run pip "
            "install imagecodecs, or save the file with deflate."
        )
    return DamagedFileError(
        f"{path}: expected a TIFF file, got one that cannot be read ({error}). It may be truncated: copy it "
        "again."
    )


def _only_series(path: Path, file: Any) -> Any:
    if len(file.series) != 1:
        shapes = ", ".join(str(series.shape) for series in file.series) or "none"
        raise WrongContentError(f"{path}: expected one image or stack, got {shapes}. Save one file for each.")
    return file.series[0]


def _check_kept(path: Path, series: Any) -> None:
    """Refuse pixels that were changed when they were saved, or whose range is not that of their type."""
    page = series.keyframe
    if "JP" in page.compression.name:
        raise WrongContentError(
            f"{path}: expected pixels as they were saved, got {page.compression.name}, which changes "
            "probabilities and labels. Save it with deflate from the original array."
        )
    if page.bitspersample not in (1, 8 * series.dtype.itemsize):
        raise WrongContentError(
            f"{path}: expected 1, 8 or 16 bits a pixel, or floats, got {page.bitspersample} bits. Save it "
            "in one of those."
        )


def _trimmed(axes: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Leave out axes of length 1 behind y and x: an image of (y, x, 1) is one of (y, x)."""
    while axes and axes[-1] not in "YX" and shape[-1] == 1:
        axes, shape = axes[:-1], shape[:-1]
    return axes, tuple(int(length) for length in shape)


def _order(path: Path, axes: str) -> list[int]:
    """Put channels first and leave the other axes in their order, y and x last."""
    first = [axis for axis, name in enumerate(axes) if name == "C" or (name == "S" and axes.endswith("S"))]
    others = [axis for axis in range(len(axes)) if axis not in first]
    if len(first) > 1 or len(axes) > 4 or [axes[axis] for axis in others[-2:]] != ["Y", "X"]:
        raise WrongContentError(
            f"{path}: expected channels, z, y and x at most, got the axes {axes}. Save a file for each time."
        )
    return first + others


def _has_channels(axes: str) -> bool | None:
    if "C" in axes or axes.endswith("S"):
        return True
    return False if axes in ("YX", "ZYX") else None


def _values(path: Path) -> Any:
    """Read the pixels as the file has them, in the order of its own axes."""
    with _opened(path) as file:
        series = file.series[0]
        offset, dtype = series.dataoffset, series.dtype.newbyteorder(file.byteorder)
        if offset is not None:
            check_complete(path, offset + series.nbytes, path.stat().st_size)
        if offset is None or not series.nbytes:
            values = series.asarray()
        else:
            values = np.memmap(path, dtype, "r", offset, series.shape)
        return _upright(path, values, file.pages[0])


def _upright(path: Path, values: Any, page: Any) -> Any:
    """Turn an image in which 0 is white; tifffile itself writes bits so without meaning it."""
    is_white = page.photometric.name == "MINISWHITE" and not (
        "tifffile" in page.software and values.dtype == bool
    )
    if is_white and values.dtype.kind not in "bu":
        raise WrongContentError(
            f"{path}: expected 0 to be black, got {values.dtype} with 0 as white. Turn it."
        )
    return ~values if is_white else values
