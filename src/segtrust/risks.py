"""Losses of a mask compared with its ground truth: Dice, IoU, F-beta and Hamming, with empty masks defined.

`RISKS` is the list that the engine, the command line, the report and the desk work from: what is known of a
risk (its label, unit, direction, bound, empty rule and needs) is written here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from segtrust._arguments import check_weight
from segtrust._types import AnyArray, DeviceArrayT, EmptyName, MapOnHost
from segtrust.kernels import (
    as_array,
    as_binary,
    as_binary_on_device,
    check_shapes,
    count_on_device,
    in_host_memory,
    is_device_array,
    on_host,
    open_map,
    raise_shape_mismatch,
    select_pixels,
    to_device_of,
    warn_of_surprises,
)
from segtrust.maps import EmptyPolicy

__all__ = [
    "RISKS",
    "Overlap",
    "Risk",
    "describe_loss",
    "dice",
    "f_beta",
    "f_beta_risk",
    "find_risk",
    "hamming_loss",
    "iou",
    "overlap",
    "soft_dice_loss",
]


@dataclass(frozen=True)
class Overlap:
    """Counts of the pixels in which a mask and the truth agree and differ.

    Attributes
    ----------
    true_positives, false_positives, false_negatives
        Number of pixels in both, in the mask only and in the truth only; on a device, scalars there.
    pixels
        Number of all pixels.
    """

    true_positives: Any
    false_positives: Any
    false_negatives: Any
    pixels: int

    def tversky(self, alpha: float, beta: float, empty: EmptyPolicy | str) -> Any:
        """Return TP / (TP + alpha FP + beta FN); for two empty masks 0 or 1, depending on the policy."""
        policy, zero = EmptyPolicy(empty), self.true_positives * 0.0
        if self.true_positives + self.false_positives + self.false_negatives == 0:
            return zero + policy.dice_of_empty_masks
        if self.true_positives == 0:
            return zero
        errors = alpha * self.false_positives + beta * self.false_negatives
        return self.true_positives / (self.true_positives + errors)

    def hamming(self) -> Any:
        """Return the share of the pixels in which mask and truth differ."""
        return (self.false_positives + self.false_negatives) / self.pixels


def overlap(truth: Any, mask: Any, where: Any = None) -> Overlap:
    """Count the pixels in which two binary masks agree and differ, among those that ``where`` selects.

    Examples
    --------
    >>> overlap(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
    Overlap(true_positives=1, false_positives=1, false_negatives=1, pixels=4)
    """
    counts, number = _count_overlap(truth, mask, where)
    return Overlap(
        number(counts.true_positives),
        number(counts.false_positives),
        number(counts.false_negatives),
        counts.pixels,
    )


def _count_overlap(truth: Any, mask: Any, where: Any) -> tuple[Overlap, Callable[[Any], Any]]:
    """Count where the mask lies; the second value turns a result into what the caller expects."""
    truth, mask = as_array(truth, "truth"), as_array(mask, "mask")
    if tuple(truth.shape) != tuple(mask.shape):
        raise_shape_mismatch(tuple(truth.shape), f"the mask's shape {tuple(mask.shape)}", "truth")
    check_shapes(tuple(mask.shape), None, "mask")
    mask, number = in_host_memory(mask)
    truth, _ = in_host_memory(truth)
    if where is not None:
        truth, mask = select_pixels(truth, where), select_pixels(mask, where)
    count: Callable[[Any], Any]
    if is_device_array(mask):
        truth = as_binary_on_device(to_device_of(truth, mask, "truth"), "truth")
        mask, count = as_binary_on_device(mask, "mask"), count_on_device
        both = count_on_device(truth & mask)
    else:
        truth = as_binary(np.asarray(on_host(truth)), "truth")
        mask, count = as_binary(np.asarray(mask), "mask"), lambda pixels: int(np.count_nonzero(pixels))
        both = count(np.logical_and(truth, mask))
    return Overlap(both, count(mask) - both, count(truth) - both, math.prod(mask.shape)), number


@overload
def dice(
    truth: AnyArray,
    mask: MapOnHost,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def dice(
    truth: AnyArray,
    mask: DeviceArrayT,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def dice(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER, where: Any = None) -> Any:
    """Compute the Dice coefficient 2 |truth ∩ mask| / (|truth| + |mask|).

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.
    where
        Boolean array of the same shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as an ignore index.

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
    counts, number = _count_overlap(truth, mask, where)
    return number(counts.tversky(0.5, 0.5, empty))


@overload
def iou(
    truth: AnyArray,
    mask: MapOnHost,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def iou(
    truth: AnyArray,
    mask: DeviceArrayT,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def iou(truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER, where: Any = None) -> Any:
    """Compute the intersection over union of two masks.

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.
    where
        Boolean array of the same shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as an ignore index.

    Examples
    --------
    >>> iou(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.5
    """
    counts, number = _count_overlap(truth, mask, where)
    return number(counts.tversky(1.0, 1.0, empty))


@overload
def f_beta(
    truth: AnyArray,
    mask: MapOnHost,
    *,
    beta: float,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def f_beta(
    truth: AnyArray,
    mask: DeviceArrayT,
    *,
    beta: float,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def f_beta(
    truth: Any,
    mask: Any,
    *,
    beta: float,
    empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    where: Any = None,
) -> Any:
    """Compute the F-beta score, the weighted harmonic mean of precision and recall.

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    beta
        Weight of missed pixels, from 0 to 1e20; 1 gives the Dice coefficient.
    empty
        Two empty masks score 0 under ``"paper"`` and 1 under ``"agree"``.
    where
        Boolean array of the same shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as an ignore index.

    Examples
    --------
    >>> f_beta(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), beta=1.0)
    0.6666666666666666
    """
    counts, number = _count_overlap(truth, mask, where)
    return number(counts.tversky(*_f_beta_weights(beta), empty))


def _f_beta_weights(beta: float) -> tuple[float, float]:
    """Return the weights of false positives and false negatives in the F-beta score."""
    false_positive = 1.0 / (1.0 + check_weight(beta, "beta") ** 2)
    return false_positive, 1.0 - false_positive


@overload
def hamming_loss(
    truth: AnyArray,
    mask: MapOnHost,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def hamming_loss(
    truth: AnyArray,
    mask: DeviceArrayT,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def hamming_loss(
    truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER, where: Any = None
) -> Any:
    """Compute the share of the pixels in which two masks differ (Example 1 of the paper).

    The confidence that ranks cases best by this loss is ``apc``, the average probability of the predicted
    class.

    Parameters
    ----------
    truth, mask
        Binary masks of the same shape.
    empty
        Accepted because all risks are called alike. It makes no difference: two empty masks agree in every
        pixel, so their loss is 0.
    where
        Boolean array of the same shape: the pixels that count. All of them by default.

    Examples
    --------
    >>> hamming_loss(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.25
    """
    EmptyPolicy(empty)
    counts, number = _count_overlap(truth, mask, where)
    return number(counts.hamming())


@overload
def soft_dice_loss(p: MapOnHost, truth: AnyArray, *, where: AnyArray | None = None) -> float: ...


@overload
def soft_dice_loss(p: DeviceArrayT, truth: AnyArray, *, where: AnyArray | None = None) -> DeviceArrayT: ...


def soft_dice_loss(p: Any, truth: Any, *, where: Any = None) -> Any:
    """Compute the soft Dice loss of a probability map: SDL = 1 - 2 Σ p y / (Σ p + Σ y).

    With the delivered mask in place of the ground truth y, one minus this loss is the soft Dice confidence
    (Remark 1 of the paper).

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    truth
        Binary mask of the same shape.
    where
        Boolean array of the same shape: the pixels that count. All of them by default.

    Returns
    -------
    float
        Loss in [0, 1]; 1 if the truth is empty, and then without a gradient. For a torch, CuPy or JAX array
        a scalar on its device, and in torch with the gradient for a training step.

    Examples
    --------
    >>> p = np.array([0.9, 0.8, 0.1])
    >>> round(soft_dice_loss(p, np.array([1, 1, 0])), 6)
    0.105263
    >>> from segtrust import soft_dice_confidence
    >>> soft_dice_confidence(p, p >= 0.5) == 1 - soft_dice_loss(p, p >= 0.5)
    True
    """
    p, number = in_host_memory(as_array(p, "p"))
    counts = open_map(p, _binary_like(p, truth, "truth"), where=where).count()
    warn_of_surprises(p, counts.may_be_below, where)
    if counts.k == 0:
        return number(1.0 + 0.0 * counts.s)
    return number(1.0 - 2.0 * counts.s / (counts.k + counts.s + counts.lam))


def _binary_like(p: Any, mask: Any, name: str) -> Any:
    """Return a mask of the shape of a map as booleans, on the device of the map."""
    mask = as_array(mask, name)
    if tuple(mask.shape) != tuple(p.shape):
        raise_shape_mismatch(tuple(mask.shape), f"the map's shape {tuple(p.shape)}", name)
    if is_device_array(p):
        return as_binary_on_device(to_device_of(mask, p, name), name)
    return as_binary(np.asarray(on_host(mask)), name).view(bool)


_TWO_EMPTY_MASKS = "two empty masks count as a complete failure ('paper') or as a perfect match ('agree')"


@dataclass(frozen=True)
class Risk:
    """A loss of a mask compared with its ground truth, with everything that has to be said about it.

    A risk is an instance, not a subclass: a new one is added to `RISKS` with its function and these values.

    Attributes
    ----------
    name
        Identifier used in the API.
    score
        Function of truth, mask and the keyword ``empty`` that returns the value of the metric. It also
        receives what ``needs`` names.
    column
        Short name: the value of ``--loss``, and the column of the metric in a score table if it has one. By
        default the name without ``_risk``.
    label
        Label of the metric in reports, figures and on the desk.
    unit
        Unit of the metric, such as ``"mm"``; empty if it has none.
    higher_is_better
        Direction of the metric. If true, the loss is 1 minus the metric; otherwise it is the metric itself.
    bound
        Largest possible loss, or ``None`` if there is none. Only a loss in [0, 1] can be certified.
    empty_rule
        What the metric is worth if mask and truth are both empty, as a clause.
    needs
        What the function needs besides the two masks, as names of keyword arguments, such as
        ``"spacing_mm"``.
    from_counts
        Function of an `Overlap` and an `EmptyPolicy` that returns the same value as ``score``, if the counts
        are all it takes: it is then available for every score table with ground truth.
    aliases
        Other names of the metric in tables of other programs.

    Examples
    --------
    >>> risk = RISKS["f2_risk"]
    >>> risk.of(np.array([1, 1]), np.array([1, 0]))
    0.4444444444444444
    >>> risk.column, risk.label, risk.loss_label, RISKS["hamming_risk"].loss_label
    ('f2', 'F2', '1 − F2', 'Hamming loss')
    """

    name: str
    score: Callable[..., Any]
    column: str = ""
    label: str = ""
    unit: str = ""
    higher_is_better: bool = True
    bound: float | None = 1.0
    empty_rule: str = _TWO_EMPTY_MASKS
    needs: frozenset[str] = frozenset()
    from_counts: Callable[[Overlap, EmptyPolicy | str], Any] | None = None
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the short name and the label."""
        object.__setattr__(self, "column", self.column or self.name.removesuffix("_risk"))
        object.__setattr__(self, "label", self.label or self.column)

    @property
    def loss_label(self) -> str:
        """Label of the loss: ``"1 − Dice"``, or that of the metric with its unit."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"1 − {self.label}" if self.higher_is_better else f"{self.label}{unit}"

    def of(
        self, truth: Any, mask: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER, **needed: Any
    ) -> Any:
        """Compute the loss of a mask.

        Parameters
        ----------
        truth, mask
            Binary masks of the same shape.
        empty
            What two empty masks are worth, see `segtrust.EmptyPolicy`.
        **needed
            What ``needs`` names, such as ``spacing_mm``.
        """
        return self.loss(self.score(truth, mask, empty=empty, **needed))

    def loss(self, value: Any) -> Any:
        """Return the loss for a value of the metric.

        Examples
        --------
        >>> RISKS["dice_risk"].loss(0.75), RISKS["hamming_risk"].loss(0.1)
        (0.25, 0.1)
        """
        return 1.0 - value if self.higher_is_better else value


def _tversky_of(counts: Overlap, empty: EmptyPolicy | str, weights: tuple[float, float]) -> Any:
    return counts.tversky(*weights, empty)


def _hamming_of(counts: Overlap, empty: EmptyPolicy | str) -> Any:
    del empty  # two empty masks agree in every pixel
    return counts.hamming()


def f_beta_risk(beta: float) -> Risk:
    """Return the risk that is 1 minus the F-beta score.

    Examples
    --------
    >>> f_beta_risk(2.0).name
    'f2_risk'
    """
    counted = partial(_tversky_of, weights=_f_beta_weights(beta))
    return Risk(
        f"f{beta:g}_risk",
        partial(f_beta, beta=beta),
        label=f"F{beta:g}",
        from_counts=counted,
        aliases=(f"f{beta:g}_score",),
    )


_DICE = Risk(
    "dice_risk",
    dice,
    label="Dice",
    from_counts=partial(_tversky_of, weights=(0.5, 0.5)),
    aliases=("dsc", "dice_score", "mean_dice", "f1", "f1_score"),
)
_IOU = Risk(
    "iou_risk",
    iou,
    label="IoU",
    from_counts=partial(_tversky_of, weights=(1.0, 1.0)),
    aliases=("jaccard",),
)
_HAMMING = Risk(
    "hamming_risk",
    hamming_loss,
    label="Hamming loss",
    higher_is_better=False,
    empty_rule="two empty masks agree in every pixel, so their loss is 0",
    from_counts=_hamming_of,
    aliases=("hamming_loss",),
)

RISKS = {risk.name: risk for risk in (_DICE, _IOU, f_beta_risk(2.0), _HAMMING)}
"""All risks by name."""


def find_risk(name: str) -> Risk | None:
    """Return the risk with a name, short name or alias, in any capitalisation; ``None`` if there is none.

    Examples
    --------
    >>> find_risk("DSC").name, find_risk("f2").name, find_risk("hd95")
    ('dice_risk', 'f2_risk', None)
    """
    wanted = name.lower()
    return next(
        (risk for risk in RISKS.values() if wanted in (risk.name, risk.column, *risk.aliases)),
        None,
    )


def describe_loss(name: str) -> str:
    """Return how a loss is shown: the label of the risk, or the name itself if it is not one of ours.

    Examples
    --------
    >>> describe_loss("dice"), describe_loss("hamming"), describe_loss("hd95")
    ('1 − Dice', 'Hamming loss', 'hd95')
    """
    risk = find_risk(name)
    return name if risk is None else risk.loss_label
