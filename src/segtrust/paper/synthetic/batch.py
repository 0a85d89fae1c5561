"""The expected Dice of many images: small ones all at once, large ones one by one.

The integral of `segtrust.kernels.integrals`, with t = exp(-y), is IDC = 2 ∫ tᵏ G1'(t) G0(t) dt over [0, 1].
Its integrand is a polynomial of degree n + k - 1, at most 2n - 1, which the Gauss-Legendre rule with n nodes
integrates exactly. Every term is positive, so nothing cancels either. For ten pixels that is ten nodes,
where the library's one rule for all sizes takes a hundred. From a few hundred pixels on that rule is quicker.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from segtrust._compile import entry, reduction
from segtrust.kernels import expected_dice, open_map

__all__ = ["MOST_PIXELS", "expected_dices"]

MOST_PIXELS = 256
"""Above it images go one by one."""

_LANES = 64
"""Images side by side."""


@reduction
def _multiply_pixel(p: Any, inside: Any, t: float, product: Any, slope: Any) -> None:
    """Take one pixel of each image into G1·G0 and G1'·G0; ``inside`` is p in the mask and 0 elsewhere."""
    for lane in range(_LANES):
        factor = (1.0 - p[lane]) + p[lane] * t
        slope[lane] = slope[lane] * factor + product[lane] * inside[lane]
        product[lane] *= factor


@entry
def _fill_dices(p: Any, inside: Any, k: Any, rule: Any, dices: Any) -> None:
    nodes, weighted = rule
    images, n = k.size, p.shape[1]
    p_lanes, inside_lanes = np.zeros((n, _LANES)), np.zeros((n, _LANES))
    product, slope = np.empty(_LANES), np.empty(_LANES)
    for begin in range(0, images, _LANES):
        width = min(_LANES, images - begin)
        for lane in range(width):
            for pixel in range(n):
                p_lanes[pixel, lane] = p[begin + lane, pixel]
                inside_lanes[pixel, lane] = inside[begin + lane, pixel]
        for node in range(nodes.size):
            product[:] = 1.0
            slope[:] = 0.0
            for pixel in range(n):
                _multiply_pixel(p_lanes[pixel], inside_lanes[pixel], nodes[node], product, slope)
            for lane in range(width):
                dices[begin + lane] += weighted[node, k[begin + lane]] * slope[lane]


@cache
def _gauss_rule(n: int) -> tuple[Any, Any]:
    """Nodes t on [0, 1], and 2·weight·tᵏ for each node and each k from 0 to ``n``."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    nodes = (1.0 + nodes) / 2.0
    return nodes, weights[:, None] * nodes[:, None] ** np.arange(n + 1)


def expected_dices(p: Any, masks: Any) -> Any:
    """Give the expected Dice of each mask if pixels are independent, exact; 0 for an empty mask.

    Parameters
    ----------
    p
        Probabilities, of shape (images, pixels).
    masks
        Booleans of the same shape.

    Examples
    --------
    >>> expected_dices(np.array([[0.5, 0.5], [0.5, 0.1]]), np.array([[True, True], [False, False]])).round(12)
    array([0.58333333, 0.        ])
    """
    if p.shape[1] > MOST_PIXELS:
        return np.array([_expected_dice(*image) for image in zip(p, masks, strict=True)])
    dices = np.zeros(p.shape[0])
    inside = np.where(masks, p, 0.0)
    _fill_dices(np.ascontiguousarray(p), inside, masks.sum(1), _gauss_rule(p.shape[1]), dices)
    return dices


def _expected_dice(p: Any, mask: Any) -> float:
    return float(expected_dice(open_map(p, mask).dice_statistics()))
