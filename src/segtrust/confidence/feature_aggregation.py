"""Aggregation with automatically extracted features (AEF): a forest predicts the Dice from entropies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from segtrust.confidence.base import Observation, summary_of
from segtrust.confidence.forest import Forest, grow_forest
from segtrust.confidence.learning import LearningEstimator, loss_of, mask_and_truth, refuse_unfitted
from segtrust.confidence.soft_dice import SoftDice
from segtrust.confidence.summary import Needs, Summary
from segtrust.errors import CaseLengthError, EmptyArrayError, ParameterError
from segtrust.features import extract_features, feature_names
from segtrust.kernels.inputs import check_number, check_whole
from segtrust.maps import Case, Prediction, prediction_of

__all__ = ["TAUS", "FeatureAggregation", "SoftDiceFeatureAggregation", "error_overlaps"]

TAUS = tuple(step / 20 for step in range(1, 20))
"""Entropies, 0.05 to 0.95 bits, of which one is chosen to tell uncertain pixels from others."""

_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class FeatureAggregation(LearningEstimator):
    """A random forest predicts the Dice from features of the entropy map inside its uncertain pixels.

    `fit` chooses the threshold τ of `TAUS` that makes the uncertain pixels (entropy above τ) look most like
    the errors of the tuning cases, by their mean Dice; the lowest τ where several are best. A case whose mask
    has no error scores 0 at each τ, also where no pixel is uncertain, and so has no say. Then the features of
    the entropy map inside the uncertain pixels are extracted, see `segtrust.features.extract_features`, and a
    forest learns to predict the Dice from them. It needs scikit-learn (``segtrust[learn]``) to learn, and not
    to score.

    Attributes
    ----------
    tau
        Entropy in bits above which a pixel is uncertain; ``None`` until learned.
    forest
        The trees, or the plain values that they are saved as; ``None`` until learned.
    ndim
        Dimensions of the maps that it has learned from: images have other features than volumes.
    trees
        Number of trees: 100 as in the paper's experiments, 10 in its base setting.
    bin_width
        Width of a grey level of the texture features. The paper's 25 leaves maps in [0, 1] one level; 0.05
        makes twenty, and needs PyRadiomics (``segtrust[radiomics]``).
    seed
        Of the forest.

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

    def __post_init__(self) -> None:
        """Check the settings and make a forest of plain values."""
        super().__post_init__()
        check_number(self.bin_width, "bin_width", "a finite number above 0")
        if not self.bin_width:
            raise ParameterError("bin_width: expected a finite number above 0, got 0.")
        check_whole(self.trees, "trees", least=1)
        check_whole(self.seed, "seed", most=_LARGEST_SEED)
        if self.tau is not None:
            check_number(self.tau, "tau", "an entropy in bits, in [0, 1]", most=1.0)
        if not isinstance(self.forest, Forest | None):
            object.__setattr__(self, "forest", Forest.from_dict(self.forest))
        if self.forest is not None:
            self._check_forest(self.forest)

    def _check_forest(self, forest: Forest) -> None:
        """Refuse trees that read other features than this estimator gives them."""
        if self.ndim not in (2, 3):
            raise ParameterError(f"ndim: expected 2 or 3, for the maps of a forest, got {self.ndim!r}.")
        width = self._row(np.zeros(len(feature_names(self.ndim))), 0.0).size
        if forest.width != width:
            raise ParameterError(
                f"forest: {self.name} expected one that reads {width} features, got {forest.width}. Take the "
                "parameters of an estimator of the same name."
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was set to or has learned, as plain values."""
        forest = None if self.forest is None else self.forest.to_dict()
        return super().parameters | {"forest": forest, "empty": str(self.empty)}

    @property
    def needs(self) -> Needs:
        """Counts, for the SDC; the entropy map is a pass of its own."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> float:
        """Dice that the forest predicts."""
        _, tau = self._known()
        row = self._row(_extract(summary.entropies, tau, self.bin_width), self._soft_dice(summary))
        return float(self._predict([row], [_flat_ndim(summary.entropies)])[0])

    def _known(self) -> tuple[Forest, float]:
        if self.forest is None or self.tau is None:
            refuse_unfitted(self.name, "the forest", f"{type(self).__name__}(**parameters)")
        return self.forest, self.tau

    def _predict(self, rows: Sequence[Any], dimensions: Sequence[int]) -> Any:
        others = set(dimensions) - {self.ndim}
        if others:
            raise ParameterError(
                f"{self.name}: expected a map of {self.ndim} dimensions, as those that it has learned from, "
                f"got {others.pop()}. Fit another estimator for these maps."
            )
        return self._known()[0].predict(np.array(rows))

    def _soft_dice(self, summary: Summary) -> float:
        return float(SoftDice(self.empty).read(summary))

    def _row(self, features: Any, sdc: float) -> Any:
        """Give the features of one map as the forest reads them."""
        return features

    def fit(self, cases: Collection[Case | Prediction]) -> Self:  # type: ignore[override]
        """Learn from cases with a truth, which are gone through twice.

        The threshold is chosen in the first pass, so that features are extracted at it alone in the second.
        """
        first = [(self._overlaps(case), loss_of(case, self.empty), case.id) for case in self._each(cases)]
        if not first:
            raise EmptyArrayError(f"{self.name}: expected at least one case to learn from, got none.")
        overlaps, losses, ids = zip(*first, strict=True)
        tau = self._choose(overlaps)
        rows = [self._features_at(case, tau) for case in self._each(cases)]
        if len(rows) != len(losses):
            raise EmptyArrayError(
                f"{self.name}: cases are gone through twice. Give a list, or an object that loads them anew, "
                "not a generator."
            )
        dimensions = [len(prediction_of(case).shape) for case in cases]
        fitted = self._grown(tau, rows, [max(2, each) for each in dimensions], np.array(losses))
        return replace(fitted, used_ids=frozenset(ids) - {""})

    def _overlaps(self, case: Case) -> Any:
        """Say how well each threshold finds the errors of a case."""
        return error_overlaps(case)

    def _choose(self, overlaps: Sequence[Any]) -> float:
        """Choose the threshold, of what `_overlaps` says of each case."""
        return TAUS[int(np.argmax(np.mean(overlaps, axis=0)))]

    def _features_at(self, case: Case, tau: float) -> Any:
        summary = summary_of(case, self.needs)
        return self._row(_extract(summary.entropies, tau, self.bin_width), self._soft_dice(summary))

    def _grown(self, tau: float, rows: Sequence[Any], dimensions: Sequence[int], losses: Any) -> Self:
        if len(set(dimensions)) > 1:
            raise ParameterError(f"{self.name}: expected maps of one kind, got images and volumes.")
        forest = grow_forest(np.array(rows), 1.0 - losses, trees=self.trees, seed=self.seed)
        return replace(self, tau=tau, forest=forest, ndim=dimensions[0])

    @property
    def observer(self) -> str:
        """Say what `observe` gives, which is the same with the SDC as a feature and without."""
        return f"aef, bin width {self.bin_width:g}, empty masks {self.empty}"

    def observe(self, case: Case | Prediction) -> Observation:
        """Give the features at each threshold, and where there is a truth how well each finds the errors."""
        summary = summary_of(case, self.needs)
        found = {
            "features": np.array([_extract(summary.entropies, tau, self.bin_width) for tau in TAUS]),
            "sdc": np.float64(self._soft_dice(summary)),
            "ndim": np.int64(_flat_ndim(summary.entropies)),
        }
        if isinstance(case, Case) and case.truth is not None:
            found["overlaps"] = self._overlaps(case)
        return found

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Choose the threshold and grow the forest."""
        checked = self._checked(observations, losses)
        if any("overlaps" not in each for each in observations):
            raise CaseLengthError(f"{self.name}: expected observations of cases with a truth.")
        tau = self._choose([each["overlaps"] for each in observations])
        return self._grown(tau, *self._rows_at(tau, observations), checked)

    def _rows_at(self, tau: float, observations: Sequence[Observation]) -> tuple[list[Any], list[int]]:
        """Give rows for the forest, and the dimensions of the maps."""
        if tau not in TAUS:
            raise ParameterError(
                f"tau: observations are made at 0.05, 0.10, … 0.95, not at {tau!r}. Use score."
            )
        at = TAUS.index(tau)
        rows = [self._row(each["features"][at], float(each["sdc"])) for each in observations]
        return rows, [int(each["ndim"]) for each in observations]

    def score_observation(self, observation: Observation) -> float:
        """Dice that the forest predicts."""
        return float(self.score_observations([observation])[0])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Dices that the forest predicts."""
        return self._predict(*self._rows_at(self._known()[1], observations))


@dataclass(frozen=True)
class SoftDiceFeatureAggregation(FeatureAggregation):
    """AEF with the SDC as one more feature, see `FeatureAggregation`."""

    name = "aef-sdc"
    label = "AEF+SDC"

    def _row(self, features: Any, sdc: float) -> Any:
        return np.append(sdc, features)


def error_overlaps(case: Case) -> Any:
    """Dice between the errors of a mask and the pixels whose entropy is above each of `TAUS`; 0 if none is.

    Examples
    --------
    >>> case = Case(Prediction(np.array([0.9, 0.6, 0.01])), truth=np.array([1, 0, 0]))
    >>> error_overlaps(case)[[0, 9, 18]].round(3).tolist()
    [0.5, 1.0, 1.0]
    """
    mask, truth = mask_and_truth(case)
    entropies = summary_of(case, Needs()).entropies.reshape(-1)
    errors = (mask != truth).reshape(-1)
    level = np.searchsorted(
        TAUS, entropies
    )  # thresholds that lie below: none for an entropy equal to the first
    uncertain = _above(np.bincount(level, minlength=len(TAUS) + 1))
    both = _above(np.bincount(level[errors], minlength=len(TAUS) + 1))
    total = uncertain + np.count_nonzero(errors)
    return np.divide(2.0 * both, total, out=np.zeros(len(TAUS)), where=total > 0)


def _above(counts: Any) -> Any:
    """Pixels above each threshold, of the numbers above exactly so many of them."""
    return np.cumsum(counts[::-1])[::-1][1:]


def _flat_ndim(entropies: Any) -> int:
    """Dimensions of a map; a line counts as an image of one row."""
    return max(2, int(entropies.ndim))


def _extract(entropies: Any, tau: float, bin_width: float) -> Any:
    if entropies.ndim > 3:
        raise ParameterError(
            f"aef: expected an image or a volume, got a map of shape {entropies.shape}. Give one channel or "
            "one time at a time."
        )
    image = np.atleast_2d(entropies)
    return extract_features(image, image > tau, bin_width=bin_width)
