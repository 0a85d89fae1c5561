"""The pixels of a case, a block at a time: codes or floats, their truth, and whether they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import to_device

from segtrust.errors import EmptyArrayError, ParameterError, ProbabilityTypeError
from segtrust.kernels.arrays import detached
from segtrust.kernels.device import DeviceMap, is_device_array
from segtrust.kernels.view import as_binary, explain_bad_values, view_map
from segtrust.maps import Case, Prediction

__all__ = [
    "cases_in",
    "check_band",
    "check_block",
    "codes_of",
    "host_map",
    "host_mask",
    "labelled_blocks",
    "mask_of",
    "near_boundary",
    "on_host",
]

_BLOCK = 1 << 16
"""Pixels that are held as doubles at a time."""


def on_host(case: Case) -> Case:
    """Give the same case with all its arrays in NumPy."""
    if not isinstance(case, Case):
        raise ParameterError(f"cases: expected Case(prediction, truth), got {type(case).__name__}.")
    prediction = case.prediction
    p, mask = host_map(prediction.probabilities, prediction.source), host_mask(prediction.mask)
    return Case(replace(prediction, probabilities=p, mask=mask), host_mask(case.truth))


def host_mask(mask: Any) -> Any:
    """Give a mask as a NumPy array, or ``None`` as it is."""
    on_device = mask is not None and is_device_array(mask)
    return to_device(detached(mask), "cpu") if on_device else mask


def host_map(values: Any, source: str = "p") -> Any:
    """Give a map as a NumPy array; refuse masks, which have no probabilities to scale."""
    if is_device_array(values):
        values = DeviceMap(values, None, 0.5, source).to_host()[0]
    values = np.asarray(values)
    if values.dtype == bool or values.dtype.kind not in "fu":
        raise ProbabilityTypeError(
            f"{source}: expected probabilities, float, uint8 or uint16, got {values.dtype}."
        )
    if values.size == 0:
        raise EmptyArrayError(f"{source}: expected at least one pixel, got an array of shape {values.shape}.")
    return values


def cases_in(cases: Any) -> Iterable[Case]:
    """Refuse what is no collection of cases, and what is no case with a truth in it."""
    if not isinstance(cases, Iterable) or isinstance(cases, str | Case):
        raise ParameterError(f"cases: expected a list of Case(prediction, truth), got {cases!r}.")
    for place, case in enumerate(cases):
        if not isinstance(case, Case):
            raise ParameterError(f"cases: expected Case(prediction, truth), got {case!r} at place {place}.")
        yield case


def codes_of(dtype: Any) -> Any:
    """Give the probability of each code of an integer type; ``None`` for floats."""
    if dtype.kind == "f":
        return None
    if dtype.itemsize > 2:
        raise ProbabilityTypeError(
            f"p: expected floats, uint8 or uint16, got {dtype}. Divide by the scale first."
        )
    levels = np.iinfo(dtype).max
    return np.arange(levels + 1) / levels


def mask_of(prediction: Prediction) -> Any:
    """Give the mask of a prediction: the given one, or ``p >= threshold``; bool."""
    if prediction.mask is not None:
        return as_binary(np.asarray(host_mask(prediction.mask)), f"{prediction.source}: mask").astype(bool)
    p = host_map(prediction.probabilities, prediction.source)
    codes = codes_of(p.dtype)
    return p >= prediction.threshold if codes is None else (codes >= prediction.threshold)[p]


def is_number(value: Any) -> bool:
    """Whether a value is a number; a truth value is none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_band(band_px: float | None) -> None:
    """Refuse a distance in which no pixel lies."""
    if band_px is not None and not (is_number(band_px) and 1.0 <= band_px < float("inf")):
        raise ParameterError(f"band_px: expected at least 1 pixel, or None for all pixels, got {band_px!r}.")


def near_boundary(mask: Any, band_px: float) -> Any:
    """Tell which pixels lie at most this far from the nearest pixel on the other side of the mask.

    Distances are between centres of pixels, in pixels, whatever the spacing; no pixel is near the boundary
    of a mask that is empty or full.

    Examples
    --------
    >>> near_boundary(np.array([0, 0, 0, 1, 1, 1], bool), 2.0).astype(int).tolist()
    [0, 1, 1, 1, 1, 0]
    """
    from scipy.ndimage import distance_transform_edt

    near = np.zeros(mask.shape, bool)
    if mask.any() and not mask.all():
        box = _box_around(mask, int(np.ceil(band_px)))
        part = mask[box]
        for side in (part, ~part):
            near[box] |= side & (distance_transform_edt(side) <= band_px)
    return near


def _box_around(mask: Any, margin: int) -> tuple[slice, ...]:
    """Give the smallest box with all of the mask and a margin, so that empty space is not measured."""
    box = []
    for axis in range(mask.ndim):
        inside = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))
        box.append(slice(max(0, int(inside[0]) - margin), int(inside[-1]) + margin + 1))
    return tuple(box)


def labelled_blocks(case: Case, band_px: float | None) -> Iterator[tuple[Any, Any]]:
    """Go through the pixels that count: codes or doubles, and 1 where the truth is foreground.

    The case is `on_host`. Blocks are gone with the next one.
    """
    prediction, p = case.prediction, case.prediction.probabilities
    truth = as_binary(np.asarray(case.truth), f"{prediction.source}: truth")
    arrays = [p, truth] if band_px is None else [p, truth, near_boundary(mask_of(prediction), band_px)]
    kinds = [np.float64 if p.dtype.kind == "f" else np.intp, np.intp, bool]
    count = len(arrays)
    with np.nditer(
        arrays,
        ["external_loop", "buffered"],
        [["readonly"]] * count,
        kinds[:count],
        "K",
        "same_kind",
        buffersize=_BLOCK,
    ) as blocks:
        for values, labels, *chosen in blocks:
            checked = check_block(values, p, prediction.source) if p.dtype.kind == "f" else values
            yield (checked[chosen[0]], labels[chosen[0]]) if chosen else (checked, labels)


def check_block(block: Any, p: Any, source: str) -> Any:
    """Give a block of floats, or name the first value of the whole map that is no probability."""
    if not (block.min() >= 0.0 and block.max() <= 1.0):  # NaN fails both
        explain_bad_values(view_map(p, source=source))
    return block
