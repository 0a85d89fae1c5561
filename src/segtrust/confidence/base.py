"""What every estimator is: a name, the statistics that it needs, and one number computed from them.

Each estimator lists the statistics that it `Needs`. `summarise` plans them for all estimators together: one
pass for counts or powers, one for uncertainty. A `Summary` computes each on first use and keeps it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Self, overload

import numpy as np

from segtrust._files import check_keys, naming_errors, plain_values
from segtrust._params import HasParams
from segtrust._storage import Storable, without_format
from segtrust._types import AnyArray, DeviceArrayT, MapOnHost
from segtrust.confidence.pixels import Pixels
from segtrust.errors import CaseValueError, ParameterError, SavedStateError
from segtrust.kernels import (
    Agreement,
    Counts,
    DiceStatistics,
    DistinctDoubts,
    MapSource,
    UncertaintyNeeds,
    UncertaintyStatistics,
    as_array,
    host_number,
    open_map,
    warn_of_surprises,
)
from segtrust.maps import Case, Prediction, prediction_of

Observation = Mapping[str, Any]
"""Values that `observe` computed from one case: NumPy arrays by name."""


@dataclass(frozen=True)
class Needs:
    """The statistics that an estimator reads, so that one pass can serve several estimators.

    `Summary.entropies` and `Summary.doubts` are separate passes and are not declared.

    Attributes
    ----------
    counts
        Whether it reads `Summary.counts`. For readers only: counts are computed when first read.
    powers
        Whether it reads `Summary.dice`: the sums from which exact expectations are computed.
    uncertainty
        The statistics of doubts and entropies that it reads by `Summary.uncertainty`, or ``None``.
    members
        Whether it reads `Summary.agreement`: how far the members of an ensemble agree.
    pixels
        Whether it reads `Summary.pixels`: probabilities, mask, spacing and image, whole or tile by tile.
    """

    counts: bool = False
    powers: bool = False
    uncertainty: UncertaintyNeeds | None = None
    members: bool = False
    pixels: bool = False


class Summary:
    """Statistics of one map, each computed when it is first read.

    Parameters
    ----------
    source
        The open map.
    plan
        The statistics that all estimators together will read; statistics of one kind are computed in one
        pass.
    agreement
        How far the members agree, if the map was fused from an ensemble.
    pixels
        The pixels of the map, for estimators that need them.
    """

    def __init__(
        self,
        source: MapSource,
        plan: Needs,
        agreement: Agreement | None = None,
        pixels: Pixels | None = None,
    ) -> None:
        self._source = source
        self._plan = plan
        self._agreement = agreement
        self._pixels = pixels
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

    def number(self, value: Any) -> Any:
        """Return a confidence as a caller expects it: a float, or a scalar of the map's array library."""
        return self._source.number(value)

    @property
    def agreement(self) -> Agreement:
        """How far the members of an ensemble agree. Raises for the map of a single model."""
        if self._agreement is None:
            raise ParameterError(
                "members: expected a map that was fused from the members of an ensemble, got a single map. "
                "Pass the others: --member, the column 'members' of a manifest, or st.pairwise_dice(maps)."
            )
        if self._agreement.members < 2:
            raise ParameterError(
                "members: expected at least two maps to compare, got one. Pass the others with --member."
            )
        return self._agreement

    @property
    def dice(self) -> DiceStatistics:
        """Sums of powers: expectations of Dice, IoU and F-beta; see `segtrust.kernels.DiceStatistics`."""
        if self._dice is None:
            self._dice = self._source.dice_statistics()
        return self._dice

    @property
    def counts(self) -> Counts:
        """Pixels and probability on both sides of the mask; taken from `dice` if that is planned too."""
        if self._counts is None:
            self._counts = self.dice.counts if self._plan.powers else self._source.count()
        return self._counts

    @property
    def entropies(self) -> Any:
        """Entropy of each pixel in bits, a NumPy array; a separate pass, held in memory."""
        if self._entropies is None:
            self._entropies = self._source.entropy_map()
        return self._entropies

    @property
    def doubts(self) -> DistinctDoubts:
        """The doubts min(p, 1 - p) that occur, sorted; a separate pass."""
        if self._doubts is None:
            self._doubts = self._source.distinct_doubts()
        return self._doubts

    @property
    def pixels(self) -> Pixels:
        """Probabilities, mask, spacing and image of the map, whose values have been checked."""
        if not self._plan.pixels or self._pixels is None:
            raise ParameterError(
                "pixels: no estimator declares that it reads them. Return Needs(pixels=True) from `needs`."
            )
        _ = self.counts  # checks the values
        return self._pixels

    def may_be_below(self, level: float) -> bool:
        """Return whether all probabilities may be at most ``level``, as far as computed statistics show."""
        counts = self._counts if self._dice is None else self._dice.counts
        if counts is not None:
            return counts.may_be_below(level)
        return any(statistics.highest <= level * (1.0 + 1e-9) for statistics in self._measured.values())

    def uncertainty(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Return statistics of doubts and entropies, from the planned pass if it covers them."""
        plan = self._plan.uncertainty
        covers = plan is not None and (
            plan.entropies >= needs.entropies
            and plan.median >= needs.median
            and needs.doubt_limit in (math.inf, plan.doubt_limit)
            and needs.side in (None, plan.side)
        )
        measured = plan if plan is not None and covers else needs
        if measured not in self._measured:
            self._measured[measured] = self._source.measure(measured)
        return self._measured[measured]


def summarise(
    source: MapSource,
    needs: Iterable[Needs],
    agreement: Agreement | None = None,
    pixels: Pixels | None = None,
) -> Summary:
    """Return a summary of a map that is planned for several estimators.

    An uncertainty pass has one doubt limit and one box side. If estimators need several, the first is planned
    and each other value takes its own pass.

    Parameters
    ----------
    source
        The open map.
    needs
        The statistics that each estimator reads.
    agreement
        How far the members agree, if the map was fused from an ensemble.
    pixels
        The pixels of the map, for estimators that need them.
    """
    needs = list(needs)
    uncertainties = [need.uncertainty for need in needs if need.uncertainty is not None]
    limits = [uncertainty.doubt_limit for uncertainty in uncertainties if uncertainty.doubt_limit < math.inf]
    sides = [uncertainty.side for uncertainty in uncertainties if uncertainty.side is not None]
    together = UncertaintyNeeds(
        entropies=any(uncertainty.entropies for uncertainty in uncertainties),
        doubt_limit=limits[0] if limits else math.inf,
        side=sides[0] if sides else None,
        median=any(uncertainty.median for uncertainty in uncertainties),
    )
    plan = Needs(
        counts=any(need.counts for need in needs),
        powers=any(need.powers for need in needs),
        uncertainty=together if uncertainties else None,
        pixels=any(need.pixels for need in needs),
    )
    return Summary(source, plan, agreement, pixels)


class ConfidenceEstimator(HasParams, Storable, ABC):
    """Base class for confidence estimators: one confidence per map; higher means a lower expected error.

    A subclass sets `name` and `label`, lists the statistics that it `needs`, and computes the confidence from
    them in `read`. An estimator that learns overrides `fit`; `fit` of the others returns them unchanged.

    If many estimators are fitted on parts of the same cases, as in a tuning curve, each map is read once:
    `observe` returns what fitting and scoring need from a case, and `fit_observations` and
    `score_observation` continue with it. Their results equal those of `fit` and `score`, up to rounding.
    """

    name: ClassVar[str]
    """Identifier used in the API, on the command line and in saved files."""
    label: ClassVar[str]
    """Label in tables and figures."""
    colour: ClassVar[str] = ""
    """Line colour in figures, such as ``"#0072b2"``; if empty, `colour_of` chooses one from the name."""
    used_ids: frozenset[str] = frozenset()
    """Ids of the cases it was fitted on. Certification rejects these cases."""
    _format = "segtrust-estimator-1"

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings and learned values by name: what a policy stores and passes to the constructor.

        The ids of the cases it was fitted on are left out: they do not change a confidence.
        """
        if not is_dataclass(self):
            return {}
        names = (field.name for field in fields(self))
        return {name: getattr(self, name) for name in names if name != "used_ids"}

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The statistics that `read` reads."""

    @abstractmethod
    def read(self, summary: Summary) -> Any:
        """Compute the confidence from the statistics of a map.

        A zero is written as ``x * 0.0``, which stays on the device of x and in its graph of derivatives;
        ``0.0 - x`` avoids -0.0.
        """

    def read_counts(self, counts: Counts) -> Any:
        """Compute the confidences of a batch from arrays of counts, one entry per map.

        For estimators that read nothing but counts. By default ``NotImplemented``: maps are read one by one.
        """
        return NotImplemented

    def fit(self, cases: Iterable[Case | Prediction]) -> Self:
        """Return a fitted copy. Estimators that learn nothing return themselves."""
        return self

    def score(self, case: Case | Prediction) -> Any:
        """Return the confidence of one case; its ground truth, if any, is not used."""
        summary = summary_of(case, self.needs)
        value = read_confidence(self, summary)
        warn_of_surprises(prediction_of(case).probabilities, summary.may_be_below)
        return value

    @overload
    def __call__(
        self,
        p: MapOnHost,
        mask: AnyArray | None = None,
        *,
        threshold: float = 0.5,
        where: AnyArray | None = None,
    ) -> float: ...

    @overload
    def __call__(
        self,
        p: DeviceArrayT,
        mask: AnyArray | None = None,
        *,
        threshold: float = 0.5,
        where: AnyArray | None = None,
    ) -> DeviceArrayT: ...

    @overload
    def __call__(self, p: Case | Prediction) -> Any: ...

    def __call__(self, p: Any, mask: Any = None, *, threshold: float = 0.5, where: Any = None) -> Any:
        """Return the confidence of one map.

        Parameters
        ----------
        p
            Foreground probabilities of one image, in any number of dimensions; or a `Prediction` or `Case`,
            which has its own mask and threshold.
        mask
            The delivered mask; ``p >= threshold`` if there is none.
        threshold
            Decision threshold in [0, 1].
        where
            Boolean array of the map's shape that selects the pixels that count; all by default.

        Returns
        -------
        float
            For a torch, CuPy or JAX array a scalar array on its device.
        """
        if not isinstance(p, Prediction | Case):
            return score_map(self, p, mask, threshold=threshold, where=where)
        if mask is not None or threshold != 0.5 or where is not None:
            raise ParameterError(
                f"mask, threshold, where: expected none with a {type(p).__name__}, which has a mask and a "
                "threshold itself. Pass its probabilities instead."
            )
        return self.score(p)

    def to_dict(self) -> dict[str, Any]:
        """Return name, parameters and ids as plain values for JSON, for `from_dict`; ids are readable."""
        parameters = plain_values(self.parameters, self.name)
        return {"name": self.name, "parameters": parameters, "used_ids": sorted(self.used_ids)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "estimator") -> Self:
        """Return the estimator that `to_dict` described; errors name the source."""
        from segtrust.confidence.registry import get_estimator

        values = check_keys(without_format(saved), ("name", "parameters", "used_ids"), source)
        kind = type(get_estimator(values["name"]))
        if not issubclass(kind, cls):
            raise SavedStateError(f"{source}: expected a {cls.__name__}, got {values['name']!r}.")
        with naming_errors(source):
            ids = {"used_ids": frozenset(values["used_ids"])} if values["used_ids"] else {}
            return kind(**values["parameters"], **ids)

    @property
    def observer(self) -> str:
        """Kind of observation: estimators with the same kind share observations."""
        return self.name

    def observe(self, case: Case | Prediction) -> Observation:
        """Return all that `fit_observations` and `score_observation` need from a case."""
        return {"confidence": np.float64(self.score(case))}

    def fit_observations(self, observations: Sequence[Observation], losses: Any) -> Self:
        """Learn from the observations of some cases and the loss of each case, one minus its Dice."""
        return self

    def score_observation(self, observation: Observation) -> float:
        """Return the confidence of the case that was observed."""
        return float(observation["confidence"])

    def score_observations(self, observations: Sequence[Observation]) -> Any:
        """Return the confidences of the cases that were observed, as an array."""
        return np.array([self.score_observation(observation) for observation in observations], np.float64)


def summary_of(case: Case | Prediction, needs: Needs) -> Summary:
    """Return a summary of the map of a case that is planned for these needs."""
    prediction = prediction_of(case)
    pixels = Pixels(prediction) if needs.pixels else None
    return Summary(open_prediction(prediction), needs, prediction.agreement, pixels)


def open_prediction(prediction: Prediction) -> MapSource:
    """Open the map of a prediction with its mask, or with its threshold if it has none."""
    return open_map(
        prediction.probabilities,
        prediction.mask,
        threshold=prediction.threshold,
        source=prediction.source,
    )


def read_all(estimators: Mapping[str, ConfidenceEstimator], summary: Summary) -> dict[str, Any]:
    """Return the confidences of one map by the labels of the estimators."""
    return {label: read_confidence(estimator, summary) for label, estimator in estimators.items()}


def read_confidence(estimator: ConfidenceEstimator, summary: Summary) -> Any:
    """Return the confidence as the caller expects it; raise for NaN and infinity, which have no rank."""
    value = summary.number(estimator.read(summary))
    check_finite(host_number(value), estimator.name)
    return value


def check_finite(number: float, name: str) -> None:
    """Check the confidence that an estimator, maybe of another package, has computed."""
    if not math.isfinite(number):
        raise CaseValueError(
            f"{name}: expected a finite confidence from this estimator, got {number}. NaN and infinity "
            "cannot be ranked: fix `read` of the estimator."
        )


def summarise_array(
    p: Any,
    mask: Any,
    estimators: Iterable[ConfidenceEstimator],
    *,
    threshold: float = 0.5,
    where: Any = None,
    source: str = "p",
) -> Summary:
    """Open one array and return a summary that is planned for some estimators."""
    needs = [estimator.needs for estimator in estimators]
    opened = open_map(p, mask, threshold=threshold, source=source, where=where)
    pixels = None
    if any(need.pixels for need in needs):
        mask = None if mask is None else as_array(mask, "mask")
        pixels = Pixels(Prediction(as_array(p, source), mask, threshold, source), where)
    return summarise(opened, needs, pixels=pixels)


def score_map(
    estimator: ConfidenceEstimator, p: Any, mask: Any = None, *, threshold: float = 0.5, where: Any = None
) -> Any:
    """Return the confidence of one array by one estimator: the body of most public functions."""
    summary = summarise_array(p, mask, [estimator], threshold=threshold, where=where)
    value = read_confidence(estimator, summary)
    warn_of_surprises(p, summary.may_be_below, where)
    return value
