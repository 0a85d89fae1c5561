"""Aggregation with automatically extracted features (AEF): a forest predicts the Dice from entropies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust._arguments import check_nonnegative, check_whole
from segtrust.confidence.base import Needs, Observation, Summary, summary_of
from segtrust.confidence.forest import Forest, grow_forest
from segtrust.confidence.learning import LearningEstimator, loss_of, mask_and_truth, raise_unfitted
from segtrust.confidence.soft_dice import SoftDice
from segtrust.errors import CaseLengthError, EmptyArrayError, ParameterError
from segtrust.features import extract_features, feature_names
from segtrust.maps import Case, Prediction

TAUS = tuple(step / 20 for step in range(1, 20))
"""Candidates for the entropy, 0.05 to 0.95 bits, above which a pixel is uncertain."""

_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class FeatureAggregation(LearningEstimator):
    """A random forest that predicts the Dice from features of the entropy map inside its uncertain pixels.

    `fit` chooses the threshold τ from `TAUS` at which the uncertain pixels (entropy above τ) overlap best, by
    mean Dice, with the errors of the tuning cases; of equal ones the lowest. A case whose mask has no error
    has overlap 0 at every τ and no influence. Then the features of the entropy map inside the uncertain
    pixels are extracted, see `segtrust.features.extract_features`, and a forest learns to predict the Dice
    from them. It needs scikit-learn (``segtrust[learn]``) to learn, but not to score.

    Attributes
    ----------
    tau
        Entropy in bits above which a pixel is uncertain; ``None`` until learned.
    forest
        The trees, or the plain values that they are saved as; ``None`` until learned.
    ndim
        Number of dimensions of the maps it has learned from: images and volumes have different features.
    trees
        Number of trees: 100 as in the paper's experiments, 10 in its base setting.
    bin_width
        Width of a grey level of the texture features. With the paper's 25, maps in [0, 1] have one level;
        0.05 makes twenty, and needs PyRadiomics (``segtrust[radiomics]``).
    seed
        Random seed of the forest.
    empty
        Score of an empty mask, in the losses as in the SDC, see `segtrust.EmptyPolicy`.
    used_ids
        Ids of the cases it was fitted on.

    Examples
    --------
    >>> FeatureAggregation(trees=10).name
    'aef'
    """

    tau: float | None = None
    forest: Forest | None = None
    ndim: int | None = None
    trees: int = 100
    bin_width: float = 25.0
    seed: int = 42

    name = "aef"
    label = "AEF"
    colour = "#56b4e9"
    _learned = ("tau", "forest", "ndim", "used_ids")
    _reads_sdc = False

    def __post_init__(self) -> None:
        """Check the settings, and convert a forest of plain values."""
        super().__post_init__()
        check_nonnegative(self.bin_width, "bin_width", "a finite number above 0")
        if not self.bin_width:
            raise ParameterError("bin_width: expected a finite number above 0, got 0.")
        check_whole(self.trees, "trees", least=1)
        check_whole(self.seed, "seed", most=_LARGEST_SEED)
        if self.tau is not None:
            check_nonnegative(self.tau, "tau", "an entropy in bits, in [0, 1]", most=1.0)
        if not isinstance(self.forest, Forest | None):
            object.__setattr__(self, "forest", Forest.from_dict(self.forest))
        if self.forest is None:
            return
        if self.ndim not in (2, 3):
            raise ParameterError(f"ndim: expected 2 or 3, for the maps of a forest, got {self.ndim!r}.")
        width = self._forest_row(np.zeros(len(feature_names(self.ndim))), 0.0).size
        if self.forest.width != width:
            raise ParameterError(
                f"forest: {self.name} expected one that reads {width} features, got {self.forest.width}. "
                "Use the parameters of an estimator of the same name."
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings and learned values by name, as plain values."""
        forest = None if self.forest is None else self.forest.to_dict()
        return super().parameters | {"forest": forest}

    @property
    def needs(self) -> Needs:
        """Counts, if the SDC is a feature; the entropy map is a separate pass."""
        return Needs(counts=self._reads_sdc)

    def read(self, summary: Summary) -> float:
        """Predict the Dice."""
        _, tau = self._learned_values()
        return float(self._predict([self._row_of_summary(summary, tau)], [_ndim_of(summary.entropies)])[0])

    def _learned_values(self) -> tuple[Forest, float]:
        if self.forest is None or self.tau is None:
            raise_unfitted(self.name, "the forest", f"{type(self).__name__}(**parameters)")
        return self.forest, self.tau

    def _predict(self, rows: Sequence[Any], dimensions: Sequence[int]) -> Any:
        others = set(dimensions) - {self.ndim}
        if others:
            raise ParameterError(
                f"{self.name}: expected a map of {self.ndim} dimensions, like those it has learned from, "
                f"got {others.pop()}. Fit one estimator for each."
            )
        forest, _ = self._learned_values()
        return forest.predict(np.array(rows))

    def _soft_dice(self, summary: Summary) -> float:
        return float(SoftDice(self.empty).read(summary))

    def _forest_row(self, features: Any, sdc: float) -> Any:
        """Return the features of one map as the forest reads them."""
        return np.append(sdc, features) if self._reads_sdc else features

    def _row_of_summary(self, summary: Summary, tau: float) -> Any:
        features = _extract(summary.entropies, tau, self.bin_width)
        return self._forest_row(features, self._soft_dice(summary) if self._reads_sdc else 0.0)

    def fit(self, cases: Collection[Case | Prediction]) -> Self:  # type: ignore[override]
        """Learn from cases with a ground truth, which are read twice.

        The threshold is chosen in the first pass, so that the second extracts features at this one alone.
        """
        overlaps, losses, ids = [], [], set[str]()
        for case in self._labelled(cases):
            overlaps.append(self._overlaps(case))
            losses.append(loss_of(case, self.empty))
            ids |= case.used_names
            del case  # a map is released before the next one is loaded
        if not overlaps:
            raise EmptyArrayError(f"{self.name}: expected at least one case to learn from, got none.")
        tau = self._choose(overlaps)
        rows, dimensions = [], []
        for case in self._labelled(cases):
            summary = summary_of(case, self.needs)
            rows.append(self._row_of_summary(summary, tau))
            dimensions.append(_ndim_of(summary.entropies))
            del case, summary
        if len(rows) != len(losses):
            raise EmptyArrayError(
                f"{self.name}: cases are read twice. Pass a list, or an object that loads them again, not a "
                "generator."
            )
        fitted = self._grow(tau, rows, dimensions, np.array(losses))
        return replace(fitted, used_ids=frozenset(ids))

    # Overridden in paper/medical/published.py.
    def _overlaps(self, case: Case) -> Any:
        """Return how well each threshold finds the errors of a case."""
        return error_overlaps(case)

    # Overridden in paper/medical/published.py.
    def _choose(self, overlaps: Sequence[Any]) -> float:
        """Choose the threshold from the overlaps of each case."""
        return TAUS[int(np.argmax(np.mean(overlaps, axis=0)))]

    def _grow(self, tau: float, rows: Sequence[Any], dimensions: Sequence[int], losses: Any) -> Self:
        if len(set(dimensions)) > 1:
            raise ParameterError(
                f"{self.name}: expected maps of one kind, got images and volumes. Fit one estimator for each."
            )
        forest = grow_forest(np.array(rows), 1.0 - losses, trees=self.trees, seed=self.seed)
        return replace(self, tau=tau, forest=forest, ndim=dimensions[0])

    @property
    def observer(self) -> str:
        """Kind of observation, which is the same with the SDC as a feature and without."""
        return f"aef, bin width {self.bin_width:g}, empty masks {self.empty}"

    def observe(self, case: Case | Prediction) -> Observation:
        """Return the features at each threshold and, with a ground truth, how well each finds the errors."""
        summary = summary_of(case, self.needs)
        observation = {
            "features": np.array([_extract(summary.entropies, tau, self.bin_width) for tau in TAUS]),
            "sdc": np.float64(self._soft_dice(summary)),
            "ndim": np.int64(_ndim_of(summary.entropies)),
        }
        if isinstance(case, Case) and case.truth is not None:
            observation["overlaps"] = self._overlaps(case)
        return observation

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the threshold and grow the forest from observations and losses, one minus the Dice."""
        checked = self._check_losses(losses, observations)
        if any("overlaps" not in observation for observation in observations):
            raise CaseLengthError(f"{self.name}: expected observations of cases with a ground truth.")
        tau = self._choose([observation["overlaps"] for observation in observations])
        return self._grow(tau, *self._rows_of_observations(tau, observations), checked)

    def _rows_of_observations(
        self, tau: float, observations: Sequence[Observation]
    ) -> tuple[list[Any], list[int]]:
        """Return rows for the forest, and the number of dimensions of the maps."""
        if tau not in TAUS:
            raise ParameterError(
                f"tau: observations are made at 0.05, 0.10, … 0.95, not at {tau!r}. Use score."
            )
        level = TAUS.index(tau)
        rows = [
            self._forest_row(observation["features"][level], float(observation["sdc"]))
            for observation in observations
        ]
        return rows, [int(observation["ndim"]) for observation in observations]

    def score_observation(self, observation: Observation) -> float:
        """Predict the Dice of the case that was observed."""
        return float(self.score_observations([observation])[0])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Predict the Dice of each case that was observed."""
        _, tau = self._learned_values()
        return self._predict(*self._rows_of_observations(tau, observations))


@dataclass(frozen=True)
class SoftDiceFeatureAggregation(FeatureAggregation):
    """AEF with the SDC as one more feature, see `FeatureAggregation`."""

    name = "aef-sdc"
    label = "AEF+SDC"
    colour = "#332288"
    _reads_sdc = True


def error_overlaps(case: Case) -> Any:
    """Return the Dice between the errors of a mask and the pixels with an entropy above each of `TAUS`.

    It is 0 if there is neither an error nor such a pixel.

    Examples
    --------
    >>> case = Case(Prediction(np.array([0.9, 0.6, 0.01])), truth=np.array([1, 0, 0]))
    >>> error_overlaps(case)[[0, 9, 18]].round(3).tolist()
    [0.5, 1.0, 1.0]
    """
    mask, truth = mask_and_truth(case)
    entropies = summary_of(case, Needs()).entropies.reshape(-1)
    errors = (mask != truth).reshape(-1)
    level = np.searchsorted(TAUS, entropies)  # number of thresholds below each entropy

    def count_above(levels: Any) -> Any:
        """Count the pixels above each threshold."""
        return np.cumsum(np.bincount(levels, minlength=len(TAUS) + 1)[::-1])[::-1][1:]

    total = count_above(level) + np.count_nonzero(errors)
    both = count_above(level[errors])
    return np.divide(2.0 * both, total, out=np.zeros(len(TAUS)), where=total > 0)


def _ndim_of(entropies: Any) -> int:
    """Return the number of dimensions of a map; a line counts as an image with one row."""
    return max(2, int(entropies.ndim))


def _extract(entropies: Any, tau: float, bin_width: float) -> Any:
    if entropies.ndim > 3:
        raise ParameterError(
            f"aef: expected an image or a volume, got a map of shape {entropies.shape}. Pass one channel or "
            "one point in time at a time."
        )
    image = np.atleast_2d(entropies)
    return extract_features(image, image > tau, bin_width=bin_width)
