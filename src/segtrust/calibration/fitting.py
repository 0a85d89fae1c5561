"""Maximum likelihood of a logistic curve over counted logits, by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.calibration.logits import Points
from segtrust.errors import CaseValueError, TooFewCasesError

__all__ = ["fit_curve", "negative_log_likelihood"]

_STEPS = 100
_LARGEST = 1e3
"""A slope or an intercept beyond is on its way to infinity."""


def negative_log_likelihood(points: Points, curve: Any) -> float:
    """Give the weighted mean of -log P(truth) at slope and intercept, in nats."""
    x = curve[0] * points.logits + curve[1]
    losses = points.foreground * np.logaddexp(0.0, -x) + points.background * np.logaddexp(0.0, x)
    return float(losses.sum() / (points.foreground.sum() + points.background.sum()))


def fit_curve(points: Points, *, intercept: bool) -> tuple[float, float]:
    """Give slope and intercept of the likeliest curve; the intercept is 0 where it is not asked for."""
    if not points.logits.size:
        raise TooFewCasesError(
            "cases: no pixel to learn from: all are exactly 0 or 1, or far from a boundary."
        )
    free = 2 if intercept else 1
    curve, loss = np.array([1.0, 0.0]), np.inf
    for _ in range(_STEPS):
        loss, before = negative_log_likelihood(points, curve), loss
        step = _newton_step(points, curve, free)
        if not np.isfinite(step).all() or np.abs(curve).max() > _LARGEST:
            break
        if np.abs(step).max() <= 1e-12 * np.abs(curve).max() or loss == before:
            return _checked(curve + step)
        curve = _damped(points, curve, step, loss)
    raise CaseValueError(
        "cases: no finite scaling is the likeliest, because the truth follows from the maps without an error "
        "or lies all on one side. Give more cases."
    )


def _newton_step(points: Points, curve: Any, free: int) -> Any:
    """Give minus the inverse of the second derivative times the first; NaN where there is no inverse."""
    from scipy.special import expit

    design = np.stack([points.logits, np.ones_like(points.logits)])[:free]
    q = expit(curve[0] * points.logits + curve[1])
    weight = points.foreground + points.background
    gradient = design @ (weight * q - points.foreground)
    curvature = (design * (weight * q * (1.0 - q))) @ design.T
    step = np.zeros(2)
    try:
        step[:free] = -np.linalg.solve(curvature, gradient)
    except np.linalg.LinAlgError:
        step[:free] = np.nan
    return step


def _damped(points: Points, curve: Any, step: Any, loss: float) -> Any:
    """Halve a step until it does not make the likelihood smaller."""
    while negative_log_likelihood(points, curve + step) > loss and np.abs(step).max() > 1e-15:
        step = step / 2.0
    return curve + step


def _checked(curve: Any) -> tuple[float, float]:
    slope, intercept = map(float, curve)
    if slope <= 0.0:
        raise CaseValueError(
            f"cases: the likeliest slope is {slope:.3g}: the truth is rarer where maps say it is likelier. "
            "Are map and truth of the same structure, and on the same grid?"
        )
    return slope, intercept
