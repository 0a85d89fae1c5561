"""Slow references: counts by loops over pixels, and features written as their definitions read."""

import math
from collections import Counter
from itertools import product

import numpy as np
from scipy.ndimage import label

from segtrust.features import feature_names
from segtrust.features.texture import directions


def named(ndim, vector):
    return dict(zip(feature_names(ndim), vector, strict=True))


def vertices(padded):
    """Twice the midpoint of each pair of neighbours of which one is inside the mask."""
    points = []
    for axis in range(3):
        crossed = np.argwhere(np.diff(padded.astype(int), axis=axis))
        points.append(2 * crossed + np.eye(3, dtype=int)[axis])
    return np.concatenate(points)


def inside(mask, place):
    return all(0 <= i < n for i, n in zip(place, mask.shape, strict=True)) and bool(mask[place])


def moved(place, offset, times=1):
    return tuple(i + times * d for i, d in zip(place, offset, strict=True))


def brute_runs(mask, direction):
    """Lengths of the maximal runs, each measured from its first pixel."""
    lengths = Counter()
    for place in zip(*np.nonzero(mask), strict=True):
        if not inside(mask, moved(place, direction, -1)):
            length = 1
            while inside(mask, moved(place, direction, length)):
                length += 1
            lengths[length] += 1
    return lengths


def brute_dependences(mask):
    around = list(product((-1, 0, 1), repeat=mask.ndim))
    places = zip(*np.nonzero(mask), strict=True)
    return Counter(sum(inside(mask, moved(place, offset)) for offset in around) for place in places)


def brute_zones(mask):
    labels, _ = label(mask, np.ones((3,) * mask.ndim))
    return sorted(np.bincount(labels.ravel())[1:].tolist())


def brute_share(mask, direction):
    """Whether any pixel meets another one on its way to the end of the box."""
    places = zip(*np.nonzero(mask), strict=True)
    return any(
        inside(mask, moved(place, direction, t)) for place in places for t in range(1, max(mask.shape))
    )


def first_order(values):
    x = np.sort(values)
    mean, n = math.fsum(x) / len(x), len(x)
    moment = {k: math.fsum((v - mean) ** k for v in x) / n for k in (2, 3, 4)}
    p10, p90 = np.percentile(x, 10), np.percentile(x, 90)
    middle = [v for v in x if p10 <= v <= p90]
    centre = math.fsum(middle) / len(middle)
    return {
        "10Percentile": p10,
        "90Percentile": p90,
        "Energy": math.fsum(v * v for v in x),
        "Entropy": 0,
        "InterquartileRange": np.percentile(x, 75) - np.percentile(x, 25),
        "Kurtosis": moment[4] / moment[2] ** 2,
        "Maximum": x[-1],
        "Mean": mean,
        "MeanAbsoluteDeviation": math.fsum(abs(v - mean) for v in x) / n,
        "Median": (x[(n - 1) // 2] + x[n // 2]) / 2,
        "Minimum": x[0],
        "Range": x[-1] - x[0],
        "RobustMeanAbsoluteDeviation": math.fsum(abs(v - centre) for v in middle) / len(middle),
        "RootMeanSquared": math.sqrt(math.fsum(v * v for v in x) / n),
        "Skewness": moment[3] / moment[2] ** 1.5,
        "TotalEnergy": math.fsum(v * v for v in x),
        "Uniformity": 1,
        "Variance": moment[2],
    }


def sized(counter, names):
    """Features of a matrix with one row: ``counter`` says how often each size occurs."""
    items = [size for size, count in counter.items() for _ in range(count)]
    n = len(items)
    mean = sum(items) / n
    small, large = sum(1 / j**2 for j in items) / n, sum(j**2 for j in items) / n
    shares = [count / n for count in counter.values()]
    non_uniformity = sum(count**2 for count in counter.values()) / n
    values = {
        "small": small,
        "large": large,
        "non-uniformity": non_uniformity,
        "normalised": non_uniformity / n,
        "percentage": n / sum(items),
        "variance": sum((j - mean) ** 2 for j in items) / n,
        "entropy": -sum(share * math.log2(share) for share in shares),
        "total": n,
        "one": 1,
        "zero": 0,
    }
    return {name: values[what] for name, what in names.items()}


def _common(kind, small, large):
    emphases = {
        f"{size}{level}Emphasis": what
        for size, what in ((small, "small"), (large, "large"))
        for level in ("", "LowGrayLevel", "HighGrayLevel")
    }
    return emphases | {
        "GrayLevelNonUniformity": "total",
        "GrayLevelVariance": "zero",
        f"{kind}Entropy": "entropy",
        f"{kind}Variance": "variance",
    }


RUNS = _common("Run", "ShortRun", "LongRun") | {
    "GrayLevelNonUniformityNormalized": "one",
    "HighGrayLevelRunEmphasis": "one",
    "LowGrayLevelRunEmphasis": "one",
    "RunLengthNonUniformity": "non-uniformity",
    "RunLengthNonUniformityNormalized": "normalised",
    "RunPercentage": "percentage",
}
ZONES = _common("Zone", "SmallArea", "LargeArea") | {
    "GrayLevelNonUniformityNormalized": "one",
    "HighGrayLevelZoneEmphasis": "one",
    "LowGrayLevelZoneEmphasis": "one",
    "SizeZoneNonUniformity": "non-uniformity",
    "SizeZoneNonUniformityNormalized": "normalised",
    "ZonePercentage": "percentage",
}
DEPENDENCES = _common("Dependence", "SmallDependence", "LargeDependence") | {
    "HighGrayLevelEmphasis": "one",
    "LowGrayLevelEmphasis": "one",
    "DependenceNonUniformity": "non-uniformity",
    "DependenceNonUniformityNormalized": "normalised",
}


def run_features(mask):
    """Mean over the directions in which some line has two pixels."""
    each = [
        sized(brute_runs(mask, direction), RUNS)
        for direction in directions(mask.ndim)
        if brute_share(mask, direction)
    ]
    return {name: sum(one[name] for one in each) / len(each) if each else 0 for name in RUNS}


def zone_features(mask):
    sizes = brute_zones(mask)
    return sized({size: sizes.count(size) for size in sizes}, ZONES)


def dependence_features(mask):
    return sized(brute_dependences(mask), DEPENDENCES)


ALL_ONE = (
    "Autocorrelation",
    "Correlation",
    "Id",
    "Idm",
    "Idmn",
    "Idn",
    "JointAverage",
    "JointEnergy",
    "MaximumProbability",
)


def co_occurrence(mask):
    """Features of the matrix of pairs; it has one entry, the share of pairs of equal levels, which is 1."""
    pairs = [
        sum(length * count - count for length, count in brute_runs(mask, d).items())
        for d in directions(mask.ndim)
    ]
    found = dict.fromkeys([name.partition("_")[2] for name in feature_names(2) if "glcm" in name], 0)
    if any(pairs):
        found |= dict.fromkeys(ALL_ONE, 1) | {"SumAverage": 2}
    return found | {"MCC": 1}
