"""Pictures for people and networks: colours or greys."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, SegtrustError, UnsafeFileError, WrongContentError
from segtrust.io.capped import CappedFile

__all__ = ["PICTURES", "read_picture", "read_picture_values"]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Endings of pictures."""
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
"""By Pillow's names: what it has beside them is rarely used, and less looked at."""
_GREY = ("1", "L", "LA")
_DAMAGE = (OSError, ValueError, SyntaxError, EOFError, TypeError, KeyError, IndexError, struct.error)
"""What Pillow raises when a file is not what it seems."""
_DEEP = 257
"""Levels of 16 bits in one of 8."""
_TWELVE_BITS = 1 << 12


def read_picture(path: Path) -> Any:
    """Read a picture as 8-bit colours, (3, H, W), or grey, (1, H, W); JPEG too, and what is seen through.

    Greys of 16 bits are brought to 8: 65535 is white, whatever the brightest pixel is. Pictures of up to 12
    bits, which would come out black, are refused.

    Raises
    ------
    DamagedFileError
        If it cannot be read to its end.
    WrongContentError
        If its pixels are floats, or whole numbers of more than 16 bits.
    """
    values = read_picture_values(path)
    if values.ndim == 2:
        values = _of_8_bits(values, path)[..., None]
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def read_picture_values(path: Path) -> Any:
    """Read a picture as it is: 8-bit colours, (H, W, 3), or grey, (H, W, 1), and deeper greys as (H, W).

    Raises
    ------
    DamagedFileError
        If it cannot be read to its end.
    UnsafeFileError
        If it is larger than an array may be, or than Pillow takes for a picture.
    """
    image_of = require("PIL.Image", extra="io")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notes beside the pixels
            warnings.simplefilter("error", image_of.DecompressionBombWarning)
            with CappedFile(path) as file, image_of.open(file, formats=_FORMATS) as image:
                check_size(path, 4 * image.width * image.height)
                return _values(image)
    except SegtrustError:
        raise
    except (image_of.DecompressionBombWarning, image_of.DecompressionBombError) as error:
        raise UnsafeFileError(
            f"{path}: expected a picture that is no trap, got one that is very large ({error}). If that is "
            "right, save it smaller, or as a volume: NIfTI, Zarr."
        ) from None
    except _DAMAGE as error:
        raise DamagedFileError(
            f"{path}: expected a picture, got one that cannot be read ({error}). Fetch it again."
        ) from None


def _values(image: Any) -> Any:
    if image.mode == "F" or image.mode.startswith("I"):
        return np.asarray(image)
    if image.mode in _GREY:
        return np.asarray(image.convert("L"))[..., None]
    return np.asarray(image.convert("RGB"))


def _of_8_bits(levels: Any, path: Path) -> Any:
    if levels.dtype.kind == "f" or levels.min(initial=0) < 0 or levels.max(initial=0) > 0xFFFF:
        raise WrongContentError(
            f"{path}: expected a picture of 8 or 16 bits, got {levels.dtype} from {levels.min():g} to "
            f"{levels.max():g}. Save it with 8 bits."
        )
    if 0xFF < levels.max(initial=0) < _TWELVE_BITS:
        raise WrongContentError(
            f"{path}: expected a picture that uses its 16 bits, got one up to {levels.max()}, of 12 bits "
            "or fewer, which would be all but black. Save all pictures with 8 bits, stretched alike."
        )
    return np.rint(levels / _DEEP).astype(np.uint8)
