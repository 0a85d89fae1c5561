"""Masks of every kind that features have to cope with."""

import numpy as np
from scipy.ndimage import gaussian_filter

SHAPES = {2: (23, 31), 3: (9, 13, 11)}


def noise(ndim, share, seed=0):
    return np.random.default_rng(seed).random(SHAPES[ndim]) < share


def blob(ndim, seed=0):
    field = gaussian_filter(np.random.default_rng(seed).standard_normal(SHAPES[ndim]), 2)
    return field > np.quantile(field, 0.6)


def at(ndim, *indices):
    """A mask of single pixels."""
    mask = np.zeros(SHAPES[ndim], bool)
    for index in indices:
        mask[index] = True
    return mask


def masks(ndim):
    """Masks by name; all but the last have pixels."""
    middle = tuple(side // 2 for side in SHAPES[ndim])
    beside = (*middle[:-1], middle[-1] + 1)
    across = tuple(i + 1 for i in middle)
    shares = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.97)
    return {
        **{f"noise {share}": noise(ndim, share) for share in shares},
        **{f"blob {seed}": blob(ndim, seed) for seed in range(3)},
        "shell": blob(ndim) & (noise(ndim, 0.6, 1) | ~blob(ndim, 1)),
        "full": np.ones(SHAPES[ndim], bool),
        "one pixel": at(ndim, middle),
        "one in the corner": at(ndim, (0,) * ndim),
        "two side by side": at(ndim, middle, beside),
        "two across": at(ndim, middle, across),
        "two on a line": at(ndim, (0,) * ndim, (0,) * (ndim - 1) + (7,)),
        "two apart": at(ndim, (0,) * ndim, (*range(2, 1 + ndim), 7)),
        "straight line": at(ndim, (*middle[:-1], slice(2, 9))),
        "slanting line": at(ndim, *((i,) * ndim for i in range(1, 8))),
        "slice": at(ndim, (3,)),
        "checkerboard": np.indices(SHAPES[ndim]).sum(axis=0) % 2 == 0,
        "empty": np.zeros(SHAPES[ndim], bool),
    }
