"""Pictures as PNG inside of a page, without a package for it: greys, colours, or colours of a palette."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

__all__ = ["png_bytes", "png_url"]

_GREY, _COLOURS, _INDEXED = 0, 2, 3
_BEST = 9


def png_bytes(pixels: Any, palette: Any = None) -> bytes:
    """Give the file of a picture.

    Parameters
    ----------
    pixels
        uint8, (H, W) of greys or of places in the palette, or (H, W, 3) of colours.
    palette
        uint8, (up to 256, 3), or ``None``.

    Examples
    --------
    >>> png_bytes(np.zeros((2, 3), np.uint8))[1:4]
    b'PNG'
    """
    height, width = pixels.shape[:2]
    kind = _COLOURS if pixels.ndim == 3 else _GREY if palette is None else _INDEXED
    lines = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    unfiltered = np.zeros((height, 1), np.uint8)  # what each line of a PNG begins with
    packed = zlib.compress(np.hstack([unfiltered, lines]).tobytes(), _BEST)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if kind == _INDEXED:
        chunks.append((b"PLTE", np.asarray(palette, np.uint8).tobytes()))
    chunks += [(b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_url(pixels: Any, palette: Any = None) -> str:
    """Give a picture as an address that holds it."""
    return "data:image/png;base64," + b64encode(png_bytes(pixels, palette)).decode("ascii")
