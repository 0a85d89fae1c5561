"""The risk-coverage curve: what accepting only the surer cases buys."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.areas import Areas, areas_of, check_convention, normalise
from segtrust.selective.vectors import (
    check_fraction,
    check_number,
    check_sum,
    confidences_of,
    kept,
    losses_of,
    weights_of,
)

__all__ = ["OperatingPoint", "RiskCoverageCurve", "risk_coverage_curve"]

ROUNDING = 1e-12
"""Relative difference up to which a risk or a coverage counts as equal to the one asked for."""


class OperatingPoint(NamedTuple):
    """What one threshold does to the cases of a curve.

    Attributes
    ----------
    threshold
        A case is accepted if its confidence is at least this.
    coverage
        Share of the cases (of their weight) that is accepted.
    risk
        Mean loss of the accepted cases; NaN where none is.
    """

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Selective risk at each coverage that some threshold achieves.

    Cases of equal confidence are accepted together, so the curve has one point a tie block, and before them
    the first risk once more at coverage 0. Made by `risk_coverage_curve`; nothing in it can be changed.

    Attributes
    ----------
    coverages
        From 0 to exactly 1, rising.
    risks
        Mean loss of the accepted cases at each coverage.
    thresholds
        Falling, from infinity; a case is accepted where its confidence is at least the threshold.
    loss, weights
        Of each case, in the order in which they came; ``weights`` is ``None`` where all weigh the same.
    """

    coverages: Any
    risks: Any
    thresholds: Any
    loss: Any = field(repr=False)
    weights: Any = field(repr=False, default=None)

    @cached_property
    def aurc(self) -> float:
        """Area under the curve in the convention of the paper's tables."""
        return self.areas.paper

    @cached_property
    def augrc(self) -> float:
        """Area under coverage × risk, the mean loss that slips through undetected (Traub et al. 2024).

        A trapezoid over the tie blocks from (0, 0). For losses of 0 and 1 it is
        (1 − AUROC)·acc·(1 − acc) + ½(1 − acc)². The oracle has the smallest one of all rankings, and a
        confidence that knows nothing has half the mean loss.
        """
        return self.areas.generalised

    @cached_property
    def e_aurc(self) -> float:
        """AURC beyond the oracle's."""
        return self.excess()

    @cached_property
    def normalised_aurc(self) -> float:
        """AURC between the oracle's, 0, and that of a confidence that knows nothing, 1."""
        return self.normalised()

    @cached_property
    def areas(self) -> Areas:
        """Areas of all conventions, from one pass."""
        return areas_of(self.coverages, self.risks)

    @property
    def full_risk(self) -> float:
        """Mean loss of all cases, the risk at coverage 1."""
        return float(self.risks[-1])

    @cached_property
    def oracle(self) -> RiskCoverageCurve:
        """Curve of the same cases ranked by their losses, as with confidence = −loss."""
        return _curve_of(-self.loss, self.loss, self.weights)

    @cached_property
    def random(self) -> RiskCoverageCurve:
        """Curve of a confidence that knows nothing: the mean loss at each coverage.

        This is not simulated: where all cases weigh the same it is the mean over all their orders. It has two
        points; its area in other conventions than the paper's is `random_area`.
        """
        coverages, thresholds = _locked(np.array([0.0, 1.0])), _locked(np.array([np.inf, 0.0]))
        risks = _locked(np.full(2, self.full_risk))
        return RiskCoverageCurve(coverages, risks, thresholds, self.loss, self.weights)

    def area(self, convention: str = "paper") -> float:
        """Area under the selective risk.

        Parameters
        ----------
        convention
            ``"paper"``: trapezoid over all points, that at coverage 0 included. ``"plugin"``: mean over the
            cases of the risk at the end of their tie block. ``"trapezoid-from-first"``: trapezoid from the
            first tie block to coverage 1, not divided by the length of that stretch, as several other
            packages do; what lies before the first block counts nothing, so a large first block looks good.
        """
        return self.areas.by(convention)

    def random_area(self, convention: str = "paper") -> float:
        """Area of a confidence that knows nothing, exactly: mean loss times the stretch integrated over.

        That stretch is 1, and for ``"trapezoid-from-first"`` 1 − 1/n with n cases of some weight.
        """
        check_convention(convention)
        if convention != "trapezoid-from-first":
            return self.full_risk
        n = self.loss.size if self.weights is None else int(np.count_nonzero(self.weights))
        return self.full_risk * (1.0 - 1.0 / n)

    def excess(self, convention: str = "paper") -> float:
        """Area beyond the oracle's in the same convention (E-AURC).

        At least 0 where all losses and all confidences differ. Ties can push it below: between the ends of a
        tie block a trapezoid follows the chord, which may lie under the oracle's curve.
        """
        return self.area(convention) - self.oracle.area(convention)

    def normalised(self, convention: str = "paper") -> float:
        """Area between the oracle's, 0, and random's, 1, in one convention; 0 if all losses are equal."""
        return normalise(self.area(convention), self.oracle.area(convention), self.random_area(convention))

    def risk_at_coverage(self, coverage: float) -> float:
        """Risk at the smallest coverage on the curve that is at least this, up to rounding."""
        asked = check_fraction(coverage, "coverage") * (1.0 - ROUNDING)
        return float(self.risks[np.searchsorted(self.coverages, asked)])

    def coverage_at_risk(self, target: float) -> float | None:
        """Largest coverage on the curve whose risk is at most the target, up to rounding.

        There is no interpolation, and the curve may exceed the target before that point. ``None`` if no
        tie block reaches the target; the point at coverage 0 does not count. A target above every loss is
        reached by all cases: coverage 1.
        """
        limit = check_target(target) * (1.0 + ROUNDING)
        reached = np.flatnonzero(self.risks[1:] <= limit)
        return float(self.coverages[1 + reached[-1]]) if reached.size else None

    def at_threshold(self, threshold: float) -> OperatingPoint:
        """Coverage and risk if the cases with a confidence of at least ``threshold`` are accepted.

        A threshold above all confidences, infinity included, accepts none: coverage 0, risk NaN.
        """
        threshold = check_number(threshold, "threshold", finite=False)
        below = int(np.searchsorted(self.thresholds[::-1], threshold))
        at = self.thresholds.size - below - 1
        risk = float(self.risks[at]) if at > 0 else float("nan")
        return OperatingPoint(threshold, float(self.coverages[at]), risk)

    def plot(self, ax: Any = None, *, label: str | None = None, references: bool = True, **style: Any) -> Any:
        """Draw the curve, with the oracle's and random's, and give the axes.

        Parameters
        ----------
        ax
            Matplotlib axes; new ones where there are none.
        label
            Name in the legend; the AURC is added.
        references
            Whether to draw the oracle and random; for the second estimator on the same axes they are there.
        style
            Handed to ``Axes.plot`` for the curve itself.
        """
        from segtrust.selective.plots import draw_curve

        return draw_curve(self, ax, label=label, references=references, style=style)

    def to_dataframe(self) -> Any:
        """Points as a pandas table with the columns coverage, risk and threshold."""
        from segtrust.optional import require

        columns = {"coverage": self.coverages, "risk": self.risks, "threshold": self.thresholds}
        return require("pandas", extra="tables").DataFrame(columns)


def check_target(target: Any) -> float:
    """Refuse a target that no mean loss can have."""
    is_number = isinstance(target, int | float | np.floating | np.integer) and not isinstance(target, bool)
    if not is_number or not 0.0 <= target < np.inf:
        raise ParameterError(f"target: expected a finite number of at least 0, got {target!r}.")
    return float(target)


def risk_coverage_curve(confidence: Any, loss: Any, *, weights: Any = None) -> RiskCoverageCurve:
    """Give the selective risk at each coverage, with its areas and operating points.

    Parameters
    ----------
    confidence
        Of each case, of any scale; higher is surer. At least 2 cases.
    loss
        Of each case, at least 0: one minus its Dice, say.
    weights
        Of each case, at least 0; all the same where there are none. Cases of weight 0 are as if absent.

    Returns
    -------
    RiskCoverageCurve
        One point a tie block, after the point at coverage 0. If all are tied: the mean loss.

    Examples
    --------
    >>> curve = risk_coverage_curve([0.9, 0.2, 0.5, 0.5], [0.0, 1.0, 0.5, 0.1])
    >>> curve.coverages.tolist()
    [0.0, 0.25, 0.75, 1.0]
    >>> curve.risks.round(3).tolist()
    [0.0, 0.0, 0.2, 0.4]
    >>> round(curve.aurc, 4), curve.coverage_at_risk(0.25)
    (0.125, 0.75)
    """
    confidence = confidences_of(confidence, fewest=2)
    n = confidence.size
    loss = kept(losses_of(loss, n))
    if weights is None:
        return _curve_of(confidence, loss, None)
    weights = kept(weights_of(weights, n))
    with np.errstate(over="ignore"):
        check_sum(loss * weights, "loss times weights")
    return _curve_of(confidence, loss, weights)


def _locked(values: Any) -> Any:
    values.flags.writeable = False
    return values


def _curve_of(confidence: Any, loss: Any, weights: Any) -> RiskCoverageCurve:
    from segtrust.selective.loops import Points, order_of, trace

    confidence = np.ascontiguousarray(confidence)
    points = Points(*(np.empty(confidence.size + 1) for _ in range(3)))
    count = trace(order_of(confidence), confidence, loss, weights, points)
    coverages, risks, thresholds = (_locked(each[:count]) for each in points)
    return RiskCoverageCurve(coverages, risks, thresholds, loss, weights)
