"""Flat images that keep every pixel as it was saved: PNG, BMP and lossless WebP, read by Pillow."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.io.formats._common import Volume, greys_of_palette, reading
from segtrust.io.formats._deflate import ZLIB, Stream

__all__ = ["check_upright", "open_image", "open_image_labels", "recognises_image"]

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
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by colour type."""
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column and row, and steps, of the seven passes of an interlaced PNG."""
_ORIENTATION = 0x0112
_SAVE_ONE = "Save one channel, as a grey image of 8 or 16 bits."


def recognises_image(path: Path, head: bytes) -> bool:
    """Recognise an image by its first bytes, including formats that are rejected with a reason."""
    return _format(head) is not None


def open_image(path: Path, key: str | None = None) -> Volume:
    """Open an image of one channel, or of three that are equal.

    A palette of greys is a grey image. An image may be transparent if it is so everywhere to the same degree.
    """
    return _open(path, is_labels=False)


def open_image_labels(path: Path, key: str | None = None, usual: Sequence[str] = ()) -> Volume:
    """Open labels as `open_image` opens a map.

    The numbers of a palette of colours, or of black and white, are labels. Greys of 1, 2 and 4 bits are not
    rescaled.
    """
    return _open(path, is_labels=True)


def _open(path: Path, *, is_labels: bool) -> Volume:
    with path.open("rb") as file:
        head = file.read(512)
    form = _format(head)
    if form is None:
        raise DamagedFileError(
            f"{path}: expected an image, got {len(head)} bytes or more of something else. Save it as PNG."
        )
    lossy = "WebP that may be lossy" if form == "WEBP" and head[12:16] != b"VP8L" else form
    if lossy not in _CLASSES:
        raise WrongContentError(
            f"{path}: expected pixels as they were saved, got {lossy}, which changes probabilities and "
            "labels, most of all at edges. Save it as PNG from the original array."
        )
    if form == "WEBP":  # decompressed when it is opened: two lengths of 14 bits
        bits = int.from_bytes(head[21:25], "little")
        check_size(path, 4 * ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1))
    is_png = form == "PNG"
    with path.open("rb") as file, _opened(path, form, file) as image:
        _check_image(path, image, is_16_bit_colour=is_png and head[24] == 16 and head[25] != 0)
        (width, height), bands = image.size, len(image.getbands())
        dtype = np.dtype(_DTYPES.get(image.mode, np.uint8))

    def load(channel: int | None) -> Any:
        check_size(path, width * height * bands)
        content = path.read_bytes()
        if is_png:
            with _opened(path, form, BytesIO(content)) as image:
                image.verify()  # the checksums, which Pillow does not compare when it decodes
            _check_png_stream(path, content)
        with _opened(path, form, BytesIO(content)) as image:
            values = np.array(image)
            if values.dtype == bool:  # Pillow stores True as 255, which other types of NumPy would show
                values = values.view(np.uint8) != 0
            check_upright(path, image)
            if image.mode in _COLOURS:
                return _grey(path, values, image.mode)
            if image.mode == "P":
                palette = np.reshape(image.getpalette("RGB"), (-1, 3))
                return _from_palette(path, values, palette, is_labels=is_labels)
        if is_labels and is_png and content[24] in (2, 4) and content[25] == 0:
            values //= 255 // (2 ** content[24] - 1)  # Pillow stretches greys to 8 bits
        return values

    return Volume(path, (height, width), dtype, load, has_channels=False)


def check_upright(path: Path, image: Any) -> None:
    """Check that an image of Pillow has no EXIF tag by which viewers turn it and most programs do not."""
    orientation = image.getexif().get(_ORIENTATION, 1)
    if orientation not in (0, 1):
        raise WrongContentError(
            f"{path}: expected an upright image, got one that is to be turned when it is shown (EXIF "
            f"orientation tag {orientation}). Turn the pixels, and save it without the tag."
        )


def _format(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    form = next((name for name, start in _BEGINNINGS.items() if head.startswith(start)), None)
    if form == "BMP" and int.from_bytes(head[14:18], "little") not in _BMP_HEADERS:
        return None
    return form


def _check_image(path: Path, image: Any, *, is_16_bit_colour: bool) -> None:
    """Reject what cannot be one grey image; whether colours are equal is seen when they are read."""
    unusable = None
    if getattr(image, "n_frames", 1) != 1:
        unusable = "several in one"
    elif image.mode not in _DTYPES and image.mode not in _COLOURS:
        unusable = f"one of mode {image.mode!r}"
    elif is_16_bit_colour:
        unusable = "colours of 16 bits per channel, of which Pillow keeps only 8"
    if unusable:
        raise WrongContentError(f"{path}: expected a grey image, got {unusable}. {_SAVE_ONE}")


@contextmanager
def _opened(path: Path, form: str, file: BinaryIO) -> Iterator[Any]:
    """Open an image by the class of its format, which has no limit of its own; `check_size` sets one."""
    name = _CLASSES[form]
    plugin = require(f"PIL.{name}ImagePlugin", extra="io")
    with reading(path, f"an image in {form} format"), warnings.catch_warnings():
        warnings.simplefilter("error")
        with getattr(plugin, f"{name}ImageFile")(file) as image:
            yield image


def _check_png_stream(path: Path, content: bytes) -> None:
    """Check that the compressed stream of a PNG has all rows: Pillow fills the missing ones with zeros.

    The stream may be intact, with its own checksum, and still hold fewer rows than the header announces.
    """
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", content[16:29])
    bits, expected = depth * _PNG_CHANNELS[colour], 0
    for left, top, step_x, step_y in _ADAM7 if interlaced else ((0, 0, 1, 1),):
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            expected += rows * (1 + -(-columns * bits // 8))  # one byte per row names its filter
    parts, place = [], len(_BEGINNINGS["PNG"])
    while place + 8 <= len(content):
        length, name = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8]
        if name == b"IDAT":
            parts.append(content[place + 8 : place + 8 + length])
        place += 12 + length
    stream = Stream(BytesIO(b"".join(parts)), path, wbits=ZLIB)
    while stream.count < expected and stream.read(expected - stream.count):
        pass
    if stream.count < expected:
        raise DamagedFileError(
            f"{path}: expected {expected} bytes of pixels ({height} rows of {width}), got {stream.count}. "
            "The file is truncated: copy it again."
        )


def _grey(path: Path, values: Any, mode: str) -> Any:
    """Return the one channel that an image in colours consists of."""
    colours = values[..., :3] if mode != "LA" else values[..., :1]
    if mode.endswith("A") and np.ptp(values[..., -1]):
        raise WrongContentError(f"{path}: expected a grey image, got one partly transparent. {_SAVE_ONE}")
    if (colours != colours[..., :1]).any():
        raise WrongContentError(
            f"{path}: expected a grey image, got one in colours. {_SAVE_ONE} Was the folder of images given "
            "by mistake?"
        )
    return np.ascontiguousarray(colours[..., 0])


def _from_palette(path: Path, values: Any, palette: Any, *, is_labels: bool) -> Any:
    """Return the greys of a palette of greys, or the numbers of a palette of colours, which are labels.

    Labels are also the numbers of black and white, and of 4 or 16 greys from black to white, as in images of
    1, 2 and 4 bits. An inverted palette of greys is rejected.
    """
    is_grey = (palette == palette[:, :1]).all()
    highest = int(values.max(initial=0))
    if is_grey and highest < len(palette):
        greys = greys_of_palette(path, values, palette[:, 0].astype(np.uint8))
        counts = (highest + 1, len(palette)) if is_labels else ()
        steps = (count for count in counts if count in (2, 4, 16))
        is_scale = any(np.array_equal(palette[:n, 0], np.arange(n) * 255 // (n - 1)) for n in steps)
        return values if is_scale else greys
    if not is_labels:
        raise WrongContentError(f"{path}: expected a grey image, got a palette of colours. {_SAVE_ONE}")
    return values
