"""Threshold-level aggregation (TLA): the mean entropy of the pixels above a threshold of the data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import length_hint
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from segtrust.confidence.base import ConfidenceEstimator, Observation, score_map, summary_of
from segtrust.confidence.summary import Needs, Summary
from segtrust.errors import EmptyArrayError, NotFittedError, ParameterError
from segtrust.kernels.arrays import entropies_of
from segtrust.kernels.bits import binary_entropy, doubt_at_entropy
from segtrust.kernels.device import DeviceMap
from segtrust.kernels.distinct import pair_of_ranks
from segtrust.kernels.inputs import check_fraction, check_number
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.opening import open_map
from segtrust.maps import Case, Prediction, prediction_of

if TYPE_CHECKING:  # they need Numba
    from segtrust.kernels.select import Selector
    from segtrust.kernels.sources import HostMap
    from segtrust.kernels.uncertainty import Bracket

__all__ = ["ThresholdLevel", "entropy_quantile", "threshold_level_confidence"]

_Result = TypeVar("_Result")
_POOL = 1 << 16
"""Doubts sampled from a whole data set, shared out among its maps."""
_MANY = 1000
"""Maps to expect of a data set that does not tell."""


@dataclass(frozen=True)
class ThresholdLevel(ConfidenceEstimator):
    """Minus the mean entropy of the pixels whose entropy exceeds ``tau``.

    Attributes
    ----------
    tau
        Entropy threshold in bits, one for the data set; ``None`` until it is given or learned by `fit`.
    used_ids
        Ids of the cases it was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> maps = [Prediction(np.array([0.5, 0.9, 0.0, 0.0])), Prediction(np.array([0.8, 0.2, 0.0, 0.1]))]
    >>> tla = ThresholdLevel().fit(maps)
    >>> round(tla.tau, 4), round(tla.score(maps[0]), 4)
    (0.5638, -1.0)
    """

    tau: float | None = None
    used_ids: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)

    name = "tla"
    label = "TLA"

    def __post_init__(self) -> None:
        """Refuse a threshold that no entropy can have."""
        if self.tau is not None:
            check_number(self.tau, "tau", "an entropy in bits, in [0, 1]", most=1.0)

    @cached_property
    def _needed(self) -> UncertaintyNeeds:
        if self.tau is None:
            raise NotFittedError(
                "tla: the threshold tau is not known yet. Call fit(cases) with unlabelled cases, "
                "or give it: ThresholdLevel(tau=0.3)."
            )
        return UncertaintyNeeds(entropies=True, doubt_limit=doubt_at_entropy(self.tau))

    @property
    def needs(self) -> Needs:
        """Sum and number of the entropies above the threshold."""
        return Needs(uncertainty=self._needed)

    def read(self, summary: Summary) -> Any:
        """Confidence from sum and number; 0, full certainty, where no pixel exceeds the threshold."""
        statistics = summary.uncertainty(self._needed)
        if statistics.above_count == 0:
            return statistics.above * 0.0
        return -statistics.above / statistics.above_count

    def fit(self, cases: Collection[Case | Prediction]) -> Self:  # type: ignore[override]
        """Learn ``tau`` from unlabelled cases: the exact (1 - α) quantile of all their entropies.

        α is the mean over the cases of the share of foreground in the mask. Cases are read several times, one
        at a time; they are not held in memory together.
        """
        ids_and_shares = _of_each(_id_and_foreground, cases)
        alpha = math.fsum(share for _, share in ids_and_shares) / len(ids_and_shares)
        ids = frozenset(name for name, _ in ids_and_shares) - {""}
        return type(self)(entropy_quantile(cases, 1.0 - alpha), used_ids=ids)

    def observe(self, case: Case | Prediction) -> Observation:
        """Give the share of foreground and the sorted doubts, with what the pixels from each on add up to.

        Of a map of 8 bits that is a few numbers; of a map of floats it may be three doubles a pixel.
        """
        summary = summary_of(case, Needs(counts=True))
        doubts, counts = summary.doubts
        entropies = entropies_of(doubts) * counts
        return {
            "foreground": np.float64(summary.counts.k / summary.counts.n),
            "doubts": doubts,
            "ranks": np.cumsum(counts),
            "above": np.append(np.cumsum(entropies[::-1])[::-1], 0.0),
        }

    def fit_observations(self, observations: Sequence[Observation], losses: Any = None) -> Self:
        """Learn ``tau`` from what was seen of some cases; the losses are not looked at."""
        if not len(observations):
            raise EmptyArrayError("tla: expected at least one case to learn from, got none.")
        doubts = [each["doubts"] for each in observations]
        ranks = [each["ranks"] for each in observations]
        fraction = 1.0 - math.fsum(each["foreground"] for each in observations) / len(observations)
        place = fraction * (sum(int(each[-1]) for each in ranks) - 1)
        pair = pair_of_ranks(doubts, ranks, math.floor(place))
        return type(self)(_between(pair, place - math.floor(place)))

    def score_observation(self, observation: Observation) -> float:
        """Minus the mean entropy above ``tau``."""
        at = int(observation["doubts"].searchsorted(self._needed.doubt_limit, "right"))
        ranks = observation["ranks"]
        count = int(ranks[-1] - (ranks[at - 1] if at else 0))
        return 0.0 if count == 0 else -float(observation["above"][at]) / count


def _source(case: Case | Prediction) -> HostMap:
    prediction = prediction_of(case)
    source = open_map(
        prediction.probabilities, prediction.mask, threshold=prediction.threshold, source=prediction.source
    )
    if isinstance(source, DeviceMap):
        p, mask = source.to_host()
        source = open_map(p, mask, threshold=prediction.threshold, source=prediction.source)
    return cast("HostMap", source)


def _id_and_foreground(case: Case | Prediction) -> tuple[str, float]:
    counts = _source(case).count()
    return case.id, counts.k / counts.n


def _of_each(
    function: Callable[[Case | Prediction], _Result], cases: Collection[Case | Prediction]
) -> list[_Result]:
    """Go through the cases once; unlike a loop, `map` lets go of a map before the next one is loaded."""
    if isinstance(cases, Case | Prediction):
        raise ParameterError(f"cases: expected several, got one {type(cases).__name__}. Put it into a list.")
    results = list(map(function, cases))
    if not results:
        raise EmptyArrayError(
            "tla: expected at least one case to learn tau from, got none. Cases are gone through more than "
            "once: give a list, or an object that loads them anew, not a generator."
        )
    return results


def entropy_quantile(cases: Collection[Case | Prediction], fraction: float) -> float:
    """Exact quantile, in bits, of the entropies of all pixels of all cases (linear interpolation).

    Parameters
    ----------
    cases
        Can be gone through more than once, and may load each map only when it is reached.
    fraction
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> entropy_quantile([Prediction(np.array([0.5, 0.0])), Prediction(np.array([1.0]))], 1.0)
    1.0
    """
    check_fraction(fraction, "fraction")
    selector = _selector(cases, fraction)
    place = fraction * (selector.n - 1)
    return _between(selector.pair(math.floor(place)), place - math.floor(place))


def _between(doubts: tuple[float, float], fraction: float) -> float:
    """Interpolate between the entropies of two doubts."""
    lower, upper = map(binary_entropy, doubts)
    return lower + fraction * (upper - lower)


def _selector(cases: Collection[Case | Prediction], fraction: float) -> Selector:
    from segtrust.kernels.select import Selector, bracket_from_sample
    from segtrust.kernels.sweep import Ranks

    def count(bracket: Bracket) -> Ranks:
        return Ranks.together(_of_each(lambda case: _source(case).ranks(bracket), cases))

    share = max(1, _POOL // max(1, length_hint(cases, _MANY)))
    sizes_and_samples = _of_each(lambda case: _size_and_sample(case, share), cases)
    sample = _pooled(sizes_and_samples)
    bracket = bracket_from_sample(sample, fraction)
    return Selector(count, sum(n for n, _ in sizes_and_samples), sample, bracket, count(bracket))


def _size_and_sample(case: Case | Prediction, size: int) -> tuple[int, Any]:
    source = _source(case)
    return source.n, source.sample(size)


def _pooled(sizes_and_samples: list[tuple[int, Any]]) -> Any:
    """Thin the samples so that each map counts by its size."""
    rate = min(sample.size / n for n, sample in sizes_and_samples)
    kept = [np.linspace(0, sample.size - 1, max(1, int(rate * n))) for n, sample in sizes_and_samples]
    return np.concatenate(
        [sample[at.astype(int)] for at, (_, sample) in zip(kept, sizes_and_samples, strict=True)]
    )


def threshold_level_confidence(p: Any, *, tau: float) -> Any:
    """Threshold-level aggregation (TLA): minus the mean entropy of the pixels whose entropy exceeds ``tau``.

    0, the value of full certainty, where no pixel does. `ThresholdLevel.fit` finds ``tau`` for a data set.

    Examples
    --------
    >>> import numpy as np
    >>> round(threshold_level_confidence(np.array([0.5, 0.01, 0.0]), tau=0.3), 12)
    -1.0
    """
    return score_map(ThresholdLevel(tau), p, None, 0.5)
