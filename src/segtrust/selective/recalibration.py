"""A monotone curve from confidence to Dice, learned from labelled cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from segtrust.errors import ParameterError
from segtrust.saved import rebuild
from segtrust.selective.vectors import confidences_of, dices_of, vector

__all__ = ["Recalibration", "monotone_values", "steps_of"]


@dataclass(frozen=True)
class Recalibration:
    """The Dice to be expected at a confidence: growing, linear between its knots, flat beyond them.

    Attributes
    ----------
    confidence, dice
        The knots, both in growing order.

    Examples
    --------
    >>> curve = Recalibration.fit([0.2, 0.4, 0.6, 0.8], [0.1, 0.5, 0.3, 0.9])
    >>> curve.predict([0.0, 0.5, 0.7]).round(6).tolist()
    [0.1, 0.4, 0.65]
    """

    confidence: tuple[float, ...]
    dice: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse knots that no growing curve has."""
        for name, knots in (("confidence", self.confidence), ("dice", self.dice)):
            object.__setattr__(self, name, tuple(vector(knots, name, fewest=0).tolist()))
        grows = all(np.all(np.diff(each) >= 0.0) for each in (self.confidence, self.dice))
        if not self.confidence or len(self.confidence) != len(self.dice) or not grows:
            raise ParameterError("recalibration: expected knots in growing order, as many in both lists.")
        if self.dice[0] < 0.0 or self.dice[-1] > 1.0:
            raise ParameterError(
                f"recalibration: expected Dice in [0, 1], got {self.dice[0]} to {self.dice[-1]}."
            )

    @classmethod
    def fit(cls, confidence: Any, dice: Any) -> Self:
        """Learn the curve by isotonic regression (pool adjacent violators); ties count as one point."""
        confidence = confidences_of(confidence)
        dice = dices_of(dice, confidence.size)
        knots, counts, sums = steps_of(confidence, dice)
        values = np.clip(monotone_values(counts, sums), 0.0, 1.0)  # a mean of ones may be rounded to above 1
        kept = _ends_of_runs(values)
        return cls(tuple(knots[kept].tolist()), tuple(values[kept].tolist()))

    def predict(self, confidence: Any) -> Any:
        """Give the Dice to be expected of each case."""
        return np.interp(confidences_of(confidence), self.confidence, self.dice)

    def to_dict(self) -> dict[str, list[float]]:
        """Give what `from_dict` takes, ready for JSON."""
        return {"confidence": list(self.confidence), "dice": list(self.dice)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "recalibration") -> Self:
        """Make again what `to_dict` gave."""
        return rebuild(cls, saved, source)


def steps_of(confidence: Any, dice: Any) -> tuple[Any, Any, Any]:
    """Give the distinct confidences, how many cases each has, and the sum of their Dice."""
    knots, place = np.unique(confidence, return_inverse=True)
    return knots, np.bincount(place), np.bincount(place, dice)


def monotone_values(counts: Any, sums: Any) -> Any:
    """Fit growing values to means, each weighing by its count; no count is 0."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(sums / counts, weights=counts).x


def _ends_of_runs(values: Any) -> Any:
    """Tell which values differ from a neighbour; the rest adds nothing to a curve that is linear between."""
    changes = np.diff(values) != 0.0
    return np.append(True, changes) | np.append(changes, True)
