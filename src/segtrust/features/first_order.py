"""First-order features: the distribution of the values, regardless of their position."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from segtrust.features.region import Region


ZERO_IF_CONSTANT = (
    "Kurtosis",
    "MeanAbsoluteDeviation",
    "RobustMeanAbsoluteDeviation",
    "Skewness",
    "Variance",
)
"""Features that are set to 0 if all values are equal; rounding in the mean could give them any value."""


def first_order_features(region: Region) -> dict[str, float]:
    """Return the first-order features of an image with one grey level.

    Entropy and uniformity are computed from grey levels, so they are 0 and 1.
    """
    values = region.values
    p10, p25, median, p75, p90 = np.percentile(values, (10, 25, 50, 75, 90)).tolist()
    low, high = float(values.min()), float(values.max())
    energy = float((values * values).sum())
    features = {
        "10Percentile": p10,
        "90Percentile": p90,
        "Energy": energy,
        "Entropy": 0.0,
        "InterquartileRange": p75 - p25,
        "Maximum": high,
        "Mean": float(values.mean()),
        "Median": median,
        "Minimum": low,
        "Range": high - low,
        "RootMeanSquared": math.sqrt(energy / values.size),
        "TotalEnergy": energy,
        "Uniformity": 1.0,
    }
    if region.is_constant:
        return features | dict.fromkeys(ZERO_IF_CONSTANT, 0.0)
    deviation = values - values.mean()
    squared = deviation * deviation
    variance = float(squared.mean())
    middle = values[(values >= p10) & (values <= p90)]
    return features | {
        "Kurtosis": float((squared * squared).mean()) / variance**2,
        "MeanAbsoluteDeviation": float(np.abs(deviation).mean()),
        "RobustMeanAbsoluteDeviation": float(np.abs(middle - middle.mean()).mean()) if middle.size else 0.0,
        "Skewness": float((squared * deviation).mean()) / variance**1.5,
        "Variance": variance,
    }
