"""The mask with the largest exact expected Dice: a separate threshold for each map instead of 0.5."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from segtrust._arguments import check_threshold
from segtrust._types import AnyArray, EmptyName
from segtrust.confidence.ideal_dice import ideal_dice
from segtrust.kernels import (
    EMPTY_THRESHOLD,
    DiceStatistics,
    as_array,
    best_threshold,
    check_where,
    fill_unselected,
    is_at_least,
    is_chunked,
    is_device_array,
    on_host,
    open_map,
    probability_of_empty,
    threshold_map,
    to_device_of,
    warn_of_surprises,
)
from segtrust.maps import EmptyPolicy, Prediction


@dataclass(frozen=True, eq=False)
class DiceOptimal:
    """The Dice-optimal mask of a map and its expected Dice; see `dice_optimal_mask`.

    Attributes
    ----------
    threshold
        The mask is exactly ``p >= threshold``; 1 if it is empty.
    k
        Number of pixels of the mask.
    confidence
        Its exact expected Dice, as `segtrust.ideal_dice_confidence` of this mask returns it.
    usual_confidence
        The same for the mask that it is compared with, ``p >= 0.5`` unless another threshold was requested.
    probabilities
        The map.
    """

    threshold: float
    k: int
    confidence: float
    usual_confidence: float
    probabilities: Any = field(repr=False)

    @property
    def gain(self) -> float:
        """Expected Dice above that of the usual mask; never below 0, except by rounding."""
        return self.confidence - self.usual_confidence

    @cached_property
    def mask(self) -> Any:
        """The mask: bool, with the shape of the map, and on the same device.

        Computed on first use. For a map in chunks it is a NumPy array, one byte per pixel.
        """
        mask = threshold_map(on_host(self.probabilities), threshold=self.threshold)
        return to_device_of(mask, self.probabilities) if is_device_array(self.probabilities) else mask


def dice_optimal_mask(
    p: AnyArray,
    *,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    compared_with: float = 0.5,
    where: AnyArray | None = None,
) -> DiceOptimal:
    """Find the mask whose exact expected Dice is the largest of all masks, if pixels are independent.

    The mask ``p >= 0.5`` has the most correct pixels, not the best Dice. For an uncertain model a lower
    threshold is better: about half of the expected Dice. It is found exactly for each map, in a few passes
    over the pixels.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions. Maps in chunks are read tile by
        tile; those on a device are copied to the host for the search, and gradients do not pass through it.
    empty
        Dice of an empty mask, see `segtrust.EmptyPolicy`. Under ``"agree"`` the empty mask is the best if the
        ground truth is more likely to be empty than any other mask's expected Dice is large; under
        ``"paper"`` its Dice is 0, and it is returned for a map of zeros only.
    compared_with
        Threshold in [0, 1] of the usual mask.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN, and are in no mask.

    Returns
    -------
    DiceOptimal
        ``mask``, ``threshold``, ``k``, ``confidence``, ``usual_confidence`` and ``gain``.

    Notes
    -----
    Pixels with equal probability are all in the mask or none is: nothing else is ever better. If two masks
    are equally good to 1e-13, the smaller one is returned. Classes and regions are decoded one map at a time:
    masks of the classes of a softmax may then overlap, and pixels may belong to none.

    Examples
    --------
    >>> import numpy as np
    >>> best = dice_optimal_mask(np.array([0.9, 0.45, 0.1]))
    >>> best.mask.tolist(), best.threshold
    ([True, True, False], 0.45)
    >>> round(best.confidence, 4), round(best.usual_confidence, 4)
    (0.7479, 0.7418)
    """
    check_threshold(compared_with, "compared_with")
    policy = EmptyPolicy(empty)
    p = as_array(p, "p")
    if where is not None:
        open_map(p, where=where)  # raises if it selects nothing
        p = fill_unselected(p, check_where(where, p))
    host = _readable_by_loops(p, "p")
    usual = open_map(host, threshold=float(compared_with)).dice_statistics()
    warn_of_surprises(host, usual.counts.may_be_below)
    threshold = _best_threshold(host, usual, policy, "p")
    best = open_map(host, threshold=threshold).dice_statistics()
    return DiceOptimal(
        threshold,
        int(best.k),
        float(ideal_dice(best, policy)),
        float(ideal_dice(usual, policy)),
        p if is_device_array(p) else host,
    )


def decoded(prediction: Prediction, empty: EmptyPolicy = EmptyPolicy.PAPER) -> Prediction:
    """Return a prediction with the threshold of its Dice-optimal mask; a delivered mask is kept.

    Examples
    --------
    >>> import numpy as np
    >>> decoded(Prediction(np.array([0.9, 0.45, 0.1]))).threshold
    0.45
    """
    if prediction.mask is not None:
        return prediction
    host = _readable_by_loops(prediction.probabilities, prediction.source)
    usual = open_map(host, threshold=prediction.threshold, source=prediction.source).dice_statistics()
    return replace(prediction, threshold=_best_threshold(host, usual, empty, prediction.source))


def _best_threshold(host: Any, statistics: DiceStatistics, empty: EmptyPolicy, source: str) -> float:
    """Return the threshold of the best mask; the empty mask competes under ``"agree"``."""
    best = best_threshold(host, source)
    if best is None:
        return EMPTY_THRESHOLD
    if empty is EmptyPolicy.AGREE and is_at_least(probability_of_empty(statistics), best.expected_dice):
        return EMPTY_THRESHOLD
    return best.threshold


def _readable_by_loops(p: Any, source: str) -> Any:
    """Return a map where the loops can read it: in memory, or in chunks."""
    host = on_host(as_array(p, source))
    return host if is_chunked(host) else np.asarray(host)
