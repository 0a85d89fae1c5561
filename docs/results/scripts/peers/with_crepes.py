"""crepes: intervals for the Dice from the SDC, beside segtrust's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from crepes import ConformalRegressor

import segtrust as st
from docs.results.scripts.peers import inputs
from docs.results.scripts.peers.tables import Table

SPLITS, LEVEL = 200, 0.9


def by_crepes(confidence: Any, dice: Any, new: Any) -> tuple[Any, Any]:
    """Take the confidence for the Dice, and let crepes say how far it may be off."""
    regressor = ConformalRegressor().fit(dice - confidence)
    low, high = regressor.predict_int(new, confidence=LEVEL, y_min=0.0, y_max=1.0).T
    return low, high


def by_segtrust(confidence: Any, dice: Any, new: Any) -> tuple[Any, Any]:
    """Take the confidence for the Dice in segtrust too."""
    bounds = st.ConformalDice(level=LEVEL, predictor="identity", scale="none", seed=0).fit(confidence, dice)
    found = bounds.interval(new)
    return found.lower, found.upper


def tables() -> list[Table]:
    """Give the share of new cases inside, and the mean width, over random halves of the embedded table."""
    given, rng, got = inputs.nuclei("ID", "sdc"), np.random.default_rng(0), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(SPLITS):
            order = rng.permutation(given.loss.size)
            known, new = given.taken(order[:40]), given.taken(order[40:])
            for find in (by_segtrust, by_crepes):
                low, high = find(known.confidence, 1.0 - known.loss, new.confidence)
                inside = (low <= 1.0 - new.loss) & (1.0 - new.loss <= high)
                got.append((inside.mean(), (high - low).mean()))
    means = np.array(got).reshape(SPLITS, 2, 2).mean(axis=0)
    names = ("segtrust, `identity`", "crepes, `ConformalRegressor`")
    rows = tuple((name, f"{m[0]:.3f}", f"{m[1]:.3f}") for name, m in zip(names, means, strict=True))
    return [Table("intervals", ("intervals at 90 %", "inside", "mean width"), rows)]
