"""Threshold-level aggregation (TLA): the mean entropy of the pixels above a threshold of the data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import length_hint
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

import numpy as np

from segtrust._arguments import check_nonnegative, check_threshold
from segtrust._types import AnyArray, DeviceArrayT, MapOnHost
from segtrust.confidence.base import (
    ConfidenceEstimator,
    Needs,
    Observation,
    Summary,
    open_prediction,
    score_map,
    summary_of,
)
from segtrust.errors import EmptyArrayError, NotFittedError, ParameterError
from segtrust.kernels import (
    Bracket,
    DeviceMap,
    Ranks,
    Selector,
    UncertaintyNeeds,
    binary_entropy,
    bracket_from_sample,
    doubt_at_entropy,
    entropies_of,
    open_map,
    pair_of_ranks,
)
from segtrust.maps import Case, Prediction, prediction_of

if TYPE_CHECKING:  # loads Numba
    from segtrust.kernels import HostMap


_Result = TypeVar("_Result")
_POOL = 1 << 16
"""Doubts sampled from a whole data set, divided among its maps."""
_ASSUMED_MAPS = 1000
"""Number of maps assumed for a data set without a length."""


@dataclass(frozen=True)
class ThresholdLevel(ConfidenceEstimator):
    """Minus the mean entropy of the pixels whose entropy exceeds ``tau``.

    Attributes
    ----------
    tau
        Entropy threshold in bits, one for the data set; ``None`` until it is passed or learned by `fit`.
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
    colour = "#882255"

    def __post_init__(self) -> None:
        """Check the threshold."""
        if self.tau is not None:
            check_nonnegative(self.tau, "tau", "an entropy in bits, in [0, 1]", most=1.0)

    @cached_property
    def _uncertainty_needs(self) -> UncertaintyNeeds:
        if self.tau is None:
            raise NotFittedError(
                "tla: the threshold tau is not known yet. Call fit(cases) with unlabelled cases, "
                "or pass it: ThresholdLevel(tau=0.3)."
            )
        return UncertaintyNeeds(entropies=True, doubt_limit=doubt_at_entropy(self.tau))

    @property
    def needs(self) -> Needs:
        """Sum and number of the entropies above the threshold, once it is known."""
        return Needs() if self.tau is None else Needs(uncertainty=self._uncertainty_needs)

    def read(self, summary: Summary) -> Any:
        """Compute the confidence; 0, full certainty, if no pixel exceeds the threshold."""
        statistics = summary.uncertainty(self._uncertainty_needs)
        if statistics.above_count == 0:
            return statistics.above * 0.0  # a zero on the device of the map
        return -statistics.above / statistics.above_count

    def fit(self, cases: Collection[Case | Prediction]) -> Self:  # type: ignore[override]
        """Learn ``tau`` from unlabelled cases: the exact (1 - α) quantile of all their entropies.

        α is the mean over the cases of the share of foreground in the mask. Cases are read several times, one
        at a time; they are not held in memory together.
        """

        def names_and_foreground(case: Case | Prediction) -> tuple[frozenset[str], float]:
            counts = _open_on_host(case).count()
            return case.used_names, counts.k / counts.n

        names_and_shares = _for_each(names_and_foreground, cases)
        alpha = math.fsum(share for _, share in names_and_shares) / len(names_and_shares)
        ids = frozenset().union(*(names for names, _ in names_and_shares))
        return replace(self, tau=entropy_quantile(cases, 1.0 - alpha), used_ids=ids)

    def observe(self, case: Case | Prediction) -> Observation:
        """Return the share of foreground, and the sorted doubts with the sum of entropies from each one on.

        For a map of 8 bits that is a few numbers; for a map of floats it may be three doubles per pixel.
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
        """Learn ``tau`` from the observations of some cases; the losses are not used."""
        if not len(observations):
            raise EmptyArrayError("tla: expected at least one case to learn from, got none.")
        doubts = [observation["doubts"] for observation in observations]
        ranks = [observation["ranks"] for observation in observations]
        alpha = math.fsum(observation["foreground"] for observation in observations) / len(observations)
        position = (1.0 - alpha) * (sum(int(counts[-1]) for counts in ranks) - 1)
        pair = pair_of_ranks(doubts, ranks, math.floor(position))
        return replace(self, tau=_interpolate_entropy(pair, position - math.floor(position)))

    def score_observation(self, observation: Observation) -> float:
        """Return the confidence of the case that was observed: minus the mean entropy above ``tau``."""
        first = int(observation["doubts"].searchsorted(self._uncertainty_needs.doubt_limit, "right"))
        ranks = observation["ranks"]
        count = int(ranks[-1] - (ranks[first - 1] if first else 0))
        return 0.0 if count == 0 else -float(observation["above"][first]) / count


@overload
def threshold_level_confidence(p: MapOnHost, *, tau: float, where: AnyArray | None = None) -> float: ...


@overload
def threshold_level_confidence(
    p: DeviceArrayT, *, tau: float, where: AnyArray | None = None
) -> DeviceArrayT: ...


def threshold_level_confidence(p: Any, *, tau: float, where: Any = None) -> Any:
    """Return the threshold-level aggregation (TLA): minus the mean entropy of the pixels above ``tau``.

    It is 0, the value of full certainty, if no pixel exceeds the threshold. `ThresholdLevel.fit` finds
    ``tau`` for a data set.

    Parameters
    ----------
    p
        Foreground probabilities of one image, in any number of dimensions.
    tau
        Entropy threshold in bits, in [0, 1].
    where
        Boolean array of the map's shape that selects the pixels that count; all by default. Other pixels may
        hold anything, such as NaN.

    Examples
    --------
    >>> import numpy as np
    >>> round(threshold_level_confidence(np.array([0.5, 0.01, 0.0]), tau=0.3), 12)
    -1.0
    """
    return score_map(ThresholdLevel(tau), p, where=where)


def entropy_quantile(cases: Collection[Case | Prediction], fraction: float) -> float:
    """Return the exact quantile, in bits, of the entropies of all pixels of all cases, by interpolation.

    Parameters
    ----------
    cases
        Cases or predictions that can be read more than once; each map may be loaded only when it is reached.
    fraction
        Fraction of the pixels below the quantile, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from segtrust import Prediction
    >>> entropy_quantile([Prediction(np.array([0.5, 0.0])), Prediction(np.array([1.0]))], 1.0)
    1.0
    """
    check_threshold(fraction, "fraction")
    sample_size = max(1, _POOL // max(1, length_hint(cases, _ASSUMED_MAPS)))

    def size_and_sample(case: Case | Prediction) -> tuple[int, Any]:
        source = _open_on_host(case)
        return source.n, source.sample(sample_size)

    def count(bracket: Bracket) -> Ranks:
        return Ranks.together(_for_each(lambda case: _open_on_host(case).ranks(bracket), cases))

    # A bracket that contains the quantile, from samples thinned so that each map counts by its size.
    sizes_and_samples = _for_each(size_and_sample, cases)
    rate = min(sample.size / n for n, sample in sizes_and_samples)
    kept = [
        sample[np.linspace(0, sample.size - 1, max(1, int(rate * n))).astype(int)]
        for n, sample in sizes_and_samples
    ]
    pooled = np.concatenate(kept)
    bracket = bracket_from_sample(pooled, fraction)
    pixels = sum(n for n, _ in sizes_and_samples)
    selector = Selector(count, pixels, pooled, bracket, count(bracket))

    position = fraction * (pixels - 1)
    return _interpolate_entropy(selector.pair(math.floor(position)), position - math.floor(position))


def _interpolate_entropy(doubts: tuple[float, float], fraction: float) -> float:
    lower, upper = map(binary_entropy, doubts)
    return lower + fraction * (upper - lower)


def _open_on_host(case: Case | Prediction) -> HostMap:
    prediction = prediction_of(case)
    source = open_prediction(prediction)
    if isinstance(source, DeviceMap):
        p, mask = source.to_host()
        source = open_map(p, mask, threshold=prediction.threshold, source=prediction.source)
    return cast("HostMap", source)


def _for_each(
    function: Callable[[Case | Prediction], _Result], cases: Collection[Case | Prediction]
) -> list[_Result]:
    """Call a function for each case; unlike a loop, `map` releases a map before the next one is loaded."""
    if isinstance(cases, Case | Prediction):
        raise ParameterError(f"cases: expected several, got one {type(cases).__name__}. Put it in a list.")
    results = list(map(function, cases))
    if not results:
        raise EmptyArrayError(
            "cases: expected at least one, got none. Cases are read more than once: "
            "pass a list, or an object that loads them again, not a generator."
        )
    return results
