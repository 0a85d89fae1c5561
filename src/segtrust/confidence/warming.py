"""Compiling ahead of time what estimators need, or loading it from the cache."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from segtrust.confidence.pixels import Pixels
from segtrust.confidence.registry import (
    ESTIMATORS,
    Estimators,
    get_estimator,
    learns,
    named_estimators,
    needs_members,
)
from segtrust.confidence.score import assess_map
from segtrust.kernels import count_batch, count_map, most_probable_labels, open_map
from segtrust.maps import Prediction

_TYPES = (np.float32, np.float64, np.uint8)


def ready_estimators() -> list[Any]:
    """Return segtrust's own estimators that score a single map without having learned anything."""
    return [get_estimator(name) for name in ESTIMATORS if not learns(name) and not needs_members(name)]


def warm_up(estimators: Estimators | None = None) -> float:
    """Compile what some estimators need, or load it from the cache, so that the first map is scored fast.

    Maps of float32, float64 and uint8 are prepared for, with a delivered mask and without, alone and in
    batches, and the most probable class. Compiling takes half a minute once; later processes load the result
    from a cache in about a second.

    Parameters
    ----------
    estimators
        A name, an estimator, a list of them, or a mapping from labels to them. By default all of segtrust's
        own that score a single map without having learned anything. An estimator that learns must be fitted.

    Returns
    -------
    float
        Seconds that it took.

    Examples
    --------
    >>> warm_up("sdc") >= 0.0
    True
    """
    begin = time.perf_counter()
    chosen = ready_estimators() if estimators is None else list(named_estimators(estimators).values())
    compiled = [estimator for estimator in chosen if not estimator.needs.members]
    for kind in _TYPES:
        tiny = (np.eye(4) * (255 if kind is np.uint8 else 1)).astype(kind)
        for mask in (None, np.eye(4, dtype=bool)):
            prediction = Prediction(tiny, mask, spacing_mm=(1.0, 1.0))
            assess_map(open_map(tiny, mask, source="tiny"), compiled, None, Pixels(prediction))
            for estimator in compiled:  # alone, some take a shorter way
                estimator.score(prediction)
            count_map(tiny, mask)
            count_batch(tiny[None], None if mask is None else mask[None])
        most_probable_labels(np.stack([tiny, tiny]))
    return time.perf_counter() - begin
