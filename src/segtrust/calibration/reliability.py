"""How reliable the probabilities of maps are: whether 70 % of the pixels with probability 0.7 are foreground.

Also how calibration reads the pixels of a case, a buffer at a time: codes or floats, their ground truth, and
their logits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace, device as device_of, to_device

from segtrust._arguments import describe, is_number
from segtrust._display import Displayed
from segtrust._optional import require
from segtrust._types import FloatArray, IntArray
from segtrust.errors import ParameterError, ProbabilityTypeError, TooFewCasesError
from segtrust.kernels import (
    FULL_SCALE,
    DeviceMap,
    as_binary,
    check_map_type,
    check_shapes,
    code_probabilities,
    detached,
    dtype_name,
    host_number,
    is_device_array,
    mask_name,
    raise_first_bad_value,
    threshold_map,
    view_map,
    wide_type,
)
from segtrust.maps import Case, Prediction

if TYPE_CHECKING:
    from pandas import DataFrame

BUFFER_PIXELS = 1 << 16
"""Number of pixels that are held as doubles at a time."""
_LARGEST_LOGIT = 55.0 * math.log(2.0)
"""Largest logit that can be distinguished: that of 1 - 2^-55."""


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(Displayed):
    """Pixels in bins by their probability, compared with the ground truth.

    Attributes
    ----------
    edges
        Edges of the bins; a bin includes its lower edge, and the last one also its upper edge.
    counts
        Number of pixels in each bin.
    mean_probability, frequency
        Mean probability of the pixels in each bin, and the share of them that is foreground; NaN in empty
        bins.
    nll
        Mean of -log P(truth), in nats; 0 and 1 count as ε and 1 - ε, or a single pixel could make it
        infinite.
    brier
        Mean squared difference between probability and truth.
    """

    edges: FloatArray
    counts: IntArray
    mean_probability: FloatArray
    frequency: FloatArray
    nll: float
    brier: float

    @property
    def n(self) -> int:
        """Number of pixels in all bins."""
        return int(self.counts.sum())

    @cached_property
    def gaps(self) -> Any:
        """Mean probability minus frequency, above 0 where the model is overconfident; 0 in empty bins."""
        return np.where(self.counts > 0, self.mean_probability - self.frequency, 0.0)

    @cached_property
    def ece(self) -> float:
        """Expected calibration error: mean absolute gap, with each bin weighted by its number of pixels."""
        return float(np.abs(self.gaps) @ self.counts / self.n)

    @cached_property
    def largest_gap(self) -> float:
        """Largest absolute gap of all bins, however few pixels they have."""
        return float(np.abs(self.gaps).max())

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table, one row per bin: edges, number of pixels, mean probability, frequency."""
        columns = {
            "lower_edge": self.edges[:-1],
            "upper_edge": self.edges[1:],
            "pixels": self.counts,
            "mean_probability": self.mean_probability,
            "frequency": self.frequency,
            "gap": self.gaps,
        }
        return require("pandas", extra="tables").DataFrame(columns)

    def _shown(self) -> dict[str, Any]:
        return {
            "pixels": self.n,
            "bins": int(self.counts.size),
            "ece": self.ece,
            "largest_gap": self.largest_gap,
            "nll": self.nll,
            "brier": self.brier,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON; ``None`` for empty bins."""

        def or_none(values: Any) -> list[float | None]:
            return [None if math.isnan(value) else value for value in values.tolist()]

        return {
            "edges": self.edges.tolist(),
            "counts": self.counts.tolist(),
            "mean_probability": or_none(self.mean_probability),
            "frequency": or_none(self.frequency),
            "nll": self.nll,
            "brier": self.brier,
            "ece": self.ece,
        }

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the reliability diagram with Matplotlib and return its axes."""
        if ax is None:
            ax = require("matplotlib.pyplot", extra="plots").subplots()[1]
            ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
            ax.set(xlabel="probability", ylabel="share of foreground", aspect="equal")
        filled = self.counts > 0
        ax.plot(self.mean_probability[filled], self.frequency[filled], marker="o", label=label)
        return ax


def reliability(
    cases: Iterable[Case],
    *,
    bins: int | Sequence[float] = 15,
    band_px: float | None = None,
    epsilon: float | None = None,
) -> Reliability:
    """Compute how reliable the probabilities of all pixels are, or of those near the predicted boundary.

    Most pixels of most maps are far from any boundary and right, and hide the others in the mean over all.

    Parameters
    ----------
    cases
        Cases with ground truth, read once and one at a time.
    bins
        Number of bins of equal width, or their edges from 0 to 1.
    band_px
        Use only pixels at most this far from the boundary of the predicted mask, in pixels; ``None``: all.
    epsilon
        For ``nll``: probabilities closer than this to 0 or 1 count as this close. ``None`` takes a value that
        fits the type of each map; to compare maps of different types, pass one value for all.

    Examples
    --------
    >>> from segtrust import Prediction
    >>> p = np.array([0.1, 0.1, 0.9, 0.9])
    >>> table = reliability([Case(Prediction(p), np.array([0, 0, 1, 0]))], bins=2)
    >>> table.counts.tolist(), table.frequency.tolist(), round(table.ece, 3)
    ([2, 2], [0.0, 0.5], 0.25)
    """
    check_band(band_px)
    edges = _check_edges(bins)
    if epsilon is not None and not (is_number(epsilon) and 0.0 < epsilon < 0.5):
        raise ParameterError(f"epsilon: expected a number in (0, 0.5) or None, got {epsilon!r}.")
    given_limit = None if epsilon is None else math.log1p(-epsilon) - math.log(epsilon)
    sums, losses = np.zeros((3, edges.size - 1)), np.zeros(2)
    for case in map(case_on_host, check_cases(cases)):
        dtype = case.prediction.probabilities.dtype
        codes, limit = code_probabilities(dtype), given_limit or largest_logit(dtype, "clip")
        for values, labels in labelled_pixels(case, band_px):
            p = values if codes is None else codes[values]
            bin_of = np.searchsorted(edges[1:-1], p, side="right")
            rows = [np.bincount(bin_of, weights, minlength=edges.size - 1) for weights in (None, p, labels)]
            wrong_logits = np.where(labels, -1.0, 1.0) * logits_of(p, limit)
            sums = sums + np.stack(rows)
            losses = losses + np.array([np.logaddexp(0.0, wrong_logits).sum(), ((p - labels) ** 2).sum()])
    counts, probabilities, foreground = sums
    if not counts.any():
        raise TooFewCasesError("cases: no pixel to compare: no case, or no predicted boundary.")
    with np.errstate(invalid="ignore"):
        means, frequencies = probabilities / counts, foreground / counts
    nll, brier = (losses / counts.sum()).tolist()
    return Reliability(edges, counts.astype(np.int64), means, frequencies, nll, brier)


def _check_edges(bins: int | Sequence[float]) -> Any:
    try:
        if isinstance(bins, Integral) and not isinstance(bins, bool):
            edges = np.linspace(0.0, 1.0, int(bins) + 1)
        else:
            edges = np.asarray(bins, np.float64)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    is_valid = edges.ndim == 1 and edges.size >= 2 and edges[0] == 0.0 and edges[-1] == 1.0
    if not is_valid or (np.diff(edges) <= 0).any():
        raise ParameterError(
            f"bins: expected a number of bins, or increasing edges from 0 to 1, got {bins!r}."
        )
    return edges


# The pixels of a case


def check_cases(cases: Any) -> Iterator[Case]:
    """Check that all are cases with ground truth, one at a time."""
    if not isinstance(cases, Iterable) or isinstance(cases, str | Case):
        raise ParameterError(f"cases: expected a list of Case(prediction, truth), got {cases!r}.")
    for number, case in enumerate(cases):
        if not isinstance(case, Case) or case.truth is None:
            received = "a case without it" if isinstance(case, Case) else describe(case)
            raise ParameterError(
                f"cases[{number}]: expected Case(prediction, truth) with ground truth, got {received}."
            )
        yield case


def check_band(band_px: float | None) -> None:
    """Check that some pixel can lie within this distance of a boundary."""
    if band_px is not None and not (is_number(band_px) and 1.0 <= band_px < math.inf):
        raise ParameterError(f"band_px: expected at least 1 pixel, or None for all pixels, got {band_px!r}.")


def check_probabilities(tile: Any, p: Any, source: str, origin: tuple[int, ...] = ()) -> Any:
    """Return a tile of floats, or raise an error that names the first bad value of ``p``.

    ``p`` is the whole map, or the tile itself, which begins at the index ``origin`` of the map.
    """
    if not (tile.min() >= 0.0 and tile.max() <= 1.0):  # NaN fails both
        raise_first_bad_value(replace(view_map(p, source=source), origin=origin))
    return tile


def case_on_host(case: Case) -> Case:
    """Return the same case with NumPy arrays."""
    prediction = case.prediction
    p, mask = map_on_host(prediction.probabilities, prediction.source), _mask_on_host(prediction.mask)
    return Case(replace(prediction, probabilities=p, mask=mask), _mask_on_host(case.truth))


def map_on_host(p: Any, source: str = "p") -> Any:
    """Return a map as a NumPy array; a mask is rejected."""
    if is_device_array(p):
        check_map_type(p.dtype, source)
        p = DeviceMap(p, None, 0.5, source).to_host()[0]
    p = np.asarray(p)
    reject_bool(p, source)
    check_map_type(p.dtype, source)
    check_shapes(p.shape, None, source)
    return p


def reject_bool(p: Any, source: str) -> None:
    """Raise for a mask, which has no probabilities to scale."""
    if dtype_name(p.dtype) == "bool":
        raise ProbabilityTypeError(f"{source}: expected probabilities, float, uint8 or uint16, got bool.")


def probabilities_on_device(p: Any, source: str = "p") -> Any:
    """Return the checked probabilities of a device array in its widest floats, with their derivatives."""
    xp, name = array_namespace(p), dtype_name(p.dtype)
    check_map_type(p.dtype, source)
    check_shapes(tuple(p.shape), None, source)
    wide = xp.astype(p, wide_type(p))
    if name in FULL_SCALE:
        return wide / FULL_SCALE[name]
    values = detached(wide)
    if not (host_number(xp.min(values)) >= 0.0 and host_number(xp.max(values)) <= 1.0):
        DeviceMap(p, None, 0.5, source).count()  # raises the error that names the value
    return wide


def delivered_on_device(p: Any, threshold: float) -> Any:
    """Return the mask ``p >= threshold`` of a device array, with the threshold in the type of floats."""
    xp, name = array_namespace(p), dtype_name(p.dtype)
    if name in FULL_SCALE:
        return xp.astype(p, wide_type(p)) / FULL_SCALE[name] >= threshold
    return detached(p) >= xp.asarray(threshold, dtype=p.dtype, device=device_of(p))


def _mask_on_host(mask: Any) -> Any:
    on_device = mask is not None and is_device_array(mask)
    return to_device(detached(mask), "cpu") if on_device else mask


def delivered_mask(prediction: Prediction) -> Any:
    """Return the mask of a prediction as bool: its own, or ``p >= threshold``."""
    if prediction.mask is not None:
        mask = np.asarray(_mask_on_host(prediction.mask))
        return as_binary(mask, mask_name(prediction.source)).astype(bool)
    p = map_on_host(prediction.probabilities, prediction.source)
    return threshold_map(p, threshold=prediction.threshold, source=prediction.source)


def labelled_pixels(case: Case, band_px: float | None) -> Iterator[tuple[Any, Any]]:
    """Yield codes or doubles of the pixels that count, and 1 for foreground, a buffer at a time.

    The case is `case_on_host`. A buffer is overwritten by the next one.
    """
    prediction, p = case.prediction, case.prediction.probabilities
    arrays: list[Any] = [p, as_binary(np.asarray(case.truth), f"{prediction.source}: truth")]
    kinds: list[Any] = [np.float64 if p.dtype.kind == "f" else np.intp, np.intp]
    if band_px is not None:
        arrays.append(near_boundary(delivered_mask(prediction), band_px))
        kinds.append(bool)
    flags: Any = [["readonly"]] * len(arrays)
    with np.nditer(
        arrays,
        ["external_loop", "buffered"],
        flags,
        kinds,
        "K",
        "same_kind",
        buffersize=BUFFER_PIXELS,
    ) as buffers:
        for values, labels, *near in buffers:
            if p.dtype.kind == "f":
                check_probabilities(values, p, prediction.source)
            yield (values[near[0]], labels[near[0]]) if near else (values, labels)


def near_boundary(mask: Any, band_px: float) -> Any:
    """Return which pixels are at most this far from the nearest pixel on the other side of the mask.

    Distances are measured between centres of pixels, in pixels, whatever the spacing. An empty or full mask
    has no boundary.

    Examples
    --------
    >>> near_boundary(np.array([0, 0, 0, 1, 1, 1], bool), 2.0).astype(int).tolist()
    [0, 1, 1, 1, 1, 0]
    """
    from scipy.ndimage import distance_transform_edt

    near = np.zeros(mask.shape, bool)
    if mask.all() or not mask.any():
        return near
    # Measure distances only in the bounding box of the mask with a margin: most maps are mostly empty.
    box, margin = [], math.ceil(band_px)
    for axis in range(mask.ndim):
        inside = np.flatnonzero(mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis)))
        box.append(slice(max(0, int(inside[0]) - margin), int(inside[-1]) + margin + 1))
    cropped = mask[tuple(box)]
    for side in (cropped, ~cropped):
        distance_px: Any = distance_transform_edt(side)
        near[tuple(box)] |= side & (distance_px <= band_px)
    return near


def largest_logit(dtype: Any, ends: str) -> float:
    """Return the largest logit of a map of this type, of any array library.

    With ``ends="clip"`` it is the logit of 1 - ε, where ε is a quarter of the type's step below 1: the middle
    of what is rounded to 1 (and, for integers, to 0).

    Examples
    --------
    >>> round(largest_logit(np.dtype("uint8"), "clip"), 3)  # ε = 1 / 1020
    6.927
    """
    if ends == "keep":
        return _LARGEST_LOGIT
    if not isinstance(dtype, np.dtype):
        name = dtype_name(dtype)
        dtype = np.dtype("float32" if name == "bfloat16" else name)
    quarter = (np.finfo(dtype).epsneg if dtype.kind == "f" else 1.0 / np.iinfo(dtype).max) / 4.0
    return min(_LARGEST_LOGIT, math.log1p(-quarter) - math.log(quarter))


def logits_of(p: Any, limit: float) -> Any:
    """Return log(p / (1 - p)), clipped to ±``limit``; derivatives are 0 where it is clipped."""
    if is_device_array(p):
        xp = array_namespace(p)
        inner = xp.where((p > 0.0) & (p < 1.0), p, 0.5)  # a derivative of infinity times 0 is NaN
        logits = xp.clip(xp.log(inner) - xp.log(1.0 - inner), -limit, limit)  # torch's log1p is slow
        return xp.where(p <= 0.0, -limit, xp.where(p >= 1.0, limit, logits))
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -limit, limit)


def sigmoid_of(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) of an array of any library, without overflow."""
    xp = array_namespace(x)
    return xp.exp(xp.minimum(x, xp.zeros_like(x))) / (1.0 + xp.exp(-xp.abs(x)))
