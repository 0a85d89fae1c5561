"""Conformal bounds and intervals for the true volume of a structure, from the volume of its mask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust._arguments import check_number
from segtrust._files import check_keys, naming_errors
from segtrust._storage import without_format
from segtrust._types import VectorLike
from segtrust.errors import ParameterError
from segtrust.selective.conformal import (
    ConformalBounds,
    ConformalCell,
    Intervals,
    check_amounts,
    confidence_scale,
    rebuild_cells,
)
from segtrust.selective.seen import HashedIds, checksum_names, ids_as_text, reject_seen
from segtrust.selective.vectors import check_confidences, check_same_index

_OPTIONS = ("level", "threshold", "floor_ml")


@dataclass(frozen=True, eq=False, repr=False)
class VolumeIntervals(Intervals):
    """Intervals for the true volume of new cases in ml, at the requested level.

    Attributes
    ----------
    lower, upper
        Ends of the interval in ml, one per case, in [0, ∞].
    predicted
        Expected volume of each case in ml: that of its mask without the mean error of the labelled cases.
    trivial
        Whether a case got [0, ∞] because its cell has too few labelled cases for anything better.
    n
        Number of labelled cases whose errors were ranked for each case.
    cases_needed
        Number of labelled cases that a cell needs for an interval better than [0, ∞].
    """

    _title = "Volume intervals (ml)"
    _unit = "_ml"


@dataclass(frozen=True, repr=False)
class ConformalVolume(ConformalBounds):
    """Bounds and intervals for the true volume of new cases that hold at a level for any distribution.

    Errors of volume are divided by the volume of the mask × (1 - confidence + 0.02) + ``floor_ml`` and
    ranked, so that intervals are wide for large masks and for uncertain ones. Empty masks are ranked among
    themselves: how much was missed in them says nothing about the others.

    The level is reached on average over draws of the labelled cases, for new cases exchangeable with those of
    their cell; after a drift nothing is guaranteed (see `segtrust.drift_test`).

    Attributes
    ----------
    level
        Lower limit on the probability that the volume of a new case is inside; read as the decimal that it
        was written as.
    threshold
        Acceptance threshold; bounds are then found separately for accepted (at or above it) and deferred
        cases.
    floor_ml
        Volume in ml that is added to the scale, above 0, so that a mask of a few voxels has an interval too.
        Choose it before you see the labelled cases, as the smallest difference that matters.
    correction, cells, used_ids
        What `fit` has learned, and the ids of the cases it has learned from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence, true_volume_ml = rng.uniform(0.7, 1.0, 200), rng.uniform(2.0, 5.0, 200)
    >>> volume_ml = true_volume_ml * (1 + (1 - confidence) * rng.normal(0, 0.5, 200))
    >>> bounds = ConformalVolume(level=0.9).fit(confidence, volume_ml, true_volume_ml)
    >>> new = bounds.interval([0.95, 0.75], [3.0, 3.0])
    >>> new.lower.round(1).tolist(), new.upper.round(1).tolist()
    ([2.9, 2.6], [3.2, 3.5])
    """

    level: float = 0.9
    threshold: float | None = None
    floor_ml: float = 0.1
    correction: float | None = None
    cells: tuple[ConformalCell, ...] = ()
    used_ids: frozenset[str] | HashedIds = frozenset()

    _learned = ("correction", "cells", "used_ids")
    _format = "segtrust-conformal-volume-1"

    def __post_init__(self) -> None:
        """Check the options."""
        self._check_level()
        if check_number(self.floor_ml, "floor_ml") <= 0.0:
            raise ParameterError(f"floor_ml: expected a volume above 0, got {self.floor_ml!r}.")

    def fit(
        self,
        confidence: VectorLike,
        volume_ml: VectorLike,
        true_volume_ml: VectorLike,
        *,
        groups: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
        checksums: Sequence[str] | None = None,
    ) -> Self:
        """Return bounds learned from labelled cases that nothing else has learned from.

        Parameters
        ----------
        confidence
            Confidence of each case. One below 0 counts as 0, one above 1 as 1.
        volume_ml
            Volume of the mask of each case in ml (see `segtrust.volume_ml`).
        true_volume_ml
            Volume of its ground truth in ml.
        groups
            Structure, centre or scanner of each case: the bounds then hold for each group. Text or numbers,
            compared as text: 1, 1.0 and "1" are the same group.
        ids
            Id of each case.
        used_ids
            Ids of cases that the threshold, the estimator or a calibration of the probabilities was chosen
            with (such as `Policy.used_ids`); `SeenCasesError` if one of these cases is among them.
        checksums
            Checksum of each case's map, by which a used case is recognised under another name; empty if it is
            unknown, or if the mask is empty.
        """
        columns = {"volume_ml": volume_ml, "true_volume_ml": true_volume_ml}
        check_same_index(confidence=confidence, **columns, groups=groups, ids=ids, checksums=checksums)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids, fewest=2)
        volume, truth = (check_amounts(columns[name], name, confidence.size, ids) for name in columns)
        names = reject_seen(ids, used_ids, confidence.size, checksums=checksums)
        scale = self._scales(confidence, volume)
        keys = self._cell_keys(confidence, groups, ids, volume == 0.0)
        errors = volume - truth
        cells = [self._make_cell(key, (errors / scale)[keys == key]) for key in np.unique(keys)]
        correction = float(errors.sum() / scale.sum())
        used = frozenset(names) | checksum_names(checksums)
        return replace(self, correction=correction, cells=tuple(cells), used_ids=used)

    def interval(
        self,
        confidence: VectorLike,
        volume_ml: VectorLike,
        group: Any = None,
        *,
        ids: Sequence[Any] | None = None,
    ) -> VolumeIntervals:
        """Return the interval of each new case; its volume is beyond each end with at most (1 - level) / 2.

        Parameters
        ----------
        confidence
            Confidence of each case.
        volume_ml
            Volume of the mask of each case in ml.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, ∞].
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, volume_ml, group, ids, two_sided=True)

    def lower_bound(
        self,
        confidence: VectorLike,
        volume_ml: VectorLike,
        group: Any = None,
        *,
        ids: Sequence[Any] | None = None,
    ) -> VolumeIntervals:
        """Return the lower bound of each new case, with infinity as the upper end.

        Parameters
        ----------
        confidence
            Confidence of each case.
        volume_ml
            Volume of the mask of each case in ml.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, ∞].
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, volume_ml, group, ids, two_sided=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, for `from_dict`; ids are readable unless they are hashed."""
        names = (*_OPTIONS, "correction")
        return {name: getattr(self, name) for name in names} | self._saved_cells()

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "volume intervals") -> Self:
        """Rebuild what `to_dict` returned; `SavedStateError` names what is missing, unknown or wrong."""
        names = (*_OPTIONS, "correction", "cells", "used_ids")
        values = check_keys(without_format(saved), names, source)
        with naming_errors(source):
            return cls(**{**values, **rebuild_cells(values, source)})

    def _shown_options(self) -> dict[str, Any]:
        return {} if self.floor_ml == ConformalVolume.floor_ml else {"floor_ml": self.floor_ml}

    def _caption(self) -> str:
        return f"Conformal volume intervals at level {self.level:g}"

    def _scales(self, confidence: Any, volume: Any) -> Any:
        """Return what the margins of each case are proportional to, in ml."""
        return volume * confidence_scale(confidence) + self.floor_ml

    def _intervals(
        self, confidence: Any, volume_ml: Any, group: Any, ids: Any, *, two_sided: bool
    ) -> VolumeIntervals:
        confidence, ids = self._check_new_cases(confidence, group, ids, volume_ml=volume_ml)
        volume = check_amounts(volume_ml, "volume_ml", confidence.size, ids)
        keys = self._cell_keys(confidence, group, ids, volume == 0.0)
        scale = self._scales(confidence, volume)
        return VolumeIntervals(**self._ends(keys, volume, scale, largest=math.inf, two_sided=two_sided))
