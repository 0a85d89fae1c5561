"""Texture features where the image has one grey level: what is left of the grey-level matrices.

The co-occurrence matrix (GLCM) has one entry, 1, in each direction in which any two pixels touch; the other
three become histograms: of run lengths (GLRLM), zone sizes (GLSZM) and dependences (GLDM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.features.names import CLASSES
from segtrust.features.region import Region
from segtrust.kernels.texture import (
    count_dependences,
    count_runs,
    directions,
    share_a_line,
    steps_in,
    zone_sizes,
)

__all__ = ["texture_features"]

_ONE_ENTRY = {
    "Autocorrelation": 1.0,
    "Correlation": 1.0,
    "Id": 1.0,
    "Idm": 1.0,
    "Idmn": 1.0,
    "Idn": 1.0,
    "JointAverage": 1.0,
    "JointEnergy": 1.0,
    "MCC": 1.0,
    "MaximumProbability": 1.0,
    "SumAverage": 2.0,
}
"""Features of a co-occurrence matrix whose only entry is 1; those not named here are 0."""


@dataclass(frozen=True, eq=False)
class _Histogram:
    """How many runs, zones or pixels have each size."""

    counts: Any
    sizes: Any

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @property
    def small(self) -> float:
        return float((self.counts / self.sizes**2).sum()) / self.total

    @property
    def large(self) -> float:
        return float((self.counts * self.sizes**2).sum()) / self.total

    @property
    def non_uniformity(self) -> float:
        return float((self.counts**2).sum()) / self.total

    @property
    def variance(self) -> float:
        share = self.counts / self.total
        return float((share * (self.sizes - (share * self.sizes).sum()) ** 2).sum())

    @property
    def entropy(self) -> float:
        share = self.counts / self.total
        return max(0.0, -float((share * np.log2(share)).sum()))

    @property
    def percentage(self) -> float:
        return self.total / float((self.counts * self.sizes).sum())


def _histogram(counts: Any) -> _Histogram:
    """Make a histogram of counts by size; sizes that do not occur are left out."""
    sizes = np.flatnonzero(counts)
    return _Histogram(counts[sizes].astype(np.float64), sizes.astype(np.float64))


def texture_features(region: Region) -> dict[str, dict[str, float]]:
    """Give the features of the four matrices, by class."""
    cells = region.cells.ravel()
    pixels = np.flatnonzero(cells)
    steps = steps_in(region.cells.shape)
    dependences = count_dependences(cells, pixels, steps)
    sizes, counts = np.unique(zone_sizes(cells, pixels, steps), return_counts=True)
    return {
        "glcm": _co_occurrence(any_touch=bool(dependences[2:].any())),
        "glrlm": _run_features(_runs(region, pixels, steps)),
        "glszm": _zone_features(_Histogram(counts.astype(np.float64), sizes.astype(np.float64))),
        "gldm": _dependence_features(_histogram(dependences)),
    }


def _co_occurrence(*, any_touch: bool) -> dict[str, float]:
    """Features of the co-occurrence; where no two pixels touch all are 0 but the last, which is 1 anyway."""
    found = _ONE_ENTRY if any_touch else {"MCC": 1.0}
    return {name: found.get(name, 0.0) for name in CLASSES[3]["glcm"].split()}


def _runs(region: Region, pixels: Any, steps: Any) -> list[_Histogram]:
    """Run lengths in each direction; as in PyRadiomics, without those in which no line has two pixels."""
    counts = count_runs(region.cells.ravel(), pixels, steps, max(region.mask.shape))
    return [
        _histogram(row)
        for row, direction in zip(counts, directions(region.ndim), strict=True)
        if row[2:].any() or share_a_line(pixels, region.cells.shape, direction)
    ]


def _run_features(runs: list[_Histogram]) -> dict[str, float]:
    """Mean over the directions; all 0 where there is none."""
    each = list(map(_features_of_runs, runs))
    names = CLASSES[3]["glrlm"].split()
    return {name: math.fsum(one[name] for one in each) / max(1, len(each)) for name in names}


def _features_of_runs(runs: _Histogram) -> dict[str, float]:
    return _sized_features(runs, "Run", ("ShortRun", "LongRun"), "RunLength")


def _zone_features(zones: _Histogram) -> dict[str, float]:
    return _sized_features(zones, "Zone", ("SmallArea", "LargeArea"), "SizeZone")


def _sized_features(parts: _Histogram, what: str, ends: tuple[str, str], size: str) -> dict[str, float]:
    """Give what runs and zones have in common, under the names of their class."""
    return {
        **_grey_levels(parts, what, ends),
        "GrayLevelNonUniformityNormalized": 1.0,
        f"{size}NonUniformity": parts.non_uniformity,
        f"{size}NonUniformityNormalized": parts.non_uniformity / parts.total,
        f"{what}Percentage": parts.percentage,
    }


def _dependence_features(pixels: _Histogram) -> dict[str, float]:
    found = _grey_levels(pixels, "Dependence", ("SmallDependence", "LargeDependence"))
    for level in ("Low", "High"):  # this class names them without what they are of
        found[f"{level}GrayLevelEmphasis"] = found.pop(f"{level}GrayLevelDependenceEmphasis")
    return found | {
        "DependenceNonUniformity": pixels.non_uniformity,
        "DependenceNonUniformityNormalized": pixels.non_uniformity / pixels.total,
    }


def _grey_levels(of: _Histogram, kind: str, ends: tuple[str, str]) -> dict[str, float]:
    """Features that all three classes have, under the name of each; the only grey level is 1."""
    found = {
        "GrayLevelNonUniformity": of.total,
        "GrayLevelVariance": 0.0,
        f"LowGrayLevel{kind}Emphasis": 1.0,
        f"HighGrayLevel{kind}Emphasis": 1.0,
        f"{kind}Entropy": of.entropy,
        f"{kind}Variance": of.variance,
    }
    for end, value in zip(ends, (of.small, of.large), strict=True):
        found[f"{end}Emphasis"] = value
        found[f"{end}LowGrayLevelEmphasis"] = value
        found[f"{end}HighGrayLevelEmphasis"] = value
    return found
