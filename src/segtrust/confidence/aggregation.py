"""Aggregations of pixel uncertainty without learning: means (aMSP, aPC, aNE), MMMC and patches (PLA)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, overload

from segtrust._types import AnyArray, DeviceArrayT, MapOnHost
from segtrust.confidence.base import ConfidenceEstimator, Needs, Summary, score_map
from segtrust.errors import ParameterError
from segtrust.kernels import Counts, UncertaintyNeeds


@dataclass(frozen=True)
class AverageMaxProbability(ConfidenceEstimator):
    """Mean over the pixels of max(p, 1 - p), see `average_max_probability`."""

    name = "amsp"
    label = "aMSP"
    colour = "#0072b2"

    @property
    def needs(self) -> Needs:
        """The sum of doubts."""
        return Needs(uncertainty=UncertaintyNeeds())

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the sum of doubts: max(p, 1 - p) = 1 - min(p, 1 - p)."""
        return 1.0 - summary.uncertainty(UncertaintyNeeds()).doubt / summary.n


@overload
def average_max_probability(p: MapOnHost, *, where: AnyArray | None = None) -> float: ...


@overload
def average_max_probability(p: DeviceArrayT, *, where: AnyArray | None = None) -> DeviceArrayT: ...


def average_max_probability(p: Any, *, where: Any = None) -> Any:
    """Return the average maximum softmax probability (aMSP): the mean over the pixels of max(p, 1 - p).

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> average_max_probability(np.array([1.0, 0.5, 0.0]))
    0.8333333333333334
    """
    return score_map(AverageMaxProbability(), p, where=where)


@dataclass(frozen=True)
class AverageClassProbability(ConfidenceEstimator):
    """Mean probability of the predicted class, see `average_class_probability`."""

    name = "apc"
    label = "aPC"
    colour = "#56b4e9"

    @property
    def needs(self) -> Needs:
        """Counts."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the counts."""
        return self.read_counts(summary.counts)

    def read_counts(self, counts: Counts) -> Any:
        """Compute the confidences of a batch, or of one map."""
        return (counts.s + ((counts.n - counts.k) - counts.lam)) / counts.n


@overload
def average_class_probability(
    p: MapOnHost, mask: AnyArray | None = None, *, threshold: float = 0.5, where: AnyArray | None = None
) -> float: ...


@overload
def average_class_probability(
    p: DeviceArrayT, mask: AnyArray | None = None, *, threshold: float = 0.5, where: AnyArray | None = None
) -> DeviceArrayT: ...


def average_class_probability(p: Any, mask: Any = None, *, threshold: float = 0.5, where: Any = None) -> Any:
    """Return the average probability of the predicted class (aPC): one minus the expected Hamming loss.

    By Proposition 1 of the paper this is the optimal confidence for the Hamming loss, exactly and without
    independence of the pixels. It equals the aMSP if the mask is ``p >= 0.5``.

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

    Notes
    -----
    Accurate to about 1e-16, absolutely: for a mask that the map contradicts almost everywhere, the small
    value that remains has fewer digits.

    Examples
    --------
    >>> import numpy as np
    >>> average_class_probability(np.array([1.0, 0.25, 0.0]), np.array([1, 1, 0]))
    0.75
    """
    return score_map(AverageClassProbability(), p, mask, threshold=threshold, where=where)


@dataclass(frozen=True)
class AverageNegativeEntropy(ConfidenceEstimator):
    """Minus the mean entropy, see `average_negative_entropy`."""

    name = "ane"
    label = "aNE"
    colour = "#e69f00"

    @property
    def needs(self) -> Needs:
        """The sum of entropies."""
        return Needs(uncertainty=UncertaintyNeeds(entropies=True))

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the sum of entropies."""
        # 0.0 - x is not -0.0 for a certain map.
        return 0.0 - summary.uncertainty(UncertaintyNeeds(entropies=True)).entropy / summary.n


@overload
def average_negative_entropy(p: MapOnHost, *, where: AnyArray | None = None) -> float: ...


@overload
def average_negative_entropy(p: DeviceArrayT, *, where: AnyArray | None = None) -> DeviceArrayT: ...


def average_negative_entropy(p: Any, *, where: Any = None) -> Any:
    """Return the average negative entropy (aNE): minus the mean over the pixels of the entropy in bits.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> round(average_negative_entropy(np.array([0.5, 0.0, 1.0, 0.5])), 12)
    -0.5
    """
    return score_map(AverageNegativeEntropy(), p, where=where)


@dataclass(frozen=True)
class MedianMinMax(ConfidenceEstimator):
    """Minus (median + minimum) / maximum of the entropy, see `median_min_max_confidence`."""

    name = "mmmc"
    label = "MMMC"
    colour = "#8a7d00"

    @property
    def needs(self) -> Needs:
        """Order statistics of the doubt."""
        return Needs(uncertainty=UncertaintyNeeds(median=True))

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the entropies of four pixels."""
        statistics = summary.uncertainty(UncertaintyNeeds(median=True))
        highest = statistics.entropy_of(statistics.highest)
        if highest == 0.0:
            return highest * 0.0  # a zero on the device of the map
        lower, upper = (statistics.entropy_of(doubt) for doubt in statistics.middle)
        # 0.0 - x avoids -0.0.
        return 0.0 - ((lower + upper) / 2.0 + statistics.entropy_of(statistics.lowest)) / highest


@overload
def median_min_max_confidence(p: MapOnHost, *, where: AnyArray | None = None) -> float: ...


@overload
def median_min_max_confidence(p: DeviceArrayT, *, where: AnyArray | None = None) -> DeviceArrayT: ...


def median_min_max_confidence(p: Any, *, where: Any = None) -> Any:
    """Return the median-min-max confidence (MMMC): -(median u + min u) / max u over the pixel entropies u.

    It is 0, the value of full certainty, if every pixel is certain.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> median_min_max_confidence(np.array([0.5, 0.5, 0.0]))
    -1.0
    """
    return score_map(MedianMinMax(), p, where=where)


@dataclass(frozen=True)
class PatchLevel(ConfidenceEstimator):
    """Minus the largest sum of entropies over a box, see `patch_level_confidence`.

    Attributes
    ----------
    size
        Pixels along each side of the box.
    """

    size: int = 10

    name = "pla"
    label = "PLA"
    colour = "#cc79a7"

    def __post_init__(self) -> None:
        """Check that the box has pixels."""
        if not isinstance(self.size, Integral) or self.size < 1:
            raise ParameterError(
                f"size: expected a whole number of at least 1, got {self.size!r}. "
                "It is the side of the box in pixels, 10 in the paper."
            )

    @property
    def needs(self) -> Needs:
        """The largest sum over a box."""
        return Needs(uncertainty=UncertaintyNeeds(side=self.size))

    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the largest sum."""
        # 0.0 - x is not -0.0 for a certain map.
        return 0.0 - summary.uncertainty(UncertaintyNeeds(side=self.size)).patch


@overload
def patch_level_confidence(p: MapOnHost, *, size: int = 10, where: AnyArray | None = None) -> float: ...


@overload
def patch_level_confidence(
    p: DeviceArrayT, *, size: int = 10, where: AnyArray | None = None
) -> DeviceArrayT: ...


def patch_level_confidence(p: Any, *, size: int = 10, where: Any = None) -> Any:
    """Return the patch-level aggregation (PLA): minus the largest sum of entropies over a box.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    size
        Pixels along each side of the box, capped by the image in each dimension. Boxes lie wholly inside the
        image and are one pixel apart.
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN; they have no entropy, and the boxes stay where they are.

    Examples
    --------
    >>> import numpy as np
    >>> round(patch_level_confidence(np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.0]]), size=2), 12)
    -3.0
    """
    return score_map(PatchLevel(size), p, where=where)
