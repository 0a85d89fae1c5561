"""Imports that every worker process needs, done once: workers are forks of the process that imports this.

To import the packages and load the compiled loops takes most of a second, as long as many a folder of maps.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from segtrust.confidence import assess_map, ready_estimators
from segtrust.engine.scoring import ScoreJob
from segtrust.kernels import open_map

__all__ = ["JOB"]

JOB = ScoreJob(tuple(ready_estimators()))
"""A job whose loops are loaded."""

with suppress(Exception):  # whatever is wrong is reported when a case is scored
    for _kind, _highest in ((np.float32, 1), (np.float64, 1), (np.uint8, 255)):
        _tiny = (np.eye(4) * _highest).astype(_kind)
        for _mask in (None, np.eye(4, dtype=bool)):
            assess_map(open_map(_tiny, _mask, source="tiny"), JOB.estimators, None, None)
