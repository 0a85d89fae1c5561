"""The pixels of a map for estimators that see more than sums: whole, or tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segtrust._arguments import check_whole
from segtrust.kernels import (
    as_array,
    as_binary,
    check_where,
    code_probabilities,
    fill_unselected,
    mask_name,
    on_host,
    read_tile,
    threshold_map,
    tiles_of,
)
from segtrust.maps import Prediction

Slices = tuple[slice, ...]
_LARGEST_TILE = 1 << 22
"""Pixels up to which a map in memory is one tile."""


@dataclass(frozen=True, eq=False)
class PixelTile:
    """Some pixels of a map, or all of them, as NumPy arrays that cannot be written to.

    Attributes
    ----------
    slices
        Location of these arrays in the map, with the margin.
    core
        Location in these arrays of the pixels that belong to this tile, without the margin: each pixel of the
        map is in the core of exactly one tile.
    p
        Foreground probabilities, float32 or float64; 0 where a pixel does not count.
    mask
        The scored mask, bool: the delivered one, or ``p >= threshold``; False where a pixel does not count.
    where
        Whether a pixel counts, bool; all do unless ``where`` was passed.
    image
        The image that was segmented, or ``None`` if it is not known.
    """

    slices: Slices
    core: Slices
    p: Any
    mask: Any
    where: Any
    image: Any


@dataclass(frozen=True, eq=False)
class Pixels:
    """Probabilities, mask, spacing and image of one map; read when they are needed.

    Estimators that declare ``Needs(pixels=True)`` receive it as `Summary.pixels`. Arrays on a device are
    copied to the host: gradients do not pass through such an estimator.

    Attributes
    ----------
    prediction
        The map with its mask or threshold, spacing and image.
    selection
        Boolean array that selects the pixels that count; ``None`` for all.

    Examples
    --------
    >>> pixels = Pixels(Prediction(np.array([[0.9, 0.2], [0.6, 0.1]]), spacing_mm=(0.5, 0.5)))
    >>> pixels.whole.mask.tolist(), pixels.spacing_mm
    ([[True, False], [True, False]], (0.5, 0.5))
    """

    prediction: Prediction
    selection: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return self.prediction.shape

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Distance between neighbouring pixels along each axis in millimetres; ``None`` if unknown."""
        return self.prediction.spacing_mm

    @property
    def has_image(self) -> bool:
        """Whether the image that was segmented is known."""
        return self.prediction.image is not None

    @cached_property
    def whole(self) -> PixelTile:
        """All pixels; a map in chunks is read into memory."""
        everything = tuple(slice(0, length) for length in self.shape)
        return self._read(everything, everything)

    def tiles(self, *, margin: int = 0) -> Iterator[PixelTile]:
        """Yield the map tile by tile, so that a map larger than memory can be scored.

        Parameters
        ----------
        margin
            Number of pixels around each tile that are read too, as far as the map reaches: what an estimator
            needs that looks at the neighbours of a pixel.
        """
        check_whole(margin, "margin")
        p = self._arrays[0]
        if isinstance(p, np.ndarray) and p.size <= _LARGEST_TILE:
            yield self.whole
            return
        for tile in tiles_of(p):
            starts = [max(0, part.start - margin) for part in tile]
            stops = [min(length, part.stop + margin) for part, length in zip(tile, self.shape, strict=True)]
            core = [
                slice(part.start - start, part.stop - start) for part, start in zip(tile, starts, strict=True)
            ]
            yield self._read(tuple(map(slice, starts, stops)), tuple(core))

    @cached_property
    def _arrays(self) -> tuple[Any, Any, Any, Any]:
        """Map, mask, selection and image on the host, not read yet if they are in chunks."""
        name = self.prediction.source
        p = on_host(as_array(self.prediction.probabilities, name))
        mask = (
            None if self.prediction.mask is None else on_host(as_array(self.prediction.mask, mask_name(name)))
        )
        selection = None if self.selection is None else check_where(self.selection, p)
        return p, mask, selection, on_host(self.prediction.image)

    def _read(self, slices: Slices, core: Slices) -> PixelTile:
        stored, mask, selection, image = (read_tile(values, slices) for values in self._arrays)
        name = self.prediction.source
        where: Any = np.broadcast_to(np.True_, stored.shape)
        if selection is not None:
            where = as_binary(selection, "where").view(bool)
            stored = fill_unselected(stored, where)
            mask = None if mask is None else fill_unselected(mask, where)
        if mask is None:
            mask = threshold_map(stored, threshold=self.prediction.threshold, source=name) & where
        else:
            mask = as_binary(mask, mask_name(name)).view(bool)
        arrays = [_as_floats(stored), mask, where, image]
        p, mask, where, image = (None if values is None else _read_only(values) for values in arrays)
        return PixelTile(slices, core, p, mask, where, image)


def _as_floats(stored: Any) -> Any:
    """Return single and double floats as they are, and other values as probabilities in doubles."""
    codes = code_probabilities(stored.dtype)
    if codes is not None:
        return codes[stored.view(np.uint8) if stored.dtype == bool else stored]
    is_plain = stored.dtype.isnative and stored.dtype.itemsize in (4, 8)
    return stored if is_plain else stored.astype(np.float64)


def _read_only(values: Any) -> Any:
    view = values.view()
    view.flags.writeable = False
    return view
