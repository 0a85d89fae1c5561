"""Patch-level aggregation whose patch side is learned (PLA*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust.confidence.base import Observation, summary_of
from segtrust.confidence.entropy import PatchLevel
from segtrust.confidence.learning import LearningEstimator, refuse_unfitted
from segtrust.confidence.ranking import ranking_areas
from segtrust.confidence.summary import Needs, Summary
from segtrust.errors import CaseLengthError
from segtrust.maps import Case, Prediction

__all__ = ["SIDES", "TunedPatchLevel", "largest_sums"]

SIDES = (*range(1, 10), *range(10, 201, 5))
"""The paper's grid of sides in pixels: 1 to 9, and 10 to 200 in steps of 5."""


@dataclass(frozen=True)
class TunedPatchLevel(LearningEstimator):
    """PLA with the side of the box that ranks the tuning cases best, see `segtrust.patch_level_confidence`.

    `fit` takes the side of `SIDES` with the smallest AURC on the tuning cases, the smallest side where
    several have it. Boxes are capped by the image in each dimension. All sides of a map come from one
    summed-area table.

    Attributes
    ----------
    size
        Side of the box in pixels; ``None`` until it is given or learned by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Case, Prediction
    >>> maps = [np.array([[0.9, 0.6], [0.1, 0.0]]), np.array([[0.6, 0.5], [0.5, 0.4]])]
    >>> truth = np.array([[1, 1], [0, 0]])
    >>> TunedPatchLevel().fit([Case(Prediction(p), truth) for p in maps]).size
    1
    """

    size: int | None = None

    name = "pla-tuned"
    label = "PLA*"

    def __post_init__(self) -> None:
        """Refuse a box without pixels."""
        super().__post_init__()
        if self.size is not None:
            PatchLevel(self.size)

    @property
    def _patch_level(self) -> PatchLevel:
        if self.size is None:
            refuse_unfitted(self.name, "the side of the box", "TunedPatchLevel(size=20)")
        return PatchLevel(self.size)

    @property
    def needs(self) -> Needs:
        """The largest sum over a box."""
        return self._patch_level.needs

    def read(self, summary: Summary) -> Any:
        """Confidence from the largest sum."""
        return self._patch_level.read(summary)

    def observe(self, case: Case | Prediction) -> Observation:
        """Give the largest sum over a box of each side."""
        return {"sums": largest_sums(summary_of(case, Needs()).entropies, self._sides)}

    @property
    def _sides(self) -> tuple[int, ...]:
        """The sides to choose from, and one that was given."""
        return SIDES if self.size is None or self.size in SIDES else (*SIDES, self.size)

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the side."""
        checked = self._checked(observations, losses)
        sums = np.array([each["sums"][: len(SIDES)] for each in observations])
        return replace(self, size=SIDES[int(np.argmin(ranking_areas(-sums.T, checked)))])

    def score_observation(self, observation: Observation) -> float:
        """Confidence with the side learned."""
        at = self._sides.index(self._patch_level.size)
        if at >= len(observation["sums"]):
            raise CaseLengthError(f"observation: it was made for other sides than {self.size}. Observe anew.")
        return 0.0 - float(observation["sums"][at])


def largest_sums(entropies: Any, sides: Sequence[int]) -> Any:
    """Return the largest sum over a box of each side.

    Examples
    --------
    >>> largest_sums(np.array([[1.0, 0.5], [0.0, 0.0]]), (1, 2, 3)).tolist()
    [1.0, 1.5, 1.5]
    """
    from segtrust.kernels.boxes import largest_box_sums

    return largest_box_sums(entropies, sides)
