"""Confidences of many images, and the true risk of trusting the surer ones.

The conditional risk 1 - IDC(x) of each image is known, so the risk-coverage curve is the true one and not an
estimate. Each image is a point of the curve, also among ties, and the area of the paper's experiments runs
from the first point, coverage 1/N, to 1: the convention of the values that they are checked against.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.paper.synthetic.batch import expected_dices
from segtrust.paper.synthetic.images import Images, Models

__all__ = [
    "ESTIMATORS",
    "IDEAL_ESTIMATORS",
    "area_of",
    "confidences_of",
    "true_risks",
    "whole_area_of",
]

ESTIMATORS = ("idc(x)", "idc(p)", "idc(p_hat)", "sdc", "amsp", "random")
"""What is compared; ``random`` knows nothing and its curve is flat."""

IDEAL_ESTIMATORS = tuple(name for name in ESTIMATORS if name != "idc(p_hat)")
"""With an ideal model the marginals are the true ones."""


def confidences_of(images: Images, models: Models) -> dict[str, Any]:
    """Give the confidence of each image by each estimator but ``random``, all of the model's mask."""
    masks, ideal = models.masks, models.p_hat is images.p
    of_marginals = expected_dices(images.p, masks)
    return {
        "idc(x)": expected_dices(images.q, masks) / images.chance,
        "idc(p)": of_marginals,
        "idc(p_hat)": of_marginals if ideal else expected_dices(models.p_hat, masks),
        "sdc": np.where(models.k > 0, 2.0 * models.s / (models.k + models.s + models.lam), 0.0),
        "amsp": np.maximum(models.p_hat, 1.0 - models.p_hat).mean(1),
    }


def true_risks(confidence: Any, loss: Any) -> Any:
    """Mean loss of the surest image, of the two surest, and so on to all of them.

    Examples
    --------
    >>> true_risks(np.array([0.2, 0.9]), np.array([1.0, 0.5])).tolist()
    [0.5, 0.75]
    """
    order = np.argsort(-confidence, kind="stable")
    return np.cumsum(loss[order]) / np.arange(1, loss.size + 1)


def area_of(risks: Any) -> float:
    """Area under a curve with a point an image, from the first point on.

    Examples
    --------
    >>> area_of(np.array([0.5, 0.75]))
    0.3125
    """
    return float((risks.sum() - (risks[0] + risks[-1]) / 2.0) / risks.size)


def whole_area_of(risks: Any) -> float:
    """Area under the same curve from coverage 0 on, where the first risk counts: the paper's tables.

    With few images the other convention leaves out a part that a flat curve, ``random``, does not.

    Examples
    --------
    >>> whole_area_of(np.array([0.5, 0.75]))
    0.5625
    """
    return area_of(risks) + float(risks[0] / risks.size)
