"""Flat images that keep every pixel as it was: PNG, BMP and lossless WebP, read by Pillow."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, ReadError, WrongContentError
from segtrust.io.capped import CappedFile
from segtrust.io.inflate import deflate_library
from segtrust.io.volumes import Volume

__all__ = ["open_image", "recognises_image"]

_BEGINNINGS = {
    "PNG": b"\x89PNG\r\n\x1a\n",
    "BMP": b"BM",
    "GIF": b"GIF8",
    "JPEG": b"\xff\xd8\xff",
    "JPEG 2000": b"\0\0\0\x0cjP  \r\n",
}
_CLASSES = {"PNG": "Png", "BMP": "Bmp", "WEBP": "WebP"}
_DTYPES = {"1": bool, "L": np.uint8, "P": np.uint8, "I;16": np.uint16, "I;16B": np.uint16}
_COLOURS = ("LA", "RGB", "RGBA")
_BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
_DENSEST = 8 * 1032
"""Pixels, of one bit each, that one byte of deflate can hold at most."""

_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by colour type."""
_PNG_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""First column and row, and steps, of the seven passes of an interlaced image (Adam7)."""

_PIECE = 1 << 20

_SAVE_ONE = "Save one channel, as a grey image of 8 or 16 bits."
_DAMAGE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    struct.error,
    zlib.error,
    UserWarning,
)
"""What Pillow raises when a file is not what it seems."""


def recognises_image(path: Path, head: bytes) -> bool:
    """Tell by the first bytes; also those formats that `open_image` refuses with a reason."""
    return _format(head) is not None


def open_image(path: Path, key: str | None = None) -> Volume:
    """Open an image of one channel, or of three that are equal.

    A palette of colours marks labels, and their numbers are given; a palette of greys is a grey image. A
    transparent image is taken if it is so everywhere to the same degree.
    """
    with path.open("rb") as file:
        head = file.read(512)
    _refuse_lossy(path, head)
    with _opened(path, head) as image:
        _check_grey(path, image, head)
        (width, height), bands = image.size, len(image.getbands())
        dtype = np.dtype(_DTYPES.get(image.mode, np.uint8))

    def load(channel: int | None) -> Any:
        check_size(path, width * height * bands)
        _check_plausible(path, width * height, head)
        with _opened(path, head) as image:
            image.verify()  # the checksums of PNG, at which Pillow does not look when it decodes
        if _format(head) == "PNG":
            _check_png_stream(path, head)
        with _opened(path, head) as image:
            return _levels(path, image)

    return Volume(path, (height, width), dtype, load, has_channels=False)


def _format(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    found = next((name for name, start in _BEGINNINGS.items() if head.startswith(start)), None)
    if found == "BMP" and int.from_bytes(head[14:18], "little") not in _BMP_HEADERS:
        return None
    return found


def _refuse_lossy(path: Path, head: bytes) -> None:
    """Refuse formats that change pixels, or may; of WebP's only the plain lossless one is known not to."""
    found = _format(head)
    if found is None:
        raise DamagedFileError(
            f"{path}: expected an image, got {len(head)} bytes or more of something else. Save it as PNG."
        )
    if found == "WEBP" and head[12:16] != b"VP8L":
        found = "WebP that may be lossy"
    if found not in _CLASSES:
        raise WrongContentError(
            f"{path}: expected pixels as they were saved, got {found}, which changes probabilities and "
            "labels, most of all at edges. Save it as PNG from the original array."
        )


def _check_grey(path: Path, image: Any, head: bytes) -> None:
    """Refuse what cannot be one grey image; whether colours are equal is seen when they are read."""
    what = None
    if getattr(image, "n_frames", 1) != 1:
        what = "several in one"
    elif image.mode not in _DTYPES and image.mode not in _COLOURS:
        what = f"one of mode {image.mode!r}"
    elif _format(head) == "PNG" and head[24] == 16 and head[25] != 0:
        what = "colours of 16 bits a channel, of which Pillow keeps only 8"
    if what:
        raise WrongContentError(f"{path}: expected a grey image, got {what}. {_SAVE_ONE}")


def _check_plausible(path: Path, pixels: int, head: bytes) -> None:
    """Refuse an announced size that no compression can reach; WebP has none, but is small by nature."""
    there = path.stat().st_size
    if _format(head) != "WEBP" and pixels > _DENSEST * there:
        raise DamagedFileError(
            f"{path}: expected {pixels} pixels by its own header, got {there} bytes, which cannot hold "
            "them. It is damaged, or a trap."
        )


def _check_png_stream(path: Path, head: bytes) -> None:
    """Reject a PNG whose compressed stream ends early: Pillow would fill the missing rows with zeros.

    The stream may be intact, with its own checksum, and still hold fewer rows than the header announces.
    """
    width, height = struct.unpack(">II", head[16:24])
    depth, colour, interlaced = head[24], head[25], head[28]
    bits = depth * _PNG_CHANNELS[colour]
    passes = _PNG_PASSES if interlaced else ((0, 0, 1, 1),)
    expected = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            expected += rows * (1 + -(-columns * bits // 8))  # one byte per row names its filter
    library, size = deflate_library(), 0
    unpacker = library.decompressobj()
    try:
        for part in _png_data(path.read_bytes()):
            packed, unpacked = part, _PIECE
            while (packed or unpacked == _PIECE) and size < expected:  # a full piece may not be the last
                unpacked = len(unpacker.decompress(packed, _PIECE))
                packed, size = unpacker.unconsumed_tail, size + unpacked
    except (library.error, zlib.error) as error:
        raise DamagedFileError(f"{path}: the pixels cannot be unpacked ({error}). Copy it again.") from None
    if size < expected:
        raise DamagedFileError(
            f"{path}: expected {expected} bytes of pixels ({height} rows of {width}), got {size}. The file "
            "is truncated: copy it again."
        )


def _png_data(content: bytes) -> Iterator[bytes]:
    """Yield the parts of the compressed stream of a PNG file, whose chunks have been verified."""
    place = len(_BEGINNINGS["PNG"])
    while place + 8 <= len(content):
        length, name = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8]
        if name == b"IDAT":
            yield content[place + 8 : place + 8 + length]
        place += 12 + length


@contextmanager
def _opened(path: Path, head: bytes) -> Iterator[Any]:
    """Open an image by the class of its format, which has no limit; `check_size` sets it.

    The limit of Pillow's general door holds for the whole process, so it is not touched.
    """
    name = _CLASSES[str(_format(head))]
    plugin = require(f"PIL.{name}ImagePlugin", extra="io")
    _check_webp(path, head)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with CappedFile(path) as file, getattr(plugin, f"{name}ImageFile")(file) as image:
                yield image
    except _DAMAGE as error:
        if isinstance(error, ReadError):
            raise
        raise DamagedFileError(
            f"{path}: expected an image in {_format(head)} format, got one that cannot be read ({error}). It "
            "may be truncated: copy it again."
        ) from None


def _check_webp(path: Path, head: bytes) -> None:
    """Look at the size of a WebP image, which is unpacked when it is opened: two lengths of 14 bits."""
    if _format(head) == "WEBP":
        bits = int.from_bytes(head[21:25], "little")
        check_size(path, 4 * ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1))


def _levels(path: Path, image: Any) -> Any:
    """Decode the pixels of one channel."""
    values = np.array(image)
    if image.mode in _COLOURS:
        return _grey(path, values, image.mode)
    if image.mode == "P":
        return _of_palette(values, np.reshape(image.getpalette("RGB"), (-1, 3)))
    return values


def _grey(path: Path, values: Any, mode: str) -> Any:
    """Give the one channel of which an image in colours is made."""
    colours = values[..., :3] if mode != "LA" else values[..., :1]
    if mode.endswith("A") and np.ptp(values[..., -1]):
        raise WrongContentError(f"{path}: expected a grey image, got one partly transparent. {_SAVE_ONE}")
    if (colours != colours[..., :1]).any():
        raise WrongContentError(f"{path}: expected a grey image, got one in colours. {_SAVE_ONE}")
    return np.ascontiguousarray(colours[..., 0])


def _of_palette(values: Any, palette: Any) -> Any:
    """Give the greys of a palette of greys, else the indices."""
    is_grey = (palette == palette[:, :1]).all()
    if is_grey and values.max(initial=0) < len(palette):
        return palette[:, 0].astype(np.uint8)[values]
    return values
