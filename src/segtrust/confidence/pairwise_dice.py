"""Agreement of the members of an ensemble as a confidence."""

from __future__ import annotations

from dataclasses import dataclass

from segtrust.confidence.base import ConfidenceEstimator, Needs, Summary
from segtrust.maps import EmptyPolicy


@dataclass(frozen=True)
class PairwiseDice(ConfidenceEstimator):
    """Mean Dice between the masks of every two members, see `segtrust.pairwise_dice`.

    It needs a prediction with `agreement`, such as one fused from ensemble members.

    Attributes
    ----------
    empty
        Dice of two empty masks, see `segtrust.EmptyPolicy`: 0, or 1 under ``"agree"``.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> from segtrust.kernels import Agreement
    >>> agreement = Agreement(((4, 3), (3, 5)))  # masks of 4 and 5 pixels, 3 of them in both
    >>> round(PairwiseDice().score(Prediction(np.full((3, 3), 0.6), agreement=agreement)), 4)
    0.6667
    """

    empty: EmptyPolicy = EmptyPolicy.PAPER

    name = "pairwise-dice"
    label = "pairwise Dice"
    colour = "#009e73"

    def __post_init__(self) -> None:
        """Convert and check the empty policy."""
        object.__setattr__(self, "empty", EmptyPolicy(self.empty))

    @property
    def needs(self) -> Needs:
        """How far the members agree."""
        return Needs(members=True)

    def read(self, summary: Summary) -> float:
        """Compute the confidence from the pixels that the masks share."""
        return summary.agreement.pairwise_dice(of_empty=self.empty.dice_of_empty_masks)
