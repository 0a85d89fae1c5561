"""Cases ready to be resampled: checked, ranked once, drawn by themselves or with their patients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import TooFewCasesError
from segtrust.selective.curve import ROUNDING, risk_coverage_curve
from segtrust.selective.labels import labels_of
from segtrust.selective.statistic import Statistic
from segtrust.selective.vectors import losses_of, weights_of
from segtrust.settings import current_threads
from segtrust.threads import in_order

__all__ = ["Resamples", "Sample"]


@dataclass(frozen=True)
class Resamples:
    """Cases ranked once, ready to be resampled: a sum of signed walks.

    Attributes
    ----------
    walks
        Pairs of a sign and a ranking.
    what
        Kind of the walk and the limit of the risk.
    units
        Number of cases or patients.
    """

    walks: Sequence[tuple[float, Any]]
    what: tuple[int, float]
    units: int

    def drawn(self, states: Any) -> Any:
        """Values of the resamples that start at these states."""
        from segtrust.selective.loops_resample import resample

        return self._shared_out(resample, states)

    def left_out(self, groups: Any) -> Any:
        """Values without each group of units."""
        from segtrust.selective.loops_resample import leave_out

        return self._walked(leave_out, groups, np.empty(int(groups.max()) + 1))

    def _walked(self, loop: Callable[..., None], given: Any, values: Any) -> Any:
        from segtrust.selective.loops_draw import new_room
        from segtrust.selective.loops_resample import STATE

        total = np.zeros(values.size)
        for sign, ranking in self.walks:
            loop(given, ranking, self.what, new_room(self.units, STATE), values)
            total += sign * values
        return total

    def _shared_out(self, loop: Callable[..., None], states: Any) -> Any:
        """Let each thread walk whole sets of groups that share counts, so that no digit depends on it."""
        from segtrust.selective.loops_draw import LANES, TURNS

        groups = -(-states.size // (LANES * TURNS))
        threads = min(current_threads(), groups)
        size = -(-groups // threads) * LANES * TURNS
        stretches = [states[first : first + size] for first in range(0, states.size, size)]
        return np.concatenate(in_order(lambda some: self._walked(loop, some, np.empty(some.size)), stretches))


@dataclass(frozen=True)
class Sample:
    """Losses, weights and units of cases, checked; those of weight 0 are gone.

    Attributes
    ----------
    loss, weights, unit
        Of each case that counts.
    counts
        Which of the cases that came in count.
    units
        Number of cases or patients that are drawn.
    """

    loss: Any
    weights: Any
    unit: Any
    counts: Any
    units: int

    @classmethod
    def of(cls, loss: Any, n: int, patients: Any = None, weights: Any = None) -> Sample:
        """Check what belongs to the cases beside their confidence."""
        loss, weights = losses_of(loss, n), weights_of(weights, n)
        labels = np.arange(n) if patients is None else labels_of(patients, n, "patients")
        counts = weights > 0.0
        unit = np.unique(labels[counts], return_inverse=True)[1]
        units = int(unit.max()) + 1
        if units < 2:
            what = "cases" if patients is None else "patients"
            raise TooFewCasesError(f"{what}: expected at least 2 to resample, got {units}.")
        return cls(loss[counts], weights[counts], unit, counts, units)

    def ranked(self, confidence: Any) -> Any:
        """Sort the cases by their confidence."""
        from segtrust.selective.loops import order_of
        from segtrust.selective.loops_resample import Ranking

        confidence = np.ascontiguousarray(confidence)
        order = order_of(confidence)
        sorted_confidence, mass = confidence[order], self.weights[order] / self.weights.mean()
        last = np.append(sorted_confidence[1:] != sorted_confidence[:-1], True)
        return Ranking(self.unit[order], mass, mass * self.loss[order], last)

    def resamples(self, statistic: Statistic, signed: Sequence[tuple[float, Any]]) -> Resamples:
        """Make ready the sum of a statistic over signed confidences."""
        from segtrust.selective.loops_resample import KINDS

        walks = [(sign, self.ranked(confidence)) for sign, confidence in signed]
        return Resamples(walks, (KINDS[statistic.kind], statistic.target * (1.0 + ROUNDING)), self.units)

    def value(self, statistic: Statistic, confidence: Any) -> float:
        """Statistic of the cases themselves."""
        curve = risk_coverage_curve(confidence, self.loss, weights=self.weights)
        if statistic.kind == "coverage_at_risk":
            return curve.coverage_at_risk(statistic.target) or 0.0
        return curve.augrc if statistic.kind == "augrc" else curve.aurc
