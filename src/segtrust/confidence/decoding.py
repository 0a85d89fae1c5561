"""The mask with the largest exact expected Dice: a threshold of its own for each map, beyond 0.5."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from segtrust.kernels.decoding import EMPTY_CUT, best_cut, is_at_least
from segtrust.kernels.device import is_device_array, on_host, put_beside
from segtrust.kernels.inputs import as_array, check_fraction
from segtrust.kernels.integrals import expected_dice, probability_of_empty
from segtrust.kernels.masks import cut_map
from segtrust.kernels.opening import open_map
from segtrust.kernels.statistics import DiceStatistics
from segtrust.kernels.tiles import is_chunked
from segtrust.maps import EmptyPolicy, Prediction

__all__ = ["DiceOptimal", "decoded", "dice_optimal_mask"]


@dataclass(frozen=True, eq=False)
class DiceOptimal:
    """The Dice-optimal mask of a map, and what it is worth; see `dice_optimal_mask`.

    Attributes
    ----------
    threshold
        The mask is ``p >= threshold``, to the pixel; 1 where it is empty.
    k
        Pixels of the mask.
    confidence
        Its exact expected Dice, as `segtrust.ideal_dice_confidence` of this mask gives it.
    usual_confidence
        The same of the mask that it is compared with, ``p >= 0.5`` unless another cut was asked for.
    """

    threshold: float
    k: int
    confidence: float
    usual_confidence: float
    probabilities: Any = field(repr=False)

    @property
    def gain(self) -> float:
        """By how much the expected Dice is above that of the usual mask; never below 0 but by rounding."""
        return self.confidence - self.usual_confidence

    @cached_property
    def mask(self) -> Any:
        """The mask: bool, of the map's shape; where the map is on a device, beside it.

        Made when it is first asked for. Of a map in chunks it is a NumPy array, one byte a pixel.
        """
        mask = cut_map(on_host(self.probabilities), threshold=self.threshold)
        return put_beside(mask, self.probabilities) if is_device_array(self.probabilities) else mask


def dice_optimal_mask(
    p: Any, *, empty: EmptyPolicy | str = EmptyPolicy.PAPER, compared_with: float = 0.5
) -> DiceOptimal:
    """Find the mask whose exact expected Dice is the largest of all masks, if pixels are independent.

    The mask ``p >= 0.5`` has the most right pixels, not the best Dice: where a model is in doubt, a lower
    threshold is better, about half of the Dice that can be expected. Here it is found exactly, for each map
    its own, in a few passes over the pixels.

    Parameters
    ----------
    p
        Foreground probabilities of one image, as for `segtrust.soft_dice_confidence`. Maps in chunks are
        read piece by piece; those on a device are copied to the host for the search, and gradients do not
        pass through it.
    empty
        What an empty mask is worth, see `segtrust.EmptyPolicy`. Under ``"agree"`` it is the best where the
        truth is empty with more probability than any other mask has Dice; under ``"paper"`` it is worth 0,
        and is given for a map of zeros only.
    compared_with
        Threshold in [0, 1] of the usual mask.

    Returns
    -------
    DiceOptimal
        ``mask``, ``threshold``, ``k``, ``confidence``, ``usual_confidence`` and ``gain``.

    Notes
    -----
    Pixels that are equally probable are all in the mask or none is: nothing else is ever better. Where two
    masks are equally good to 1e-13, the smaller one is given. Classes and regions are decoded one map at a
    time: masks of the classes of a softmax may then overlap, and pixels may belong to none.

    Examples
    --------
    >>> import numpy as np
    >>> best = dice_optimal_mask(np.array([0.9, 0.45, 0.1]))
    >>> best.mask.tolist(), best.threshold
    ([True, True, False], 0.45)
    >>> round(best.confidence, 4), round(best.usual_confidence, 4)
    (0.7479, 0.7418)
    """
    check_fraction(compared_with, "compared_with")
    policy = EmptyPolicy(empty)
    host = _on_host(p, "p")
    usual = open_map(host, threshold=float(compared_with)).dice_statistics()
    threshold = _best_threshold(host, usual, policy, "p")
    best = open_map(host, threshold=threshold).dice_statistics()
    worth, usual_worth = (_expected_dice(each, policy) for each in (best, usual))
    return DiceOptimal(threshold, int(best.k), worth, usual_worth, p if is_device_array(p) else host)


def decoded(prediction: Prediction, empty: EmptyPolicy = EmptyPolicy.PAPER) -> Prediction:
    """Give a prediction with the threshold of its Dice-optimal mask; a mask that was delivered is kept.

    Examples
    --------
    >>> import numpy as np
    >>> decoded(Prediction(np.array([0.9, 0.45, 0.1]))).threshold
    0.45
    """
    if prediction.mask is not None:
        return prediction
    host = _on_host(prediction.probabilities, prediction.source)
    usual = open_map(host, threshold=prediction.threshold, source=prediction.source).dice_statistics()
    return replace(prediction, threshold=_best_threshold(host, usual, empty, prediction.source))


def _expected_dice(statistics: DiceStatistics, empty: EmptyPolicy) -> float:
    """Give what the ideal Dice confidence is for these sums."""
    is_empty = statistics.k == 0 and empty is EmptyPolicy.AGREE
    return float(probability_of_empty(statistics) if is_empty else expected_dice(statistics))


def _best_threshold(host: Any, statistics: DiceStatistics, empty: EmptyPolicy, source: str) -> float:
    """Weigh the best mask that is not empty against the empty one; values were checked with the sums."""
    found = best_cut(host, source)
    if found is None:
        return EMPTY_CUT
    if empty is EmptyPolicy.AGREE and is_at_least(probability_of_empty(statistics), found.value):
        return EMPTY_CUT
    return found.threshold


def _on_host(p: Any, source: str) -> Any:
    """Give a map where its values can be counted: in memory, or in chunks."""
    host = on_host(as_array(p, source))
    return host if is_chunked(host) else np.asarray(host)
