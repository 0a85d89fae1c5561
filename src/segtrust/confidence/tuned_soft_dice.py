"""The soft Dice confidence with one number learned from a few labelled cases (SDC*)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust.confidence.base import Observation, summary_of
from segtrust.confidence.learning import LearningEstimator, refuse_unfitted
from segtrust.confidence.ranking import rank_correlations
from segtrust.confidence.summary import Needs, Summary
from segtrust.kernels.inputs import check_number
from segtrust.kernels.integrals import probability_of_empty
from segtrust.maps import Case, EmptyPolicy, Prediction

__all__ = ["WEIGHTS", "TunedSoftDice"]

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""What the probability outside the mask may count; 1 is the SDC itself."""

_MARGIN = 0.4
"""Times 1/√n: the share of the lack of correlation that another weight must take away from n cases."""


@dataclass(frozen=True)
class TunedSoftDice(LearningEstimator):
    """SDC_w = 2s / (k + s + wλ): the SDC with a weight on the probability outside the mask.

    λ is the probability that a model leaves outside its mask. A model that leaves too much or too little
    there is put right by one number. `fit` takes the weight of `WEIGHTS` whose ranks correlate best with the
    Dice of the cases. It stays at 1, the SDC, unless the distance of the correlation to 1 shrinks by more
    than 0.4/√n with n cases: what few cases say is mostly chance.

    Attributes
    ----------
    weight
        w, at least 0; ``None`` until it is given or learned by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> p = np.array([0.9, 0.8, 0.1, 0.2])
    >>> [round(TunedSoftDice(w).score(Prediction(p)), 4) for w in (0.0, 1.0, 4.0)]
    [0.9189, 0.85, 0.6939]
    """

    weight: float | None = None

    name = "sdc-tuned"
    label = "SDC*"

    def __post_init__(self) -> None:
        """Refuse a weight that means nothing."""
        super().__post_init__()
        if self.weight is not None:
            check_number(self.weight, "weight")

    @property
    def needs(self) -> Needs:
        """Counts alone."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Confidence from the counts."""
        counts = summary.counts
        if counts.k == 0:
            return probability_of_empty(summary.dice) if self._agrees else counts.s * 0.0
        return 2.0 * counts.s / (counts.k + counts.s + self._known_weight * counts.lam)

    @property
    def _agrees(self) -> bool:
        return self.empty is EmptyPolicy.AGREE

    @property
    def _known_weight(self) -> float:
        if self.weight is None:
            refuse_unfitted(self.name, "the weight", "TunedSoftDice(weight=0.5)")
        return float(self.weight)

    def observe(self, case: Case | Prediction) -> Observation:
        """Give k, s and λ, and for an empty mask its confidence."""
        summary = summary_of(case, self.needs)
        counts = summary.counts
        nothing = float(probability_of_empty(summary.dice)) if self._agrees and counts.k == 0 else 0.0
        return {"counts": np.array([counts.k, float(counts.s), float(counts.lam), nothing])}

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the weight."""
        dices = 1.0 - self._checked(observations, losses)
        counts = np.array([each["counts"] for each in observations])
        lacks = 1.0 - rank_correlations(np.array([_confidences(counts, w) for w in WEIGHTS]), dices)
        usual, best = WEIGHTS.index(1.0), int(np.argmin(lacks))
        margin = _MARGIN / math.sqrt(dices.size)
        chosen = best if lacks[best] < lacks[usual] * (1.0 - margin) else usual
        return replace(self, weight=WEIGHTS[chosen])

    def score_observation(self, observation: Observation) -> float:
        """Confidence with the weight learned."""
        return float(self.score_observations([observation])[0])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Confidences with the weight learned."""
        return _confidences(np.array([each["counts"] for each in observations]), self._known_weight)


def _confidences(counts: Any, weight: float) -> Any:
    k, s, lam, nothing = counts.T
    some = k > 0
    return np.where(some, 2.0 * s / np.where(some, k + s + weight * lam, 1.0), nothing)
