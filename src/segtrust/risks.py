"""Loss of one case against its truth, as values: Dice, IoU and F-beta, with the empty masks spelled out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from segtrust.kernels.inputs import check_array, check_weight
from segtrust.kernels.refusals import refuse_empty, refuse_shape
from segtrust.maps import EmptyPolicy

__all__ = ["RISKS", "Overlap", "Risk", "dice", "f_beta", "f_beta_risk", "iou", "overlap"]


@dataclass(frozen=True)
class Overlap:
    """Pixels in which a mask and the truth agree and differ.

    Attributes
    ----------
    true_positives, false_positives, false_negatives
        Pixels in both, in the mask only, in the truth only; scalars on their device for masks on a device.
    """

    true_positives: Any
    false_positives: Any
    false_negatives: Any

    def tversky(self, alpha: float, beta: float, empty: EmptyPolicy | str) -> Any:
        """TP / (TP + alpha FP + beta FN), and for two empty masks what the policy says."""
        policy, zero = EmptyPolicy(empty), self.true_positives * 0.0
        if self.true_positives + self.false_positives + self.false_negatives == 0:
            return zero + 1.0 if policy is EmptyPolicy.AGREE else zero
        if self.true_positives == 0:
            return zero
        errors = alpha * self.false_positives + beta * self.false_negatives
        return self.true_positives / (self.true_positives + errors)


def overlap(truth: Any, mask: Any) -> Overlap:
    """Count where two binary masks agree and differ.

    Examples
    --------
    >>> overlap(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    Overlap(true_positives=1, false_positives=1, false_negatives=1)
    """
    for values, name in ((truth, "truth"), (mask, "mask")):
        check_array(values, name)
    if tuple(truth.shape) != tuple(mask.shape):
        refuse_shape(tuple(truth.shape), f"the mask's shape {tuple(mask.shape)}", "truth")
    if 0 in tuple(mask.shape):
        refuse_empty(tuple(mask.shape), "mask")
    both, of_mask, of_truth = _count_both(truth, mask)
    return Overlap(both, of_mask - both, of_truth - both)


def _count_both(truth: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Count the pixels in both masks, in the mask and in the truth, where the mask is."""
    from segtrust.kernels.device import (
        as_binary_on_device,
        count_on_device,
        is_device_array,
        on_host,
        put_beside,
    )
    from segtrust.kernels.view import as_binary

    if is_device_array(mask):
        truth = as_binary_on_device(put_beside(truth, mask, "truth"), "truth")
        mask = as_binary_on_device(mask, "mask")
        return count_on_device(truth & mask), count_on_device(mask), count_on_device(truth)
    truth, mask = as_binary(np.asarray(on_host(truth)), "truth"), as_binary(np.asarray(mask), "mask")
    counted = np.logical_and(truth, mask), mask, truth
    both, of_mask, of_truth = (int(np.count_nonzero(each)) for each in counted)
    return both, of_mask, of_truth


def dice(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """Dice coefficient 2 |truth ∩ mask| / (|truth| + |mask|).

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.

    Returns
    -------
    float
        In [0, 1]. For masks on a device (torch, CuPy, JAX) a scalar array there.

    Examples
    --------
    >>> dice(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.6666666666666666
    >>> dice(np.zeros(4, bool), np.zeros(4, bool), empty="agree")
    1.0
    """
    return overlap(truth, mask).tversky(0.5, 0.5, empty)


def iou(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """Intersection over union; parameters as for `dice`.

    Examples
    --------
    >>> iou(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.5
    """
    return overlap(truth, mask).tversky(1.0, 1.0, empty)


def f_beta(truth: Any, mask: Any, *, beta: float, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """F-beta score with ``beta`` from 0 to 1e20: 1 is Dice, more weighs missed pixels more.

    Examples
    --------
    >>> f_beta(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), beta=1.0)
    0.6666666666666666
    """
    check_weight(beta, "beta")
    false_positive = 1.0 / (1.0 + float(beta) ** 2)
    return overlap(truth, mask).tversky(false_positive, 1.0 - false_positive, empty)


@dataclass(frozen=True)
class Risk:
    """A loss in [0, 1] of a mask against its truth; lower is better.

    Attributes
    ----------
    name
        In tables and files.
    score
        The score that the loss is one minus of.

    Examples
    --------
    >>> RISKS["dice_risk"].of(np.array([1, 1]), np.array([1, 0]))
    0.33333333333333337
    """

    name: str
    score: Callable[..., Any]

    def of(self, truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
        """Loss of one case."""
        return 1.0 - self.score(truth, mask, empty=empty)


def f_beta_risk(beta: float) -> Risk:
    """Loss of the F-beta score.

    Examples
    --------
    >>> f_beta_risk(2.0).name
    'f2_risk'
    """
    return Risk(f"f{beta:g}_risk", partial(f_beta, beta=beta))


RISKS = {risk.name: risk for risk in (Risk("dice_risk", dice), Risk("iou_risk", iou), f_beta_risk(2.0))}
"""Losses by name."""
