"""From confidence to Dice: a monotone curve for one case, and the mean Dice of new, unlabelled cases.

The estimate of the mean Dice is the mean of the recalibrated confidences. It is right as long as a
confidence means the same Dice as it did for the calibration cases, which confidences alone cannot show. So
the estimate is withheld as soon as the confidences look different, and is not guaranteed if they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from segtrust._arguments import check_count, check_fraction, check_seed
from segtrust._display import Displayed
from segtrust._files import check_keys, naming_errors, rebuild
from segtrust._optional import require
from segtrust._params import HasParams
from segtrust._storage import Storable, without_format
from segtrust._types import VectorLike
from segtrust.errors import NotFittedError, ParameterError, TooFewCasesError
from segtrust.selective.drift import DEFAULT_PERMUTATIONS, DriftTest, drift_test
from segtrust.selective.seen import HashedIds, ids_as_text, reject_seen, used_ids_as_text
from segtrust.selective.vectors import (
    check_confidences,
    check_dice,
    check_outcomes,
    check_same_index,
    check_vector,
    frozen_copy,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_FEWEST_CASES = 10
"""Labelled cases below which neither a curve nor an interval can be learned from them."""


@dataclass(frozen=True, repr=False)
class Recalibration(Displayed, Storable):
    """Curve of the expected Dice at each confidence: increasing, linear between its knots, flat beyond them.

    Not to be confused with the recalibration of probability maps (`Scoring.recalibration`,
    `segtrust.calibration`).

    Attributes
    ----------
    confidence, dice
        The knots, both in increasing order.

    Examples
    --------
    >>> curve = Recalibration.fit([0.2, 0.4, 0.6, 0.8], [0.1, 0.5, 0.3, 0.9])
    >>> curve.predict([0.0, 0.5, 0.7]).round(6).tolist()
    [0.1, 0.4, 0.65]
    """

    confidence: tuple[float, ...]
    dice: tuple[float, ...]

    _format = "segtrust-recalibration-1"

    def __post_init__(self) -> None:
        """Check that the knots are those of an increasing curve."""
        for name, knots in (("confidence", self.confidence), ("dice", self.dice)):
            object.__setattr__(self, name, tuple(check_vector(knots, name, fewest=0).tolist()))
        increasing = all(np.all(np.diff(knots) >= 0.0) for knots in (self.confidence, self.dice))
        if not self.confidence or len(self.confidence) != len(self.dice) or not increasing:
            raise ParameterError("recalibration: expected knots in increasing order, as many in both lists.")
        if self.dice[0] < 0.0 or self.dice[-1] > 1.0:
            raise ParameterError(
                f"recalibration: expected Dice in [0, 1], got {self.dice[0]} to {self.dice[-1]}."
            )

    @classmethod
    def fit(
        cls, confidence: VectorLike, dice: VectorLike | None = None, *, loss: VectorLike | None = None
    ) -> Self:
        """Fit the curve by isotonic regression (pool adjacent violators); ties count as one point.

        Parameters
        ----------
        confidence
            Confidence of each labelled case.
        dice
            Dice of each case, in [0, 1].
        loss
            One minus the Dice of each case, instead of the Dice.
        """
        check_same_index(confidence=confidence, dice=dice, loss=loss)
        confidence = check_confidences(confidence)
        return cls.of_checked(confidence, check_outcomes(confidence, loss, dice, as_dice=True))

    @classmethod
    def of_checked(cls, confidence: Any, dice: Any) -> Self:
        """Fit the curve to arrays that were checked; no warning about their order."""
        knots, knot = np.unique(confidence, return_inverse=True)
        values = _increasing_values(np.bincount(knot), np.bincount(knot, dice))
        values = np.clip(values, 0.0, 1.0)  # a mean of ones may be rounded to above 1
        changes = np.diff(values) != 0.0
        needed = np.append(True, changes) | np.append(changes, True)  # inside a flat run a knot adds nothing
        return cls(tuple(knots[needed].tolist()), tuple(values[needed].tolist()))

    def predict(self, confidence: Any) -> Any:
        """Return the expected Dice of each case."""
        return np.interp(check_confidences(confidence), self.confidence, self.dice)

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values for JSON, from which `from_dict` rebuilds the curve."""
        return {"confidence": list(self.confidence), "dice": list(self.dice)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "recalibration") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        return rebuild(cls, without_format(saved), source)

    def to_dataframe(self) -> DataFrame:
        """Return the knots as a pandas table with the columns confidence and dice."""
        return require("pandas", extra="tables").DataFrame(self.to_dict())

    def _shown(self) -> dict[str, Any]:
        (first, last), (worst, best) = ((knots[0], knots[-1]) for knots in (self.confidence, self.dice))
        return {"knots": len(self.dice), "confidence": (first, last), "dice": (worst, best)}


def _increasing_values(counts: Any, sums: Any) -> Any:
    """Fit increasing values to the means of groups, weighted by their counts or weights; none is 0."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(sums / counts, weights=counts).x


class Alarm(Protocol):
    """Anything that watches for drift: a `DriftTest`, an `ExchangeabilityMartingale`."""

    @property
    def alarm(self) -> bool:
        """Whether drift was detected."""
        ...

    def explain(self) -> str:
        """Return the result in one sentence."""
        ...


@dataclass(frozen=True, repr=False)
class MeanDice(Displayed):
    """Estimate of the current mean Dice, or the reason why there is none.

    Attributes
    ----------
    value, lower, upper
        The estimate and its interval; ``None`` if it is withheld.
    reason
        Why it is withheld; ``None`` if it is not.
    level
        Confidence level of the interval.
    n_reference, n_new
        Number of labelled and of unlabelled cases.
    test
        The two-sample test that compares both.
    """

    value: float | None
    lower: float | None
    upper: float | None
    reason: str | None
    level: float
    n_reference: int
    n_new: int
    test: DriftTest

    @property
    def withheld(self) -> bool:
        """Whether there is a reason not to give an estimate."""
        return self.reason is not None

    def __str__(self) -> str:
        """Return the estimate with its interval, or the reason why it is withheld."""
        if self.withheld:
            return f"Mean Dice not estimated. {self.reason}"
        level = f"{100.0 * self.level:g} %"
        return f"Mean Dice {self.value:.3f} ({level} interval {self.lower:.3f} to {self.upper:.3f})"

    def _shown(self) -> dict[str, Any]:
        shown = {"value": self.value, "lower": self.lower, "upper": self.upper, "level": self.level}
        return shown | {"withheld": self.withheld, "n_reference": self.n_reference, "n_new": self.n_new}

    def _caption(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all values, ready for JSON."""
        return {**asdict(self), "test": self.test.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class MeanDiceEstimator(HasParams, Displayed, Storable):
    """Estimator of the mean Dice of unlabelled cases from their confidences.

    Attributes
    ----------
    level
        Confidence level of the interval, found by resampling the labelled cases, the new cases, and the
        errors of the curve. Each resample also contains one labelled case that was never seen, of Dice 0 for
        the lower end and of Dice 1 for the upper end: a few labelled cases often contain none of the rare
        failures. The interval holds for the mean of the population and for that of these new cases.
    alpha
        Level of the two-sample test that precedes every estimate.
    resamples
        Number of resamples, at least 100.
    seed
        Random seed of the resamples and the test.
    confidence, dice, used_ids
        The labelled cases, after `fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> confidence = rng.beta(8, 2, 300)
    >>> dice = confidence**2  # an overconfident model
    >>> estimator = MeanDiceEstimator().fit(confidence, dice)
    >>> same = estimator.estimate(rng.beta(8, 2, 200))
    >>> round(same.value, 2), round(same.lower, 2), round(same.upper, 2)
    (0.65, 0.62, 0.67)
    >>> estimator.estimate(rng.beta(4, 2, 200)).value is None
    True
    """

    level: float = 0.95
    alpha: float = 0.05
    resamples: int = 1000
    seed: int = 0
    confidence: Any = None
    dice: Any = None
    used_ids: frozenset[str] = frozenset()

    _learned = ("confidence", "dice", "used_ids")
    _format = "segtrust-mean-dice-1"

    def __post_init__(self) -> None:
        """Check the options."""
        check_fraction(self.level, "level", open_ends=True)
        check_fraction(self.alpha, "alpha", open_ends=True)
        check_seed(self.seed)
        check_count(self.resamples, "resamples", least=100)

    def fit(
        self,
        confidence: VectorLike,
        dice: VectorLike | None = None,
        *,
        loss: VectorLike | None = None,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> Self:
        """Return an estimator fitted to 10 or more labelled cases that nothing has learned from.

        Parameters
        ----------
        confidence
            Confidence of each case.
        dice
            Dice of each case, in [0, 1].
        loss
            One minus the Dice of each case, instead of the Dice.
        ids
            Id of each case.
        used_ids
            Ids of cases that an estimator, a recalibration or a threshold has learned from; `SeenCasesError`
            if one of these cases is among them.
        """
        check_same_index(confidence=confidence, dice=dice, loss=loss, ids=ids)
        ids = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=ids, fewest=_FEWEST_CASES)
        dice = check_outcomes(confidence, loss, dice, ids=ids, as_dice=True)
        names = reject_seen(ids, used_ids, confidence.size)
        confidence, dice = frozen_copy(confidence), frozen_copy(dice)
        return replace(self, confidence=confidence, dice=dice, used_ids=frozenset(names))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds it; ids are readable."""
        columns = {name: getattr(self, name) for name in ("confidence", "dice")}
        cases = {name: None if column is None else column.tolist() for name, column in columns.items()}
        return {**self.get_params(), **cases, "used_ids": sorted(self.used_ids)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "mean Dice") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(without_format(saved), [attribute.name for attribute in fields(cls)], source)
        cases = {name: values.pop(name) for name in cls._learned}
        with naming_errors(source):
            made = cls(**values)
            if cases["confidence"] is None:
                return made
            confidence = check_confidences(cases["confidence"], fewest=_FEWEST_CASES)
            dice = check_dice(cases["dice"], confidence.size)
            used_ids = used_ids_as_text(cases["used_ids"])
            return replace(
                made, confidence=frozen_copy(confidence), dice=frozen_copy(dice), used_ids=used_ids
            )

    def _shown(self) -> dict[str, Any]:
        n = None if self.confidence is None else int(self.confidence.size)
        return {"level": self.level, "alpha": self.alpha, "labelled_cases": n}

    def estimate(
        self, confidence: VectorLike, *, ids: Sequence[Any] | None = None, watches: Iterable[Alarm] = ()
    ) -> MeanDice:
        """Estimate the mean Dice of new cases, or explain why not.

        Parameters
        ----------
        confidence
            Confidences of the new cases: two or more, and enough for the test to be able to detect a drift.
        ids
            Id of each new case; `SeenCasesError` if one is among the labelled cases.
        watches
            Further drift checks that may forbid an estimate, such as a running `ExchangeabilityMartingale`.
        """
        if self.confidence is None:
            raise NotFittedError("MeanDiceEstimator: call fit(confidence, dice) with labelled cases first.")
        check_same_index(confidence=confidence, ids=ids)
        ids = ids_as_text(ids)
        new = check_confidences(confidence, ids=ids, fewest=2)
        reject_seen(ids, self.used_ids if ids is not None else None, new.size)
        n_reference = self.confidence.size
        smallest_p_value = 2 / math.comb(n_reference + new.size, new.size)
        if smallest_p_value > self.alpha:
            raise TooFewCasesError(
                f"confidence: {n_reference} labelled and {new.size} new cases cannot show a drift at "
                f"alpha = {self.alpha:g} (their smallest p-value is {smallest_p_value:.2g}). Pass more cases."
            )
        permutations = max(DEFAULT_PERMUTATIONS, math.ceil(1.0 / self.alpha))
        test = drift_test(
            reference=self.confidence, new=new, alpha=self.alpha, permutations=permutations, seed=self.seed
        )
        reasons = [check.explain() for check in (test, *_check_watches(watches)) if check.alarm]
        value, lower, upper = (None, None, None) if reasons else self._value_and_interval(new)
        return MeanDice(
            value=value,
            lower=lower,
            upper=upper,
            reason=" ".join(reasons) or None,
            level=self.level,
            n_reference=n_reference,
            n_new=new.size,
            test=test,
        )

    def _value_and_interval(self, new: Any) -> tuple[float, float, float]:
        value = float(Recalibration.of_checked(self.confidence, self.dice).predict(new).mean())
        rng = check_seed(self.seed)
        knots, knot = np.unique(self.confidence, return_inverse=True)
        estimates = np.array([self._resample(new, knots, knot, rng) for _ in range(self.resamples)])
        lower = float(np.quantile(estimates[:, 0], (1.0 - self.level) / 2.0))
        upper = float(np.quantile(estimates[:, 1], (1.0 + self.level) / 2.0))
        return value, max(0.0, min(lower, value)), min(1.0, max(upper, value))

    def _resample(self, new: Any, knots: Any, knot: Any, rng: np.random.Generator) -> list[float]:
        """Return the estimate of a resample with one unseen labelled case: of Dice 0, and of Dice 1.

        Labelled and new cases get exponential weights (the Bayesian bootstrap). The unseen case has the
        confidence of a random labelled case. The mean of as many errors of the curve as there are new cases
        is added.
        """
        knot = np.append(knot, knot[rng.integers(knot.size)])
        weights, new_weights = rng.standard_exponential(knot.size), rng.standard_exponential(new.size)
        up_to = np.cumsum(weights)
        drawn = np.searchsorted(up_to, up_to[-1] * rng.random(new.size), side="right")
        knot_weights = np.bincount(knot, weights)
        estimates = []
        for unseen in (0.0, 1.0):
            dice = np.append(self.dice, unseen)
            values = _increasing_values(knot_weights, np.bincount(knot, weights * dice))
            mean = new_weights @ np.interp(new, knots, values) / new_weights.sum()
            estimates.append(float(mean + (dice - values[knot])[drawn].mean()))
        return estimates


def _check_watches(watches: Any) -> list[Alarm]:
    if isinstance(watches, str) or not isinstance(watches, Iterable | None):
        raise ParameterError(f"watches: expected a list of drift tests or martingales, got {watches!r}.")
    checks: list[Any] = list(watches or ())
    for check in checks:
        if not hasattr(check, "alarm") or not hasattr(check, "explain"):
            raise ParameterError(f"watches: expected drift tests or martingales, got {check!r}.")
    return checks
