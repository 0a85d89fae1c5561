"""The ideal Dice confidence (IDC) and other exact expectations of overlap scores, in linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, overload

from segtrust._arguments import check_nonnegative, check_weight
from segtrust._types import AnyArray, DeviceArrayT, EmptyName, MapOnHost
from segtrust.confidence.base import ConfidenceEstimator, Needs, Summary
from segtrust.kernels import (
    DiceStatistics,
    expected_dice,
    expected_tversky as tversky_from,
    open_map,
    probability_of_empty,
    probability_of_foreground,
    warn_of_surprises,
)
from segtrust.maps import EmptyPolicy


def ideal_dice(statistics: DiceStatistics, empty: EmptyPolicy) -> Any:
    """Return the exact expected Dice of a mask, from the sums over its map."""
    if statistics.k == 0 and empty is EmptyPolicy.AGREE:
        return probability_of_empty(statistics)
    return expected_dice(statistics)


@dataclass(frozen=True)
class IdealDice(ConfidenceEstimator):
    """Exact expected Dice under the map, see `ideal_dice_confidence`.

    Attributes
    ----------
    empty
        Confidence of an empty mask, see `segtrust.EmptyPolicy`: 0, or under ``"agree"`` the probability that
        the ground truth is empty too.
    """

    empty: EmptyPolicy = EmptyPolicy.PAPER

    name = "idc"
    label = "IDC"
    colour = "#009e73"

    def __post_init__(self) -> None:
        """Convert and check the empty policy."""
        object.__setattr__(self, "empty", EmptyPolicy(self.empty))

    @property
    def needs(self) -> Needs:
        """Counts and sums of powers."""
        return Needs(counts=True, powers=True)

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the sums."""
        return ideal_dice(summary.dice, self.empty)


@overload
def ideal_dice_confidence(
    p: MapOnHost,
    mask: AnyArray | None = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def ideal_dice_confidence(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def ideal_dice_confidence(
    p: Any,
    mask: Any = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    where: Any = None,
) -> Any:
    """Return the ideal Dice confidence: the exact expected Dice coefficient if pixels are independent.

    The sum over all 2ⁿ possible ground truths is computed in one pass over the pixels, to 1e-12 relative,
    mostly 1e-14; see `segtrust.kernels.integrals`.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    threshold
        Decision threshold in [0, 1].
    empty
        Confidence of an empty mask, see `segtrust.EmptyPolicy`: 0, or under ``"agree"`` the probability that
        the ground truth is empty too.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Returns
    -------
    float
        In [0, 1]. For a torch, CuPy or JAX array a scalar array on its device.

    Examples
    --------
    >>> import numpy as np
    >>> round(ideal_dice_confidence(np.array([0.5, 0.5])), 12)  # (0 + 2/3 + 2/3 + 1) / 4
    0.583333333333
    """
    policy = empty if type(empty) is EmptyPolicy else EmptyPolicy(empty)
    source = open_map(p, mask, threshold=threshold, where=where)
    statistics = source.dice_statistics()
    warn_of_surprises(p, statistics.counts.may_be_below, where)
    return source.number(ideal_dice(statistics, policy))


@overload
def expected_tversky(
    p: MapOnHost,
    mask: AnyArray | None = None,
    *,
    alpha: float,
    beta: float,
    threshold: float = 0.5,
    where: AnyArray | None = None,
) -> float: ...


@overload
def expected_tversky(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    *,
    alpha: float,
    beta: float,
    threshold: float = 0.5,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def expected_tversky(
    p: Any, mask: Any = None, *, alpha: float, beta: float, threshold: float = 0.5, where: Any = None
) -> Any:
    """Return the exact expected Tversky index TP / (TP + alpha FP + beta FN); 0 for an empty mask.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    alpha
        Weight of a false positive, in [0, 1].
    beta
        Weight of a false negative, from 0 to 1e20.
    threshold
        Decision threshold in [0, 1].
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Notes
    -----
    A false positive cannot weigh more than a true positive, ``alpha`` > 1: the generating function of the
    true positives would then be needed at t > 1, where the power series that stand for most of the pixels
    diverge. Up to the largest ``beta`` the value is exact to 1e-12 relative; on a device without doubles
    nothing overflows.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_tversky(np.array([0.5, 0.5]), alpha=0.5, beta=0.5), 12)
    0.583333333333
    """
    limits = "a number in [0, 1] (beyond, the power series behind the exact value diverge)"
    check_nonnegative(alpha, "alpha", limits, most=1.0)
    check_weight(beta, "beta")
    source = open_map(p, mask, threshold=threshold, where=where)
    statistics = source.dice_statistics(any_weights=not 1.0 - alpha <= beta <= 1.0)
    value = source.number(tversky_from(statistics, float(alpha), float(beta)))
    warn_of_surprises(p, statistics.counts.may_be_below, where)
    return value


@overload
def expected_iou(
    p: MapOnHost, mask: AnyArray | None = None, *, threshold: float = 0.5, where: AnyArray | None = None
) -> float: ...


@overload
def expected_iou(
    p: DeviceArrayT, mask: AnyArray | None = None, *, threshold: float = 0.5, where: AnyArray | None = None
) -> DeviceArrayT: ...


def expected_iou(p: Any, mask: Any = None, *, threshold: float = 0.5, where: Any = None) -> Any:
    """Return the exact expected intersection over union; 0 for an empty mask.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    threshold
        Decision threshold in [0, 1].
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_iou(np.array([0.5, 0.5])), 12)  # (0 + 1/2 + 1/2 + 1) / 4
    0.5
    """
    return expected_tversky(p, mask, alpha=1.0, beta=1.0, threshold=threshold, where=where)


@overload
def expected_f_beta(
    p: MapOnHost,
    mask: AnyArray | None = None,
    *,
    beta: float,
    threshold: float = 0.5,
    where: AnyArray | None = None,
) -> float: ...


@overload
def expected_f_beta(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    *,
    beta: float,
    threshold: float = 0.5,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def expected_f_beta(
    p: Any, mask: Any = None, *, beta: float, threshold: float = 0.5, where: Any = None
) -> Any:
    """Return the exact expected F-beta score; 0 for an empty mask.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    mask
        The delivered mask; ``p >= threshold`` if there is none.
    beta
        From 0 to 1e20; above 1, missed pixels weigh more than false positives.
    threshold
        Decision threshold in [0, 1].
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> round(expected_f_beta(np.array([0.5, 0.5]), beta=1.0), 12)
    0.583333333333
    """
    check_weight(beta, "beta")
    false_positive = 1.0 / (1.0 + float(beta) ** 2)
    weights = {"alpha": false_positive, "beta": 1.0 - false_positive}
    return expected_tversky(p, mask, **weights, threshold=threshold, where=where)


@overload
def full_posterior_dice(q: MapOnHost, mask: AnyArray, *, where: AnyArray | None = None) -> float: ...


@overload
def full_posterior_dice(
    q: DeviceArrayT, mask: AnyArray, *, where: AnyArray | None = None
) -> DeviceArrayT: ...


def full_posterior_dice(q: Any, mask: Any, *, where: Any = None) -> Any:
    """Return the expected Dice of independent pixels if the ground truth is not empty (paper, section 6).

    Parameters
    ----------
    q
        Probabilities before conditioning. The marginals of this posterior are q / (1 - Π(1 - q)).
    mask
        The mask whose Dice is expected.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Returns
    -------
    float
        IDC(x): the IDC of ``q`` divided by the probability that the ground truth is not empty, because an
        empty one scores 0; NaN if that probability is 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(full_posterior_dice(np.array([0.5, 0.5]), np.array([1, 1])), 12)  # (2/3 + 2/3 + 1) / 3
    0.777777777778
    """
    source = open_map(q, mask, where=where)
    statistics = source.dice_statistics()
    warn_of_surprises(q, statistics.counts.may_be_below, where)
    probability = probability_of_foreground(statistics)
    if probability > 0.0:
        return source.number(expected_dice(statistics) / probability)
    return source.number(statistics.s * math.nan)
