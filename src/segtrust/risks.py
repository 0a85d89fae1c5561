"""Losses of a mask compared with its ground truth: Dice, IoU and F-beta, with empty masks defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from segtrust._arguments import check_weight
from segtrust.kernels import (
    as_binary,
    as_binary_on_device,
    check_array,
    check_shapes,
    count_on_device,
    is_device_array,
    on_host,
    raise_shape_mismatch,
    to_device_of,
)
from segtrust.maps import EmptyPolicy

__all__ = ["RISKS", "Overlap", "Risk", "dice", "f_beta", "f_beta_risk", "iou", "overlap"]


@dataclass(frozen=True)
class Overlap:
    """Counts of the pixels in which a mask and the truth agree and differ.

    Attributes
    ----------
    true_positives, false_positives, false_negatives
        Number of pixels in both, in the mask only and in the truth only; on a device, scalars there.
    """

    true_positives: Any
    false_positives: Any
    false_negatives: Any

    def tversky(self, alpha: float, beta: float, empty: EmptyPolicy | str) -> Any:
        """Return TP / (TP + alpha FP + beta FN); for two empty masks 0 or 1, depending on the policy."""
        policy, zero = EmptyPolicy(empty), self.true_positives * 0.0
        if self.true_positives + self.false_positives + self.false_negatives == 0:
            return zero + policy.dice_of_empty_masks
        if self.true_positives == 0:
            return zero
        errors = alpha * self.false_positives + beta * self.false_negatives
        return self.true_positives / (self.true_positives + errors)


def overlap(truth: Any, mask: Any) -> Overlap:
    """Count the pixels in which two binary masks agree and differ.

    Examples
    --------
    >>> overlap(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    Overlap(true_positives=1, false_positives=1, false_negatives=1)
    """
    check_array(truth, "truth")
    check_array(mask, "mask")
    if tuple(truth.shape) != tuple(mask.shape):
        raise_shape_mismatch(tuple(truth.shape), f"the mask's shape {tuple(mask.shape)}", "truth")
    check_shapes(tuple(mask.shape), None, "mask")
    count: Callable[[Any], Any]
    if is_device_array(mask):
        truth = as_binary_on_device(to_device_of(truth, mask, "truth"), "truth")
        mask, count = as_binary_on_device(mask, "mask"), count_on_device
        both = count_on_device(truth & mask)
    else:
        truth = as_binary(np.asarray(on_host(truth)), "truth")
        mask, count = as_binary(np.asarray(mask), "mask"), lambda pixels: int(np.count_nonzero(pixels))
        both = count(np.logical_and(truth, mask))
    return Overlap(both, count(mask) - both, count(truth) - both)


def dice(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """Compute the Dice coefficient 2 |truth ∩ mask| / (|truth| + |mask|).

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.

    Returns
    -------
    float
        Score in [0, 1]. For masks on a device (torch, CuPy, JAX), a scalar array there.

    Examples
    --------
    >>> dice(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.6666666666666666
    >>> dice(np.zeros(4, bool), np.zeros(4, bool), empty="agree")
    1.0
    """
    return overlap(truth, mask).tversky(0.5, 0.5, empty)


def iou(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """Compute the intersection over union of two masks.

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.

    Examples
    --------
    >>> iou(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.5
    """
    return overlap(truth, mask).tversky(1.0, 1.0, empty)


def f_beta(truth: Any, mask: Any, *, beta: float, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
    """Compute the F-beta score, the weighted harmonic mean of precision and recall.

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    beta
        Weight of missed pixels, from 0 to 1e20; 1 gives the Dice coefficient.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.

    Examples
    --------
    >>> f_beta(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), beta=1.0)
    0.6666666666666666
    """
    false_positive = 1.0 / (1.0 + check_weight(beta, "beta") ** 2)
    return overlap(truth, mask).tversky(false_positive, 1.0 - false_positive, empty)


@dataclass(frozen=True)
class Risk:
    """A loss in [0, 1] of a mask compared with its ground truth; lower is better.

    Attributes
    ----------
    name
        Identifier used in tables and files.
    score
        Function of truth, mask and ``empty`` that returns a score in [0, 1]; the loss is 1 minus the score.

    Examples
    --------
    >>> RISKS["dice_risk"].of(np.array([1, 1]), np.array([1, 0]))
    0.33333333333333337
    """

    name: str
    score: Callable[..., Any]

    def of(self, truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> Any:
        """Compute the loss of a mask."""
        return 1.0 - self.score(truth, mask, empty=empty)


def f_beta_risk(beta: float) -> Risk:
    """Return the risk that is 1 minus the F-beta score.

    Examples
    --------
    >>> f_beta_risk(2.0).name
    'f2_risk'
    """
    return Risk(f"f{beta:g}_risk", partial(f_beta, beta=beta))


RISKS = {risk.name: risk for risk in (Risk("dice_risk", dice), Risk("iou_risk", iou), f_beta_risk(2.0))}
"""All risks by name."""
