"""What every estimator is: a name, the statistics it reads, and a number made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np

from segtrust.confidence.summary import Needs, Summary, summarise
from segtrust.kernels.opening import open_map
from segtrust.maps import Case, Prediction, prediction_of
from segtrust.params import HasParams

__all__ = ["ConfidenceEstimator", "Observation"]

Observation = Mapping[str, Any]
"""What an estimator reads off a case, once: NumPy arrays by name."""


class ConfidenceEstimator(HasParams, ABC):
    """One confidence a map; higher means that less error is expected.

    An estimator that learns overrides `fit`; the others return themselves unchanged.

    Where many estimators are fitted on parts of the same cases, as in a tuning curve, the maps are looked at
    once: `observe` gives what fitting and scoring will need of a case, `fit_observations` and
    `score_observation` go on from there, and give what `fit` and `score` would, up to rounding.
    """

    name: ClassVar[str]
    """In the library, on the command line and in every file."""
    label: ClassVar[str]
    """In tables and figures."""
    used_ids: frozenset[str] = frozenset()
    """Ids of the cases it has learned from, which cannot vouch for its confidences."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was set to or has learned, by name: what a policy keeps, and what makes it again.

        The ids it has learned from are left out: they do not change a confidence.
        """
        if not is_dataclass(self):
            return {}
        names = (each.name for each in fields(self))
        return {name: getattr(self, name) for name in names if name != "used_ids"}

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The statistics that `read` reads."""

    @abstractmethod
    def read(self, summary: Summary) -> Any:
        """Confidence from the statistics of a map."""

    def fit(self, cases: Iterable[Case | Prediction]) -> Self:
        """Learn from cases; most estimators have nothing to learn."""
        return self

    def score(self, case: Case | Prediction) -> Any:
        """Confidence of one case; its truth, if any, is not looked at."""
        return as_number(self.read(summary_of(case, self.needs)))

    @property
    def observer(self) -> str:
        """Say what `observe` gives: estimators of one observer can share their observations."""
        return self.name

    def observe(self, case: Case | Prediction) -> Observation:
        """Give all that `fit_observations` and `score_observation` need of a case."""
        return {"confidence": np.float64(self.score(case))}

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Learn from the observations of some cases and the loss of each, one minus its Dice."""
        return self

    def score_observation(self, observation: Observation) -> float:
        """Confidence of the case that was observed."""
        return float(observation["confidence"])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Confidences of the cases that were observed, as an array."""
        return np.array([self.score_observation(each) for each in observations], np.float64)


def summary_of(case: Case | Prediction, needs: Needs) -> Summary:
    """Open the map of a case, for one pass that gives what is needed."""
    prediction = prediction_of(case)
    source = open_map(
        prediction.probabilities,
        prediction.mask,
        threshold=prediction.threshold,
        source=prediction.source,
    )
    return summarise(source, [needs], prediction.agreement)


def as_number(value: Any) -> Any:
    """Give a Python float for a NumPy scalar, which estimators read where Numba is missing; leave others."""
    return float(value) if isinstance(value, float) else value


def score_map(estimator: ConfidenceEstimator, p: Any, mask: Any, threshold: float) -> Any:
    """Confidence of one array; what the functions beside the estimators call."""
    summary = summarise(open_map(p, mask, threshold=threshold), [estimator.needs])
    return as_number(estimator.read(summary))
