"""Temperature and Platt scaling of saved probabilities: one or two numbers for all pixels of all maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from segtrust.calibration.fitting import fit_curve
from segtrust.calibration.logits import LogitCounts, is_end, limit_of, logits_of
from segtrust.calibration.pixels import (
    cases_in,
    check_band,
    check_block,
    codes_of,
    host_map,
    is_number,
    mask_of,
)
from segtrust.errors import NotFittedError, ParameterError, SavedStateError
from segtrust.maps import Case, Prediction
from segtrust.params import HasParams
from segtrust.saved import check_format, read_json, rebuild, write_json

__all__ = ["PlattScaling", "Scaling", "TemperatureScaling"]

_BLOCK = 1 << 16
_FORMAT = "segtrust-scaling-1"
_CHOICES = {"ends": ("keep", "clip"), "weigh": ("pixels", "cases")}


@dataclass(frozen=True, kw_only=True)
class Scaling(HasParams, ABC):
    """A growing curve from saved to calibrated probabilities: sigmoid(slope · logit(p) + intercept).

    Attributes
    ----------
    ends
        What becomes of pixels at exactly 0 and 1. ``"keep"``: they stay there, and nothing is learned from
        them. ``"clip"``: they count as ε and 1 - ε, where ε is a quarter of the type's step below 1 (1/1020
        for 8 bits, 1.2e-4 for float16, 1.5e-8 for float32), as does all that is nearer to 0 or 1.
    band_px
        Learn only from pixels this near to the predicted boundary, in pixels; ``None``: from all.
    weigh
        Whether all ``"pixels"`` weigh the same, or all ``"cases"``.
    used_ids
        Ids of the cases it has learned from; they cannot vouch for anything that uses it.
    n_cases
        How many there were, those without an id included.
    """

    ends: str = "keep"
    band_px: float | None = None
    weigh: str = "pixels"
    used_ids: frozenset[str] = frozenset()
    n_cases: int = 0

    name: ClassVar[str]
    """In files."""
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
        if not isinstance(self.n_cases, int) or isinstance(self.n_cases, bool) or self.n_cases < 0:
            raise ParameterError(f"n_cases: expected a whole number of at least 0, got {self.n_cases!r}.")

    @property
    @abstractmethod
    def curve(self) -> tuple[float, float]:
        """Slope and intercept."""

    @abstractmethod
    def _with_curve(self, slope: float, intercept: float) -> Self: ...

    def fit(self, cases: Iterable[Case]) -> Self:
        """Learn from labelled cases, read once, one at a time, by the likelihood of their truth.

        They must be cases of their own: not those that certify a threshold, and not those that the network
        was trained on, for which its probabilities are better than for others.
        """
        counts, ids, n = LogitCounts(self.ends, self.band_px, self.weigh), set(), 0
        for case in cases_in(cases):
            counts.add(case)
            ids.add(case.id)
            n += 1
        fitted = self._with_curve(*fit_curve(counts.points(), intercept=self._with_intercept))
        return replace(fitted, used_ids=frozenset(ids - {""}), n_cases=n)

    def apply(self, p: Any, *, source: str = "p") -> Any:
        """Give the calibrated probabilities of a map: float64 for float64, float32 for all other types.

        Arrays of any library and layout; the answer is a NumPy array. A block of pixels at a time is held in
        doubles.
        """
        p = host_map(p, source)
        codes = codes_of(p.dtype)
        limit = limit_of(p.dtype, self.ends)
        if codes is not None:
            return self._scaled(codes, limit).astype(np.float32)[p]
        out = np.empty_like(p, dtype=np.float64 if p.dtype.itemsize >= 8 else np.float32)
        options: dict[str, Any] = {"flags": ["external_loop", "buffered"], "op_dtypes": [np.float64] * 2}
        pairs = np.nditer(
            [p, out],
            op_flags=[["readonly"], ["writeonly"]],
            casting="same_kind",
            buffersize=_BLOCK,
            **options,
        )
        with pairs:
            for values, scaled in pairs:
                scaled[...] = self._scaled(check_block(values, p, source), limit)
        return out

    def calibrate(self, prediction: Prediction, *, keep_mask: bool = True) -> Prediction:
        """Give the same prediction with calibrated probabilities, to be scored.

        Parameters
        ----------
        prediction
            A mask that was given is kept whatever ``keep_mask`` says.
        keep_mask
            Keep the mask ``p >= threshold`` of the original probabilities, because that is the mask that is
            delivered. ``False`` makes it anew from the calibrated ones: with an intercept, or a threshold
            other than 0.5, it is another mask.
        """
        if not isinstance(prediction, Prediction):
            raise ParameterError(f"prediction: expected Prediction(p), got {prediction!r}.")
        mask = mask_of(prediction) if keep_mask and prediction.mask is None else prediction.mask
        p = self.apply(prediction.probabilities, source=prediction.source)
        return replace(prediction, probabilities=p, mask=mask)

    def to_dict(self) -> dict[str, Any]:
        """Give what `from_dict` takes, ready for JSON."""
        return {"name": self.name, **asdict(self), "used_ids": sorted(self.used_ids)}

    def save(self, path: str | Path) -> None:
        """Write JSON; a file that is there is replaced in one step, or left as it was."""
        write_json(path, {"format": _FORMAT, **self.to_dict()})

    @staticmethod
    def load(path: str | Path) -> Scaling:
        """Read what `save` wrote, or the JSON of `to_dict`, which says nothing of a format."""
        saved = read_json(path)
        if isinstance(saved, Mapping) and "format" in saved:
            check_format(saved, _FORMAT, str(path))
            saved = {name: value for name, value in saved.items() if name != "format"}
        return Scaling.from_dict(saved, source=str(path))

    @staticmethod
    def from_dict(saved: Mapping[str, Any], *, source: str = "scaling") -> Scaling:
        """Make again what `to_dict` gave; `SavedStateError` names what is missing, unknown or wrong.

        A policy keeps it without ``used_ids``, and nobody can tell then from which cases it has learned.
        """
        kinds: dict[str, type[Scaling]] = {kind.name: kind for kind in (TemperatureScaling, PlattScaling)}
        name = saved.get("name") if isinstance(saved, Mapping) else None
        if not isinstance(name, str) or name not in kinds:
            raise SavedStateError(f"{source}: name: expected one of {', '.join(kinds)}, got {name!r}.")
        values = {"used_ids": (), **{key: saved[key] for key in saved if key != "name"}}
        return rebuild(kinds[name], values, source)

    def _scaled(self, p: Any, limit: float) -> Any:
        from scipy.special import expit

        slope, intercept = self.curve
        with np.errstate(over="ignore"):  # an absurd slope makes all pixels certain
            scaled = expit(slope * logits_of(p, limit) + intercept)
        return np.where(is_end(p), p, scaled) if self.ends == "keep" else scaled


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0.0 < value < float("inf")


@dataclass(frozen=True)
class TemperatureScaling(Scaling):
    """Divide the logits of all pixels by one number, learned from labelled cases.

    A temperature above 1 draws probabilities towards one half. The mask ``p >= 0.5`` does not change.

    Attributes
    ----------
    temperature
        ``None`` until it is given or learned.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random((20, 64, 64))
    >>> truth = rng.random(q.shape) < q
    >>> sharp = q**2 / (q**2 + (1 - q) ** 2)  # twice the logits: the model is too sure
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
            raise NotFittedError("TemperatureScaling: call fit(cases), or give the temperature.")
        return 1.0 / self.temperature, 0.0

    def _with_curve(self, slope: float, intercept: float) -> Self:
        return replace(self, temperature=1.0 / slope)


@dataclass(frozen=True)
class PlattScaling(Scaling):
    """Scale and shift the logits of all pixels by two numbers, learned from labelled cases.

    The shift corrects a model that finds too much or too little; it moves the pixels that cross one half.

    Attributes
    ----------
    slope, intercept
        ``None`` until they are given or learned.

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
            raise NotFittedError("PlattScaling: call fit(cases), or give slope and intercept.")
        return self.slope, self.intercept

    def _with_curve(self, slope: float, intercept: float) -> Self:
        return replace(self, slope=slope, intercept=intercept)
