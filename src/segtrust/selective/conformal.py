"""Conformal bounds and intervals for the Dice of a new image, from its confidence.

Split conformal prediction: a monotone curve from confidence to Dice is learned on one part of the labelled
cases, and the errors of the curve on the other part show how far the Dice may be away from it. The parts
are drawn, and the errors ranked, separately for each cell: accepted and deferred cases, and groups if there
are any. A single ranking over all cases would keep its level only on average: exceed it for the accepted
cases, and miss it for the deferred ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, check_fraction, check_number, check_seed
from segtrust._display import Displayed, html_table
from segtrust._files import check_keys, naming_errors, rebuild
from segtrust._optional import require
from segtrust._params import HasParams
from segtrust._storage import Storable, without_format
from segtrust._types import BoolArray, FloatArray, IntArray, VectorLike
from segtrust.errors import NotFittedError, ParameterError, TooFewCasesError
from segtrust.selective.coverage import as_decimal
from segtrust.selective.estimate import Recalibration
from segtrust.selective.seen import HashedIds, ids_as_text, reject_seen
from segtrust.selective.shuffling import choose_seed, shuffled_order
from segtrust.selective.vectors import check_confidences, check_labels, check_outcomes, check_same_index

if TYPE_CHECKING:
    from pandas import DataFrame

_PREDICTORS = ("isotonic", "identity")
_OPTIONS = ("level", "threshold", "predictor", "train_share", "seed")
_NO_GROUP = ""


@dataclass(frozen=True, eq=False, repr=False)
class DiceIntervals(Displayed):
    """Intervals for the Dice of new cases, at the requested level.

    Attributes
    ----------
    lower, upper
        Ends of the interval, one per case, in [0, 1].
    predicted
        Expected Dice of each case.
    trivial
        Whether a case got [0, 1] because its cell has too few labelled cases for anything better.
    n
        Number of labelled cases whose errors were ranked for each case.
    cases_needed
        Number of labelled cases that a cell needs for an interval better than [0, 1].
    """

    lower: FloatArray
    upper: FloatArray
    predicted: FloatArray
    trivial: BoolArray
    n: IntArray
    cases_needed: int

    def _shown(self) -> dict[str, Any]:
        width = self.upper - self.lower
        shown = {"cases": self.lower.size, "trivial": int(self.trivial.sum())}
        return shown | {"mean_width": float(width.mean()) if width.size else None}

    def _repr_html_(self) -> str:
        """Return a table for a notebook: one row per case."""
        names = ("lower", "predicted", "upper", "trivial", "n")
        columns = (getattr(self, name).tolist() for name in names)
        rows = [(number, *row) for number, row in enumerate(zip(*columns, strict=True))]
        return html_table("Dice intervals", rows, header=("case", *names))

    def to_dataframe(self, index: Any = None) -> DataFrame:
        """Return a pandas table with one row per case: lower, predicted, upper, trivial and n.

        Parameters
        ----------
        index
            Index of the rows, such as that of the table with the confidences, so that both can be joined.
        """
        names = ("lower", "predicted", "upper", "trivial", "n")
        columns = {name: getattr(self, name) for name in names}
        return require("pandas", extra="tables").DataFrame(columns, index=index)


@dataclass(frozen=True)
class ConformalCell:
    """Margins found from the ranked errors of one cell: the cases of one decision and group.

    Attributes
    ----------
    decision
        ``"accepted"``, ``"deferred"``, or ``"all"`` if there is no threshold.
    group
        Name of the group; empty if there are no groups.
    n
        Number of cases whose errors were ranked.
    below
        How far the Dice may lie below the curve, for a lower bound; ``None`` if ``n`` is too small.
    below_of_two, above_of_two
        How far it may lie below and above the curve, for an interval; ``None`` if ``n`` is too small.
    """

    decision: str
    group: str
    n: int
    below: float | None
    below_of_two: float | None
    above_of_two: float | None

    def __post_init__(self) -> None:
        """Check values that may come from a file."""
        if self.decision not in ("accepted", "deferred", "all"):
            raise ParameterError(f"decision: expected accepted, deferred or all, got {self.decision!r}.")
        if not isinstance(self.group, str):
            raise ParameterError(f"group: expected text, got {self.group!r}.")
        check_count(self.n, "n", least=0)
        for name in ("below", "below_of_two", "above_of_two"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name)


@dataclass(frozen=True, repr=False)
class ConformalDice(HasParams, Displayed, Storable):
    """Bounds and intervals for the Dice of new cases that hold at a level for any distribution.

    The level is reached on average over draws of the labelled cases, for new cases exchangeable with those of
    their cell; after a drift nothing is guaranteed (see `segtrust.drift_test`). Tied errors only make bounds
    wider.

    Attributes
    ----------
    level
        Lower limit on the probability that the Dice of a new case is inside; read as the decimal that it was
        written as.
    threshold
        Acceptance threshold; bounds are then found separately for accepted (at or above it) and deferred
        cases.
    predictor
        How the Dice is predicted from the confidence: ``"isotonic"`` learns an increasing curve;
        ``"identity"`` takes the confidence as the expected Dice and needs no cases to learn from.
    train_share
        Share of each cell that the curve is learned from; the errors of the others are ranked.
    seed
        Random seed of the split. Without one, the split is random each time if many confidences are equal.
        `fit` keeps the seed.
    recalibration, cells, used_ids
        What `fit` has learned, and the ids of the cases it has learned from.

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
    _format = "segtrust-conformal-dice-1"

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
        confidence: VectorLike,
        dice: VectorLike | None = None,
        *,
        loss: VectorLike | None = None,
        groups: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> Self:
        """Return bounds learned from labelled cases that nothing else has learned from.

        Parameters
        ----------
        confidence
            Confidence of each case.
        dice
            Dice of each case, in [0, 1].
        loss
            One minus the Dice of each case, instead of the Dice.
        groups
            Structure, centre or scanner of each case: the bounds then hold for each group. Text or numbers,
            compared as text: 1, 1.0 and "1" are the same group.
        ids
            Id of each case.
        used_ids
            Ids of cases that the threshold, the estimator or a calibration of the probabilities was chosen
            with (such as `Policy.used_ids`); `SeenCasesError` if one of these cases is among them.
        """
        check_same_index(confidence=confidence, dice=dice, loss=loss, groups=groups, ids=ids)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids, fewest=2)
        dice = check_outcomes(confidence, loss, dice, ids=ids, as_dice=True)
        names = reject_seen(ids, used_ids, confidence.size)
        keys = self._cell_keys(confidence, groups, ids)
        seed = choose_seed(confidence, self.seed)
        order = shuffled_order(seed, confidence, ids=names or None)
        is_training = np.zeros(keys.size, bool)
        for key in np.unique(keys):
            members = order[keys[order] == key]
            is_training[members[: self._training_cases(members.size)]] = True
        if self.predictor == "isotonic" and not is_training.any():
            raise TooFewCasesError("confidence: no cell has enough cases to learn a curve from.")
        curve = None
        if is_training.any():
            curve = Recalibration.of_checked(confidence[is_training], dice[is_training])
        errors = _expected_dice(curve, confidence) - dice
        cells = [self._make_cell(key, errors[(keys == key) & ~is_training]) for key in np.unique(keys)]
        return replace(self, seed=seed, recalibration=curve, cells=tuple(cells), used_ids=frozenset(names))

    def predict(self, confidence: VectorLike) -> FloatArray:
        """Return the expected Dice at each confidence; `interval` returns how far off it may be.

        Examples
        --------
        >>> confidence = np.linspace(0.0, 1.0, 40)
        >>> ConformalDice().fit(confidence, confidence / 2).predict([0.5]).round(1).tolist()
        [0.2]
        """
        self._check_fitted()
        predicted: FloatArray = _expected_dice(self.recalibration, check_confidences(confidence))
        return predicted

    def interval(
        self, confidence: VectorLike, group: Any = None, *, ids: Sequence[Any] | None = None
    ) -> DiceIntervals:
        """Return the interval of each new case; the Dice is beyond each end with at most (1 - level) / 2.

        Parameters
        ----------
        confidence
            Confidence of each case.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, 1].
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, group, ids, "below_of_two", "above_of_two")

    def lower_bound(
        self, confidence: VectorLike, group: Any = None, *, ids: Sequence[Any] | None = None
    ) -> DiceIntervals:
        """Return the lower bound of each new case, with 1 as the upper end.

        Parameters
        ----------
        confidence
            Confidence of each case.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, 1].
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, group, ids, "below", None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, for `from_dict`; ids are readable unless they are hashed."""
        used = self.used_ids
        return {
            **{name: getattr(self, name) for name in _OPTIONS},
            "recalibration": self.recalibration.to_dict() if self.recalibration else None,
            "cells": [asdict(cell) for cell in self.cells],
            "used_ids": used.to_dict() if isinstance(used, HashedIds) else sorted(used),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "intervals") -> Self:
        """Rebuild what `to_dict` returned; `SavedStateError` names what is missing, unknown or wrong."""
        values = check_keys(without_format(saved), (*_OPTIONS, "recalibration", "cells", "used_ids"), source)
        curve, used = values["recalibration"], values["used_ids"]
        with naming_errors(source):
            values["recalibration"] = None if curve is None else Recalibration.from_dict(curve, source=source)
            values["cells"] = tuple(rebuild(ConformalCell, cell, source) for cell in values["cells"])
            if isinstance(used, Mapping):
                values["used_ids"] = HashedIds.from_dict(used)
            else:
                values["used_ids"] = frozenset(ids_as_text(used) or ())
            return cls(**values)

    def to_dataframe(self) -> DataFrame:
        """Return what `fit` has learned as a pandas table, one row per cell."""
        columns = [attribute.name for attribute in fields(ConformalCell)]
        rows = [asdict(cell) for cell in self.cells]
        return require("pandas", extra="tables").DataFrame(rows, columns=columns)

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"level": self.level}
        shown |= {} if self.threshold is None else {"threshold": self.threshold}
        shown |= {"predictor": self.predictor} if self.predictor != "isotonic" else {}
        shown["fitted"] = bool(self.cells)
        if self.cells:
            shown |= {"cells": len(self.cells), "ranked_cases": sum(cell.n for cell in self.cells)}
        return shown

    def _caption(self) -> str:
        return f"Conformal Dice intervals at level {self.level:g}"

    def cases_needed(self, *, two_sided: bool = True) -> int:
        """Return the number of labelled cases that a cell needs for bounds better than [0, 1].

        Parameters
        ----------
        two_sided
            Whether the number is for an interval; otherwise for a lower bound.

        Examples
        --------
        >>> ConformalDice(level=0.9, predictor="identity").cases_needed(two_sided=False)
        9
        >>> ConformalDice(level=0.9).cases_needed()  # 19 to be ranked, and half to learn from
        37
        """
        level = self._side_level(two_sided)
        to_rank = math.ceil(level / (1 - level))
        share = 0 if self.predictor == "identity" else as_decimal(self.train_share)
        return math.floor((to_rank - 1) / (1 - share)) + 1

    def _check_fitted(self) -> None:
        if not self.cells:
            raise NotFittedError("ConformalDice: call fit(confidence, dice) with labelled cases first.")

    def _side_level(self, two_sided: bool) -> Fraction:
        level = as_decimal(self.level)
        return (1 + level) / 2 if two_sided else level

    def _training_cases(self, n: int) -> int:
        """Return how many of ``n`` cases the curve is learned from."""
        return 0 if self.predictor == "identity" else math.floor(n * as_decimal(self.train_share))

    def _cell_keys(self, confidence: Any, groups: Any, ids: Sequence[str] | None) -> Any:
        """Return the key of each case's cell: its decision and its group (one for all cases, or one each)."""
        n = confidence.size
        if groups is None:
            names = np.full(n, _NO_GROUP)
        elif isinstance(groups, str) or not isinstance(groups, Iterable):
            names = np.broadcast_to(check_labels([groups], 1, "group"), n)
        else:
            names = check_labels(groups, n, "groups", ids=ids)
        if self.threshold is None:
            decisions = np.full(n, "all")
        else:
            decisions = np.where(confidence >= self.threshold, "accepted", "deferred")
        return np.array([f"{decision}:{name}" for decision, name in zip(decisions, names, strict=True)])

    def _make_cell(self, key: str, errors: Any) -> ConformalCell:
        decision, _, group = key.partition(":")
        one_sided, two_sided = self._side_level(False), self._side_level(True)
        return ConformalCell(
            decision,
            group,
            errors.size,
            below=_ranked_error(errors, one_sided),
            below_of_two=_ranked_error(errors, two_sided),
            above_of_two=_ranked_error(-errors, two_sided),
        )

    def _intervals(
        self, confidence: Any, group: Any, ids: Any, below_name: str, above_name: str | None
    ) -> DiceIntervals:
        """Return intervals with the named margins of each case's cell; without one, the upper end is 1."""
        self._check_fitted()
        check_same_index(confidence=confidence, group=group, ids=ids)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids)
        reject_seen(ids, self.used_ids if ids is not None else None, confidence.size)
        if group is None and any(cell.group != _NO_GROUP for cell in self.cells):
            raise ParameterError("group: expected the group of each case, because fit() was given groups.")
        known = {f"{cell.decision}:{cell.group}": cell for cell in self.cells}
        cells = [known.get(str(key)) for key in self._cell_keys(confidence, group, ids)]
        predicted = _expected_dice(self.recalibration, confidence)
        below = _margins(cells, below_name)
        above = np.full(len(cells), math.inf) if above_name is None else _margins(cells, above_name)
        trivial = np.isnan(below) | np.isnan(above)
        return DiceIntervals(
            lower=np.where(trivial, 0.0, np.clip(predicted - below, 0.0, 1.0)),
            upper=np.where(trivial, 1.0, np.clip(predicted + above, 0.0, 1.0)),
            predicted=predicted,
            trivial=trivial,
            n=np.array([0 if cell is None else cell.n for cell in cells]),
            cases_needed=self.cases_needed(two_sided=above_name is not None),
        )


def _expected_dice(curve: Recalibration | None, confidence: Any) -> Any:
    """Return the expected Dice at each confidence; the confidence itself if no curve was learned."""
    return confidence if curve is None else curve.predict(confidence)


def _ranked_error(errors: Any, level: Fraction) -> float | None:
    """Return the ⌈(n + 1) level⌉-th smallest error, which the next one exceeds with at most 1 - level."""
    rank = math.ceil((errors.size + 1) * level)
    return float(np.partition(errors, rank - 1)[rank - 1]) if rank <= errors.size else None


def _margins(cells: Sequence[ConformalCell | None], name: str) -> Any:
    """Return the named margin of each case's cell; NaN if there is none."""
    margins = [None if cell is None else getattr(cell, name) for cell in cells]
    return np.array([math.nan if margin is None else margin for margin in margins])
