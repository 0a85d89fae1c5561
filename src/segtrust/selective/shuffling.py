"""A random order of cases that is the same however the rows were ordered."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust.selective.vectors import check_seed

__all__ = ["first_come", "least_lost_of_ties", "seed_for", "shuffled_places"]

_NEARLY_ALL = 0.9


def seed_for(confidence: Any, seed: int | None) -> int:
    """Give the seed of `shuffled_places`: the one that was asked for, or one that nobody has chosen.

    Where nearly all confidences differ it is 0: no two tables have the same fingerprint, so their orders are
    as good as random, and the same cases are always put in the same order. Where many are equal there are
    few different tables, and an order that depends on nothing else is not random: with two levels a promise
    of δ = 0.05 was broken in up to 20 % of draws. There the operating system gives the seed.

    Examples
    --------
    >>> seed_for(np.array([0.3, 0.1, 0.2]), None), seed_for(np.array([0.5, 0.5]), 7)
    (0, 7)
    """
    if seed is not None:
        return int(seed)
    distinct = np.unique(confidence).size
    return 0 if distinct >= _NEARLY_ALL * confidence.size else secrets.randbits(53)


def shuffled_places(
    seed: int, confidence: Any, *, units: Any = None, ids: Sequence[str] | None = None
) -> Any:
    """Places of the cases in a random order that knows nothing of their losses; units stay together.

    The rows are sorted by confidence first, because a table may come sorted by Dice, and a seed alone would
    then always pick the same ranks of it. The fingerprint of the confidences takes part in the seed, because
    a seed alone would always put the same ranks of confidence in front, and those are not like the others.
    Equal confidences are told apart by unit and id, and without these by their rows.

    Parameters
    ----------
    seed
        Whole number.
    confidence
        Of each case.
    units
        Number of the independent unit of each case, such as its patient; each case its own without.
    ids
        Different texts, one a case.

    Examples
    --------
    >>> places = shuffled_places(0, np.array([0.3, 0.1, 0.2]))
    >>> sorted(places.tolist())
    [0, 1, 2]
    """
    check_seed(seed)
    apart = [np.asarray(each) for each in (ids, units) if each is not None]
    canonical = np.lexsort((*apart, confidence))
    digest = hashlib.sha256(confidence[canonical].tobytes()).hexdigest()
    rng = np.random.default_rng([seed, int(digest, 16)])
    numbers = np.arange(canonical.size) if units is None else first_come(units[canonical])
    return canonical[np.argsort(rng.permutation(numbers.max() + 1)[numbers], kind="stable")]


def least_lost_of_ties(confidence: Any, loss: Any, chosen: Any) -> Any:
    """Choose as many cases of each confidence as ``chosen``, those with the smallest losses.

    Which of several cases with equal confidence a table names first may depend on their losses. To set aside
    the best of them instead leaves the worse ones to be tested, which is never in favour of a promise.

    Examples
    --------
    >>> chosen = np.array([True, False, False, True])
    >>> least_lost_of_ties(np.array([0.5, 0.5, 0.5, 0.9]), np.array([0.3, 0.1, 0.2, 0.0]), chosen).tolist()
    [False, True, False, True]
    """
    order = np.lexsort((loss, confidence))
    block = np.cumsum(np.diff(confidence[order], prepend=confidence[order[0]]) > 0.0)
    rank = np.arange(order.size) - np.searchsorted(block, block)
    taken = np.empty(order.size, bool)
    taken[order] = rank < np.bincount(block, chosen[order])[block]
    return taken


def first_come(labels: Any) -> Any:
    """Give labels numbers from 0 on, in the order in which they first appear.

    Examples
    --------
    >>> first_come(np.array(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
