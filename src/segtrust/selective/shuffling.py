"""A random order of cases that does not depend on the order of the rows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust._arguments import check_seed

_NEARLY_ALL = 0.9


def choose_seed(confidence: Any, seed: int | None) -> int:
    """Return the seed for `shuffled_order`: the requested one, or one that nobody has chosen.

    If nearly all confidences differ, it is 0: no two tables have the same checksum, so their orders are as
    good as random, and the same cases always get the same order. If many confidences are equal, there are few
    different tables, and an order that depends on nothing else is not random: with two levels, a guarantee of
    δ = 0.05 was violated in up to 20 % of draws. In that case the operating system supplies the seed.

    Examples
    --------
    >>> choose_seed(np.array([0.3, 0.1, 0.2]), None), choose_seed(np.array([0.5, 0.5]), 7)
    (0, 7)
    """
    if seed is not None:
        return int(seed)
    distinct = np.unique(confidence).size
    return 0 if distinct >= _NEARLY_ALL * confidence.size else secrets.randbits(53)


def shuffled_order(
    seed: int, confidence: Any, *, units: Any = None, ids: Sequence[str] | None = None, stream: int = 0
) -> Any:
    """Return the indices of the cases in a random order independent of their losses; units stay together.

    The rows are sorted by confidence first: a table may be sorted by Dice, and a seed alone would then always
    pick the same ranks of it. The checksum of the confidences becomes part of the seed: a seed alone would
    always put the same ranks of confidence in front, and these differ from the others. Equal confidences are
    told apart by unit and id, and without these by their rows.

    Parameters
    ----------
    seed
        Random seed, a whole number.
    confidence
        Confidence of each case.
    units
        Number of the independent unit of each case, such as its patient; by default each case is a unit.
    ids
        Unique texts, one per case.
    stream
        Number of the order: those with different numbers are independent of each other.

    Examples
    --------
    >>> order = shuffled_order(0, np.array([0.3, 0.1, 0.2]))
    >>> sorted(order.tolist())
    [0, 1, 2]
    """
    check_seed(seed)
    tie_breakers = [np.asarray(labels) for labels in (ids, units) if labels is not None]
    canonical = np.lexsort((*tie_breakers, confidence))
    checksum = hashlib.sha256(confidence[canonical].tobytes()).hexdigest()
    rng = np.random.default_rng([seed, int(checksum, 16), *([stream] if stream else ())])
    numbers = np.arange(canonical.size) if units is None else number_by_appearance(units[canonical])
    return canonical[np.argsort(rng.permutation(numbers.max() + 1)[numbers], kind="stable")]


def prefer_low_losses(confidence: Any, loss: Any, chosen: Any) -> Any:
    """Choose as many cases of each confidence as ``chosen``, but those with the smallest losses.

    The order in which a table lists cases of equal confidence may depend on their losses. Setting aside the
    best of them leaves the worse ones for the test, which never works in favour of a guarantee.

    Examples
    --------
    >>> chosen = np.array([True, False, False, True])
    >>> prefer_low_losses(np.array([0.5, 0.5, 0.5, 0.9]), np.array([0.3, 0.1, 0.2, 0.0]), chosen).tolist()
    [False, True, False, True]
    """
    order = np.lexsort((loss, confidence))
    block = np.cumsum(np.diff(confidence[order], prepend=confidence[order[0]]) > 0.0)
    rank = np.arange(order.size) - np.searchsorted(block, block)
    preferred = np.empty(order.size, bool)
    preferred[order] = rank < np.bincount(block, chosen[order])[block]
    return preferred


def number_by_appearance(labels: Any) -> Any:
    """Return the number of each label, counted from 0 in the order of their first appearance.

    Examples
    --------
    >>> number_by_appearance(np.array(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
