"""Temperature and Platt scaling of saved probabilities: one or two numbers for all pixels of all maps.

A scaling is fitted to counted logits. For maps of integers each code is counted. Logits of floats are counted
in bins of 1/1024 of a unit, and each bin stands for the mean of its logits: the likelihood of a bin then
differs from that of its pixels by less than 1e-7 of its curvature.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from segtrust._arguments import check_whole, is_number
from segtrust._files import check_format, read_json, rebuild, write_json
from segtrust._params import HasParams
from segtrust.calibration.reliability import (
    BUFFER_PIXELS,
    case_on_host,
    check_band,
    check_cases,
    check_probabilities,
    delivered_mask,
    labelled_pixels,
    largest_logit,
    logits_of,
    map_on_host,
)
from segtrust.errors import (
    CaseValueError,
    NotFittedError,
    ParameterError,
    SavedStateError,
    TooFewCasesError,
)
from segtrust.kernels import code_probabilities
from segtrust.maps import Case, Prediction

_FORMAT = "segtrust-scaling-1"
_CHOICES = {"ends": ("keep", "clip"), "weigh": ("pixels", "cases")}
_BINS_PER_UNIT = 1024
_ZERO_BIN = math.ceil(largest_logit(np.dtype(np.float64), "keep") * _BINS_PER_UNIT) + 1
_BINS = 2 * _ZERO_BIN + 1
_NEWTON_STEPS = 100
_LARGEST = 1e3
"""A slope or an intercept beyond this is on its way to infinity."""


@dataclass(frozen=True, kw_only=True)
class Scaling(HasParams, ABC):
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

    ends: str = "keep"
    band_px: float | None = None
    weigh: str = "pixels"
    used_ids: frozenset[str] = frozenset()
    n_cases: int = 0

    name: ClassVar[str]
    """Identifier used in saved files."""
    _with_intercept: ClassVar[bool]

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
        counts, ids, n = _LogitCounts(self.ends, self.band_px, self.weigh), set(), 0
        for case in check_cases(cases):
            counts.add(case)
            ids.add(case.id)
            n += 1
        slope, intercept = _fit_curve(counts.points(), with_intercept=self._with_intercept)
        return replace(self._with_curve(slope, intercept), used_ids=frozenset(ids - {""}), n_cases=n)

    def apply(self, p: Any, *, source: str = "p") -> Any:
        """Return the calibrated probabilities of a map: float64 for float64, float32 for all other types.

        Parameters
        ----------
        p
            Probability map, an array of any library and layout. The result is a NumPy array; only a tile of
            pixels at a time is held in doubles.
        source
            Name of the map in errors.
        """
        p = map_on_host(p, source)
        codes = code_probabilities(p.dtype)
        limit = largest_logit(p.dtype, self.ends)
        if codes is not None:
            return self._scale(codes, limit).astype(np.float32)[p]
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
        return out

    def _scale(self, p: Any, limit: float) -> Any:
        from scipy.special import expit

        slope, intercept = self.curve
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
            mask = delivered_mask(prediction)
        p = self.apply(prediction.probabilities, source=prediction.source)
        return replace(prediction, probabilities=p, mask=mask)

    def to_dict(self) -> dict[str, Any]:
        """Return the values that `from_dict` reads, ready for JSON."""
        return {"name": self.name, **asdict(self), "used_ids": sorted(self.used_ids)}

    def save(self, path: str | Path) -> None:
        """Write a JSON file in one step; an existing file is replaced or, after an error, unchanged."""
        write_json(path, {"format": _FORMAT, **self.to_dict()})

    @staticmethod
    def load(path: str | Path) -> Scaling:
        """Read a file that `save` wrote, or the JSON of `to_dict`, which has no format."""
        saved = read_json(path)
        if isinstance(saved, Mapping) and "format" in saved:
            check_format(saved, _FORMAT, str(path))
            saved = {name: value for name, value in saved.items() if name != "format"}
        return Scaling.from_dict(saved, source=str(path))

    @staticmethod
    def from_dict(saved: Mapping[str, Any], *, source: str = "scaling") -> Scaling:
        """Return the scaling that `to_dict` described.

        Parameters
        ----------
        saved
            Values of `to_dict`. A policy stores them without ``used_ids``; then nobody knows which cases the
            scaling was fitted to.
        source
            Name of the values in errors, a `SavedStateError` for whatever is missing, unknown or wrong.
        """
        kinds: dict[str, type[Scaling]] = {kind.name: kind for kind in (TemperatureScaling, PlattScaling)}
        name = saved.get("name") if isinstance(saved, Mapping) else None
        if not isinstance(name, str) or name not in kinds:
            raise SavedStateError(f"{source}: name: expected one of {', '.join(kinds)}, got {name!r}.")
        values = {"used_ids": (), **{key: saved[key] for key in saved if key != "name"}}
        return rebuild(kinds[name], values, source)


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0.0 < value < math.inf


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
        if self.temperature is not None and not (
            _is_positive(self.temperature) and _is_positive(1.0 / float(self.temperature))
        ):
            raise ParameterError(f"temperature: expected a number above 0, got {self.temperature!r}.")

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
