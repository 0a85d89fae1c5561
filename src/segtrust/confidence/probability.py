"""Means of pixel probabilities: of the likelier class (aMSP) and of the predicted class (APC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator, score_map
from segtrust.confidence.summary import Needs, Summary
from segtrust.kernels.needs import UncertaintyNeeds

__all__ = [
    "AverageClassProbability",
    "AverageMaxProbability",
    "average_class_probability",
    "average_max_probability",
]


@dataclass(frozen=True)
class AverageMaxProbability(ConfidenceEstimator):
    """Mean over the pixels of max(p, 1 - p), see `average_max_probability`."""

    name = "amsp"
    label = "aMSP"

    @property
    def needs(self) -> Needs:
        """The sum of doubts."""
        return Needs(uncertainty=UncertaintyNeeds())

    def read(self, summary: Summary) -> Any:
        """Confidence from the sum of doubts, for max(p, 1 - p) = 1 - min(p, 1 - p)."""
        return 1.0 - summary.uncertainty(UncertaintyNeeds()).doubt / summary.n


@dataclass(frozen=True)
class AverageClassProbability(ConfidenceEstimator):
    """Mean probability of the predicted class, see `average_class_probability`."""

    name = "apc"
    label = "APC"

    @property
    def needs(self) -> Needs:
        """Counts alone."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Confidence from the counts."""
        counts = summary.counts
        return (counts.s + ((summary.n - counts.k) - counts.lam)) / summary.n


def average_max_probability(p: Any) -> Any:
    """Average maximum softmax probability (aMSP): the mean over the pixels of max(p, 1 - p).

    Examples
    --------
    >>> import numpy as np
    >>> average_max_probability(np.array([1.0, 0.5, 0.0]))
    0.8333333333333334
    """
    return score_map(AverageMaxProbability(), p, None, 0.5)


def average_class_probability(p: Any, mask: Any = None, *, threshold: float = 0.5) -> Any:
    """Average probability of the predicted class (APC): one minus the expected Hamming loss.

    By Proposition 1 of the paper this is the optimal confidence for the Hamming loss, exactly and without
    independence of the pixels. It equals the aMSP where the mask is ``p >= 0.5``.

    Notes
    -----
    Right to about 1e-16, absolutely: of a mask that the map contradicts almost everywhere, the small value
    that is left has fewer digits.

    Examples
    --------
    >>> import numpy as np
    >>> average_class_probability(np.array([1.0, 0.25, 0.0]), np.array([1, 1, 0]))
    0.75
    """
    return score_map(AverageClassProbability(), p, mask, threshold)
