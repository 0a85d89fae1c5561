"""Texture features of an image with one grey level: they depend on the mask alone.

The co-occurrence matrix (GLCM) has one entry, 1, in each direction in which any two pixels touch. The other
three matrices become histograms: of run lengths (GLRLM), of zone sizes (GLSZM) and of dependences (GLDM),
the number of pixels of the mask around each of its pixels.

The loops work on the mask with a border of zeros as a flat array, so that no step from a pixel of the mask
leaves the array. A neighbour is a *step* in that array; of two opposite steps only one is listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from segtrust._compile import entry
from segtrust.features.region import Region

_GLCM_OF_ONE_ENTRY = {
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
"""Features of a co-occurrence matrix whose only entry is 1; all others are 0."""


def texture_features(region: Region) -> dict[str, dict[str, float]]:
    """Return the features of the four matrices by class; a feature that is missing is 0."""
    flat, shape = region.padded.ravel(), region.padded.shape
    pixels, steps = np.flatnonzero(flat), steps_in(shape)
    dependences = count_dependences(flat, pixels, steps)
    sizes, zones = np.unique(zone_sizes(flat, pixels, steps), return_counts=True)
    runs = count_runs(flat, pixels, steps, max(region.mask.shape))
    # Like PyRadiomics, leave out directions in which no line has two pixels.
    counted_runs = [
        _SizeHistogram.from_counts(counts)
        for counts, direction in zip(runs, directions(region.ndim), strict=True)
        if counts[2:].any() or share_a_line(pixels, shape, direction)
    ]
    return {
        "glcm": _GLCM_OF_ONE_ENTRY if dependences[2:].any() else {"MCC": 1.0},
        "glrlm": _mean_features([_run_features(histogram) for histogram in counted_runs]),
        "glszm": _zone_features(_SizeHistogram(zones.astype(np.float64), sizes.astype(np.float64))),
        "gldm": _dependence_features(_SizeHistogram.from_counts(dependences)),
    }


@dataclass(frozen=True, eq=False)
class _SizeHistogram:
    """How many runs, zones or pixels have each size."""

    counts: Any
    sizes: Any

    @classmethod
    def from_counts(cls, counts: Any) -> _SizeHistogram:
        """Return the histogram of an array of counts indexed by size, without sizes that do not occur."""
        sizes = np.flatnonzero(counts)
        return cls(counts[sizes].astype(np.float64), sizes.astype(np.float64))

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @property
    def non_uniformity(self) -> float:
        return float((self.counts**2).sum()) / self.total

    def common_features(self, kind: str, small: str, large: str) -> dict[str, float]:
        """Return the features that all three classes have, under the names of a class.

        Since the only grey level is 1, emphasising low or high levels makes no difference.
        """
        share = self.counts / self.total
        small_emphasis = float((self.counts / self.sizes**2).sum()) / self.total
        large_emphasis = float((self.counts * self.sizes**2).sum()) / self.total
        features = {
            "GrayLevelNonUniformity": self.total,
            "GrayLevelVariance": 0.0,
            f"{kind}Entropy": max(0.0, -float((share * np.log2(share)).sum())),
            f"{kind}Variance": float((share * (self.sizes - (share * self.sizes).sum()) ** 2).sum()),
        }
        for level in ("", "LowGrayLevel", "HighGrayLevel"):
            features[f"{small}{level}Emphasis"] = small_emphasis
            features[f"{large}{level}Emphasis"] = large_emphasis
        return features


def _run_features(runs: _SizeHistogram) -> dict[str, float]:
    return {
        **runs.common_features("Run", "ShortRun", "LongRun"),
        "LowGrayLevelRunEmphasis": 1.0,
        "HighGrayLevelRunEmphasis": 1.0,
        "GrayLevelNonUniformityNormalized": 1.0,
        "RunLengthNonUniformity": runs.non_uniformity,
        "RunLengthNonUniformityNormalized": runs.non_uniformity / runs.total,
        "RunPercentage": runs.total / float((runs.counts * runs.sizes).sum()),
    }


def _zone_features(zones: _SizeHistogram) -> dict[str, float]:
    return {
        **zones.common_features("Zone", "SmallArea", "LargeArea"),
        "LowGrayLevelZoneEmphasis": 1.0,
        "HighGrayLevelZoneEmphasis": 1.0,
        "GrayLevelNonUniformityNormalized": 1.0,
        "SizeZoneNonUniformity": zones.non_uniformity,
        "SizeZoneNonUniformityNormalized": zones.non_uniformity / zones.total,
        "ZonePercentage": zones.total / float((zones.counts * zones.sizes).sum()),
    }


def _dependence_features(dependences: _SizeHistogram) -> dict[str, float]:
    return {
        **dependences.common_features("Dependence", "SmallDependence", "LargeDependence"),
        "LowGrayLevelEmphasis": 1.0,
        "HighGrayLevelEmphasis": 1.0,
        "DependenceNonUniformity": dependences.non_uniformity,
        "DependenceNonUniformityNormalized": dependences.non_uniformity / dependences.total,
    }


def _mean_features(by_direction: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each feature over the directions; nothing if there is no direction."""
    names = by_direction[0] if by_direction else ()
    return {
        name: math.fsum(features[name] for features in by_direction) / len(by_direction) for name in names
    }


def directions(ndim: int) -> Any:
    """Return the offsets of the neighbours that follow a pixel, half of all: 4 in 2-D, 13 in 3-D.

    Examples
    --------
    >>> directions(2).tolist()
    [[0, 1], [1, -1], [1, 0], [1, 1]]
    """
    return np.array([offset for offset in product((-1, 0, 1), repeat=ndim) if offset > (0,) * ndim])


def steps_in(shape: tuple[int, ...]) -> Any:
    """Return the `directions` as steps in a flat array of this shape.

    Examples
    --------
    >>> steps_in((10, 20)).tolist()
    [1, 19, 20, 21]
    """
    strides = np.array([int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))])
    return directions(len(shape)) @ strides


def share_a_line(pixels: Any, shape: tuple[int, ...], direction: Any) -> bool:
    """Return whether two pixels lie on one line of this direction, however far apart.

    Examples
    --------
    >>> share_a_line(np.array([0, 4]), (3, 3), np.array([1, 1]))
    True
    """
    positions = np.array(np.unravel_index(pixels, shape))
    along = positions[np.flatnonzero(direction)[0]]
    origins = positions - np.outer(direction, along)  # where the line would meet the first slice of the box
    sides = origins.max(axis=1) - origins.min(axis=1) + 1
    lines = np.ravel_multi_index(tuple(origins - origins.min(axis=1)[:, None]), tuple(sides))
    return bool(np.bincount(lines).max() > 1)


@entry
def count_runs(flat: Any, pixels: Any, steps: Any, longest: int) -> Any:
    """Count straight runs of pixels: one row per step, one column per length from 0 to ``longest``.

    The pixels must be in ascending order and the steps positive.
    """
    counts = np.zeros((steps.size, longest + 1), np.int64)
    lengths = np.zeros(flat.size, np.int32)  # of the run up to a pixel; 0 outside the mask in all directions
    for direction in range(steps.size):
        step = steps[direction]
        for at in pixels:  # without a branch, which the processor would mispredict on a ragged mask
            length = lengths[at - step] + np.int32(1)
            lengths[at] = length
            counts[direction, length] += 1 - flat[at + step]
    return counts


@entry
def count_dependences(flat: Any, pixels: Any, steps: Any) -> Any:
    """Count the pixels by the number of pixels of the mask around them, including themselves."""
    counts = np.zeros(2 * steps.size + 2, np.int64)
    for at in pixels:
        around = 1
        for step in steps:
            around += flat[at + step] + flat[at - step]
        counts[around] += 1
    return counts


@entry
def zone_sizes(flat: Any, pixels: Any, steps: Any) -> Any:
    """Return the size of each connected zone of the mask; diagonal neighbours are connected."""
    unvisited = flat.copy()
    queue = np.empty(pixels.size, np.int64)
    sizes = np.empty(pixels.size, np.int64)
    zones = 0
    for seed in pixels:
        if not unvisited[seed]:
            continue
        unvisited[seed] = 0
        queue[0] = seed
        end, done = 1, 0
        while done < end:
            at = queue[done]
            done += 1
            for step in steps:
                for neighbour in (at - step, at + step):
                    if unvisited[neighbour]:
                        unvisited[neighbour] = 0
                        queue[end] = neighbour
                        end += 1
        sizes[zones] = end
        zones += 1
    return sizes[:zones].copy()
