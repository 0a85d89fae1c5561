"""Conformal bounds and intervals for the Dice of a new image, from its confidence.

Split conformal prediction: the errors that the confidence makes on labelled cases, each divided by a scale
that the map itself shows, are ranked, and the ranks show how far the Dice of a new case may be away from its
confidence. A map that is less certain has a larger scale, and so a wider interval. The errors are ranked
separately for each cell: accepted and deferred cases, and groups if there are any. A single ranking over all
cases would keep its level only on average: exceed it for the accepted cases, and miss it for the deferred
ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from segtrust._arguments import check_count, check_fraction, check_number, check_seed, warn_caller
from segtrust._display import Displayed, html_table
from segtrust._files import check_keys, naming_errors, rebuild
from segtrust._optional import require
from segtrust._params import HasParams
from segtrust._storage import Storable, without_format
from segtrust._types import BoolArray, FloatArray, IntArray, VectorLike
from segtrust.errors import CaseValueError, NotFittedError, ParameterError, TooFewCasesError
from segtrust.selective.coverage import as_decimal
from segtrust.selective.estimate import Recalibration
from segtrust.selective.seen import HashedIds, checksum_names, ids_as_text, reject_seen
from segtrust.selective.shuffling import choose_seed, shuffled_order
from segtrust.selective.vectors import (
    check_confidences,
    check_labels,
    check_outcomes,
    check_same_index,
    check_vector,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_PREDICTORS = ("corrected", "isotonic", "identity")
_SCALES = ("confidence", "spread", "none")
_OPTIONS = ("level", "threshold", "predictor", "train_share", "seed")
_DECISIONS = ("accepted", "deferred", "all", "empty")
_NO_GROUP = ""

SCALE_FLOOR = 0.02
"""Spread that is added to that of every map: a map that shows none may still be wrong."""
_ROUNDING = 1e-12
"""Added to scaled margins, so that no error that ties with a ranked one ends up outside by rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Displayed):
    """Base class for the intervals of new cases: one lower and one upper end per case."""

    lower: FloatArray
    upper: FloatArray
    predicted: FloatArray
    trivial: BoolArray
    n: IntArray
    cases_needed: int

    _title: ClassVar[str]
    _unit: ClassVar[str] = ""
    """End of the column names of ends and prediction, such as ``"_ml"``."""

    def _shown(self) -> dict[str, Any]:
        width = self.upper - self.lower
        shown = {"cases": self.lower.size, "trivial": int(self.trivial.sum())}
        return shown | {"mean_width": float(width.mean()) if width.size else None}

    def _repr_html_(self) -> str:
        """Return a table for a notebook: one row per case."""
        columns = self._columns()
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows = [(number, *row) for number, row in enumerate(values)]
        return html_table(self._title, rows, header=("case", *columns))

    def to_dataframe(self, index: Any = None) -> DataFrame:
        """Return a pandas table with one row per case: lower, predicted, upper, trivial and n.

        The first three columns have a unit in their name if there is one, such as ``lower_ml``.

        Parameters
        ----------
        index
            Index of the rows, such as that of the table with the confidences, so that both can be joined.
        """
        return require("pandas", extra="tables").DataFrame(self._columns(), index=index)

    def _columns(self) -> dict[str, Any]:
        ends = {f"{name}{self._unit}": getattr(self, name) for name in ("lower", "predicted", "upper")}
        return {**ends, "trivial": self.trivial, "n": self.n}


@dataclass(frozen=True, eq=False, repr=False)
class DiceIntervals(Intervals):
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

    _title = "Dice intervals"


@dataclass(frozen=True)
class ConformalCell:
    """Margins found from the ranked errors of one cell: the cases of one decision and group.

    Margins are multiples of the scale of a case. They are counted from its confidence (or from the curve, if
    one was learned), for a volume from the volume of its mask.

    Attributes
    ----------
    decision
        ``"accepted"``, ``"deferred"``, or ``"all"`` if there is no threshold; ``"empty"`` for the empty masks
        of `ConformalVolume`.
    group
        Name of the group; empty if there are no groups.
    n
        Number of cases whose errors were ranked.
    below
        How far the true value may lie below, for a lower bound; ``None`` if ``n`` is too small.
    below_of_two, above_of_two
        How far it may lie below and above, for an interval; ``None`` if ``n`` is too small.
    """

    decision: str
    group: str
    n: int
    below: float | None
    below_of_two: float | None
    above_of_two: float | None

    def __post_init__(self) -> None:
        """Check values that may come from a file."""
        if self.decision not in _DECISIONS:
            raise ParameterError(f"decision: expected one of {_DECISIONS}, got {self.decision!r}.")
        if not isinstance(self.group, str):
            raise ParameterError(f"group: expected text, got {self.group!r}.")
        check_count(self.n, "n", least=0)
        for name in ("below", "below_of_two", "above_of_two"):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name)


class ConformalBounds(HasParams, Displayed, Storable):
    """Base class for conformal bounds: cells, ranks and margins, whatever the bounds are for."""

    level: float
    threshold: float | None
    correction: float | None
    cells: tuple[ConformalCell, ...]
    used_ids: frozenset[str] | HashedIds

    def cases_needed(self, *, two_sided: bool = True) -> int:
        """Return the number of labelled cases that a cell needs for bounds that are not trivial.

        Parameters
        ----------
        two_sided
            Whether the number is for an interval; otherwise for a lower bound.

        Examples
        --------
        >>> ConformalDice(level=0.9).cases_needed(two_sided=False)
        9
        >>> ConformalDice(level=0.9).cases_needed()
        19
        >>> ConformalDice(level=0.9, predictor="isotonic").cases_needed()  # 19 to be ranked, half to learn
        37
        """
        level = self._side_level(two_sided)
        to_rank = math.ceil(level / (1 - level))
        return math.floor((to_rank - 1) / (1 - self._training_share())) + 1

    def to_dataframe(self) -> DataFrame:
        """Return what `fit` has learned as a pandas table, one row per cell."""
        columns = [attribute.name for attribute in fields(ConformalCell)]
        rows = [asdict(cell) for cell in self.cells]
        return require("pandas", extra="tables").DataFrame(rows, columns=columns)

    def _check_level(self) -> None:
        check_fraction(self.level, "level", open_ends=True)
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_number(self.threshold, "threshold"))
        if self.correction is not None:
            check_number(self.correction, "correction")

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"level": self.level}
        shown |= {} if self.threshold is None else {"threshold": self.threshold}
        shown |= self._shown_options()
        shown["fitted"] = bool(self.cells)
        if self.cells:
            shown |= {"cells": len(self.cells), "ranked_cases": sum(cell.n for cell in self.cells)}
        return shown

    def _shown_options(self) -> dict[str, Any]:
        """Return the options that are not at their default, for `repr`."""
        return {}

    def _check_fitted(self) -> None:
        if not self.cells:
            raise NotFittedError(f"{type(self).__name__}: call fit() with labelled cases first.")

    def _side_level(self, two_sided: bool) -> Fraction:
        level = as_decimal(self.level)
        return (1 + level) / 2 if two_sided else level

    def _training_share(self) -> Fraction | int:
        """Return the share of the cases of each cell whose errors are not ranked."""
        return 0

    def _cell_keys(
        self, confidence: Any, groups: Any, ids: Sequence[str] | None, is_empty: Any = False
    ) -> Any:
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
        decisions = np.where(is_empty, "empty", decisions)
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

    def _check_new_cases(self, confidence: Any, group: Any, ids: Any, **columns: Any) -> tuple[Any, Any]:
        """Return the confidences and ids of new cases after all checks."""
        self._check_fitted()
        check_same_index(confidence=confidence, group=group, ids=ids, **columns)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids)
        reject_seen(ids, self.used_ids if ids is not None else None, confidence.size)
        if group is None and any(cell.group != _NO_GROUP for cell in self.cells):
            raise ParameterError("group: expected the group of each case, because fit() was given groups.")
        return confidence, ids

    def _correct(self, centre: Any, scale: Any, largest: float) -> Any:
        """Return the expected values: the centres without their mean error, if that was learned."""
        return centre if self.correction is None else np.clip(centre - self.correction * scale, 0.0, largest)

    def _ends(
        self, keys: Any, centre: Any, scale: Any, *, largest: float, two_sided: bool, slack: float = _ROUNDING
    ) -> dict[str, Any]:
        """Return the attributes of intervals in [0, largest]; a lower bound ends at ``largest``."""
        known = {f"{cell.decision}:{cell.group}": cell for cell in self.cells}
        cells = [known.get(str(key)) for key in keys]
        if two_sided:
            below, above = (_margins(cells, name) for name in ("below_of_two", "above_of_two"))
        else:
            below, above = _margins(cells, "below"), np.full(len(cells), math.inf)
        trivial = np.isnan(below) | np.isnan(above)
        lower = np.clip(centre - (below + slack) * scale, 0.0, largest)
        upper = np.clip(centre + (above + slack) * scale, 0.0, largest)
        return {
            "lower": np.where(trivial, 0.0, lower),
            "upper": np.where(trivial, largest, upper),
            "predicted": self._correct(centre, scale, largest),
            "trivial": trivial,
            "n": np.array([0 if cell is None else cell.n for cell in cells]),
            "cases_needed": self.cases_needed(two_sided=two_sided),
        }

    def _saved_cells(self) -> dict[str, Any]:
        """Return cells and ids as plain values."""
        used = self.used_ids
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "used_ids": used.to_dict() if isinstance(used, HashedIds) else sorted(used),
        }


def rebuild_cells(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return cells and ids from the plain values of a file."""
    used = values["used_ids"]
    return {
        "cells": tuple(rebuild(ConformalCell, cell, source) for cell in values["cells"]),
        "used_ids": (
            HashedIds.from_dict(used) if isinstance(used, Mapping) else frozenset(ids_as_text(used) or ())
        ),
    }


@dataclass(frozen=True, repr=False)
class ConformalDice(ConformalBounds):
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
        How the Dice is predicted from the confidence. ``"corrected"`` takes the confidence and subtracts its
        mean error, a multiple of the scale; this needs no cases to learn from, because the margins move with
        it. ``"isotonic"`` learns an increasing curve, from confidences on any scale. ``"identity"`` takes the
        confidence as the expected Dice; its bounds are those of ``"corrected"``.
    train_share
        Share of each cell that the isotonic curve is learned from; the errors of the others are ranked.
    seed
        Random seed of the split. Without one, the split is random each time if many confidences are equal.
        `fit` keeps the seed.
    scale
        What margins are proportional to. ``"confidence"``: 1 - confidence + 0.02, so that less confident
        cases get wider intervals. ``"spread"``: the ``spread`` of each case + 0.02; `fit` sets it if a spread
        is passed. ``"none"``: nothing, all cases of a cell have the same margins. A confidence below 0 counts
        as 0 and one above 1 as 1, here and for ``"corrected"``: the bounds remain valid, but are as wide as
        if nothing were known of the case.
    recalibration, correction, cells, used_ids
        What `fit` has learned, and the ids of the cases it has learned from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(200)
    >>> dice = np.clip(confidence + (1 - confidence) * rng.normal(0, 0.1, 200), 0, 1)
    >>> bounds = ConformalDice(level=0.9, threshold=0.5).fit(confidence, dice)
    >>> new = bounds.interval([0.2, 0.8])
    >>> new.lower.round(2).tolist(), new.upper.round(2).tolist()
    ([0.08, 0.77], [0.33, 0.84])
    """

    level: float = 0.9
    threshold: float | None = None
    predictor: str = "corrected"
    train_share: float = 0.5
    seed: int | None = None
    scale: str = "confidence"
    recalibration: Recalibration | None = None
    correction: float | None = None
    cells: tuple[ConformalCell, ...] = ()
    used_ids: frozenset[str] | HashedIds = frozenset()

    _learned = ("recalibration", "correction", "cells", "used_ids")
    _format = "segtrust-conformal-dice-1"

    def __post_init__(self) -> None:
        """Check the options."""
        self._check_level()
        check_fraction(self.train_share, "train_share", open_ends=True)
        if self.seed is not None:
            check_seed(self.seed)
        for name, known in (("predictor", _PREDICTORS), ("scale", _SCALES)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name}: expected one of {known}, got {getattr(self, name)!r}.")

    def fit(
        self,
        confidence: VectorLike,
        dice: VectorLike | None = None,
        *,
        loss: VectorLike | None = None,
        spread: VectorLike | None = None,
        groups: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
        checksums: Sequence[str] | None = None,
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
        spread
            How far the Dice of each case may be off according to its map, such as the standard deviation of
            the Dice over level sets; at least 0. Margins are then proportional to it, and `interval` and
            `lower_bound` need it too.
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
        made = self if spread is None else replace(self, scale="spread")
        columns = {"dice": dice, "loss": loss, "spread": spread, "groups": groups, "ids": ids}
        check_same_index(confidence=confidence, **columns, checksums=checksums)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids, fewest=2)
        dice = check_outcomes(confidence, loss, dice, ids=ids, as_dice=True)
        scale = made._scales(confidence, spread, ids)
        names = reject_seen(ids, used_ids, confidence.size, checksums=checksums)
        made._warn_outside(confidence)
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
        made = replace(
            made, seed=seed, recalibration=curve, used_ids=frozenset(names) | checksum_names(checksums)
        )
        errors = made._centres(confidence) - dice
        correction = float(errors.sum() / scale.sum()) if self.predictor == "corrected" else None
        ranked = errors / scale
        cells = [self._make_cell(key, ranked[(keys == key) & ~is_training]) for key in np.unique(keys)]
        return replace(made, correction=correction, cells=tuple(cells))

    def predict(self, confidence: VectorLike, *, spread: VectorLike | None = None) -> FloatArray:
        """Return the expected Dice at each confidence; `interval` returns how far off it may be.

        Parameters
        ----------
        confidence
            Confidence of each case.
        spread
            Spread of each case, if `fit` was given one.

        Examples
        --------
        >>> confidence = np.linspace(0.0, 1.0, 40)
        >>> ConformalDice().fit(confidence, confidence / 2).predict([0.5]).round(1).tolist()
        [0.2]
        """
        self._check_fitted()
        confidence = check_confidences(confidence)
        scale = self._scales(confidence, spread, None)
        predicted: FloatArray = self._correct(self._centres(confidence), scale, 1.0)
        return predicted

    def interval(
        self,
        confidence: VectorLike,
        group: Any = None,
        *,
        spread: VectorLike | None = None,
        ids: Sequence[Any] | None = None,
    ) -> DiceIntervals:
        """Return the interval of each new case; the Dice is beyond each end with at most (1 - level) / 2.

        Parameters
        ----------
        confidence
            Confidence of each case.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, 1].
        spread
            Spread of each case, if `fit` was given one.
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, group, ids, spread, two_sided=True)

    def lower_bound(
        self,
        confidence: VectorLike,
        group: Any = None,
        *,
        spread: VectorLike | None = None,
        ids: Sequence[Any] | None = None,
    ) -> DiceIntervals:
        """Return the lower bound of each new case, with 1 as the upper end.

        Parameters
        ----------
        confidence
            Confidence of each case.
        group
            One group for all cases, or one per case. A group that `fit` has not seen gets [0, 1].
        spread
            Spread of each case, if `fit` was given one.
        ids
            Id of each case; `SeenCasesError` if `fit` has learned from one of them.
        """
        return self._intervals(confidence, group, ids, spread, two_sided=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, for `from_dict`; ids are readable unless they are hashed."""
        values = {name: getattr(self, name) for name in _OPTIONS}
        values["recalibration"] = self.recalibration.to_dict() if self.recalibration else None
        # Files of release 0.1.0 have neither of these, and policies have a checksum of their content.
        values |= {} if self.scale == "none" else {"scale": self.scale}
        values |= {} if self.correction is None else {"correction": self.correction}
        return values | self._saved_cells()

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "intervals") -> Self:
        """Rebuild what `to_dict` returned; `SavedStateError` names what is missing, unknown or wrong."""
        names = (*_OPTIONS, "scale", "recalibration", "correction", "cells", "used_ids")
        saved = without_format(saved)
        if isinstance(saved, Mapping):
            saved = {"scale": "none", "correction": None, **saved}
        values = check_keys(saved, names, source)
        curve = values["recalibration"]
        with naming_errors(source):
            values["recalibration"] = None if curve is None else Recalibration.from_dict(curve, source=source)
            return cls(**{**values, **rebuild_cells(values, source)})

    def _shown_options(self) -> dict[str, Any]:
        usual = {"predictor": "corrected", "scale": "confidence"}
        return {name: getattr(self, name) for name in usual if getattr(self, name) != usual[name]}

    def _caption(self) -> str:
        return f"Conformal Dice intervals at level {self.level:g}"

    def _training_share(self) -> Fraction | int:
        return as_decimal(self.train_share) if self.predictor == "isotonic" else 0

    def _training_cases(self, n: int) -> int:
        """Return how many of ``n`` cases the curve is learned from."""
        return math.floor(n * self._training_share())

    def _centres(self, confidence: Any) -> Any:
        """Return the Dice that margins are counted from."""
        if self.predictor == "corrected":
            return np.clip(confidence, 0.0, 1.0)
        return confidence if self.recalibration is None else self.recalibration.predict(confidence)

    def _scales(self, confidence: Any, spread: Any, ids: Sequence[str] | None) -> Any:
        """Return what the margins of each case are proportional to; above 0."""
        if self.scale == "spread":
            if spread is None:
                raise ParameterError(
                    'spread: expected the spread of each case, because the scale is "spread", got None.'
                )
            return check_amounts(spread, "spread", confidence.size, ids) + SCALE_FLOOR
        if spread is not None:
            raise ParameterError("spread: fit() was given none, so the margins do not depend on it. Drop it.")
        if self.scale == "confidence":
            return confidence_scale(confidence)
        return np.ones(confidence.size)

    def _warn_outside(self, confidence: Any) -> None:
        """Warn if there are confidences on another scale than that of the Dice, which then count little."""
        outside = int(np.count_nonzero((confidence < 0.0) | (confidence > 1.0)))
        if outside and (self.predictor == "corrected" or self.scale == "confidence"):
            warn_caller(
                f"confidence: {outside} of {confidence.size} are outside [0, 1] and count as 0 or 1, so that "
                'the bounds are wide. Use ConformalDice(predictor="isotonic", scale="none") for a confidence '
                "on another scale than that of the Dice."
            )

    def _intervals(
        self, confidence: Any, group: Any, ids: Any, spread: Any, *, two_sided: bool
    ) -> DiceIntervals:
        confidence, ids = self._check_new_cases(confidence, group, ids, spread=spread)
        keys = self._cell_keys(confidence, group, ids)
        centre, scale = self._centres(confidence), self._scales(confidence, spread, ids)
        slack = 0.0 if self.scale == "none" else _ROUNDING
        ends = self._ends(keys, centre, scale, largest=1.0, two_sided=two_sided, slack=slack)
        return DiceIntervals(**ends)


def confidence_scale(confidence: Any) -> Any:
    """Return 1 - confidence + 0.02, with confidences below 0 taken as 0 and above 1 as 1.

    Examples
    --------
    >>> confidence_scale(np.array([1.0, 0.5, -3.0])).round(2).tolist()
    [0.02, 0.52, 1.02]
    """
    return 1.0 - np.clip(confidence, 0.0, 1.0) + SCALE_FLOOR


def check_amounts(values: Any, name: str, n: int, ids: Sequence[str] | None) -> FloatArray:
    """Return ``n`` numbers of at least 0, such as volumes, as float64."""
    amounts = check_vector(values, name, ids=ids, n=n)
    if (amounts < 0.0).any():
        first = int(np.argmax(amounts < 0.0))
        case = first if ids is None else repr(ids[first])
        raise CaseValueError(f"{name}: expected numbers of at least 0, got {amounts[first]} for case {case}.")
    return amounts


def _ranked_error(errors: Any, level: Fraction) -> float | None:
    """Return the ⌈(n + 1) level⌉-th smallest error, which the next one exceeds with at most 1 - level."""
    rank = math.ceil((errors.size + 1) * level)
    return float(np.partition(errors, rank - 1)[rank - 1]) if rank <= errors.size else None


def _margins(cells: Sequence[ConformalCell | None], name: str) -> Any:
    """Return the named margin of each case's cell; NaN if there is none."""
    margins = [None if cell is None else getattr(cell, name) for cell in cells]
    return np.array([math.nan if margin is None else margin for margin in margins])
