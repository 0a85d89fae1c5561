"""What every estimator is: a name, the statistics it reads, and a number made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

from segtrust.confidence.summary import Needs, Summary, summarise
from segtrust.kernels.opening import open_map
from segtrust.maps import Case, Prediction, prediction_of

__all__ = ["ConfidenceEstimator"]


class ConfidenceEstimator(ABC):
    """One confidence a map; higher means that less error is expected.

    An estimator that learns overrides `fit`; the others return themselves unchanged.
    """

    name: ClassVar[str]
    """In the library, on the command line and in every file."""
    label: ClassVar[str]
    """In tables and figures."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was set to or has learned, by name: what a policy keeps, and what makes it again."""
        return {each.name: getattr(self, each.name) for each in fields(self)} if is_dataclass(self) else {}

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
        prediction = prediction_of(case)
        source = open_map(
            prediction.probabilities,
            prediction.mask,
            threshold=prediction.threshold,
            source=prediction.source,
        )
        return as_number(self.read(summarise(source, [self.needs])))


def as_number(value: Any) -> Any:
    """Give a Python float for a NumPy scalar, which estimators read where Numba is missing; leave others."""
    return float(value) if isinstance(value, float) else value


def score_map(estimator: ConfidenceEstimator, p: Any, mask: Any, threshold: float) -> Any:
    """Confidence of one array; what the functions beside the estimators call."""
    summary = summarise(open_map(p, mask, threshold=threshold), [estimator.needs])
    return as_number(estimator.read(summary))
