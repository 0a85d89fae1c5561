"""How reliable probabilities are: of the pixels that got 0.7, are 70 % foreground."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from segtrust.calibration.logits import limit_of, logits_of
from segtrust.calibration.pixels import cases_in, check_band, codes_of, is_number, labelled_blocks, on_host
from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.maps import Case
from segtrust.optional import require

__all__ = ["Reliability", "reliability"]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Pixels sorted into bins by their probability, against the truth.

    Attributes
    ----------
    edges
        Of the bins; a bin holds its lower edge, the last one also its upper.
    counts
        Pixels in each bin.
    mean_probability, frequency
        Mean probability of the pixels in each bin, and share of them that is foreground; NaN in empty bins.
    nll
        Mean of -log P(truth), in nats; 0 and 1 count as ε and 1 - ε, or a single pixel could make it
        infinite.
    brier
        Mean squared difference of probability and truth.
    """

    edges: Any
    counts: Any
    mean_probability: Any
    frequency: Any
    nll: float
    brier: float

    @property
    def n(self) -> int:
        """Pixels in all bins."""
        return int(self.counts.sum())

    @cached_property
    def gaps(self) -> Any:
        """Mean probability minus frequency: above 0 where the model finds too much; 0 in empty bins."""
        return np.where(self.counts > 0, self.mean_probability - self.frequency, 0.0)

    @cached_property
    def ece(self) -> float:
        """Expected calibration error: mean size of the gap, each bin by its number of pixels."""
        return float(np.abs(self.gaps) @ self.counts / self.n)

    @cached_property
    def largest_gap(self) -> float:
        """Size of the largest gap of all bins, however few their pixels."""
        return float(np.abs(self.gaps).max())

    def to_dict(self) -> dict[str, Any]:
        """Give all values, ready for JSON; ``None`` for empty bins."""
        return {
            "edges": self.edges.tolist(),
            "counts": self.counts.tolist(),
            "mean_probability": _or_none(self.mean_probability),
            "frequency": _or_none(self.frequency),
            "nll": self.nll,
            "brier": self.brier,
            "ece": self.ece,
        }

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the reliability diagram and give its axes; needs Matplotlib."""
        if ax is None:
            ax = require("matplotlib.pyplot", extra="plots").subplots()[1]
            ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
            ax.set(xlabel="probability", ylabel="share of foreground", aspect="equal")
        some = self.counts > 0
        ax.plot(self.mean_probability[some], self.frequency[some], marker="o", label=label)
        return ax


def _or_none(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def reliability(
    cases: Iterable[Case],
    *,
    bins: int | Sequence[float] = 15,
    band_px: float | None = None,
    epsilon: float | None = None,
) -> Reliability:
    """Compare probabilities with the truth, over all pixels or those near the predicted boundary.

    Most pixels of most maps are far from any boundary and right, and hide the others in the mean over all.

    Parameters
    ----------
    cases
        Read once, one at a time.
    bins
        Number of bins of equal width, or their edges from 0 to 1.
    band_px
        Only pixels this near to the boundary of the predicted mask, in pixels; ``None``: all.
    epsilon
        For ``nll``: probabilities nearer to 0 or 1 count as this near. ``None`` takes that of the type of
        each map; to compare maps of different types, give one for all.

    Examples
    --------
    >>> from segtrust import Prediction
    >>> p = np.array([0.1, 0.1, 0.9, 0.9])
    >>> table = reliability([Case(Prediction(p), np.array([0, 0, 1, 0]))], bins=2)
    >>> table.counts.tolist(), table.frequency.tolist(), round(table.ece, 3)
    ([2, 2], [0.0, 0.5], 0.25)
    """
    check_band(band_px)
    edges = _edges_of(bins)
    limit = None if epsilon is None else _limit_at(epsilon)
    rows, losses = np.zeros((3, edges.size - 1)), np.zeros(2)
    for case in cases_in(cases):
        for found in _of_case(case, edges, band_px, limit):
            rows, losses = rows + found[0], losses + found[1]
    if not rows[0].any():
        raise TooFewCasesError("cases: no pixel to compare: no case, or no predicted boundary.")
    counts, probabilities, foreground = rows
    with np.errstate(invalid="ignore"):
        means, shares = probabilities / counts, foreground / counts
    nll, brier = (losses / counts.sum()).tolist()
    return Reliability(edges, counts.astype(np.int64), means, shares, nll, brier)


def _edges_of(bins: int | Sequence[float]) -> Any:
    try:
        edges = np.asarray(bins, np.float64) if not isinstance(bins, int) else _equal_bins(bins)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if (
        edges.ndim != 1
        or edges.size < 2
        or edges[0] != 0.0
        or edges[-1] != 1.0
        or (np.diff(edges) <= 0).any()
    ):
        raise ParameterError(f"bins: expected a number of bins, or growing edges from 0 to 1, got {bins!r}.")
    return edges


def _equal_bins(bins: int) -> Any:
    return np.linspace(0.0, 1.0, bins + 1) if bins >= 1 else np.zeros(0)


def _limit_at(epsilon: float) -> float:
    if not is_number(epsilon) or not 0.0 < epsilon < 0.5:
        raise ParameterError(f"epsilon: expected a number in (0, 0.5) or None, got {epsilon!r}.")
    return math.log1p(-epsilon) - math.log(epsilon)


def _of_case(case: Case, edges: Any, band_px: float | None, limit: float | None) -> Iterator[tuple[Any, Any]]:
    """Give, for each block: pixels, probability and foreground of each bin; sums of both losses."""
    case = on_host(case)
    dtype = case.prediction.probabilities.dtype
    codes, limit = codes_of(dtype), limit or limit_of(dtype, "clip")
    for values, labels in labelled_blocks(case, band_px):
        p = values if codes is None else codes[values]
        place = np.searchsorted(edges[1:-1], p, side="right")
        rows = [np.bincount(place, weights, minlength=edges.size - 1) for weights in (None, p, labels)]
        signed = np.where(labels, -1.0, 1.0) * logits_of(p, limit)
        yield np.stack(rows), np.array([np.logaddexp(0.0, signed).sum(), ((p - labels) ** 2).sum()])
