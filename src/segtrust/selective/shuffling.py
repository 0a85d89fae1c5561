"""A random order of cases that is the same however the rows were ordered."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from segtrust.selective.vectors import check_seed

__all__ = ["first_come", "shuffled_places"]


def shuffled_places(seed: int, confidence: Any, outcome: Any, units: Any = None) -> Any:
    """Places of the cases in a random order; cases of a unit stay together.

    The rows are sorted first, and their fingerprint takes part in the seed. Sorted, because a table may come
    sorted by Dice, and a seed alone would then always pick the same ranks of it. With the fingerprint,
    because a seed alone would always put the same ranks of confidence in front, and those are not like the
    others.

    Parameters
    ----------
    seed
        Whole number.
    confidence, outcome
        Of each case; the outcome is its loss or its Dice.
    units
        Label of the independent unit of each case, such as its patient; each case its own without.

    Examples
    --------
    >>> places = shuffled_places(0, np.array([0.3, 0.1, 0.2]), np.zeros(3))
    >>> sorted(places.tolist())
    [0, 1, 2]
    """
    check_seed(seed)
    keys = (outcome, confidence) if units is None else (units, outcome, confidence)
    canonical = np.lexsort(keys)
    data = confidence[canonical].tobytes() + outcome[canonical].tobytes()
    rng = np.random.default_rng([seed, int(hashlib.sha256(data).hexdigest(), 16)])
    numbers = np.arange(canonical.size) if units is None else first_come(units[canonical])
    return canonical[np.argsort(rng.permutation(numbers.max() + 1)[numbers], kind="stable")]


def first_come(labels: Any) -> Any:
    """Give labels numbers from 0 on, in the order in which they first appear.

    Examples
    --------
    >>> first_come(np.array(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
