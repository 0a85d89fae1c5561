"""The losses that the networks are trained with, of logits and targets in [0, 1]; all give one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from segtrust.errors import ParameterError

__all__ = [
    "LOSSES",
    "bce_dice_loss",
    "cross_entropy_dice_loss",
    "dice_focal_loss",
    "disc_cup_loss",
    "structure_loss",
    "summed_structure_loss",
]

_SMOOTH = 1e-5
_PRESENCE = (0.0, 2.0 / 3.0, 4.0 / 3.0)


def bce_dice_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Half the binary cross-entropy, plus one minus the soft Dice of each image: the loss of UNeXt.

    Parameters
    ----------
    logits, target
        (N, C, H, W). The Dice sums over all pixels and channels of an image.

    Examples
    --------
    >>> import torch
    >>> logits, target = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    >>> bce_dice_loss(logits, target)  # log(2) / 2 + 1 - 2/3
    tensor(0.6799)
    """
    _check_target(target, tuple(logits.shape))
    p = logits.sigmoid()
    dice = _soft_dice(_pixel_sum(p * target), _pixel_sum(p) + _pixel_sum(target))
    return 0.5 * F.binary_cross_entropy_with_logits(logits, target) + 1.0 - dice.mean()


def disc_cup_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Half a weighted binary cross-entropy, plus half of one minus a soft Dice: the loss of Segtran.

    Presence weighs 0, 2/3 and 4/3 in background, disc and cup; absence weighs 1. The Dice is that of disc and
    cup, with squares in its denominator.

    Parameters
    ----------
    logits
        (N, 3, H, W): background, disc with cup, cup. Interpolated to the size of the target.
    target
        (N, 3, *any size), the same channels.
    """
    _check_target(target, (*logits.shape[:2], *target.shape[2:]))
    if logits.shape != target.shape:
        logits = F.interpolate(logits, size=target.shape[2:], mode="bilinear")
    presence = logits.new_tensor(_PRESENCE)[:, None, None]
    entropy = F.binary_cross_entropy_with_logits(logits, target, pos_weight=presence)
    p, truth = logits[:, 1:].sigmoid().flatten(2), target[:, 1:].flatten(2)
    dice = _soft_dice((p * truth).sum(2), (p * p).sum(2) + (truth * truth).sum(2))
    return 0.5 * entropy + 0.5 * (1.0 - dice.mean())


def dice_focal_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Half of one minus the soft Dice of each volume, plus the focal loss: the loss of the Shifts U-Net.

    Parameters
    ----------
    logits
        (N, 2, *spatial): background and foreground, of a softmax.
    target
        (N, 1, *spatial), 1 in the foreground.
    """
    _check_target(target, (logits.shape[0], 1, *logits.shape[2:]))
    p, truth = logits.softmax(1)[:, 1:], target.to(logits.dtype)
    dice = _soft_dice(_pixel_sum(p * truth), _pixel_sum(p) + _pixel_sum(truth))
    entropy = F.cross_entropy(logits, target[:, 0].long(), reduction="none")
    focal = (1.0 - torch.exp(-entropy)) ** 2 * entropy
    return 0.5 * (1.0 - dice.mean()) + focal.mean()


def cross_entropy_dice_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy, plus one minus the soft Dice of each volume: what the paper names for the Shifts U-Net.

    Parameters
    ----------
    logits, target
        As for `dice_focal_loss`.
    """
    _check_target(target, (logits.shape[0], 1, *logits.shape[2:]))
    p, truth = logits.softmax(1)[:, 1:], target.to(logits.dtype)
    dice = _soft_dice(_pixel_sum(p * truth), _pixel_sum(p) + _pixel_sum(truth))
    return F.cross_entropy(logits, target[:, 0].long()) + 1.0 - dice.mean()


def structure_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Binary cross-entropy, plus one minus a soft IoU in which pixels near edges weigh up to six times more.

    The cross-entropy is not weighted: the published code means to, and does not.

    Parameters
    ----------
    logits, target
        (N, 1, H, W).
    """
    _check_target(target, tuple(logits.shape))
    weight = 1.0 + 5.0 * (F.avg_pool2d(target, 31, stride=1, padding=15) - target).abs()
    p = logits.sigmoid()
    common, total = _pixel_sum(p * target * weight), _pixel_sum((p + target) * weight)
    iou = (common + 1.0) / (total - common + 1.0)
    return F.binary_cross_entropy_with_logits(logits, target) + 1.0 - iou.mean()


def summed_structure_loss(outputs: Sequence[Tensor], target: Tensor) -> Tensor:
    """Sum `structure_loss` over several maps of logits: the loss of Polyp-PVT."""
    return torch.stack([structure_loss(logits, target) for logits in outputs]).sum()


def _soft_dice(common: Tensor, total: Tensor) -> Tensor:
    return (2.0 * common + _SMOOTH) / (total + _SMOOTH)


def _pixel_sum(values: Tensor) -> Tensor:
    """Sum over all but the first axis."""
    return values.flatten(1).sum(1)


def _check_target(target: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse what would be broadcast."""
    if tuple(target.shape) != shape:
        raise ParameterError(f"target: expected the shape {shape}, got {tuple(target.shape)}.")


LOSSES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "unext": bce_dice_loss,
    "polyp-pvt": summed_structure_loss,
    "segtran": disc_cup_loss,
    "shifts-unet": dice_focal_loss,
}
"""By the name of the network; each takes what its network gives, and a target."""
