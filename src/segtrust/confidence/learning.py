"""Estimators that learn from cases with a truth: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np

from segtrust.confidence.base import ConfidenceEstimator, Observation
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    EmptyArrayError,
    NotFittedError,
    ParameterError,
)
from segtrust.kernels.device import on_host
from segtrust.kernels.inputs import described
from segtrust.kernels.masks import thresholded
from segtrust.kernels.view import as_binary
from segtrust.maps import Case, EmptyPolicy, Prediction, prediction_of
from segtrust.risks import dice

__all__ = ["LearningEstimator", "checked_ids", "loss_of", "mask_and_truth", "refuse_unfitted"]


@dataclass(frozen=True)
class LearningEstimator(ConfidenceEstimator):
    """Learns from the losses of labelled cases, the tuning set.

    Attributes
    ----------
    empty
        What an empty mask is worth, in the losses as in the confidence.
    used_ids
        Ids of the cases it was fitted on; certification refuses them.
    """

    empty: EmptyPolicy = field(default=EmptyPolicy.PAPER, kw_only=True)
    used_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Take plain values, as a policy keeps them."""
        object.__setattr__(self, "empty", EmptyPolicy(self.empty))
        object.__setattr__(self, "used_ids", checked_ids(self.used_ids))

    @abstractmethod
    def observe(self, case: Case | Prediction) -> Observation:
        """Give all that `fit_observations` and `score_observation` need of a case."""

    @abstractmethod
    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Learn from the observations of some cases and the loss of each, one minus its Dice."""

    @abstractmethod
    def score_observation(self, observation: Observation) -> float:
        """Confidence of the case that was observed."""

    def fit(self, cases: Iterable[Case | Prediction]) -> Self:
        """Learn from cases with a truth, which are gone through once.

        The truths count through the Dice of each mask. A case without a truth is an error that names it.
        """
        observations, losses, ids = [], [], []
        for case in self._each(cases):
            losses.append(loss_of(case, self.empty))
            observations.append(self.observe(case))
            ids.append(case.id)
        return replace(self.fit_observations(observations, losses), used_ids=frozenset(ids) - {""})

    def _each(self, cases: Iterable[Any]) -> Iterable[Case]:
        if isinstance(cases, Case | Prediction) or not isinstance(cases, Iterable):
            raise ParameterError(
                f"cases: expected several, got one {type(cases).__name__}. Put it in a list."
            )
        return map(self._labelled, cases)

    def _labelled(self, case: Any) -> Case:
        if not isinstance(case, Case) or case.truth is None:
            raise ParameterError(
                f"{prediction_of(case).source}: {self.name} learns from the truth and expected a Case with "
                "one, got none. Give Case(prediction, truth), or leave this case out."
            )
        return case

    def _checked(self, observations: Sequence[Observation], losses: Any) -> Any:
        """Give the losses as an array, one for each observation."""
        try:
            found = np.asarray(losses, np.float64)
        except (TypeError, ValueError):
            raise CaseValueError(f"losses: expected numbers, got {described(losses)}.") from None
        if not len(observations):
            raise EmptyArrayError(f"{self.name}: expected at least one case to learn from, got none.")
        if found.shape != (len(observations),):
            raise CaseLengthError(
                f"losses: expected one for each of {len(observations)} observations, got shape {found.shape}."
            )
        if not ((found >= 0.0) & (found <= 1.0)).all():
            raise CaseValueError("losses: expected numbers in [0, 1], one minus the Dice of each case.")
        return found


def checked_ids(used_ids: Any) -> frozenset[str]:
    """Give ids as a set; a text would be taken for its letters."""
    if isinstance(used_ids, str) or not isinstance(used_ids, Iterable):
        raise ParameterError(f"used_ids: expected a collection of ids, got {described(used_ids)}.")
    return frozenset(used_ids)


def refuse_unfitted(name: str, learned: str, example: str) -> NoReturn:
    """Say that something has to be learned before it can score."""
    raise NotFittedError(
        f"{name}: {learned} is not known yet. Call fit(cases) with labelled cases, or give it: {example}."
    )


def mask_and_truth(case: Case) -> tuple[Any, Any]:
    """Give the delivered mask and the truth of a case as NumPy arrays of truth values."""
    prediction = case.prediction
    mask = prediction.mask
    if mask is None:
        p = np.asarray(on_host(prediction.probabilities))
        mask = thresholded(p, threshold=prediction.threshold, source=prediction.source)
    pair = (mask, f"{prediction.source}: mask"), (case.truth, f"{prediction.source}: truth")
    found = [as_binary(np.asarray(on_host(values)), name).astype(bool) for values, name in pair]
    return found[0], found[1]


def loss_of(case: Case, empty: EmptyPolicy | str = EmptyPolicy.PAPER) -> float:
    """Give one minus the Dice of the delivered mask.

    Examples
    --------
    >>> round(loss_of(Case(Prediction(np.array([0.9, 0.2])), truth=np.array([1, 1]))), 4)
    0.3333
    """
    mask, truth = mask_and_truth(case)
    return 1.0 - float(dice(truth, mask, empty=empty))
