"""What the authors' notebooks do otherwise than the paper says, for those who compare numbers with theirs.

None of it is used unless it is asked for (``--as-published``). Maps are in bits where theirs are in natural
units, which changes no ranking.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from segtrust.confidence import (
    TAUS,
    ConfidenceEstimator,
    FeatureAggregation,
    MedianMinMax,
    Needs,
    SoftDiceFeatureAggregation,
    Summary,
    mask_and_truth,
    summary_of,
)
from segtrust.errors import EmptyArrayError, NotFittedError
from segtrust.kernels import on_host
from segtrust.maps import Case, Prediction, prediction_of

__all__ = [
    "DEVIATIONS",
    "PublishedFeatureAggregation",
    "PublishedMedianMinMax",
    "PublishedSoftDiceFeatureAggregation",
    "PublishedThresholdLevel",
    "Stretched",
    "interpolated",
    "published_sizes",
]

DEVIATIONS = {
    "tla": "TLA: one threshold for each image, and the sum above it divided by all of its pixels",
    "aef": "AEF, AEF+SDC: the threshold at which uncertain pixels look least like the errors",
    "mmmc": "MMMC: maps without any uncertainty, 0/0, are ranked first",
    "stretched": "maps stretched to [0, 1] image by image",
    "interpolated": "shares of 10 % and 50 %: interpolated between the sizes of a grid",
}
"""What is different, by name."""
_STRETCH = 1e-8
_GRID, _LARGEST_SHARE = 25, 0.8


@dataclass(frozen=True)
class PublishedThresholdLevel(ConfidenceEstimator):
    """Minus the entropies above a threshold of each image's own, added up and divided by all its pixels.

    Attributes
    ----------
    alpha
        Mean share of foreground in the masks of the set; the threshold is the (1 - alpha) quantile of the
        image. ``None`` until it is learned by `fit`.
    """

    alpha: float | None = None
    used_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)

    name = "tla"
    label = "TLA"

    @property
    def needs(self) -> Needs:
        """Counts; the entropy map is a pass of its own."""
        return Needs(counts=True)

    def read(self, summary: Summary) -> float:
        """Confidence from the entropy map."""
        if self.alpha is None:
            raise NotFittedError("tla: the share of foreground is not known yet. Call fit(cases).")
        entropies = summary.entropies
        tau = float(np.quantile(entropies, 1.0 - self.alpha))
        return -float(entropies[entropies > tau].sum()) / int(entropies.size)

    def fit(self, cases: Collection[Case | Prediction]) -> Self:  # type: ignore[override]
        """Learn the share of foreground from unlabelled cases."""
        shares = [counts.k / counts.n for counts in (summary_of(each, self.needs).counts for each in cases)]
        if not shares:
            raise EmptyArrayError("tla: expected at least one case to learn from, got none.")
        return type(self)(math.fsum(shares) / len(shares))


@dataclass(frozen=True)
class PublishedMedianMinMax(MedianMinMax):
    """MMMC with what NaN does in a sort that is turned round: maps without uncertainty come first."""

    def read(self, summary: Summary) -> Any:
        """Confidence as usual, which is at most 0; 1 where it is 0/0."""
        highest = summary.uncertainty(self.needs.uncertainty).highest  # type: ignore[arg-type]
        return 1.0 if highest == 0.0 else super().read(summary)


class _LeastAlike(FeatureAggregation):
    """Chooses the threshold by the smallest overlap; one that is 0/0 for any case is smaller than all."""

    @property
    def observer(self) -> str:
        """Say what `observe` gives."""
        return f"{super().observer}, as published"

    def _overlaps(self, case: Case) -> Any:
        mask, truth = mask_and_truth(case)
        errors = (mask != truth).reshape(-1)
        entropies = summary_of(case, Needs()).entropies.reshape(-1)
        wrong = int(np.count_nonzero(errors))
        return np.array([_overlap(entropies >= tau, errors, wrong) for tau in TAUS])

    def _choose(self, overlaps: Sequence[Any]) -> float:
        return TAUS[int(np.argmin(np.mean(overlaps, axis=0)))]  # of NaN the first, as NumPy has it


def _overlap(uncertain: Any, errors: Any, wrong: int) -> float:
    total = int(np.count_nonzero(uncertain)) + wrong
    return math.nan if total == 0 else 2.0 * int(np.count_nonzero(uncertain & errors)) / total


@dataclass(frozen=True)
class PublishedFeatureAggregation(_LeastAlike):
    """AEF with the threshold at which the uncertain pixels look least like the errors."""


@dataclass(frozen=True)
class PublishedSoftDiceFeatureAggregation(_LeastAlike, SoftDiceFeatureAggregation):
    """AEF+SDC with that threshold."""


@dataclass(frozen=True)
class Stretched:
    """Stretches each map to [0, 1], as Polyp-PVT's authors did before they saved theirs."""

    def calibrate(self, prediction: Prediction, *, keep_mask: bool = False) -> Prediction:
        """Give the stretched map; where no mask was delivered it is cut anew, whatever is asked for."""
        p = np.asarray(on_host(prediction_of(prediction).probabilities))
        levels = p.astype(np.float64)
        low, high = float(levels.min()), float(levels.max())
        return replace(prediction, probabilities=(levels - low) / (high - low + _STRETCH * _scale(p)))

    def to_dict(self) -> dict[str, Any]:
        """Say what it is."""
        return {"name": "stretched"}


def _scale(p: Any) -> float:
    """Give what stands for a probability of 1."""
    return 1.0 if p.dtype.kind in "fb" else float(np.iinfo(p.dtype).max)


def published_sizes(n: int) -> list[tuple[float, int]]:
    """Give the authors' shares of so many cases, and the sizes of the tuning sets that come of them.

    Examples
    --------
    >>> [size for share, size in published_sizes(98) if 0.09 < share < 0.11 or 0.4 < share < 0.55]
    [9, 10, 42, 49]
    """
    shares = np.geomspace(2.0 / n, _LARGEST_SHARE, _GRID)
    sizes = [(float(share), n - math.ceil((1.0 - share) * n)) for share in shares]
    return [(share, size) for share, size in sizes if 1 <= size <= n - 2]  # two are left to rank


def interpolated(summary: Sequence[Mapping[str, Any]], share: float) -> list[dict[str, Any]]:
    """Give rows at a share that is none of the grid's: means and deviations between its neighbours.

    Parameters
    ----------
    summary
        Rows of one set at all sizes of `published_sizes`.
    share
        Of the cases.
    """
    grid = [(each, size) for each, size in published_sizes(summary[0]["cases"])]
    by_key = {(row["estimator"], row["size"]): row for row in summary}
    names = dict.fromkeys(row["estimator"] for row in summary)
    return [
        {**points[0], "size": None, "share": share, **_between(points, [each for each, _ in grid], share)}
        for name in names
        for points in [[by_key[name, size] for _, size in grid]]
    ]


def _between(points: Sequence[Mapping[str, Any]], shares: Sequence[float], share: float) -> dict[str, Any]:
    columns = ("aurc", "aurc_std", "coverage", "coverage_std", "not_reached")
    found = {name: [point[name] for point in points] for name in columns}
    return {
        name: None if None in values else float(np.interp(share, shares, values))
        for name, values in found.items()
    }
