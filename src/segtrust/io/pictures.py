"""Pictures for people and networks, as colours or greys of 8 bits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.optional import require

__all__ = ["PICTURES", "read_picture"]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Endings of pictures."""
_GREY = ("1", "L", "LA")
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
    image_of = require("PIL.Image", extra="io")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notes beside the pixels
            warnings.simplefilter("error", image_of.DecompressionBombWarning)
            with image_of.open(path) as image:
                values = _pixels(image, path)
    except WrongContentError:
        raise
    except (
        OSError,
        ValueError,
        SyntaxError,
        EOFError,
        image_of.DecompressionBombWarning,
        image_of.DecompressionBombError,
    ) as error:
        raise DamagedFileError(
            f"{path}: expected a picture, got one that cannot be read ({error}). Fetch it again."
        ) from None
    return values[None] if values.ndim == 2 else np.ascontiguousarray(values.transpose(2, 0, 1))


def _pixels(image: Any, path: Path) -> Any:
    """Give greys (H, W) or colours (H, W, 3) of 8 bits."""
    if image.mode == "F" or image.mode.startswith("I"):
        levels = np.asarray(image)
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
    return np.asarray(image.convert("L" if image.mode in _GREY else "RGB"))
