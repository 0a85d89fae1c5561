"""Contract suites: what every estimator and reader must do, as tests that anybody's can subscribe to.

Subclass a suite in a pytest file, name the class ``Test…`` and say what it is about::

    class TestMine(EstimatorContract):
        estimator = MyEstimator()

`ReaderContract` needs a reader and how a good file is written. The suite of a task is
`segtrust.paper.tasks.TaskContract`.
"""

from __future__ import annotations

from typing import Any

from segtrust.testing.estimators import EstimatorContract, degenerate_maps
from segtrust.testing.readers import ReaderContract

__all__ = ["EstimatorContract", "ReaderContract", "degenerate_maps"]


def __getattr__(name: str) -> Any:
    """Find `TaskContract` too, which was here in release 0.1."""
    if name != "TaskContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from segtrust.paper.tasks import TaskContract

    return TaskContract
