"""What estimators that learn from cases with a ground truth have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np

from segtrust._arguments import describe
from segtrust.confidence.base import ConfidenceEstimator, Observation
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    EmptyArrayError,
    NotFittedError,
    ParameterError,
)
from segtrust.kernels import as_binary, on_host, threshold_map
from segtrust.maps import Case, EmptyPolicy, Prediction, prediction_of
from segtrust.risks import dice


@dataclass(frozen=True)
class LearningEstimator(ConfidenceEstimator):
    """Base class for estimators that learn from labelled cases.

    An estimator that learns without ground truth (TLA) derives from `ConfidenceEstimator`.

    Attributes
    ----------
    empty
        Score of an empty mask, in the losses as in the confidence, see `segtrust.EmptyPolicy`.
    used_ids
        Ids of the cases it was fitted on. Certification rejects these cases.
    """

    empty: EmptyPolicy = field(default=EmptyPolicy.PAPER, kw_only=True)
    used_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Convert the plain values that a policy stores."""
        object.__setattr__(self, "empty", EmptyPolicy(self.empty))
        if isinstance(self.used_ids, str) or not isinstance(self.used_ids, Iterable):
            raise ParameterError(f"used_ids: expected a collection of ids, got {describe(self.used_ids)}.")
        object.__setattr__(self, "used_ids", frozenset(self.used_ids))

    @abstractmethod
    def observe(self, case: Case | Prediction) -> Observation:
        """Return all that `fit_observations` and `score_observation` need from a case."""

    @abstractmethod
    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Learn from the observations of some cases and the loss of each case, one minus its Dice."""

    @abstractmethod
    def score_observation(self, observation: Observation) -> float:
        """Return the confidence of the case that was observed."""

    def fit(self, cases: Iterable[Case | Prediction]) -> Self:
        """Learn from cases with a ground truth, which are read once.

        The ground truth is used for the Dice of each mask. A case without one is an error that names it.
        """
        observations, losses, ids = [], [], set[str]()
        for case in self._labelled(cases):
            losses.append(loss_of(case, self.empty))
            observations.append(self.observe(case))
            ids |= case.used_names
            del case  # a map is released before the next one is loaded
        return replace(self.fit_observations(observations, losses), used_ids=frozenset(ids))

    def _labelled(self, cases: Iterable[Any]) -> Iterator[Case]:
        """Yield the cases; raise for one without a ground truth."""
        if isinstance(cases, Case | Prediction) or not isinstance(cases, Iterable):
            raise ParameterError(
                f"cases: expected several, got one {type(cases).__name__}. Put it in a list."
            )
        for case in cases:
            if not isinstance(case, Case) or case.truth is None:
                raise ParameterError(
                    f"{prediction_of(case).source}: {self.name} learns from the ground truth and expected a "
                    "Case with one, got none. Pass Case(prediction, truth), or leave this case out."
                )
            yield case
            del case  # a map is released before the next one is loaded

    def _check_losses(self, losses: Any, observations: Sequence[Observation]) -> Any:
        """Return the losses as an array, one for each observation."""
        try:
            checked = np.asarray(losses, np.float64)
        except (TypeError, ValueError):
            raise CaseValueError(f"losses: expected numbers, got {describe(losses)}.") from None
        if not len(observations):
            raise EmptyArrayError(f"{self.name}: expected at least one case to learn from, got none.")
        if checked.shape != (len(observations),):
            raise CaseLengthError(
                f"losses: expected one for each of {len(observations)} observations, got shape "
                f"{checked.shape}."
            )
        if not ((checked >= 0.0) & (checked <= 1.0)).all():
            raise CaseValueError("losses: expected numbers in [0, 1], one minus the Dice of each case.")
        return checked


def raise_unfitted(name: str, learned: str, example: str) -> NoReturn:
    """Raise the error of an estimator that has to learn something before it can score."""
    raise NotFittedError(
        f"{name}: {learned} is not known yet. Call fit(cases) with labelled cases, or pass it: {example}."
    )


def mask_and_truth(case: Case) -> tuple[Any, Any]:
    """Return the delivered mask and the ground truth of a case as NumPy arrays of bool."""
    prediction = case.prediction
    mask = prediction.mask
    if mask is None:
        p = np.asarray(on_host(prediction.probabilities))
        mask = threshold_map(p, threshold=prediction.threshold, source=prediction.source)
    mask = as_binary(np.asarray(on_host(mask)), f"{prediction.source}: mask")
    truth = as_binary(np.asarray(on_host(case.truth)), f"{prediction.source}: truth")
    return mask.astype(bool), truth.astype(bool)


def loss_of(case: Case, empty: EmptyPolicy = EmptyPolicy.PAPER) -> float:
    """Return one minus the Dice of the delivered mask.

    Examples
    --------
    >>> round(loss_of(Case(Prediction(np.array([0.9, 0.2])), truth=np.array([1, 1]))), 4)
    0.3333
    """
    mask, truth = mask_and_truth(case)
    return 1.0 - float(dice(truth, mask, empty=empty))
