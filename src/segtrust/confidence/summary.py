"""One heavy pass, many light readers: what all estimators asked for need, gathered together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from segtrust.errors import ParameterError
from segtrust.kernels.agreement import Agreement
from segtrust.kernels.distinct import DistinctDoubts
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.opening import MapSource
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyStatistics

__all__ = ["Needs", "Summary", "summarise"]

_FEWEST = 2


@dataclass(frozen=True)
class Needs:
    """Which statistics an estimator reads.

    Attributes
    ----------
    counts
        Pixels and probability on both sides of the mask.
    powers
        The sums that exact expectations need.
    uncertainty
        Statistics of doubts and entropies, or ``None``.
    members
        How far the members of an ensemble agree, of which the map was fused.
    """

    counts: bool = False
    powers: bool = False
    uncertainty: UncertaintyNeeds | None = None
    members: bool = False


class Summary:
    """The statistics of one map, gathered when first read."""

    def __init__(self, source: MapSource, plan: Needs, agreement: Agreement | None = None) -> None:
        self._source = source
        self._plan = plan
        self._agreement = agreement
        # Not cached properties: until Python 3.12 those of all maps share a lock while one is being read.
        self._dice: DiceStatistics | None = None
        self._counts: Counts | None = None
        self._entropies: Any = None
        self._doubts: DistinctDoubts | None = None
        self._measured: dict[UncertaintyNeeds, UncertaintyStatistics] = {}

    @property
    def n(self) -> int:
        """Number of pixels."""
        return self._source.n

    @property
    def agreement(self) -> Agreement:
        """How far the members of an ensemble agree; an error where the map is not one of several."""
        if self._agreement is None:
            raise ParameterError(
                "members: expected a map that was fused of the members of an ensemble, got a single one. "
                "Give the others: --member, the column 'members' of a manifest, or st.pairwise_dice(maps)."
            )
        if self._agreement.members < _FEWEST:
            raise ParameterError("members: expected at least two to compare, got one.")
        return self._agreement

    @property
    def dice(self) -> DiceStatistics:
        """Sums for exact expectations."""
        if self._dice is None:
            self._dice = self._source.dice_statistics()
        return self._dice

    @property
    def counts(self) -> Counts:
        """Counts, for free where the larger sums are wanted too."""
        if self._counts is None:
            self._counts = self.dice.counts if self._plan.powers else self._source.count()
        return self._counts

    @property
    def entropies(self) -> Any:
        """Entropy of each pixel in bits, a NumPy array; a pass of its own, held in memory."""
        if self._entropies is None:
            self._entropies = self._source.entropy_map()
        return self._entropies

    @property
    def doubts(self) -> DistinctDoubts:
        """The doubts that occur, sorted; a pass of its own."""
        if self._doubts is None:
            self._doubts = self._source.distinct_doubts()
        return self._doubts

    def uncertainty(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Statistics of the uncertainty, of the common pass where it covers them."""
        plan = self._plan.uncertainty
        covering = plan if plan is not None and _covers(plan, needs) else needs
        if covering not in self._measured:
            self._measured[covering] = self._source.measure(covering)
        return self._measured[covering]


def _covers(plan: UncertaintyNeeds, needs: UncertaintyNeeds) -> bool:
    return (
        plan.entropies >= needs.entropies
        and plan.median >= needs.median
        and needs.doubt_limit in (math.inf, plan.doubt_limit)
        and needs.side in (None, plan.side)
    )


def _both(one: UncertaintyNeeds, other: UncertaintyNeeds) -> UncertaintyNeeds:
    """Needs of two together; of two different thresholds or sides the first is planned."""
    return UncertaintyNeeds(
        entropies=one.entropies or other.entropies,
        doubt_limit=other.doubt_limit if one.doubt_limit == math.inf else one.doubt_limit,
        side=other.side if one.side is None else one.side,
        median=one.median or other.median,
    )


def summarise(source: MapSource, needs: Iterable[Needs], agreement: Agreement | None = None) -> Summary:
    """Plan one pass for several estimators."""
    wanted = list(needs)
    uncertainties = [need.uncertainty for need in wanted if need.uncertainty is not None]
    plan = Needs(
        counts=any(need.counts for need in wanted),
        powers=any(need.powers for need in wanted),
        uncertainty=reduce(_both, uncertainties) if uncertainties else None,
    )
    return Summary(source, plan, agreement)
