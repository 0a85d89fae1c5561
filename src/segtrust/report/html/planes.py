"""A case as flat pictures: itself, or two slices of a volume; small enough for a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segtrust.confidence import mask_and_truth
from segtrust.engine import files_of_row, read_options_of, reopen_case
from segtrust.errors import SegtrustError, WrongContentError
from segtrust.io import (
    ArrayRef,
    LoadedCase,
    Orientation,
    middle_slice,
    orientation_of,
    read_case_image,
    slice_uncertainty,
    stretch,
    window_of,
)
from segtrust.maps import Case

__all__ = ["Plane", "Planes", "planes_of"]

_SIDE = 256
"""Pixels of a picture along its longer side at most."""
_MOST_PIXELS = 2**28
"""Of a map that is opened for a picture; a larger one takes too long, and too much memory."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A picture of a case.

    Attributes
    ----------
    title
        Which slice it is; empty for a picture.
    probabilities, mask, truth
        (H, W); the truth may be ``None``.
    image
        uint8, (H, W) or (H, W, 3), or ``None`` where none is known.
    aspect
        Height of a pixel for its width.
    letters
        The sides of the body that are left, right, on top and at the bottom; empty where nothing tells.
    """

    title: str
    probabilities: Any
    mask: Any
    truth: Any
    image: Any
    aspect: float = 1.0
    letters: str = ""


@dataclass(frozen=True)
class Planes:
    """The pictures of a case, and why its image is not among them; empty where it is, or there is none."""

    planes: list[Plane]
    note: str = ""


def planes_of(row: Mapping[str, Any], about: Mapping[str, Any]) -> Planes:
    """Open a case again and give its pictures: of a volume the middle and the most uncertain slice.

    Raises
    ------
    SegtrustError
        If it cannot be opened, or is too large to be.
    """
    pixels = _pixels(row)
    if pixels > _MOST_PIXELS:
        raise WrongContentError(f"{row['case']}: {pixels:,} pixels are too many for a picture in a report.")
    if about.get("with_truth") is False:  # the run did not look at truths, so its report does not
        row = {**row, "truth_file": ""}
    loaded = reopen_case(dict(row), about)
    p = np.asarray(loaded.prediction.probabilities)
    if p.ndim not in (2, 3):
        raise WrongContentError(f"{row['case']}: a map of {p.ndim} dimensions cannot be shown as a picture.")
    unknown = loaded.truth is None
    mask, truth = mask_and_truth(
        Case(loaded.prediction, np.zeros(p.shape, bool) if unknown else loaded.truth)
    )
    image, note = _image(files_of_row(dict(row), about).image, loaded, bool(read_options_of(about).resample))
    whole = Plane("", _shares(p), mask, None if unknown else truth, image)
    orientation, spacing_mm = orientation_of(loaded.grid), loaded.prediction.spacing_mm
    flat = [whole] if p.ndim == 2 else _slices(whole)
    return Planes([_small(_turned(each, orientation, spacing_mm)) for each in flat], note)


def _image(place: ArrayRef | None, loaded: LoadedCase, resample: bool) -> tuple[Any, str]:
    """Give the image of a case, or why there is none that fits the map."""
    if place is None:
        return None, ""
    try:
        return read_case_image(place, loaded.prediction.shape, loaded.grid, resample=resample), ""
    except SegtrustError as error:
        return None, f"The image is not shown. {error}"


def _turned(plane: Plane, orientation: Orientation, spacing_mm: tuple[float, ...] | None) -> Plane:
    """Turn a picture as the desk shows it."""
    layers = ("probabilities", "mask", "truth", "image")
    known = {name: getattr(plane, name) for name in layers if getattr(plane, name) is not None}
    turned = {name: orientation.turned(values) for name, values in known.items()}
    return replace(plane, **turned, aspect=orientation.aspect(spacing_mm), letters=orientation.letters)


def _pixels(row: Mapping[str, Any]) -> int:
    sides = str(row.get("shape") or "").split("×")
    return math.prod(int(side) for side in sides) if all(side.isdigit() for side in sides) else 0


def _shares(p: Any) -> Any:
    """Give probabilities in [0, 1], whatever numbers hold them."""
    return p / np.float32(np.iinfo(p.dtype).max) if p.dtype.kind == "u" else p.astype(np.float32)


def _slices(whole: Plane) -> list[Plane]:
    """Give the slice in the middle of what is there, and the one with most doubt, once if they are one."""
    p = whole.probabilities
    there = whole.mask if whole.truth is None else whole.mask | whole.truth
    middle = middle_slice(there.any((1, 2)))
    doubt = int(np.argmax([slice_uncertainty(each) for each in p]))
    if middle == doubt:
        return [_slice(whole, middle, f"slice {middle + 1} of {p.shape[0]}, middle and most uncertain")]
    return [
        _slice(whole, middle, f"slice {middle + 1} of {p.shape[0]}, middle"),
        _slice(whole, doubt, f"slice {doubt + 1} of {p.shape[0]}, most uncertain"),
    ]


def _slice(whole: Plane, at: int, title: str) -> Plane:
    pick = [None if each is None else each[at] for each in (whole.truth, whole.image)]
    return Plane(title, whole.probabilities[at], whole.mask[at], pick[0], pick[1])


def _small(plane: Plane) -> Plane:
    """Shrink a picture to a size for a page; masks hold a pixel where half of what it stands for is in."""
    step = -(-max(plane.mask.shape) // _SIDE)
    mask, truth = (None if each is None else _shrunk(each, step) >= 0.5 for each in (plane.mask, plane.truth))
    image = None if plane.image is None else _shown(_shrunk(plane.image, step))
    p = _shrunk(plane.probabilities, step)
    return Plane(plane.title, p, mask, truth, image, plane.aspect, plane.letters)


def _shrunk(values: Any, step: int) -> Any:
    """Give the means of squares of pixels; those at the far edges are filled up with their last pixels."""
    values = np.asarray(values, np.float32)
    room = [(0, -side % step) for side in values.shape[:2]] + [(0, 0)] * (values.ndim - 2)
    padded = np.pad(values, room, mode="edge")
    rows, columns = (side // step for side in padded.shape[:2])
    return padded.reshape(rows, step, columns, step, *values.shape[2:]).mean((1, 3))


def _shown(image: Any) -> Any:
    """Give 8-bit greys or colours, from nearly the darkest to nearly the brightest."""
    window = window_of(image, has_colours=image.ndim == 3 and image.shape[-1] > 1)
    levels = np.zeros_like(image) if window is None else stretch(image, window.low, window.high)
    found = levels.astype(np.uint8)
    return found[..., 0] if found.ndim == 3 and found.shape[-1] == 1 else found
