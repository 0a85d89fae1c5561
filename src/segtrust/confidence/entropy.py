"""Estimators made of the entropy map: its mean (aNE), its order statistics (MMMC), its worst patch (PLA)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from segtrust.confidence.base import ConfidenceEstimator, score_map
from segtrust.confidence.summary import Needs, Summary
from segtrust.errors import ParameterError
from segtrust.kernels.needs import UncertaintyNeeds

__all__ = [
    "AverageNegativeEntropy",
    "MedianMinMax",
    "PatchLevel",
    "average_negative_entropy",
    "median_min_max_confidence",
    "patch_level_confidence",
]


@dataclass(frozen=True)
class AverageNegativeEntropy(ConfidenceEstimator):
    """Minus the mean entropy, see `average_negative_entropy`."""

    name = "ane"
    label = "aNE"

    @property
    def needs(self) -> Needs:
        """The sum of entropies."""
        return Needs(uncertainty=UncertaintyNeeds(entropies=True))

    def read(self, summary: Summary) -> Any:
        """Confidence from the sum of entropies."""
        return 0.0 - summary.uncertainty(UncertaintyNeeds(entropies=True)).entropy / summary.n


@dataclass(frozen=True)
class MedianMinMax(ConfidenceEstimator):
    """Minus (median + minimum) / maximum of the entropy, see `median_min_max_confidence`."""

    name = "mmmc"
    label = "MMMC"

    @property
    def needs(self) -> Needs:
        """Order statistics of the doubt."""
        return Needs(uncertainty=UncertaintyNeeds(median=True))

    def read(self, summary: Summary) -> Any:
        """Confidence from the entropies of four pixels."""
        statistics = summary.uncertainty(UncertaintyNeeds(median=True))
        highest = statistics.entropy_of(statistics.highest)
        if highest == 0.0:
            return highest * 0.0
        lower, upper = (statistics.entropy_of(doubt) for doubt in statistics.middle)
        return 0.0 - ((lower + upper) / 2.0 + statistics.entropy_of(statistics.lowest)) / highest


@dataclass(frozen=True)
class PatchLevel(ConfidenceEstimator):
    """Minus the largest sum of entropies over a box of ``size`` a side, see `patch_level_confidence`."""

    size: int = 10

    name = "pla"
    label = "PLA"

    def __post_init__(self) -> None:
        """Refuse a box without pixels."""
        if not isinstance(self.size, Integral) or self.size < 1:
            raise ParameterError(
                f"size: expected a whole number of at least 1, got {self.size!r}. "
                "It is the side of the box in pixels, 10 in the paper."
            )

    @property
    def _needed(self) -> UncertaintyNeeds:
        return UncertaintyNeeds(side=self.size)

    @property
    def needs(self) -> Needs:
        """The largest sum over a box."""
        return Needs(uncertainty=self._needed)

    def read(self, summary: Summary) -> Any:
        """Confidence from the largest sum."""
        return 0.0 - summary.uncertainty(self._needed).patch


def average_negative_entropy(p: Any) -> Any:
    """Average negative entropy (aNE): minus the mean over the pixels of the entropy in bits.

    Examples
    --------
    >>> import numpy as np
    >>> round(average_negative_entropy(np.array([0.5, 0.0, 1.0, 0.5])), 12)
    -0.5
    """
    return score_map(AverageNegativeEntropy(), p, None, 0.5)


def median_min_max_confidence(p: Any) -> Any:
    """Median-min-max confidence (MMMC): -(median u + min u) / max u over the entropies u of the pixels.

    0, the value of full certainty, where every pixel is certain.

    Examples
    --------
    >>> import numpy as np
    >>> median_min_max_confidence(np.array([0.5, 0.5, 0.0]))
    -1.0
    """
    return score_map(MedianMinMax(), p, None, 0.5)


def patch_level_confidence(p: Any, *, size: int = 10) -> Any:
    """Patch-level aggregation (PLA): minus the largest sum of entropies over a box.

    Parameters
    ----------
    p
        Foreground probabilities, any number of dimensions.
    size
        Pixels along each side of the box, capped by the image in each dimension. Boxes lie wholly inside the
        image and are one pixel apart.

    Examples
    --------
    >>> import numpy as np
    >>> round(patch_level_confidence(np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.0]]), size=2), 12)
    -3.0
    """
    return score_map(PatchLevel(size), p, None, 0.5)
