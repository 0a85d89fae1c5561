"""The ideal Dice confidence (IDC) and its kin: exact expectations of overlap scores, in linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator, as_number, score_map
from segtrust.confidence.summary import Needs, Summary
from segtrust.kernels.inputs import check_number, check_weight
from segtrust.kernels.integrals import (
    expected_dice,
    expected_tversky as tversky_of,
    probability_of_empty,
    probability_of_foreground,
)
from segtrust.kernels.opening import open_map
from segtrust.maps import EmptyPolicy

__all__ = [
    "IdealDice",
    "expected_f_beta",
    "expected_iou",
    "expected_tversky",
    "full_posterior_dice",
    "ideal_dice_confidence",
]


_ALPHA = "a number in [0, 1] (beyond, the power series behind the exact value diverge)"


@dataclass(frozen=True)
class IdealDice(ConfidenceEstimator):
    """Expected Dice coefficient under the map, see `ideal_dice_confidence`."""

    empty: EmptyPolicy = EmptyPolicy.PAPER

    name = "idc"
    label = "IDC"

    @property
    def needs(self) -> Needs:
        """Counts and sums of powers."""
        return Needs(counts=True, powers=True)

    def read(self, summary: Summary) -> Any:
        """Confidence from the sums."""
        if summary.dice.k == 0 and EmptyPolicy(self.empty) is EmptyPolicy.AGREE:
            return probability_of_empty(summary.dice)
        return expected_dice(summary.dice)


def ideal_dice_confidence(
    p: Any, mask: Any = None, *, threshold: float = 0.5, empty: EmptyPolicy | str = EmptyPolicy.PAPER
) -> Any:
    """Ideal Dice confidence: the exact expected Dice coefficient if pixels are independent.

    The sum over all 2ⁿ truths is taken in one pass over the pixels, to 1e-12 relative, mostly 1e-14; see
    `segtrust.kernels.integrals`.

    Parameters
    ----------
    p, mask, threshold, empty
        As for `segtrust.soft_dice_confidence`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> round(ideal_dice_confidence(np.array([0.5, 0.5])), 12)  # (0 + 2/3 + 2/3 + 1) / 4
    0.583333333333
    """
    return score_map(IdealDice(EmptyPolicy(empty)), p, mask, threshold)


def expected_tversky(p: Any, mask: Any = None, *, alpha: float, beta: float, threshold: float = 0.5) -> Any:
    """Exact expected Tversky index TP / (TP + alpha FP + beta FN); 0 for an empty mask.

    Parameters
    ----------
    p, mask, threshold
        As for `segtrust.soft_dice_confidence`.
    alpha, beta
        Weight of a false positive, in [0, 1], and of a false negative, from 0 to 1e20.

    Notes
    -----
    A false positive may not weigh more than a hit, ``alpha`` > 1: the generating function of the hits would
    then be needed at t > 1, where the power series that stand for most of the pixels diverge. Up to the
    largest ``beta`` the value is exact to 1e-12 relative; on a device without doubles nothing overflows.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_tversky(np.array([0.5, 0.5]), alpha=0.5, beta=0.5), 12)
    0.583333333333
    """
    check_number(alpha, "alpha", _ALPHA, most=1.0)
    check_weight(beta, "beta")
    statistics = open_map(p, mask, threshold=threshold).dice_statistics()
    return as_number(tversky_of(statistics, float(alpha), float(beta)))


def expected_iou(p: Any, mask: Any = None, *, threshold: float = 0.5) -> Any:
    """Exact expected intersection over union; parameters as for `segtrust.soft_dice_confidence`.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_iou(np.array([0.5, 0.5])), 12)  # (0 + 1/2 + 1/2 + 1) / 4
    0.5
    """
    return expected_tversky(p, mask, alpha=1.0, beta=1.0, threshold=threshold)


def expected_f_beta(p: Any, mask: Any = None, *, beta: float, threshold: float = 0.5) -> Any:
    """Exact expected F-beta score with ``beta`` from 0 to 1e20; above 1 it weighs missed pixels more.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_f_beta(np.array([0.5, 0.5]), beta=1.0), 12)
    0.583333333333
    """
    check_weight(beta, "beta")
    false_positive = 1.0 / (1.0 + float(beta) ** 2)
    return expected_tversky(p, mask, alpha=false_positive, beta=1.0 - false_positive, threshold=threshold)


def full_posterior_dice(q: Any, mask: Any) -> Any:
    """Give the expected Dice of independent pixels *if the truth is not empty* (section 6 of the paper).

    Parameters
    ----------
    q
        Probabilities before conditioning. The marginals of this posterior are q / (1 - Π(1 - q)).
    mask
        The mask that is judged.

    Returns
    -------
    float
        IDC(x): since an empty truth scores 0, the IDC of ``q`` divided by the chance of a truth that is not
        empty; NaN where that chance is 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(full_posterior_dice(np.array([0.5, 0.5]), np.array([1, 1])), 12)  # (2/3 + 2/3 + 1) / 3
    0.777777777778
    """
    statistics = open_map(q, mask).dice_statistics()
    chance = probability_of_foreground(statistics)
    return as_number(expected_dice(statistics) / chance if chance > 0.0 else statistics.s * math.nan)
