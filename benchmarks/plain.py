"""The estimators as a paper writes them: the yardstick for what the compiled loops gain."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["plain_scores"]


def plain_scores(p: Any, *, threshold: float = 0.5, tau: float = 0.3, side: int = 10) -> dict[str, float]:
    """Score a map by whole-array NumPy formulas; everything but the ideal confidence, which has 2ⁿ terms.

    Examples
    --------
    >>> round(float(plain_scores(np.array([[0.9, 0.8], [0.1, 0.0]]))["sdc"]), 4)
    0.8947
    """
    p = np.asarray(p, np.float64)
    mask = p >= threshold
    u = _entropy(p)
    above = u > tau
    return {
        "sdc": 2.0 * np.sum(p * mask) / np.sum(p + mask),
        "amsp": np.mean(np.maximum(p, 1.0 - p)),
        "apc": np.mean(p * mask + (1.0 - p) * ~mask),
        "ane": -np.mean(u),
        "mmmc": -(np.median(u) + np.min(u)) / np.max(u),
        "tla": -np.sum(u * above) / np.sum(above),
        "pla": -np.max(_box_sums(u, side)),
        "lower": _lower_bound(p, mask),
    }


def _entropy(p: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(p * np.log2(p)) - np.nan_to_num((1.0 - p) * np.log2(1.0 - p))


def _lower_bound(p: Any, mask: Any) -> float:
    k, lam = np.sum(mask), np.sum(p * ~mask)
    mu = np.sum(p * mask) / k
    return float((k + k * mu + lam) / (k + 1.0 + (k - 1.0) * mu + lam))


def _box_sums(u: Any, side: int) -> Any:
    """Sum over boxes by convolution with a box of ones, as usually written."""
    from scipy.signal import convolve

    return convolve(u, np.ones(tuple(min(side, length) for length in u.shape)), mode="valid")
