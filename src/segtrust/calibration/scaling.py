"""Temperature and Platt scaling of saved probabilities: one or two numbers for all pixels of all maps.

A scaling of one structure is fitted to counted logits. For maps of integers each code is counted. Logits of
floats are counted in bins of 1/1024 of a unit, and each bin stands for the mean of its logits: the likelihood
of a bin then differs from that of its pixels by less than 1e-7 of its curvature. The temperature of a softmax
is fitted to the derivative of its likelihood at fixed temperatures, which determine it to about nine digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from segtrust._arguments import check_whole, describe, is_number
from segtrust._files import check_format, read_json, rebuild
from segtrust._params import HasParams
from segtrust._storage import Storable
from segtrust._types import DeviceArrayT, MapOnHost
from segtrust.calibration.reliability import (
    BUFFER_PIXELS,
    case_on_host,
    check_band,
    check_cases,
    check_probabilities,
    delivered_mask,
    delivered_on_device,
    labelled_pixels,
    largest_logit,
    logits_of,
    map_on_host,
    near_boundary,
    probabilities_on_device,
    reject_bool,
    sigmoid_of,
)
from segtrust.errors import (
    CaseValueError,
    MaskShapeError,
    NotFittedError,
    ParameterError,
    SavedStateError,
    TooFewCasesError,
)
from segtrust.kernels import (
    check_labels,
    check_levels,
    check_normalised,
    code_probabilities,
    dtype_name,
    in_host_memory,
    is_device_array,
    most_probable_labels,
    on_host,
    tiles_of,
)
from segtrust.maps import Case, Prediction

_CHOICES = {"ends": ("keep", "clip"), "weigh": ("pixels", "cases")}
_BINS_PER_UNIT = 1024
_ZERO_BIN = math.ceil(largest_logit(np.dtype(np.float64), "keep") * _BINS_PER_UNIT) + 1
_BINS = 2 * _ZERO_BIN + 1
_NEWTON_STEPS = 100
_LARGEST = 1e3
"""A slope or an intercept beyond this is on its way to infinity."""
_OCTAVES, _STEPS_PER_OCTAVE = 6, 4
"""Inverse temperatures at which a softmax is evaluated: from 2^-6 to 2^6, in steps of a quarter octave."""
_INTERPOLATED = 20
"""Number of neighbouring inverse temperatures from which the derivative of the likelihood is interpolated."""


@dataclass(frozen=True, kw_only=True)
class _Fitted(HasParams, Storable):
    """Options of a scaling, and the cases that it was fitted to."""

    ends: Literal["keep", "clip"] = "keep"
    band_px: float | None = None
    weigh: Literal["pixels", "cases"] = "pixels"
    used_ids: frozenset[str] = field(default=frozenset(), repr=False)
    n_cases: int = 0

    name: ClassVar[str]
    """Identifier used in saved files."""
    _format: ClassVar[str] = "segtrust-scaling-1"

    def __post_init__(self) -> None:
        """Check the options."""
        check_band(self.band_px)
        for option, known in _CHOICES.items():
            if getattr(self, option) not in known:
                raise ParameterError(f"{option}: expected one of {known}, got {getattr(self, option)!r}.")
        if isinstance(self.used_ids, str) or not isinstance(self.used_ids, Collection):
            raise ParameterError(f"used_ids: expected a collection of ids, got {self.used_ids!r}.")
        object.__setattr__(self, "used_ids", frozenset(map(str, self.used_ids)))
        object.__setattr__(self, "n_cases", check_whole(self.n_cases, "n_cases"))

    def to_dict(self) -> dict[str, Any]:
        """Return the values that `from_dict` reads, ready for JSON."""
        return {"name": self.name, **asdict(self), "used_ids": sorted(self.used_ids)}


def _rebuild_as(kinds: Sequence[type[Any]], saved: Any, source: str) -> Any:
    """Return the scaling that ``to_dict`` described, of one of these kinds."""
    by_name = {kind.name: kind for kind in kinds}
    name = saved.get("name") if isinstance(saved, Mapping) else None
    if not isinstance(name, str) or name not in by_name:
        raise SavedStateError(f"{source}: name: expected one of {', '.join(by_name)}, got {name!r}.")
    values = {"used_ids": (), **{key: saved[key] for key in saved if key not in ("name", "format")}}
    return rebuild(by_name[name], values, source)


@dataclass(frozen=True, kw_only=True)
class Scaling(_Fitted, ABC):
    """Increasing curve from saved to calibrated probabilities: sigmoid(slope · logit(p) + intercept).

    Attributes
    ----------
    ends
        What happens to pixels at exactly 0 and 1. ``"keep"``: they stay there, and nothing is learned from
        them. ``"clip"``: they count as ε and 1 - ε, where ε is a quarter of the type's step below 1 (1/1020
        for 8 bits, 1.2e-4 for float16, 1.5e-8 for float32), as do all values closer to 0 or 1.
    band_px
        Learn only from pixels at most this far from the predicted boundary, in pixels; ``None``: from all.
    weigh
        Whether all ``"pixels"`` have the same weight, or all ``"cases"``.
    used_ids
        Ids of the cases that it was fitted to, which cannot be used to certify anything that uses it.
    n_cases
        Number of cases that it was fitted to, including those without an id.
    """

    _with_intercept: ClassVar[bool]

    @property
    @abstractmethod
    def curve(self) -> tuple[float, float]:
        """Slope and intercept."""

    @abstractmethod
    def _with_curve(self, slope: float, intercept: float) -> Self: ...

    def fit(self, cases: Iterable[Case]) -> Self:
        """Return the scaling under which the ground truth of the cases is most likely.

        Parameters
        ----------
        cases
            Cases with ground truth, read once and one at a time. Use cases that serve no other purpose: not
            those that certify a threshold, and not those that the model was trained on, for which its
            probabilities are better than for others.
        """
        counts, ids, n = _LogitCounts(self.ends, self.band_px, self.weigh), set[str](), 0
        for case in check_cases(cases):
            counts.add(case)
            ids |= case.used_names
            n += 1
        _check_any(n)
        slope, intercept = _fit_curve(counts.points(), with_intercept=self._with_intercept)
        return replace(self._with_curve(slope, intercept), used_ids=frozenset(ids), n_cases=n)

    @overload
    def apply(self, p: MapOnHost, *, source: str = "p") -> npt.NDArray[np.floating[Any]]: ...

    @overload
    def apply(self, p: DeviceArrayT, *, source: str = "p") -> DeviceArrayT: ...

    def apply(self, p: Any, *, source: str = "p") -> Any:
        """Return the calibrated probabilities of a map: float64 for float64, float32 for all other types.

        Parameters
        ----------
        p
            Probability map, an array of any library and layout. The result belongs to the same library and
            device, and in torch it can be differentiated with respect to the map. For NumPy, only a tile of
            pixels at a time is held in doubles.
        source
            Name of the map in errors.
        """
        scaled = self._apply(p, source)
        check_levels([p], getattr(p, "dtype", np.float64), source=source)
        return scaled

    def _apply(self, p: Any, source: str) -> Any:
        """Return the calibrated probabilities, without a warning about a map that looks like a mask.

        The model may leave next to nothing in the map of an image without a finding.
        """
        p, to_caller = in_host_memory(p)
        if is_device_array(p):
            reject_bool(p, source)
            wide = probabilities_on_device(p, source)
            scaled = self._scale(wide, largest_logit(p.dtype, self.ends))
            return _in_saved_type(scaled, p)
        p = map_on_host(p, source)
        codes = code_probabilities(p.dtype)
        limit = largest_logit(p.dtype, self.ends)
        if codes is not None:
            return to_caller(self._scale(codes, limit).astype(np.float32)[p])
        out = np.empty_like(p, dtype=np.float64 if p.dtype.itemsize >= 8 else np.float32)
        options: dict[str, Any] = {"flags": ["external_loop", "buffered"], "op_dtypes": [np.float64] * 2}
        pairs = np.nditer(
            [p, out],
            op_flags=[["readonly"], ["writeonly"]],
            casting="same_kind",
            buffersize=BUFFER_PIXELS,
            **options,
        )
        with pairs:
            for values, scaled in pairs:
                scaled[...] = self._scale(check_probabilities(values, p, source), limit)
        return to_caller(out)

    def _scale(self, p: Any, limit: float) -> Any:
        slope, intercept = self.curve
        if is_device_array(p):
            xp = array_namespace(p)
            scaled = sigmoid_of(slope * logits_of(p, limit) + intercept)
            return xp.where(_is_end(p), p, scaled) if self.ends == "keep" else scaled
        from scipy.special import expit

        with np.errstate(over="ignore"):  # an absurd slope makes all pixels certain
            scaled = expit(slope * logits_of(p, limit) + intercept)
        return np.where(_is_end(p), p, scaled) if self.ends == "keep" else scaled

    def calibrate(self, prediction: Prediction, *, keep_mask: bool = True) -> Prediction:
        """Return the same prediction with calibrated probabilities.

        Parameters
        ----------
        prediction
            A probability map and its mask. A mask that it already has is kept, whatever ``keep_mask`` is.
        keep_mask
            Keep the mask ``p >= threshold`` of the original probabilities, because it is the one that is
            delivered. ``False`` computes it from the calibrated probabilities: with an intercept, or with a
            threshold other than 0.5, the mask is different.
        """
        if not isinstance(prediction, Prediction):
            raise ParameterError(f"prediction: expected Prediction(p), got {prediction!r}.")
        mask = prediction.mask
        if keep_mask and mask is None:
            p = prediction.probabilities
            mask = (
                delivered_on_device(p, prediction.threshold)
                if is_device_array(p)
                else delivered_mask(prediction)
            )
        p = self._apply(prediction.probabilities, prediction.source)
        return replace(prediction, probabilities=p, mask=mask)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote, or the JSON of `to_dict`, which has no format."""
        saved = read_json(path)
        if isinstance(saved, Mapping) and "format" in saved:
            check_format(saved, cls._format, str(path))
        return cls.from_dict(saved, source=str(path))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "scaling") -> Self:
        """Return the scaling that `to_dict` described.

        Parameters
        ----------
        saved
            Values of `to_dict`. A policy stores them without ``used_ids``; then nobody knows which cases the
            scaling was fitted to.
        source
            Name of the values in errors, a `SavedStateError` for whatever is missing, unknown or wrong.
        """
        scaling: Self = _rebuild_as((TemperatureScaling, PlattScaling), saved, source)
        return scaling


def _check_any(n: int) -> None:
    if n == 0:
        raise TooFewCasesError("cases: expected at least one case to learn from, got no cases.")


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0.0 < value < math.inf


def _check_temperature(temperature: Any) -> None:
    if temperature is not None and not (_is_positive(temperature) and _is_positive(1.0 / float(temperature))):
        raise ParameterError(f"temperature: expected a number above 0, got {temperature!r}.")


def _in_saved_type(scaled: Any, p: Any) -> Any:
    """Return calibrated probabilities of a device array: float64 for float64, float32 for other types."""
    xp = array_namespace(scaled)
    return xp.astype(scaled, xp.float64 if dtype_name(p.dtype) == "float64" else xp.float32, copy=False)


@dataclass(frozen=True)
class TemperatureScaling(Scaling):
    """Scaling that divides the logits of all pixels by one number, learned from labelled cases.

    A temperature above 1 moves probabilities towards one half. The mask ``p >= 0.5`` does not change.

    Attributes
    ----------
    temperature
        The number that logits are divided by; ``None`` until it is passed or learned.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random((20, 64, 64))
    >>> truth = rng.random(q.shape) < q
    >>> sharp = q**2 / (q**2 + (1 - q) ** 2)  # twice the logits: the model is overconfident
    >>> cases = [Case(Prediction(p, id=f"case {i}"), t) for i, (p, t) in enumerate(zip(sharp, truth))]
    >>> scaling = TemperatureScaling().fit(cases)
    >>> round(scaling.temperature, 1), len(scaling.used_ids)
    (2.0, 20)
    >>> TemperatureScaling(2.0).apply(np.array([0.0, 0.5, 0.8, 1.0])).round(3).tolist()
    [0.0, 0.5, 0.667, 1.0]
    """

    temperature: float | None = None

    name = "temperature"
    _with_intercept = False

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        _check_temperature(self.temperature)

    @property
    def curve(self) -> tuple[float, float]:
        """Slope and intercept."""
        if self.temperature is None:
            raise NotFittedError("TemperatureScaling: call fit(cases), or pass the temperature.")
        return 1.0 / self.temperature, 0.0

    def _with_curve(self, slope: float, intercept: float) -> Self:
        return replace(self, temperature=1.0 / slope)


@dataclass(frozen=True)
class PlattScaling(Scaling):
    """Scaling that multiplies and shifts the logits of all pixels by two learned numbers.

    The shift corrects a model that segments too much or too little; it changes which pixels exceed one half.

    Attributes
    ----------
    slope, intercept
        Factor and shift of the logits; ``None`` until they are passed or learned.

    Examples
    --------
    >>> scaling = PlattScaling(slope=0.5, intercept=-1.0)
    >>> scaling.apply(np.array([0, 102, 255], np.uint8)).round(2)
    array([0.  , 0.23, 1.  ], dtype=float32)
    >>> before = Prediction(np.array([0.6, 0.95]))
    >>> after = scaling.calibrate(before)
    >>> after.probabilities.round(2).tolist(), after.mask.tolist()  # the mask is that of before
    ([0.31, 0.62], [True, True])
    """

    slope: float | None = None
    intercept: float | None = None

    name = "platt"
    _with_intercept = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.slope is not None and not _is_positive(self.slope):
            raise ParameterError(f"slope: expected a number above 0, got {self.slope!r}.")
        if self.intercept is not None and not (is_number(self.intercept) and np.isfinite(self.intercept)):
            raise ParameterError(f"intercept: expected a finite number, got {self.intercept!r}.")

    @property
    def curve(self) -> tuple[float, float]:
        """Slope and intercept."""
        if self.slope is None or self.intercept is None:
            raise NotFittedError("PlattScaling: call fit(cases), or pass slope and intercept.")
        return self.slope, self.intercept

    def _with_curve(self, slope: float, intercept: float) -> Self:
        return replace(self, slope=slope, intercept=intercept)


@dataclass(frozen=True)
class MulticlassTemperatureScaling(_Fitted):
    """Temperature scaling of a softmax: the logits of all classes are divided by one learned number.

    The calibrated probabilities are p^(1/T), normalised over the classes. A temperature above 1 moves them
    towards each other. The most probable class does not change.

    Attributes
    ----------
    temperature
        The number T that logits are divided by; ``None`` until it is passed or learned.
    ends
        What happens to probabilities of exactly 0. ``"keep"``: they stay there, and nothing is learned from
        pixels whose true class has one. ``"clip"``: probabilities count as at least ε and at most 1 - ε,
        where ε is a quarter of the type's step below 1 (1/1020 for 8 bits, 1.5e-8 for float32).
    band_px
        Learn only from pixels at most this far from a boundary between predicted classes, in pixels;
        ``None``: from all.
    weigh
        Whether all ``"pixels"`` have the same weight, or all ``"cases"``.
    used_ids
        Ids of the cases that it was fitted to, which cannot be used to certify anything that uses it.
    n_cases
        Number of cases that it was fitted to, including those without an id.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.dirichlet((1.0, 1.0, 1.0), (10, 400)).swapaxes(1, 2)  # 10 cases of (C, pixels)
    >>> labels = (q.cumsum(1) < rng.random((10, 1, 400))).sum(1)
    >>> sharp = q**2 / (q**2).sum(1, keepdims=True)  # twice the logits: the model is overconfident
    >>> scaling = MulticlassTemperatureScaling().fit(zip(sharp, labels, "abcdefghij"))
    >>> round(scaling.temperature, 1), sorted(scaling.used_ids)[:3]
    (2.0, ['a', 'b', 'c'])
    >>> MulticlassTemperatureScaling(2.0).apply(np.array([0.64, 0.32, 0.04])[:, None]).round(3).ravel()
    array([0.511, 0.361, 0.128])
    """

    temperature: float | None = None

    name = "multiclass-temperature"
    _format = "segtrust-multiclass-scaling-1"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        _check_temperature(self.temperature)

    def fit(self, cases: Iterable[tuple[Any, ...]]) -> Self:
        """Return the scaling under which the labels of the cases are most likely.

        Parameters
        ----------
        cases
            Tuples (p, labels) or (p, labels, id), read once and one at a time: a softmax with the classes
            first, (C, ...), the true class of each pixel, (...), and the name of the case. Use cases that
            serve no other purpose: not those that certify a threshold, and not those that the model was
            trained on.
        """
        slopes = _SoftmaxSlopes(self.ends, self.band_px, self.weigh)
        ids, n = set(), 0
        for number, case in enumerate(cases):
            if not isinstance(case, tuple) or len(case) not in (2, 3):
                raise ParameterError(
                    f"cases[{number}]: expected a tuple (p, labels) or (p, labels, id), got {describe(case)}."
                )
            slopes.add(case[0], case[1], f"cases[{number}]")
            ids.add(str(case[2]) if len(case) == 3 else "")
            n += 1
        _check_any(n)
        return replace(self, temperature=slopes.temperature(), used_ids=frozenset(ids - {""}), n_cases=n)

    @overload
    def apply(
        self, p: MapOnHost, *, class_axis: int = 0, source: str = "p"
    ) -> npt.NDArray[np.floating[Any]]: ...

    @overload
    def apply(self, p: DeviceArrayT, *, class_axis: int = 0, source: str = "p") -> DeviceArrayT: ...

    def apply(self, p: Any, *, class_axis: int = 0, source: str = "p") -> Any:
        """Return the calibrated softmax of a map: float64 for float64, float32 for all other types.

        Parameters
        ----------
        p
            Probabilities that add up to 1 over the classes, an array of any library. The result belongs to
            the same library and device, and in torch it can be differentiated with respect to ``p``.
        class_axis
            Axis of the classes.
        source
            Name of the map in errors.
        """
        if self.temperature is None:
            raise NotFittedError("MulticlassTemperatureScaling: call fit(cases), or pass the temperature.")
        p, to_caller = in_host_memory(p)
        if is_device_array(p):
            axis = _check_softmax(p, class_axis, source)
            scaled = self._scale(probabilities_on_device(p, source), p.dtype, axis)
            return _in_saved_type(scaled, p)
        p = map_on_host(p, source)
        axis = _check_softmax(p, class_axis, source)
        codes = code_probabilities(p.dtype)
        out = np.empty_like(
            p, dtype=np.float64 if p.dtype.kind == "f" and p.dtype.itemsize >= 8 else np.float32
        )
        classes_first, out_first = np.moveaxis(p, axis, 0), np.moveaxis(out, axis, 0)
        for tile in tiles_of(classes_first[0]):
            part = classes_first[(slice(None), *tile)]
            values = check_probabilities(part.astype(np.float64), p, source) if codes is None else codes[part]
            out_first[(slice(None), *tile)] = self._scale(values, p.dtype, 0)
        return to_caller(out)

    def _scale(self, p: Any, dtype: Any, axis: int) -> Any:
        assert self.temperature is not None
        xp = array_namespace(p)
        if self.ends == "clip":
            p = _clip_to_type(p, dtype)
        is_zero = p <= 0.0
        logarithms = xp.log(xp.where(is_zero, 1.0, p)) / self.temperature
        highest = xp.max(xp.where(is_zero, -math.inf, logarithms), axis=axis, keepdims=True)
        powers = xp.where(is_zero, 0.0, xp.exp(xp.where(is_zero, 0.0, logarithms - highest)))
        return powers / xp.sum(powers, axis=axis, keepdims=True)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "scaling") -> Self:
        """Return the scaling that `to_dict` described.

        Parameters
        ----------
        saved
            Values of `to_dict`.
        source
            Name of the values in errors, a `SavedStateError` for whatever is missing, unknown or wrong.
        """
        scaling: Self = _rebuild_as((cls,), saved, source)
        return scaling


def _check_softmax(p: Any, class_axis: int, source: str) -> int:
    """Return the axis of the classes, counted from the first; raise if the map is no softmax over it."""
    axes = len(p.shape)
    if (
        not isinstance(class_axis, int)
        or isinstance(class_axis, bool)
        or axes < 2
        or not -axes <= class_axis < axes
    ):
        raise ParameterError(
            f"class_axis: expected an axis of {source}, whose shape is {tuple(p.shape)} and should be "
            f"(C, ...), got {class_axis!r}."
        )
    axis = class_axis % axes
    reject_bool(p, source)
    remedy = "Pass the axis of the classes; for independent classes use TemperatureScaling for each."
    check_normalised(p, axis=axis, source=source, remedy=remedy)
    return axis


def _clip_to_type(p: Any, dtype: Any) -> Any:
    """Return probabilities clipped to [ε, 1 - ε] of their original type."""
    epsilon = 1.0 / (1.0 + math.exp(largest_logit(dtype, "clip")))
    return array_namespace(p).clip(p, epsilon, 1.0 - epsilon)


class _SoftmaxSlopes:
    """Derivatives of the likelihood of a softmax at many temperatures; cases are added one at a time.

    With x the log-probabilities and β = 1 / T, the derivative of the negative log-likelihood of a pixel by β
    is E_β[x] - x_true. Its sum over all pixels increases with β and is smooth in log β, so its root follows
    from its values at fixed β. Doubling β squares exp(βx), which saves most exponentials.
    """

    def __init__(self, ends: str, band_px: float | None, weigh: str) -> None:
        self._ends, self._band_px, self._weigh = ends, band_px, weigh
        self._first = 2.0 ** (-_OCTAVES + np.arange(_STEPS_PER_OCTAVE) / _STEPS_PER_OCTAVE)
        self._slopes = np.zeros((2 * _OCTAVES + 1, _STEPS_PER_OCTAVE))
        self._is_empty = True

    def add(self, p: Any, labels: Any, source: str) -> None:
        p, labels = map_on_host(p, source), np.asarray(on_host(labels))
        _check_softmax(p, 0, source)
        if labels.shape != p.shape[1:]:
            raise MaskShapeError(
                f"{source}: labels: expected the shape of one class, {p.shape[1:]}, got {labels.shape}."
            )
        check_labels(labels, p.shape[0], f"{source}: labels")
        counted = np.ones(labels.shape, bool)
        if self._band_px is not None:
            predicted = most_probable_labels(p)
            boundaries = (near_boundary(predicted == number, self._band_px) for number in range(p.shape[0]))
            counted = np.logical_or.reduce(list(boundaries))
        codes, slopes, count = code_probabilities(p.dtype), np.zeros_like(self._slopes), 0
        for tile in tiles_of(labels):
            part = p[(slice(None), *tile)]
            values = check_probabilities(part.astype(np.float64), p, source) if codes is None else codes[part]
            chosen = counted[tile]
            values, truth = values[:, chosen], labels[tile][chosen].astype(np.intp)
            for start in range(0, truth.size, BUFFER_PIXELS // 8):
                stop = start + BUFFER_PIXELS // 8
                count += self._add_pixels(values[:, start:stop], truth[start:stop], p.dtype, slopes)
        if count:
            self._is_empty = False
            self._slopes += slopes / count if self._weigh == "cases" else slopes

    def _add_pixels(self, p: Any, truth: Any, dtype: Any, slopes: Any) -> int:
        """Add the derivatives of some pixels, (C, pixels), and return how many something is learned from."""
        if self._ends == "clip":
            p = _clip_to_type(p, dtype)
        of_truth = np.take_along_axis(p, truth[None], 0)[0]
        learned = (of_truth > 0.0) & (np.count_nonzero(p, axis=0) > 1)
        p, truth = p[:, learned], truth[learned]
        with np.errstate(divide="ignore"):
            x = np.log(p) - np.log(p.max(0, initial=0.0))
        finite = np.where(p > 0.0, x, 0.0)
        of_truth = np.take_along_axis(finite, truth[None], 0).sum()
        for step, beta in enumerate(self._first):
            powers = np.exp(beta * x)
            for octave in range(slopes.shape[0]):
                means = np.einsum("cp,cp->p", finite, powers) / powers.sum(0)
                slopes[octave, step] += means.sum() - of_truth
                powers *= powers
        return int(truth.size)

    def temperature(self) -> float:
        from scipy.interpolate import BarycentricInterpolator
        from scipy.optimize import brentq

        if self._is_empty:
            raise TooFewCasesError(
                "cases: no pixel to learn from: all are exactly 0 or 1, or far from a boundary."
            )
        slopes = self._slopes.ravel()
        if slopes[-1] <= 0.0:
            raise CaseValueError(
                "cases: the likelihood has no finite maximum: the most probable class is right without an "
                "error, or the maps have no doubt. Use more cases."
            )
        if slopes[0] >= 0.0:
            raise CaseValueError(
                "cases: the true class is rarer where the maps say it is more likely. Are the labels in the "
                "order of the channels, and on the same grid?"
            )
        octaves = -_OCTAVES + np.arange(slopes.size) / _STEPS_PER_OCTAVE
        right = int(np.argmax(slopes > 0.0))
        start = min(max(0, right - _INTERPOLATED // 2), slopes.size - _INTERPOLATED)
        near = slice(start, start + _INTERPOLATED)
        slope = BarycentricInterpolator(octaves[near], slopes[near] / np.abs(slopes[near]).max())
        octave: Any = brentq(slope, octaves[right - 1], octaves[right], xtol=1e-14)
        return float(2.0**-octave)


# Counted logits


def _is_end(p: Any) -> Any:
    return (p == 0.0) | (p == 1.0)


@dataclass(frozen=True, eq=False)
class _Points:
    """Logits with the weights of the background and foreground pixels that have them."""

    logits: Any
    background: Any
    foreground: Any


@dataclass(eq=False)
class _LogitCounts:
    """Counts of logits, to which cases are added one at a time; options as of `Scaling`."""

    ends: str
    band_px: float | None
    weigh: str
    _tables: dict[str, Any] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        case = case_on_host(case)
        dtype = case.prediction.probabilities.dtype.newbyteorder("=")
        is_float = dtype.kind == "f"
        table = (
            self._count_bins(case, largest_logit(dtype, self.ends))
            if is_float
            else self._count_codes(case, dtype)
        )
        total = table[:2].sum()
        if total:
            name = "float" if is_float else dtype.name
            self._tables[name] = self._tables.get(name, 0.0) + (
                table / total if self.weigh == "cases" else table
            )

    def _count_codes(self, case: Case, dtype: Any) -> Any:
        """Count the background and foreground pixels of each code; two rows."""
        size = np.iinfo(dtype).max + 1
        flat = np.zeros(2 * size)
        for codes, labels in labelled_pixels(case, self.band_px):
            flat += np.bincount(labels * size + codes, minlength=2 * size)
        table = flat.reshape(2, size)
        if self.ends == "keep":
            table[:, [0, -1]] = 0.0
        return table

    def _count_bins(self, case: Case, limit: float) -> Any:
        """Count the background and foreground pixels of each bin, and sum their logits; four rows."""
        table = np.zeros(4 * _BINS)
        for p, labels in labelled_pixels(case, self.band_px):
            counted = ~_is_end(p) if self.ends == "keep" else slice(None)
            logits = logits_of(p[counted], limit)
            index = labels[counted] * _BINS + np.rint(logits * _BINS_PER_UNIT).astype(np.intp) + _ZERO_BIN
            table[: 2 * _BINS] += np.bincount(index, minlength=2 * _BINS)
            table[2 * _BINS :] += np.bincount(index, logits, minlength=2 * _BINS)
        return table.reshape(4, _BINS)

    def points(self) -> _Points:
        """Return all logits that some pixel has."""
        parts = [np.zeros((3, 0))]
        for name, table in sorted(self._tables.items()):
            if name == "float":
                counts, sums = table[:2].ravel(), table[2:].ravel()
                means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0)
                sides = np.repeat([[1.0, 0.0], [0.0, 1.0]], _BINS, axis=1)
                parts.append(np.stack([means, *(sides * counts)]))
            else:
                dtype = np.dtype(name)
                logits = logits_of(code_probabilities(dtype), largest_logit(dtype, self.ends))
                parts.append(np.stack([logits, *table]))
        columns = np.concatenate(parts, axis=1)
        return _Points(*columns[:, columns[1] + columns[2] > 0.0])


# Maximum likelihood of a logistic curve, by Newton's method


def _mean_nll(points: _Points, curve: Any) -> float:
    """Return the weighted mean of -log P(truth) at slope and intercept, in nats."""
    x = curve[0] * points.logits + curve[1]
    losses = points.foreground * np.logaddexp(0.0, -x) + points.background * np.logaddexp(0.0, x)
    return float(losses.sum() / (points.foreground.sum() + points.background.sum()))


def _fit_curve(points: _Points, *, with_intercept: bool) -> tuple[float, float]:
    """Return slope and intercept of the most likely curve; without an intercept it is 0."""
    if not points.logits.size:
        raise TooFewCasesError(
            "cases: no pixel to learn from: all are exactly 0 or 1, or far from a boundary."
        )
    curve, loss = np.array([1.0, 0.0]), np.inf
    for _ in range(_NEWTON_STEPS):
        previous, loss = loss, _mean_nll(points, curve)
        step = _newton_step(points, curve, with_intercept=with_intercept)
        if not np.isfinite(step).all() or np.abs(curve).max() > _LARGEST:
            break
        if np.abs(step).max() <= 1e-12 * np.abs(curve).max() or loss == previous:
            slope, intercept = map(float, curve + step)
            if slope <= 0.0:
                raise CaseValueError(
                    f"cases: the most likely slope is {slope:.3g}: foreground is rarer where the maps "
                    "say it is more likely. Do map and truth show the same structure, on the same grid?"
                )
            return slope, intercept
        while _mean_nll(points, curve + step) > loss and np.abs(step).max() > 1e-15:  # damped
            step = step / 2.0
        curve = curve + step
    raise CaseValueError(
        "cases: the likelihood has no finite maximum: the maps separate foreground and background without "
        "an error, or only one of them occurs. Use more cases."
    )


def _newton_step(points: _Points, curve: Any, *, with_intercept: bool) -> Any:
    """Return minus the inverse of the second derivative times the first; NaN where there is no inverse."""
    from scipy.special import expit

    free = 2 if with_intercept else 1
    design = np.stack([points.logits, np.ones_like(points.logits)])[:free]
    q = expit(curve[0] * points.logits + curve[1])
    weight = points.foreground + points.background
    gradient = design @ (weight * q - points.foreground)
    curvature = (design * (weight * q * (1.0 - q))) @ design.T
    step = np.zeros(2)
    try:
        step[:free] = -np.linalg.solve(curvature, gradient)
    except np.linalg.LinAlgError:
        step[:free] = np.nan
    return step
