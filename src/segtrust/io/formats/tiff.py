"""TIFF, with one or many pages, also of floats, with the axes that ImageJ, OME and others write into it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, MissingExtraError, WrongContentError
from segtrust.io.formats._common import (
    Volume,
    check_complete,
    check_numbers,
    greys_of_palette,
    missing_chunks,
    reading,
)

__all__ = ["open_tiff", "open_tiff_labels", "recognises_tiff"]

_BEGINNINGS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_MOST_PAGES = 8192
_LOSSLESS = (
    *("NONE", "LZW", "PACKBITS", "CCITTRLE", "CCITT_T4", "CCITT_T6"),
    *("ADOBE_DEFLATE", "DEFLATE", "LZMA", "ZSTD"),
)


def recognises_tiff(path: Path, head: bytes) -> bool:
    """Recognise a file by its first bytes."""
    return head.startswith(_BEGINNINGS)


def open_tiff(path: Path, key: str | None = None, *, fill_missing: bool = False) -> Volume:
    """Open an image, or a stack of pages.

    Channels come first if the file names them (``C``, or samples side by side in a pixel). Pages whose axis
    has no name may be slices or channels: ``has_channels`` is then unknown. Pixels that are not compressed
    stay on the disk until they are needed. Strips and tiles that were never written are an error, unless they
    are to be filled with zeros (``fill_missing``).
    """
    return _open(path, is_labels=False, fill_missing=fill_missing)


def open_tiff_labels(
    path: Path, key: str | None = None, usual: Sequence[str] = (), *, fill_missing: bool = False
) -> Volume:
    """Open labels as `open_tiff` opens a map; the numbers of a colour palette are labels, too."""
    return _open(path, is_labels=True, fill_missing=fill_missing)


def _open(path: Path, *, is_labels: bool, fill_missing: bool) -> Volume:
    with _opened(path) as file:
        if len(file.pages) > _MOST_PAGES:
            raise WrongContentError(
                f"{path}: expected at most {_MOST_PAGES} pages, got {len(file.pages)}. Save a volume as one "
                "array: numpy.save, or NIfTI."
            )
        if len(file.series) != 1:
            shapes = ", ".join(str(series.shape) for series in file.series) or "none"
            raise WrongContentError(
                f"{path}: expected one image or stack, got {shapes}. Save one file for each."
            )
        series = file.series[0]
        _check_pixels(path, file, series, is_labels=is_labels)
        _check_written(path, series, fill_missing=fill_missing)
        axes, shape = series.axes, tuple(map(int, series.shape))
        while axes and axes[-1] not in "YX" and shape[-1] == 1:  # an image of (y, x, 1) is one of (y, x)
            axes, shape = axes[:-1], shape[:-1]
        dtype = check_numbers(path, series.dtype)
    first = [axis for axis, name in enumerate(axes) if name == "C" or (name == "S" and axes.endswith("S"))]
    others = [axis for axis in range(len(axes)) if axis not in first]
    if len(first) > 1 or len(axes) > 4 or [axes[axis] for axis in others[-2:]] != ["Y", "X"]:
        raise WrongContentError(
            f"{path}: expected channels, z, y and x at most, got the axes {axes}. Save one file per time."
        )
    order = first + others

    def load(channel: int | None) -> Any:
        values = _read(path).reshape(shape).transpose(order)
        return values if channel is None else values[channel]

    has_channels = True if first else False if axes in ("YX", "ZYX") else None
    return Volume(path, tuple(shape[axis] for axis in order), dtype, load, has_channels)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, never others that it names; errors that tifffile only logs are errors, too."""
    tifffile = require("tifffile", extra="io")
    logger, handler = logging.getLogger("tifffile"), _Messages(logging.ERROR)
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        with reading(path, "a TIFF image"), tifffile.TiffFile(path, _multifile=False) as file:
            try:
                yield file
            except ValueError as error:
                if "'imagecodecs' package" not in str(error):
                    raise
                raise MissingExtraError(
                    f"{path}: expected pixels that are not compressed or deflated, got others ({error}). Run "
                    "pip install imagecodecs, or save the file with deflate."
                ) from None
    finally:
        logger.propagate = before
        logger.removeHandler(handler)
    if handler.messages:
        raise DamagedFileError(
            f"{path}: expected a TIFF image, got one that cannot be read ({handler.messages[0]}). It may be "
            "truncated: copy it again."
        )


class _Messages(logging.Handler):
    """Keeps messages instead of printing them."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _check_pixels(path: Path, file: Any, series: Any, *, is_labels: bool) -> None:
    """Reject pixels that were changed when they were saved, or that do not mean what their numbers say."""
    page = series.keyframe
    chunk = math.prod(int(length) for length in page.chunks)  # a strip or tile, which is decompressed whole
    check_size(path, chunk * page.dtype.itemsize)
    if page.compression.name not in _LOSSLESS:
        raise WrongContentError(
            f"{path}: expected pixels as they were saved, got {page.compression.name}, which changes "
            "probabilities and labels, or may. Save it with deflate from the original array."
        )
    if page.bitspersample not in (1, 8 * series.dtype.itemsize):
        raise WrongContentError(
            f"{path}: expected 1, 8 or 16 bits per pixel, or floats, got {page.bitspersample} bits. Save it "
            "in one of those."
        )
    tag = page.tags.get("Orientation")
    if tag is not None and int(tag.value) != 1:
        raise WrongContentError(
            f"{path}: expected an upright image, got one that is to be turned when it is shown (orientation "
            f"tag {int(tag.value)}). Turn the pixels, and save it without the tag."
        )
    if page.photometric.name == "MINISWHITE" and file.is_imagej:
        raise WrongContentError(
            f"{path}: expected 0 to be black, got an image that ImageJ saved with an inverting lookup table, "
            "in which 255 may mean the object or the background. In ImageJ, apply Image > Lookup Tables > "
            "Invert LUT, check the values, and save it again."
        )
    if page.photometric.name == "MINISWHITE" and series.dtype.kind not in "bu":
        raise WrongContentError(
            f"{path}: expected 0 to be black, got {series.dtype} with 0 as white. Turn it."
        )
    if page.photometric.name == "PALETTE" and not is_labels and _greys(page) is None:
        raise WrongContentError(
            f"{path}: expected a grey image, got a palette of colours. Save the probabilities as a grey "
            "image of 8 or 16 bits, or as floats."
        )


def _greys(page: Any) -> Any:
    """Return the grey level of each number of a palette; ``None`` if some are colours or not of 8 bits."""
    if page.colormap is None or page.dtype != np.uint8:
        return None
    palette = np.asarray(page.colormap)
    palette = palette >> 8 if palette.max(initial=0) > 0xFF else palette  # some writers use 8 of 16 bits
    return palette[0].astype(np.uint8) if (palette == palette[:1]).all() else None


def _check_written(path: Path, series: Any, *, fill_missing: bool) -> None:
    """Check that all strips and tiles exist, for which tifffile returns zeros, and lie in the file."""
    pages = [page for page in series.pages if page is not None]
    chunks = [chunk for page in pages for chunk in zip(page.dataoffsets, page.databytecounts, strict=False)]
    written = [(offset, count) for offset, count in chunks if offset and count]
    check_complete(path, max((offset + count for offset, count in written), default=0), path.stat().st_size)
    expected = sum(math.prod(page.chunked) for page in pages)
    is_whole = len(written) >= expected and len(pages) == len(series.pages)
    if not is_whole and not fill_missing and math.prod(series.shape):
        raise missing_chunks(
            path,
            "",
            f"{len(written)} of {max(expected, len(written) + 1)} strips or tiles",
            "If the others are empty on purpose, write zeros to them, or fill them: --fill-missing.",
        )


def _read(path: Path) -> Any:
    """Read the pixels in the order of the file's own axes."""
    with _opened(path) as file:
        series = file.series[0]
        offset = series.dataoffset
        if offset is None or not series.nbytes:
            values = series.asarray()
        else:
            check_complete(path, offset + series.nbytes, path.stat().st_size)
            dtype = series.dtype.newbyteorder(file.byteorder)
            values = np.memmap(path, dtype, "r", offset, series.shape)
        page = series.keyframe
        if page.photometric.name == "PALETTE" and (greys := _greys(page)) is not None:
            return greys_of_palette(path, values, greys)
        # tifffile itself writes bits with white as 0 without meaning it
        is_turned = page.photometric.name == "MINISWHITE" and not (
            "tifffile" in page.software and values.dtype == bool
        )
        return ~values if is_turned else values
