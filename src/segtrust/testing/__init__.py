"""Contract suites: what every estimator, reader and task must do, as tests that anybody's can subscribe to.

Subclass a suite in a pytest file, name the class ``Test…`` and say what it is about::

    class TestMine(EstimatorContract):
        estimator = MyEstimator()

`ReaderContract` needs a reader and how a good file is written, `TaskContract` a task and a small data set.
"""

from __future__ import annotations

from segtrust.testing.estimators import EstimatorContract, degenerate_maps
from segtrust.testing.readers import ReaderContract
from segtrust.testing.tasks import TaskContract

__all__ = ["EstimatorContract", "ReaderContract", "TaskContract", "degenerate_maps"]
