"""What all processes that score have in common, loaded once: others are copies of the one that imports this.

To import the packages and load the compiled loops takes about a second, as long as many a folder of maps.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from segtrust.confidence import ESTIMATORS, assess_map, get_estimator, learns, needs_members
from segtrust.engine.scoring import ScoreJob
from segtrust.kernels import open_map
from segtrust.risks import overlap

__all__ = ["JOB"]

JOB = ScoreJob(
    tuple(get_estimator(name) for name in ESTIMATORS if not learns(name) and not needs_members(name))
)
"""Of which the loops are loaded."""

with suppress(Exception):  # whatever is wrong is told by who scores a case
    for kind in (np.float32, np.uint8):
        tiny = np.eye(4).astype(kind)
        assess_map(open_map(tiny, None, threshold=0.5, source="tiny"), JOB.estimators)
        overlap(tiny.astype(bool), tiny.astype(bool))
