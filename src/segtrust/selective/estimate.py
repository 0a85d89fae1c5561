"""The mean Dice of new, unlabelled cases, while nothing speaks against giving it.

The mean of the recalibrated confidences. It is right as long as a confidence means the same Dice as it did
for the calibration cases, which no look at confidences alone can show. So it is withheld as soon as they
look different, and is no promise where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from segtrust.errors import NotFittedError, ParameterError, TooFewCasesError
from segtrust.params import HasParams
from segtrust.selective.recalibration import Recalibration, monotone_values
from segtrust.selective.seen import HashedIds, ids_of, refuse_seen
from segtrust.selective.two_sample import DriftTest, drift_test
from segtrust.selective.vectors import check_count, check_fraction, check_seed, confidences_of, dices_of

__all__ = ["MeanDice", "MeanDiceEstimator"]

FEWEST = 10
"""Labelled cases below which no curve and no interval can be learned from them."""


class Alarm(Protocol):
    """Anything that watches for drift: a `DriftTest`, an `ExchangeabilityMartingale`."""

    @property
    def alarm(self) -> bool:
        """Whether it rings."""

    def explain(self) -> str:
        """Say why."""


@dataclass(frozen=True)
class MeanDice:
    """An estimate of the present mean Dice, or the reason why there is none.

    Attributes
    ----------
    value, lower, upper
        The estimate and its interval; ``None`` where it is withheld.
    reason
        Why it is withheld; ``None`` where it is given.
    level
        Of the interval.
    n_reference, n_new
        Labelled and unlabelled cases.
    test
        The comparison of both.
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
        """Whether there is a reason not to give it."""
        return self.reason is not None

    def to_dict(self) -> dict[str, Any]:
        """Give all values, ready for JSON."""
        return {**asdict(self), "test": self.test.to_dict()}


_PERMUTATIONS = 1999


def _watches(watches: Any) -> list[Alarm]:
    """Give what watches, as a list; refuse what cannot ring."""
    if isinstance(watches, str) or not isinstance(watches, Iterable | None):
        raise ParameterError(f"watches: expected a list of drift tests or martingales, got {watches!r}.")
    found = list(watches or ())
    for each in found:
        if not hasattr(each, "alarm") or not hasattr(each, "explain"):
            raise ParameterError(f"watches: expected drift tests or martingales, got {each!r}.")
    return found


@dataclass(frozen=True, eq=False)
class MeanDiceEstimator(HasParams):
    """Estimate the mean Dice of unlabelled cases from their confidences.

    Attributes
    ----------
    level
        Of the interval, found by resampling the labelled cases, the new cases, and the errors of the curve:
        it is meant for the mean of the population and wide enough for that of these new cases too.
    alpha
        Level of the two-sample test that comes before every estimate.
    resamples
        Number of resamples, at least 100.
    seed
        Of the resamples and the test.
    confidence, dice, used_ids
        The labelled cases, after `fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> confidence = rng.beta(8, 2, 300)
    >>> dice = confidence**2  # a model that thinks too well of itself
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

    def __post_init__(self) -> None:
        """Check the options."""
        check_fraction(self.level, "level", open_ends=True)
        check_fraction(self.alpha, "alpha", open_ends=True)
        check_seed(self.seed)
        check_count(self.resamples, "resamples", least=100)

    def fit(
        self,
        confidence: Any,
        dice: Any,
        *,
        ids: Sequence[Any] | None = None,
        used_ids: Iterable[Any] | HashedIds | None = None,
    ) -> Self:
        """Take in labelled cases, 10 or more, that no estimator has learned from.

        ``ids`` and ``used_ids`` are those of `ConformalDice.fit`.
        """
        ids = ids_of(ids)
        confidence = confidences_of(confidence, ids=ids, fewest=FEWEST)
        dice = dices_of(dice, confidence.size, ids=ids)
        names = refuse_seen(ids, used_ids, confidence.size)
        return replace(self, confidence=confidence, dice=dice, used_ids=frozenset(names))

    def estimate(
        self, confidence: Any, *, ids: Sequence[Any] | None = None, watches: Iterable[Alarm] = ()
    ) -> MeanDice:
        """Estimate the mean Dice of new cases, or say why not.

        Parameters
        ----------
        confidence
            Of the new cases: two or more, and as many as it takes for the test to be able to alarm at all.
        ids
            Their names; `SeenCasesError` for one that is among the labelled cases.
        watches
            What else may forbid an estimate beside the test made here, such as a running
            `ExchangeabilityMartingale`.
        """
        if self.confidence is None:
            raise NotFittedError("MeanDiceEstimator: call fit(confidence, dice) with labelled cases first.")
        ids = ids_of(ids)
        new = confidences_of(confidence, ids=ids, fewest=2)
        refuse_seen(ids, self.used_ids if ids is not None else None, new.size)
        self._check_test(new.size)
        enough = max(_PERMUTATIONS, math.ceil(1.0 / self.alpha))
        test = drift_test(self.confidence, new, alpha=self.alpha, permutations=enough, seed=self.seed)
        reasons = [each.explain() for each in (test, *_watches(watches)) if each.alarm]
        value, lower, upper = (None, None, None) if reasons else self._value_and_interval(new)
        return MeanDice(
            value=value,
            lower=lower,
            upper=upper,
            reason=" ".join(reasons) or None,
            level=self.level,
            n_reference=self.confidence.size,
            n_new=new.size,
            test=test,
        )

    def _check_test(self, n_new: int) -> None:
        """Refuse so few cases that no difference between them would make the test alarm."""
        smallest = 2 / math.comb(self.confidence.size + n_new, n_new)
        if smallest > self.alpha:
            raise TooFewCasesError(
                f"confidence: {self.confidence.size} labelled and {n_new} new cases cannot show a drift at "
                f"alpha = {self.alpha:g} (their smallest p-value is {smallest:.2g}). Give more of either."
            )

    def _value_and_interval(self, new: Any) -> tuple[float, float, float]:
        value = float(Recalibration.fit(self.confidence, self.dice).predict(new).mean())
        tail = (1.0 - self.level) / 2.0
        lower, upper = np.quantile(self._resampled(new), [tail, 1.0 - tail])
        return value, float(lower), float(upper)

    def _resampled(self, new: Any) -> Any:
        """Give the estimates from samples drawn with replacement from both sets, and errors drawn beside."""
        rng = check_seed(self.seed)
        knots, place = np.unique(self.confidence, return_inverse=True)
        return np.array([self._resample(new, knots, place, rng) for _ in range(self.resamples)])

    def _resample(self, new: Any, knots: Any, place: Any, rng: np.random.Generator) -> float:
        drawn = rng.integers(place.size, size=place.size)
        counts = np.bincount(place[drawn], minlength=knots.size)
        sums = np.bincount(place[drawn], self.dice[drawn], minlength=knots.size)
        there = counts > 0
        knots, values = knots[there], monotone_values(counts[there], sums[there])
        errors = self.dice[drawn] - np.interp(self.confidence[drawn], knots, values)
        mean = np.interp(rng.choice(new, new.size), knots, values).mean()
        return float(mean + rng.choice(errors, new.size).mean())
