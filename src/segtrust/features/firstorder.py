"""First-order features: the distribution of the values, without where they lie."""

from __future__ import annotations

import math

import numpy as np

from segtrust.features.region import Region

__all__ = ["first_order_features"]

_SPREAD = ("Kurtosis", "MeanAbsoluteDeviation", "RobustMeanAbsoluteDeviation", "Skewness", "Variance")


def first_order_features(region: Region) -> dict[str, float]:
    """Give the first-order features of an image with one grey level.

    Entropy and uniformity are those of the grey levels, so 0 and 1. Where all values are equal the spread is
    exactly 0, and so are skewness and kurtosis.
    """
    values = region.values
    p10, p25, median, p75, p90 = np.percentile(values, (10, 25, 50, 75, 90)).tolist()
    low, high = float(values.min()), float(values.max())
    energy = float((values * values).sum())
    found = {
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
    spread = dict.fromkeys(_SPREAD, 0.0) if low == high else _spread(region, p10, p90)
    return found | spread


def _spread(region: Region, p10: float, p90: float) -> dict[str, float]:
    """Moments about the mean; the robust deviation is that of the values from ``p10`` to ``p90``."""
    values = region.values
    deviation = values - values.mean()
    squared = deviation * deviation
    variance = float(squared.mean())
    middle = values[(values >= p10) & (values <= p90)]
    return {
        "Kurtosis": float((squared * squared).mean()) / variance**2,
        "MeanAbsoluteDeviation": float(np.abs(deviation).mean()),
        "RobustMeanAbsoluteDeviation": float(np.abs(middle - middle.mean()).mean()) if middle.size else 0.0,
        "Skewness": float((squared * deviation).mean()) / variance**1.5,
        "Variance": variance,
    }
