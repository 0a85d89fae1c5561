"""Conformal bounds and intervals for the Dice of a new image, from its confidence.

Split conformal prediction: a monotone curve from confidence to Dice is learned on one part of the labelled
cases, and the errors of the curve on the other part say how far the truth may be away. The parts are drawn,
and the errors ranked, separately for each cell: accepted and deferred cases, and groups where there are
any. A single ranking over all cases would keep its promise on average only: too well for the accepted
cases, and not for the deferred.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from segtrust.errors import NotFittedError, ParameterError, TooFewCasesError
from segtrust.params import HasParams
from segtrust.saved import check_keys, reading, rebuild
from segtrust.selective.cells import NO_GROUP, ConformalCell, DiceIntervals, margins, ranked
from segtrust.selective.coverage import exact
from segtrust.selective.labels import texts_of
from segtrust.selective.recalibration import Recalibration
from segtrust.selective.seen import HashedIds, ids_of, refuse_seen
from segtrust.selective.shuffling import seed_for, shuffled_places
from segtrust.selective.vectors import check_fraction, check_number, check_seed, confidences_of, dices_of

__all__ = ["ConformalDice"]

_PREDICTORS = ("isotonic", "identity")


@dataclass(frozen=True)
class ConformalDice(HasParams):
    """Bounds and intervals for the Dice of new cases that hold at a level whatever the distribution.

    The level is reached on average over draws of the labelled cases, for new cases exchangeable with those of
    their cell; after a shift nothing is promised (see `segtrust.drift_test`). Tied errors only make bounds
    wider.

    Attributes
    ----------
    level
        Chance, at least, that the Dice of a new case is inside; read as the decimal that it was written as.
    threshold
        Of acceptance; bounds are then found separately for accepted (at or above it) and deferred cases.
    predictor
        ``"isotonic"`` learns a growing curve from confidence to Dice; ``"identity"`` takes the confidence
        for the Dice and needs no cases to learn from.
    train_share
        Share of each cell that the curve is learned from; the errors of the others are ranked.
    seed
        Of the random split; without, it is new each time where many confidences are equal. `fit` keeps it.
    recalibration, cells, used_ids
        What `fit` has learned, and from whom.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(200)
    >>> dice = np.clip(confidence + rng.normal(0, 0.05, 200), 0, 1)
    >>> bounds = ConformalDice(level=0.9, threshold=0.5).fit(confidence, dice)
    >>> new = bounds.interval([0.2, 0.8])
    >>> new.lower.round(2).tolist(), new.upper.round(2).tolist()
    ([0.01, 0.71], [0.26, 0.92])
    """

    level: float = 0.9
    threshold: float | None = None
    predictor: str = "isotonic"
    train_share: float = 0.5
    seed: int | None = None
    recalibration: Recalibration | None = None
    cells: tuple[ConformalCell, ...] = ()
    used_ids: frozenset[str] | HashedIds = frozenset()

    _learned = ("recalibration", "cells", "used_ids")

    def __post_init__(self) -> None:
        """Check the options."""
        check_fraction(self.level, "level", open_ends=True)
        check_fraction(self.train_share, "train_share", open_ends=True)
        if self.seed is not None:
            check_seed(self.seed)
        if self.predictor not in _PREDICTORS:
            raise ParameterError(f"predictor: expected one of {_PREDICTORS}, got {self.predictor!r}.")
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_number(self.threshold, "threshold"))

    def fit(
        self,
        confidence: Any,
        dice: Any,
        *,
        groups: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> Self:
        """Learn from labelled cases that nothing else has learned from.

        Parameters
        ----------
        confidence, dice
            One number a case each.
        groups
            Structure, centre or scanner of each case: bounds then hold for each group. Text or numbers,
            compared as text: 1, 1.0 and "1" are the same group.
        ids, used_ids
            Names of these cases, and of those that the threshold, the estimator or a calibration of the
            probabilities were chosen with (`Policy.used_ids`, say); `SeenCasesError` where a case is in both.
        """
        ids = ids_of(ids)
        confidence = confidences_of(confidence, ids=ids, fewest=2)
        dice = dices_of(dice, confidence.size, ids=ids)
        names = refuse_seen(ids, used_ids, confidence.size)
        keys = self._keys(confidence, groups, ids)
        seed = seed_for(confidence, self.seed)
        learns = self._split(keys, shuffled_places(seed, confidence, ids=names or None))
        curve = Recalibration.fit(confidence[learns], dice[learns]) if learns.any() else None
        errors = _expected(curve, confidence) - dice
        cells = [self._cell(key, errors[(keys == key) & ~learns]) for key in np.unique(keys)]
        return replace(self, seed=seed, recalibration=curve, cells=tuple(cells), used_ids=frozenset(names))

    def predict(self, confidence: Any) -> Any:
        """Give the Dice that is expected at each confidence; `interval` says how far off it may be.

        Examples
        --------
        >>> confidence = np.linspace(0.0, 1.0, 40)
        >>> ConformalDice().fit(confidence, confidence / 2).predict([0.5]).round(1).tolist()
        [0.2]
        """
        if not self.cells:
            raise NotFittedError(_UNFITTED)
        return _expected(self.recalibration, confidences_of(confidence))

    def interval(
        self, confidence: Any, group: Any = None, *, ids: Sequence[Any] | None = None
    ) -> DiceIntervals:
        """Give the interval of each new case: each side is missed with at most half of 1 - level.

        Parameters
        ----------
        confidence
            One a case.
        group
            One for all cases, or one a case. A group that `fit` has not seen gets [0, 1].
        ids
            Names of the cases; `SeenCasesError` for one that `fit` has learned from.
        """
        return self._read(confidence, group, ids, ("below_of_two", "above_of_two"))

    def lower_bound(
        self, confidence: Any, group: Any = None, *, ids: Sequence[Any] | None = None
    ) -> DiceIntervals:
        """Give the lower bound of each new case, with 1 as the upper end; parameters as for `interval`."""
        return self._read(confidence, group, ids, ("below", None))

    def to_dict(self) -> dict[str, Any]:
        """Give what `from_dict` takes, ready for JSON; ids are in the clear unless they are hashed."""
        used = self.used_ids
        return {
            **{name: getattr(self, name) for name in _OPTIONS},
            "recalibration": self.recalibration.to_dict() if self.recalibration else None,
            "cells": [asdict(cell) for cell in self.cells],
            "used_ids": used.to_dict() if isinstance(used, HashedIds) else sorted(used),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "intervals") -> Self:
        """Make again what `to_dict` gave; `SavedStateError` names what is missing, unknown or wrong."""
        values = check_keys(saved, (*_OPTIONS, "recalibration", "cells", "used_ids"), source)
        curve, used = values["recalibration"], values["used_ids"]
        with reading(source):
            values["recalibration"] = None if curve is None else Recalibration.from_dict(curve, source=source)
            values["cells"] = tuple(rebuild(ConformalCell, each, source) for each in values["cells"])
            hashed = isinstance(used, Mapping)
            values["used_ids"] = HashedIds.from_dict(used) if hashed else frozenset(ids_of(used) or ())
            return cls(**values)

    def cases_needed(self, *, two_sided: bool = True) -> int:
        """Give the fewest labelled cases a cell needs for an interval, or a lower bound, better than [0, 1].

        Examples
        --------
        >>> ConformalDice(level=0.9, predictor="identity").cases_needed(two_sided=False)
        9
        >>> ConformalDice(level=0.9).cases_needed()  # 19 to be ranked, and half to learn from
        37
        """
        level = self._side_level(two_sided)
        ranked = math.ceil(level / (1 - level))
        return next(n for n in range(ranked, 10**9) if n - self._learners(n) >= ranked)

    def _side_level(self, two_sided: bool) -> Fraction:
        level = exact(self.level)
        return (1 + level) / 2 if two_sided else level

    def _learners(self, n: int) -> int:
        """Give the number of cases out of ``n`` that the curve is learned from."""
        return 0 if self.predictor == "identity" else math.floor(n * exact(self.train_share))

    def _keys(self, confidence: Any, groups: Any, ids: Sequence[str] | None) -> Any:
        """Name the cell of each case."""
        n = confidence.size
        names = np.full(n, NO_GROUP) if groups is None else _group_names(groups, n, ids)
        if self.threshold is None:
            decisions = np.full(confidence.size, "all")
        else:
            decisions = np.where(confidence >= self.threshold, "accepted", "deferred")
        return np.array([f"{decision}:{name}" for decision, name in zip(decisions, names, strict=True)])

    def _split(self, keys: Any, order: Any) -> Any:
        """Choose the cases that the curve is learned from, in each cell the first of a random order."""
        learns = np.zeros(keys.size, bool)
        for key in np.unique(keys):
            members = order[keys[order] == key]
            learns[members[: self._learners(members.size)]] = True
        if self.predictor == "isotonic" and not learns.any():
            raise TooFewCasesError("confidence: no cell has cases enough to learn a curve from.")
        return learns

    def _cell(self, key: str, errors: Any) -> ConformalCell:
        decision, _, group = key.partition(":")
        one, two = self._side_level(False), self._side_level(True)
        sides = (ranked(errors, one), ranked(errors, two), ranked(-errors, two))
        return ConformalCell(decision, group, errors.size, *sides)

    def _read(self, confidence: Any, group: Any, ids: Any, sides: tuple[str, str | None]) -> DiceIntervals:
        if not self.cells:
            raise NotFittedError(_UNFITTED)
        ids = ids_of(ids)
        confidence = confidences_of(confidence, ids=ids)
        refuse_seen(ids, self.used_ids if ids is not None else None, confidence.size)
        cells = self._cells_of(confidence, group, ids)
        predicted = _expected(self.recalibration, confidence)
        below, above = (margins(cells, side) for side in sides)
        trivial = np.isnan(below) | np.isnan(above)
        return DiceIntervals(
            lower=np.where(trivial, 0.0, np.clip(predicted - below, 0.0, 1.0)),
            upper=np.where(trivial, 1.0, np.clip(predicted + above, 0.0, 1.0)),
            predicted=predicted,
            trivial=trivial,
            n=np.array([0 if cell is None else cell.n for cell in cells]),
            cases_needed=self.cases_needed(two_sided=sides[1] is not None),
        )

    def _cells_of(self, confidence: Any, group: Any, ids: Sequence[str] | None) -> list[ConformalCell | None]:
        """Find the cell of each case; ``None`` for one that no labelled case was in."""
        known = {f"{cell.decision}:{cell.group}": cell for cell in self.cells}
        if group is None and any(cell.group != NO_GROUP for cell in self.cells):
            raise ParameterError("group: expected the group of each case, because fit() was given groups.")
        return [known.get(str(key)) for key in self._keys(confidence, group, ids)]


_UNFITTED = "ConformalDice: call fit(confidence, dice) with labelled cases first."
_OPTIONS = ("level", "threshold", "predictor", "train_share", "seed")


def _group_names(groups: Any, n: int, ids: Sequence[str] | None) -> Any:
    """Give the group of each case as text, from one a case or one for all."""
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        return np.broadcast_to(texts_of([groups], 1, "group"), n)
    return texts_of(groups, n, "groups", ids=ids)


def _expected(curve: Recalibration | None, confidence: Any) -> Any:
    """Give the Dice expected at each confidence; the confidence itself where no curve was learned."""
    return confidence if curve is None else curve.predict(confidence)
