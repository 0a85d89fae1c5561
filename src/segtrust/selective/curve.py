"""The risk-coverage curve: how much the mean loss falls if only the more confident cases are accepted.

The area under the curve summarises a ranking in one number, and several conventions for it are in use. They
agree for many cases without ties; with thirty cases they differ by more than estimators do. So an area is
compared only with areas of the same convention, and so are its references, the oracle and a random ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from segtrust._arguments import check_fraction, check_number, is_number
from segtrust._display import Displayed
from segtrust._optional import require
from segtrust._types import ConventionName, FloatArray, VectorLike
from segtrust.errors import ParameterError, UnknownNameError
from segtrust.selective.vectors import (
    check_confidences,
    check_losses,
    check_outcomes,
    check_same_index,
    check_sum,
    check_weights,
    frozen_copy,
)

if TYPE_CHECKING:
    from pandas import DataFrame

CONVENTIONS = ("paper", "plugin", "trapezoid-from-first")
"""Names of the conventions for an area; `RiskCoverageCurve.area` explains them."""

ROUNDING = 1e-12
"""Relative difference up to which two risks, coverages or areas count as equal."""


class OperatingPoint(NamedTuple):
    """Coverage and risk of one threshold.

    Attributes
    ----------
    threshold
        A case is accepted if its confidence is at least this.
    coverage
        Share of the cases (of their weight) that is accepted.
    risk
        Mean loss of the accepted cases; NaN if no case is accepted.
    """

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverageCurve(Displayed):
    """Selective risk at each coverage that a threshold can achieve.

    Cases of equal confidence are accepted together, so the curve has one point per tie block. In front of
    them the first risk is repeated at coverage 0. Made by `risk_coverage_curve`; the curve is read-only.

    Attributes
    ----------
    coverages
        From 0 to exactly 1, rising.
    risks
        Mean loss of the accepted cases at each coverage.
    thresholds
        Falling, from infinity; a case is accepted if its confidence is at least the threshold.
    loss
        Loss of each case, in the order of the input.
    weights
        Weight of each case, in the order of the input; ``None`` if all cases have the same weight.
    """

    coverages: FloatArray
    risks: FloatArray
    thresholds: FloatArray
    loss: FloatArray
    weights: FloatArray | None = None

    def _shown(self) -> dict[str, Any]:
        return {
            "cases": int(self.loss.size),
            "points": int(self.coverages.size),
            "aurc": self.aurc,
            "augrc": self.augrc,
            "normalised_aurc": self.normalised_aurc,
            "full_risk": self.full_risk,
        }

    def _caption(self) -> str:
        return f"Risk-coverage curve of {self.loss.size} cases"

    @cached_property
    def aurc(self) -> float:
        """Area under the curve in the convention of the paper's tables."""
        return self.area()

    @cached_property
    def augrc(self) -> float:
        """Area under coverage × risk, the mean loss of undetected failures (Traub et al. 2024).

        A trapezoid over the tie blocks from (0, 0). For losses of 0 and 1 it equals
        (1 − AUROC)·acc·(1 − acc) + ½(1 − acc)². The oracle has the smallest AUGRC of all rankings, and a
        random ranking has half the mean loss.
        """
        return self._areas["generalised"]

    @cached_property
    def e_aurc(self) -> float:
        """AURC minus that of the oracle."""
        return self.excess()

    @cached_property
    def normalised_aurc(self) -> float:
        """AURC on a scale where the oracle has 0 and a random ranking has 1."""
        return self.normalised()

    @cached_property
    def _areas(self) -> dict[str, float]:
        from segtrust.selective.curve_loops import integrate

        trapezoid, steps, generalised = integrate(self.coverages, self.risks)
        before_first = float(self.coverages[1] * self.risks[1])  # the curve is flat up to the first block
        by_convention = zip(CONVENTIONS, (trapezoid, steps, trapezoid - before_first), strict=True)
        return {**dict(by_convention), "generalised": generalised}

    @property
    def full_risk(self) -> float:
        """Mean loss of all cases, the risk at coverage 1."""
        return float(self.risks[-1])

    @cached_property
    def oracle(self) -> RiskCoverageCurve:
        """Curve of the same cases ranked by their losses (confidence = −loss)."""
        return _trace_curve(-self.loss, self.loss, self.weights)

    @cached_property
    def random(self) -> RiskCoverageCurve:
        """Curve of a confidence without information: the mean loss at each coverage.

        It is exact, not simulated: if all cases have the same weight, it is the mean over all their orders.
        It has two points; its area in conventions other than the paper's is `random_area`.
        """
        coverages, thresholds = _lock(np.array([0.0, 1.0])), _lock(np.array([np.inf, 0.0]))
        risks = _lock(np.full(2, self.full_risk))
        return RiskCoverageCurve(coverages, risks, thresholds, self.loss, self.weights)

    def area(self, convention: ConventionName = "paper") -> float:
        """Return the area under the selective risk.

        Parameters
        ----------
        convention
            ``"paper"``: trapezoid over all points, including the one at coverage 0. ``"plugin"``: mean over
            the cases of the risk at the end of their tie block. ``"trapezoid-from-first"``: trapezoid from
            the first tie block to coverage 1, not divided by the length of that range, as in several other
            packages; the range before the first block does not count, so a large first block looks good.
        """
        _check_convention(convention)
        return self._areas[convention]

    def random_area(self, convention: ConventionName = "paper") -> float:
        """Return the exact area of a random ranking: the mean loss times the length of the integrated range.

        Parameters
        ----------
        convention
            Name of the convention, as explained in `area`. The length is 1, and for
            ``"trapezoid-from-first"`` 1 − 1/n with n cases of positive weight.
        """
        _check_convention(convention)
        if convention != "trapezoid-from-first":
            return self.full_risk
        n = self.loss.size if self.weights is None else int(np.count_nonzero(self.weights))
        return self.full_risk * (1.0 - 1.0 / n)

    def excess(self, convention: ConventionName = "paper") -> float:
        """Return the area minus that of the oracle in the same convention (E-AURC).

        It is at least 0 if all losses and all confidences differ. Ties can make it negative: between the ends
        of a tie block a trapezoid follows the chord, which may lie below the oracle's curve.

        Parameters
        ----------
        convention
            Name of the convention, as explained in `area`.
        """
        return self.area(convention) - self.oracle.area(convention)

    def normalised(self, convention: ConventionName = "paper") -> float:
        """Return the area on a scale where the oracle has 0 and a random ranking has 1.

        If all losses are equal, no ranking is better than another, and the result is 0.

        Parameters
        ----------
        convention
            Name of the convention, as explained in `area`.
        """
        oracle, random = self.oracle.area(convention), self.random_area(convention)
        gap = random - oracle
        return 0.0 if gap <= ROUNDING * random else (self.area(convention) - oracle) / gap

    def risk_at_coverage(self, coverage: float) -> float:
        """Return the risk at the smallest coverage on the curve that is at least this, up to rounding."""
        least = check_fraction(coverage, "coverage") * (1.0 - ROUNDING)
        return float(self.risks[np.searchsorted(self.coverages, least)])

    def coverage_at_risk(self, target: float) -> float | None:
        """Return the largest coverage on the curve whose risk is at most the target, up to rounding.

        There is no interpolation, and the curve may exceed the target before that point. The result is
        ``None`` if no tie block reaches the target; the point at coverage 0 does not count. A target
        above every loss is reached by all cases: coverage 1.
        """
        limit = check_target_risk(target) * (1.0 + ROUNDING)
        reached = np.flatnonzero(self.risks[1:] <= limit)
        return float(self.coverages[1 + reached[-1]]) if reached.size else None

    def at_threshold(self, threshold: float) -> OperatingPoint:
        """Return coverage and risk if the cases with a confidence of at least ``threshold`` are accepted.

        A threshold above all confidences, such as infinity, accepts no case: coverage 0, risk NaN.
        """
        threshold = check_number(threshold, "threshold", finite=False)
        below = int(np.searchsorted(self.thresholds[::-1], threshold))
        at = self.thresholds.size - below - 1
        risk = float(self.risks[at]) if at > 0 else float("nan")
        return OperatingPoint(threshold, float(self.coverages[at]), risk)

    def to_dataframe(self) -> DataFrame:
        """Return the points as a pandas table with the columns coverage, risk and threshold."""
        columns = {"coverage": self.coverages, "risk": self.risks, "threshold": self.thresholds}
        return require("pandas", extra="tables").DataFrame(columns)

    def plot(self, ax: Any = None, *, label: str | None = None, references: bool = True, **style: Any) -> Any:
        """Draw the curve, the oracle and a random ranking, and return the axes.

        Parameters
        ----------
        ax
            Matplotlib axes; new ones are made if there are none.
        label
            Name in the legend; the AURC is added.
        references
            Whether to draw the oracle and the random ranking; not needed for a second estimator on the same
            axes.
        style
            Options of ``Axes.plot`` for the curve itself.
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", extra="plots")
            ax = pyplot.subplots(figsize=(4.8, 3.4), layout="constrained")[1]
        grey = {"color": "#4d4d4d", "linewidth": 1.0, "zorder": 2}
        own = {"linewidth": 1.8, "solid_joinstyle": "round", "zorder": 3, **style}
        lines = [(self, "confidence" if label is None else label, own)]
        if references:
            lines += [(self.oracle, "oracle", grey | {"linestyle": "--"})]
            lines += [(self.random, "random", grey | {"linestyle": ":"})]
        for curve, name, options in lines:
            ax.plot(curve.coverages, curve.risks, **{"label": f"{name} (AURC {curve.aurc:.3f})", **options})
        ax.set(xlabel="coverage", ylabel="selective risk", xlim=(0.0, 1.0))
        ax.autoscale(axis="y")  # a limit set for an earlier curve would hide part of this one
        ax.autoscale_view(scalex=False)
        ax.set_ylim(bottom=0.0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
        return ax


def risk_coverage_curve(
    confidence: VectorLike,
    loss: VectorLike | None = None,
    *,
    dice: VectorLike | None = None,
    weights: VectorLike | None = None,
) -> RiskCoverageCurve:
    """Return the selective risk at each coverage, with its areas and operating points.

    Parameters
    ----------
    confidence
        Confidence of each case, on any scale; higher means a lower expected loss. At least 2 cases.
    loss
        Loss of each case, at least 0: for example, one minus its Dice.
    dice
        Dice of each case, in [0, 1], instead of the loss.
    weights
        Weight of each case, at least 0; equal weights if omitted. Cases of weight 0 are ignored.

    Returns
    -------
    RiskCoverageCurve
        One point per tie block, after the point at coverage 0. If all cases are tied: the mean loss.

    Examples
    --------
    >>> curve = risk_coverage_curve([0.9, 0.2, 0.5, 0.5], [0.0, 1.0, 0.5, 0.1])
    >>> curve.coverages.tolist()
    [0.0, 0.25, 0.75, 1.0]
    >>> curve.risks.round(3).tolist()
    [0.0, 0.0, 0.2, 0.4]
    >>> round(curve.aurc, 4), curve.coverage_at_risk(0.25)
    (0.125, 0.75)
    >>> risk_coverage_curve([0.9, 0.2], dice=[0.75, 0.5]).full_risk
    0.375
    """
    check_same_index(confidence=confidence, loss=loss, dice=dice, weights=weights)
    confidence = check_confidences(confidence, fewest=2)
    return _weighted_curve(confidence, check_outcomes(confidence, loss, dice), weights)


def trace_curve(confidence: Any, loss: Any, weights: Any = None) -> RiskCoverageCurve:
    """Return the curve of a ranking that may be a bad one: `risk_coverage_curve` without its warning.

    Parameters
    ----------
    confidence, loss
        One number per case; at least 2 cases.
    weights
        Weight of each case, at least 0; equal weights if omitted.

    Examples
    --------
    >>> trace_curve([0.9, 0.2], [0.0, 1.0]).risks.tolist()
    [0.0, 0.0, 0.5]
    """
    confidence = check_confidences(confidence, fewest=2)
    return _weighted_curve(confidence, check_losses(loss, confidence.size), weights)


def _weighted_curve(confidence: Any, loss: Any, weights: Any) -> RiskCoverageCurve:
    loss = frozen_copy(loss)
    if weights is not None:
        weights = frozen_copy(check_weights(weights, confidence.size))
        with np.errstate(over="ignore"):
            check_sum(loss * weights, "loss times weights")
    return _trace_curve(confidence, loss, weights)


def _trace_curve(confidence: Any, loss: Any, weights: Any) -> RiskCoverageCurve:
    from segtrust.selective.curve_loops import Points, descending_order, trace

    confidence = np.ascontiguousarray(confidence)
    points = Points(*(np.empty(confidence.size + 1) for _ in range(3)))
    count = trace(descending_order(confidence), confidence, loss, weights, points)
    coverages, risks, thresholds = (_lock(values[:count]) for values in points)
    return RiskCoverageCurve(coverages, risks, thresholds, loss, weights)


def _lock(values: Any) -> Any:
    values.flags.writeable = False
    return values


def _check_convention(convention: str) -> None:
    if convention not in CONVENTIONS:
        raise UnknownNameError(f"Unknown convention {convention!r}; available: {', '.join(CONVENTIONS)}.")


def check_target_risk(target: Any) -> float:
    """Return a target risk as a float; raise unless it is finite and at least 0."""
    if not is_number(target) or not 0.0 <= target < np.inf:
        raise ParameterError(f"target: expected a finite number of at least 0, got {target!r}.")
    return float(target)
