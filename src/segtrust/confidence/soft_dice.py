"""The soft Dice confidence (SDC), and bounds on its distance from the ideal Dice confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

from segtrust._types import AnyArray, DeviceArrayT, EmptyName, MapOnHost
from segtrust.confidence.base import ConfidenceEstimator, Needs, Summary
from segtrust.kernels import (
    Counts,
    DiceBounds,
    count_map,
    dice_bounds_from,
    host_number,
    in_host_memory,
    open_map,
    probability_of_empty,
    warn_of_surprises,
)
from segtrust.maps import EmptyPolicy


def soft_dice(counts: Counts, weight: float = 1.0) -> Any:
    """Return 2s / (k + s + wλ) with the weight w, which is 1 for the SDC; 0 for an empty mask."""
    if counts.k == 0:
        return counts.s * 0.0  # a zero on the device of s
    return 2.0 * counts.s / (counts.k + counts.s + weight * counts.lam)


@dataclass(frozen=True)
class SoftDice(ConfidenceEstimator):
    """SDC = 2s / (k + s + λ), see `soft_dice_confidence`.

    Attributes
    ----------
    empty
        Confidence of an empty mask, see `segtrust.EmptyPolicy`: 0, or under ``"agree"`` the probability that
        the ground truth is empty too.

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
    colour = "#d55e00"

    def __post_init__(self) -> None:
        """Convert and check the empty policy."""
        object.__setattr__(self, "empty", EmptyPolicy(self.empty))

    @property
    def needs(self) -> Needs:
        """Counts."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the counts."""
        if summary.counts.k == 0 and self.empty is EmptyPolicy.AGREE:
            return probability_of_empty(summary.dice)
        return soft_dice(summary.counts)

    def read_counts(self, counts: Counts) -> Any:
        """Compute the confidences of a batch; ``NotImplemented`` if one needs more than its counts."""
        is_empty = counts.k == 0
        if self.empty is EmptyPolicy.AGREE and is_empty.any():
            return NotImplemented
        return 2.0 * counts.s / (counts.k + counts.s + counts.lam + is_empty)  # 0 if empty, as s is 0


@overload
def soft_dice_confidence(
    p: MapOnHost,
    mask: AnyArray | None = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def soft_dice_confidence(
    p: DeviceArrayT,
    mask: AnyArray | None = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def soft_dice_confidence(
    p: Any,
    mask: Any = None,
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    where: Any = None,
) -> Any:
    """Return the soft Dice confidence: the Dice with the probabilities in place of the ground truth.

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
    # Same as SoftDice.read, without a Summary: this is the hot path of the library.
    policy = empty if type(empty) is EmptyPolicy else EmptyPolicy(empty)
    p, number = in_host_memory(p)
    counts = count_map(p, mask, threshold=threshold, where=where)
    if counts.s <= 0.4 * counts.k or len(getattr(p, "shape", ())) > 2:  # an empty mask, or a volume
        warn_of_surprises(p, counts.may_be_below, where)
    if counts.k == 0 and policy is EmptyPolicy.AGREE:
        source = open_map(p, mask, threshold=threshold, where=where)
        return number(probability_of_empty(source.dice_statistics()))
    return number(soft_dice(counts))


def dice_bounds(p: Any, mask: Any = None, *, threshold: float = 0.5, where: Any = None) -> DiceBounds:
    """Return certified bounds on the ratio of the ideal Dice confidence to the SDC (Theorem 1 of the paper).

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

    Returns
    -------
    DiceBounds
        ``k``, ``mu``, ``lam``, ``s``, the bounds ``lower`` and ``upper``, and ``relative_error``, the most by
        which the SDC can differ from the ideal confidence. For an empty mask the last three and ``mu`` are
        NaN.

    Examples
    --------
    >>> import numpy as np
    >>> bounds = dice_bounds(np.array([0.9, 0.8, 0.9, 0.1]))
    >>> bounds.k, round(bounds.lower, 4), round(bounds.upper, 4)
    (3, 0.9771, 1.0026)
    """
    counts = count_map(p, mask, threshold=threshold, where=where)
    warn_of_surprises(p, counts.may_be_below, where)
    return bounds_of(counts)


def bounds_of(counts: Counts) -> DiceBounds:
    """Return the bounds of `dice_bounds` for a map that has been counted."""
    return dice_bounds_from(int(counts.k), host_number(counts.s), host_number(counts.lam))
