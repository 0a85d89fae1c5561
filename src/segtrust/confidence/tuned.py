"""SDC* and PLA*: the SDC and PLA with one number that is learned from a few labelled cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust._arguments import check_nonnegative
from segtrust.confidence.aggregation import PatchLevel
from segtrust.confidence.base import Needs, Observation, Summary, summary_of
from segtrust.confidence.learning import LearningEstimator, raise_unfitted
from segtrust.confidence.soft_dice import SoftDice, soft_dice
from segtrust.errors import CaseLengthError
from segtrust.maps import Case, Prediction

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Candidates for the weight of the probability outside the mask; 1 is the SDC itself."""

_MARGIN = 0.4
"""Another weight replaces 1 only if it reduces the distance to full correlation by more than this fraction,
divided by √n for n cases."""

SIDES = (*range(1, 10), *range(10, 201, 5))
"""Candidates for the side of the box in pixels, as in the paper: 1 to 9, and 10 to 200 in steps of 5."""


@dataclass(frozen=True)
class TunedSoftDice(LearningEstimator):
    """SDC_w = 2s / (k + s + wλ): the SDC with a weight on the probability outside the mask.

    λ is the probability outside the mask. The weight corrects a model that leaves too much or too little
    there. `fit` chooses the weight in `WEIGHTS` whose confidences correlate best in rank with the Dice. It
    keeps 1 (the SDC) unless another weight reduces the distance to full correlation by more than a fraction
    0.4/√n: smaller gains on n cases are mostly chance.

    Attributes
    ----------
    weight
        w, at least 0; ``None`` until it is passed or learned by `fit`.
    empty
        Score of an empty mask, in the losses as in the confidence, see `segtrust.EmptyPolicy`.
    used_ids
        Ids of the cases it was fitted on.

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
    colour = SoftDice.colour

    def __post_init__(self) -> None:
        """Check the weight."""
        super().__post_init__()
        if self.weight is not None:
            check_nonnegative(self.weight, "weight")

    @property
    def needs(self) -> Needs:
        """Counts."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the counts."""
        if summary.counts.k == 0:
            return SoftDice(self.empty).read(summary)
        return soft_dice(summary.counts, self._known_weight)

    @property
    def _known_weight(self) -> float:
        if self.weight is None:
            raise_unfitted(self.name, "the weight", "TunedSoftDice(weight=0.5)")
        return float(self.weight)

    def observe(self, case: Case | Prediction) -> Observation:
        """Return k, s and λ, and for an empty mask its confidence."""
        summary = summary_of(case, self.needs)
        counts = summary.counts
        of_empty = 0.0 if counts.k else float(SoftDice(self.empty).read(summary))
        return {"counts": np.array([counts.k, float(counts.s), float(counts.lam), of_empty])}

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the weight from the observations of some cases and the loss of each, one minus its Dice."""
        dices = 1.0 - self._check_losses(losses, observations)
        counts = np.array([observation["counts"] for observation in observations])
        distances = 1.0 - rank_correlations(np.array([_soft_dices(counts, w) for w in WEIGHTS]), dices)
        unweighted, best = WEIGHTS.index(1.0), int(np.argmin(distances))
        margin = _MARGIN / math.sqrt(dices.size)
        chosen = best if distances[best] < distances[unweighted] * (1.0 - margin) else unweighted
        return replace(self, weight=WEIGHTS[chosen])

    def score_observation(self, observation: Observation) -> float:
        """Return the confidence of the case that was observed, with the learned weight."""
        return float(self.score_observations([observation])[0])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Return the confidences of the cases that were observed, with the learned weight."""
        counts = np.array([observation["counts"] for observation in observations])
        return _soft_dices(counts, self._known_weight)


def _soft_dices(counts: Any, weight: float) -> Any:
    """Return SDC_w of each row (k, s, λ, confidence of an empty mask)."""
    k, s, lam, of_empty = counts.T
    has_pixels = k > 0
    return np.where(has_pixels, 2.0 * s / np.where(has_pixels, k + s + weight * lam, 1.0), of_empty)


@dataclass(frozen=True)
class TunedPatchLevel(LearningEstimator):
    """PLA with the side of the box that ranks the tuning cases best, see `segtrust.patch_level_confidence`.

    `fit` chooses the side in `SIDES` with the smallest AURC on the tuning cases; of equal ones the smallest.
    Boxes are capped by the image in each dimension. The sums of all sides come from one summed-area table.

    Attributes
    ----------
    size
        Side of the box in pixels; ``None`` until it is passed or learned by `fit`.
    empty
        Score of an empty mask in the losses, see `segtrust.EmptyPolicy`.
    used_ids
        Ids of the cases it was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Case, Prediction
    >>> maps = [np.array([[0.9, 0.6], [0.1, 0.0]]), np.array([[0.6, 0.5], [0.5, 0.4]])]
    >>> truth = np.array([[1, 1], [0, 0]])
    >>> TunedPatchLevel().fit([Case(Prediction(p), truth) for p in maps]).size
    1
    """

    size: int | None = None

    name = "pla-tuned"
    label = "PLA*"
    colour = PatchLevel.colour

    def __post_init__(self) -> None:
        """Check that the box has pixels."""
        super().__post_init__()
        if self.size is not None:
            PatchLevel(self.size)

    @property
    def _patch_level(self) -> PatchLevel:
        if self.size is None:
            raise_unfitted(self.name, "the side of the box", "TunedPatchLevel(size=20)")
        return PatchLevel(self.size)

    @property
    def needs(self) -> Needs:
        """The largest sum over a box, once its side is known."""
        return Needs() if self.size is None else self._patch_level.needs

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the largest sum."""
        return self._patch_level.read(summary)

    def observe(self, case: Case | Prediction) -> Observation:
        """Return the largest sum over a box of each side."""
        from segtrust.kernels import largest_box_sums  # loads Numba

        return {"sums": largest_box_sums(summary_of(case, Needs()).entropies, self._sides)}

    @property
    def _sides(self) -> tuple[int, ...]:
        """The candidates, and a side off the grid that was passed."""
        return SIDES if self.size is None or self.size in SIDES else (*SIDES, self.size)

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the side from the observations of some cases and the loss of each, one minus its Dice."""
        checked = self._check_losses(losses, observations)
        sums = np.array([observation["sums"][: len(SIDES)] for observation in observations])
        return replace(self, size=SIDES[int(np.argmin(ranking_areas(-sums.T, checked)))])

    def score_observation(self, observation: Observation) -> float:
        """Return the confidence of the case that was observed, with the learned side."""
        column = self._sides.index(self._patch_level.size)
        if column >= len(observation["sums"]):
            raise CaseLengthError(
                f"observation: it was made for other sides than {self.size}. Observe the case again."
            )
        return 0.0 - float(observation["sums"][column])  # not -0.0


def ranking_areas(confidences: Any, losses: Any) -> Any:
    """Return the AURC of each candidate, as `segtrust.risk_coverage_curve` computes it for one.

    Parameters
    ----------
    confidences
        Confidences of shape (candidates, cases).
    losses
        Loss of each case, at least 0.

    Returns
    -------
    numpy.ndarray
        One area per candidate: the trapezoid over one point per tie block and the first risk at coverage 0.

    Examples
    --------
    >>> confidences = np.array([[0.9, 0.2, 0.5], [0.1, 0.2, 0.3]])
    >>> ranking_areas(confidences, np.array([0.0, 1.0, 0.5])).round(4).tolist()
    [0.1667, 0.5833]
    """
    # selective is above this package; tests compare both.
    order = np.argsort(-confidences, axis=1, kind="stable")
    ranked = np.take_along_axis(confidences, order, 1)
    n = ranked.shape[1]
    risks = np.cumsum(losses[order], axis=1) / np.arange(1, n + 1)
    is_last = np.append(ranked[:, 1:] != ranked[:, :-1], np.ones((len(ranked), 1), bool), axis=1)
    areas = []
    for last, risk in zip(is_last, risks, strict=True):
        accepted = np.flatnonzero(last) + 1  # number of cases up to the end of each tie block
        at_ends = risk[accepted - 1]
        before = np.append(at_ends[0], at_ends[:-1])
        areas.append(float(np.sum(np.diff(accepted, prepend=0) * (before + at_ends)) / 2.0) / n)
    return np.array(areas)


def rank_correlations(confidences: Any, dices: Any) -> Any:
    """Return the correlation of each candidate's ranks, ties at their mean rank, with the Dice of the cases.

    The area under coverage × risk (AUGRC) falls linearly in the covariance of rank and Dice, so this orders
    candidates as that area does, except for ties. It is 0 if the candidate or the Dice does not vary.

    Examples
    --------
    >>> rank_correlations(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]), np.array([0.1, 0.5, 0.9])).tolist()
    [1.0, 0.0]
    """
    from scipy.stats import rankdata

    ranks = rankdata(confidences, axis=1)
    ranks = ranks - ranks.mean(1, keepdims=True)
    dices = dices - dices.mean()
    scale = np.sqrt(np.sum(ranks**2, axis=1) * np.sum(dices**2))
    return np.divide(ranks @ dices, scale, out=np.zeros(len(ranks)), where=scale > 0.0)
