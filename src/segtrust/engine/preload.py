"""Imports that every worker process needs, done once: workers are forks of the process that imports this.

To import the packages and load the compiled loops takes about a second, as long as many a folder of maps.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from segtrust.confidence import ready_estimators, warm_up
from segtrust.engine.scoring import ScoreJob
from segtrust.risks import overlap

__all__ = ["JOB"]

JOB = ScoreJob(tuple(ready_estimators()))
"""A job whose loops are loaded."""

with suppress(Exception):  # whatever is wrong is reported when a case is scored
    warm_up(list(JOB.estimators))
    overlap(np.eye(4, dtype=bool), np.eye(4, dtype=bool))
