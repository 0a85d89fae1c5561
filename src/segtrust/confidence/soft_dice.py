"""The soft Dice confidence (SDC) and how far it can be from the ideal one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator, score_map
from segtrust.confidence.summary import Needs, Summary
from segtrust.kernels.bounds import DiceBounds, dice_bounds_from
from segtrust.kernels.integrals import probability_of_empty
from segtrust.kernels.opening import open_map
from segtrust.kernels.statistics import host_number
from segtrust.maps import EmptyPolicy

__all__ = ["SoftDice", "dice_bounds", "soft_dice_confidence"]


@dataclass(frozen=True)
class SoftDice(ConfidenceEstimator):
    """SDC = 2s / (k + s + λ), see `soft_dice_confidence`.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> SoftDice().score(Prediction(np.array([0.9, 0.8, 0.1])))
    0.8947368421052632
    """

    empty: EmptyPolicy = EmptyPolicy.PAPER

    name = "sdc"
    label = "SDC"

    @property
    def needs(self) -> Needs:
        """Counts alone."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Confidence from the counts."""
        counts = summary.counts
        if counts.k == 0 and EmptyPolicy(self.empty) is EmptyPolicy.AGREE:
            return probability_of_empty(summary.dice)
        if counts.k == 0:
            return counts.s * 0.0
        return 2.0 * counts.s / (counts.k + counts.s + counts.lam)


def soft_dice_confidence(
    p: Any, mask: Any = None, *, threshold: float = 0.5, empty: EmptyPolicy | str = EmptyPolicy.PAPER
) -> Any:
    """Soft Dice confidence: the Dice coefficient with the probabilities in place of the truth.

    Parameters
    ----------
    p
        Foreground probabilities of one image, any number of dimensions.
    mask
        The mask that was delivered; ``p >= threshold`` where none is given.
    threshold
        Decision threshold in [0, 1].
    empty
        What an empty mask is worth, see `segtrust.EmptyPolicy`: 0, or under ``"agree"`` the probability that
        the truth is empty too.

    Returns
    -------
    float
        In [0, 1]. For a torch, CuPy or JAX array a scalar array on its device.

    Raises
    ------
    ProbabilityRangeError
        If a value is NaN, infinite or outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> soft_dice_confidence(np.array([[0.9, 0.8], [0.1, 0.0]]))
    0.8947368421052632
    >>> soft_dice_confidence(np.zeros((3, 3)))
    0.0
    >>> soft_dice_confidence(np.zeros((3, 3)), empty="agree")
    1.0
    """
    return score_map(SoftDice(EmptyPolicy(empty)), p, mask, threshold)


def dice_bounds(p: Any, mask: Any = None, *, threshold: float = 0.5) -> DiceBounds:
    """Certified bounds on the ratio of the ideal Dice confidence to the SDC (Theorem 1 of the paper).

    Parameters
    ----------
    p, mask, threshold
        As for `soft_dice_confidence`.

    Returns
    -------
    DiceBounds
        ``k``, ``mu``, ``lam``, ``s``, the bounds ``lower`` and ``upper``, and ``relative_error``, the most by
        which the SDC can differ from the ideal confidence. An empty mask has NaN for the last three and mu.

    Examples
    --------
    >>> import numpy as np
    >>> bounds = dice_bounds(np.array([0.9, 0.8, 0.9, 0.1]))
    >>> bounds.k, round(bounds.lower, 4), round(bounds.upper, 4)
    (3, 0.9771, 1.0026)
    """
    counts = open_map(p, mask, threshold=threshold).count()
    return dice_bounds_from(int(counts.k), host_number(counts.s), host_number(counts.lam))
