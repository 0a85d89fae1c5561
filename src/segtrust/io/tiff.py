"""TIFF, also of many pages and of floats, with the axes that ImageJ, OME and others write into it."""

from __future__ import annotations

import logging
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import (
    DamagedFileError,
    MissingExtraError,
    ReadError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.io.capped import CappedFile
from segtrust.io.checks import check_complete, check_numbers
from segtrust.io.packed import check_packed, may_swell
from segtrust.io.volumes import Volume

__all__ = ["open_tiff", "recognises_tiff"]

_BEGINNINGS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_MOST_PAGES = 8192
_PACKED = {"ADOBE_DEFLATE": "zlib", "DEFLATE": "zlib", "LZMA": "lzma", "ZSTD": "zstd"}
_KEPT = ("NONE", "LZW", "PACKBITS", "CCITTRLE", "CCITT_T4", "CCITT_T6", *_PACKED)
"""Ways of packing that change no pixel, and unpack to no more than is announced or are looked at."""
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
    _check_pages(path)
    with _opened(path) as file:
        series = _only_series(path, file)
        _check_kept(path, series)
        axes, shape = _trimmed(series.axes, series.shape)
        order, dtype = _order(path, axes), check_numbers(path, series.dtype)

    def load(channel: int | None) -> Any:
        values = _values(path, shape).transpose(order)
        return values if channel is None else values[channel]

    return Volume(path, tuple(shape[axis] for axis in order), dtype, load, _has_channels(axes))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, never others that it names; what tifffile complains of is an error or nothing."""
    tifffile = require("tifffile", extra="io")
    try:
        with (
            _logged() as grave,
            CappedFile(path) as opened,
            tifffile.TiffFile(opened, name=path.name, _multifile=False) as file,
        ):
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


def _check_pages(path: Path) -> None:
    """Refuse more pages than an image has slices, and a chain of them that does not end within the file.

    Of the first tifffile looks at each, whatever their number; the second it may follow for ever.
    """
    try:
        with path.open("rb") as file:
            count = _count_pages(file)
    except struct.error:
        raise _refusal(path, "the chain of its pages leads out of the file") from None
    if count > _MOST_PAGES:
        raise UnsafeFileError(
            f"{path}: expected at most {_MOST_PAGES} pages, got more, or a chain of them without end. Save a "
            "volume as one array: numpy.save, or NIfTI."
        )


def _count_pages(file: BinaryIO) -> int:
    """Follow the chain of pages, to one more than are allowed."""
    size, _ = file.seek(0, 2), file.seek(0)
    order = "<" if file.read(2) == b"II" else ">"
    is_big = _number(file, f"{order}H") == 43
    counted, placed, entry = (f"{order}Q", f"{order}Q", 20) if is_big else (f"{order}H", f"{order}L", 12)
    file.seek(8 if is_big else 4)
    count, place = 0, _number(file, placed)
    while place and count <= _MOST_PAGES:
        file.seek(min(place, size))
        file.seek(min(_number(file, counted) * entry, size), 1)
        count, place = count + 1, _number(file, placed)
    return count


def _number(file: BinaryIO, kind: str) -> int:
    return int(struct.unpack(kind, file.read(struct.calcsize(kind)))[0])


def _only_series(path: Path, file: Any) -> Any:
    if len(file.series) != 1:
        shapes = ", ".join(str(series.shape) for series in file.series) or "none"
        raise WrongContentError(f"{path}: expected one image or stack, got {shapes}. Save one file for each.")
    return file.series[0]


def _check_kept(path: Path, series: Any) -> None:
    """Refuse pixels that were changed when they were saved, or whose range is not that of their type."""
    page = series.keyframe
    chunk = math.prod(int(length) for length in page.chunks)  # a strip or tile, which is unpacked whole
    check_size(path, chunk * page.dtype.itemsize)
    if page.compression.name not in _KEPT:
        raise WrongContentError(
            f"{path}: expected pixels as they were saved, got {page.compression.name}, which changes "
            "probabilities and labels, or may. Save it with deflate from the original array."
        )
    if page.bitspersample not in (1, 8 * series.dtype.itemsize):
        raise WrongContentError(
            f"{path}: expected 1, 8 or 16 bits a pixel, or floats, got {page.bitspersample} bits. Save it "
            "in one of those."
        )


def _check_packed(path: Path, series: Any) -> None:
    """Refuse strips and tiles that unpack to more than an array may take."""
    kind = _PACKED.get(series.keyframe.compression.name, "")
    for page in filter(None, series.pages if kind else ()):
        for place, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            if kind == "zstd" or may_swell(kind, count):
                page.parent.filehandle.seek(place)
                check_packed(path, kind, page.parent.filehandle.read(min(count, path.stat().st_size)))


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


def _values(path: Path, shape: tuple[int, ...]) -> Any:
    """Read the pixels as the file has them, in the order of its own axes."""
    with _opened(path) as file:
        series = file.series[0]
        offset, dtype = series.dataoffset, series.dtype.newbyteorder(file.byteorder)
        if offset is not None:
            check_complete(path, offset + series.nbytes, path.stat().st_size)
        if offset is None or not series.nbytes:
            _check_packed(path, series)
            values = series.asarray()
        else:
            values = np.memmap(path, dtype, "r", offset, series.shape)
        return _upright(path, values, file.pages[0]).reshape(shape)


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
