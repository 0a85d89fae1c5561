"""Pictures for people and networks: read, placed on the grid of a map, and prepared for the screen."""

from __future__ import annotations

import io
import math
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import (
    DamagedFileError,
    PairingError,
    ReadError,
    SegtrustError,
    UnsafeFileError,
    WrongContentError,
)
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats.image import check_upright
from segtrust.io.grid import (
    Grid,
    Resample,
    check_same_grid,
    is_same_grid,
    resample_in_space,
    resize_linear,
)
from segtrust.io.volume import Volume, open_volume

__all__ = [
    "PICTURES",
    "Window",
    "is_jpeg",
    "middle_slice",
    "read_case_image",
    "read_grey_jpeg",
    "read_picture",
    "read_picture_values",
    "slice_uncertainty",
    "stretch",
    "window_of",
]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Endings of pictures."""
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
"""Pillow's names of the formats that are read; its other readers are rarely used and less tested."""
_ERRORS = (OSError, ValueError, SyntaxError, EOFError, TypeError, KeyError, IndexError, struct.error)
"""What Pillow raises over a corrupt file."""
_JPEG = b"\xff\xd8\xff"
_MAX_COLOUR = 16
"""Difference between the colours of a grey JPEG: chroma is compressed, too."""


@contextmanager
def _open_picture(path: Path, formats: tuple[str, ...] = _FORMATS) -> Iterator[Any]:
    """Open a picture by Pillow; a corrupt file is a `DamagedFileError`, a bomb an `UnsafeFileError`."""
    pillow = require("PIL.Image", extra="io")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about metadata
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            check_size(path, path.stat().st_size)
            # In memory: a file would make room for whatever length a damaged header announces.
            with pillow.open(io.BytesIO(path.read_bytes()), formats=formats) as image:
                check_size(path, 4 * image.width * image.height)
                yield image
    except SegtrustError:
        raise
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError) as error:
        raise UnsafeFileError(
            f"{path}: expected a picture of a reasonable size, got a possible decompression bomb ({error}). "
            "If the size is right, save it smaller, or as a volume: NIfTI, Zarr."
        ) from None
    except _ERRORS as error:
        raise DamagedFileError(
            f"{path}: expected a picture, got one that cannot be read ({error}). Copy it again."
        ) from None


def read_picture(path: Path) -> Any:
    """Read a picture as 8-bit colours, (3, H, W), or grey, (1, H, W); also JPEG and transparent pictures.

    16-bit greys are converted to 8 bits: 65535 is white, whatever the brightest pixel is. Pictures of up to
    12 bits, which would come out black, are rejected.

    Raises
    ------
    DamagedFileError
        If the file is corrupt.
    WrongContentError
        If its pixels are floats, or whole numbers of more than 16 bits.
    """
    values = read_picture_values(path)
    if values.ndim == 2:
        lowest, highest = values.min(initial=0), values.max(initial=0)
        if values.dtype.kind == "f" or lowest < 0 or highest > 0xFFFF:
            raise WrongContentError(
                f"{path}: expected a picture of 8 or 16 bits, got {values.dtype} from {lowest:g} to "
                f"{highest:g}. Save it with 8 bits."
            )
        if 0xFF < highest < 1 << 12:
            raise WrongContentError(
                f"{path}: expected a picture that uses its 16 bits, got one up to {highest}, of 12 bits "
                "or fewer, which would be nearly black. Save all pictures with 8 bits, stretched alike."
            )
        values = np.rint(values / 257).astype(np.uint8)[..., None]
    return np.ascontiguousarray(values.transpose(2, 0, 1))


def read_picture_values(path: Path) -> Any:
    """Read a picture as stored: 8-bit colours, (H, W, 3), or grey, (H, W, 1), and deeper greys as (H, W).

    Raises
    ------
    DamagedFileError
        If the file is corrupt.
    UnsafeFileError
        If it is larger than an array may be, or than Pillow accepts.
    WrongContentError
        If it is to be turned when it is shown: it would not lie on the mask of its case.
    """
    with _open_picture(path) as image:
        check_upright(path, image)
        if image.mode == "F" or image.mode.startswith("I"):
            return np.asarray(image)
        if image.mode in ("1", "L", "LA"):
            return np.asarray(image.convert("L"))[..., None]
        return np.asarray(image.convert("RGB"))


def is_jpeg(path: Path) -> bool:
    """Return whether a file begins like a JPEG."""
    try:
        with path.open("rb") as file:
            return file.read(len(_JPEG)) == _JPEG
    except OSError:  # whoever reads the file reports it
        return False


def read_grey_jpeg(path: Path) -> Any:
    """Read a JPEG as grey levels, (H, W): a grey picture, or one whose colours are equal."""
    with _open_picture(path, ("JPEG",)) as image:
        check_upright(path, image)
        colours = np.asarray(image.convert("RGB"))
        if np.ptp(colours, axis=2).max(initial=0) > _MAX_COLOUR:
            raise WrongContentError(
                f"{path}: expected a grey picture, got one in colours. Was the folder of images given as "
                "ground truth? Else save it as grey."
            )
        return np.asarray(image.convert("L"))


def read_case_image(
    place: ArrayRef,
    shape: tuple[int, ...],
    grid: Grid | None = None,
    *,
    resample: Resample | bool | None = None,
) -> Any:
    """Read the image of a map on the map's own grid, to be displayed.

    Parameters
    ----------
    place
        Location of the image.
    shape, grid
        Shape and grid of the map. If both files say where in the body they lie, an image whose axes only have
        another order or direction is turned like the map; else shapes decide.
    resample
        Whether an image on another grid, or a picture of another size, is brought to that of the map.

    Returns
    -------
    array
        8-bit colours, (H, W, 1 or 3), or values of the map's shape: volumes, and pictures of more bits.

    Raises
    ------
    SegtrustError
        If it cannot be read, or lies on another grid. No result depends on it.
    """
    if not place.path.exists():
        raise ReadError(f"{place}: expected the image of the case, got no such file.")
    try:
        if len(shape) == 2 and place.path.suffix.lower() in PICTURES:
            values = read_picture_values(place.path)
            if resample and values.shape[:2] != shape:
                is_bytes = values.dtype == np.uint8
                values = resize_linear(values.astype(np.float32), shape)
                values = np.rint(values).astype(np.uint8) if is_bytes else values
        else:
            values = _placed(open_volume(place), grid, bool(resample))
            while values.ndim > len(shape) and values.shape[0] == 1:
                values = values[0]
    except OSError as error:
        raise ReadError(f"{place}: expected the image of the case, got: {error.strerror or error}.") from None
    has_colours = values.dtype == np.uint8 and values.shape in ((*shape, 1), (*shape, 3))
    if values.shape == shape or has_colours:
        return values
    raise PairingError(
        f"{place}: expected an image of the map's shape, {' × '.join(map(str, shape))}, got "
        f"{' × '.join(map(str, values.shape))}. Use the image that the map was computed from."
    )


def _placed(image: Volume, grid: Grid | None, resample: bool) -> Any:
    """Read an image with the axes of a map, if both lie in the body; reject one that lies elsewhere."""
    if grid is None or image.grid is None or not (grid.is_oriented and image.grid.is_oriented):
        return np.asarray(image.read())
    turning = image.grid.turning_to(grid)
    turned = image.grid.turned(turning)
    is_single = math.prod(image.shape) == math.prod(image.shape[-3:])
    if resample and is_single and not is_same_grid(grid, turned):
        check_size(image.path, image.bytes)
        values = np.asarray(image.read())
        values = values.reshape(values.shape[-3:])
        return resample_in_space(values, image.grid, grid, linear=True, fill=float(values.min()))
    remedy = "--resample truth brings the image to the map" if is_single else ""
    check_same_grid(grid, turned, ("the map", str(image.path)), remedy)
    return np.ascontiguousarray(turning.applied(np.asarray(image.read())))


# What is shown first, and between which values

_WINDOW_SAMPLE = 1 << 20
_WINDOW_QUANTILES = (0.005, 0.995)


@dataclass(frozen=True)
class Window:
    """Values of an image that are black and white, and the range within which these can be."""

    low: float
    high: float
    least: float
    most: float


def window_of(image: Any, *, has_colours: bool = False) -> Window | None:
    """Return the usual window of an image: from nearly the darkest to nearly the brightest of its values.

    Parameters
    ----------
    image
        Values of any shape; those that are not finite do not count.
    has_colours
        Whether its last axis contains colours. One window is used for all of them, and its black stays
        black: colours are only made brighter, which keeps their hue.

    Returns
    -------
    Window or None
        ``None`` if there is no finite value.

    Examples
    --------
    >>> window_of(np.array([[0, 2, 4], [1, 3, 5]]), has_colours=True).low
    0.0
    """
    sample = image.reshape(-1)[:: max(1, image.size // _WINDOW_SAMPLE)].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if not sample.size:
        return None
    low, high = np.quantile(sample, _WINDOW_QUANTILES)
    least, most = sample.min(), sample.max()
    if has_colours:
        low = least = min(0.0, least)
    if high <= low:
        low, high = least, most
    return Window(float(low), float(high), float(least), float(most))


def stretch(values: Any, low: float, high: float) -> Any:
    """Return values as 0 (black) to 255 (white), rounded; NaN is black.

    Examples
    --------
    >>> stretch(np.array([-5.0, 10.0, 20.0, np.nan]), 0.0, 20.0).tolist()
    [0.0, 128.0, 255.0, 0.0]
    """
    shares = (np.nan_to_num(values, nan=low) - low) / (high - low if high > low else 1.0)
    return np.rint(255.0 * np.clip(shares, 0.0, 1.0))


def middle_slice(is_filled: Any) -> int:
    """Return the middle one of the slices in which mask or ground truth have a pixel, or of all slices.

    Examples
    --------
    >>> middle_slice([False, False, False, True, True, True]), middle_slice([False] * 6)
    (4, 3)
    """
    filled = np.flatnonzero(is_filled)
    return int(filled[filled.size // 2]) if filled.size else len(is_filled) // 2


def slice_uncertainty(p: Any) -> float:
    """Return the summed uncertainty of the pixels of a slice: 0 if all probabilities are 0 or 1.

    Examples
    --------
    >>> slice_uncertainty(np.array([[0.0, 0.5], [0.75, 1.0]]))
    0.75
    """
    return float(np.minimum(p, 1.0 - p).sum())
