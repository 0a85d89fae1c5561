"""The view of failure detection: how well a confidence tells bad cases from good ones at a Dice cut-off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.selective.vectors import check_fraction, confidences_of, losses_of

__all__ = ["FailureDetection", "failure_detection"]

TRUE_POSITIVES = 0.95
"""Share of the failures that must be caught where the false alarms are counted."""

_NAN = float("nan")


@dataclass(frozen=True)
class FailureDetection:
    """How well low confidence points at failures; failures are the positive class.

    Attributes
    ----------
    cutoff
        A case is a failure if its Dice is below this.
    n, failures
        Cases, and failures among them.
    auroc
        Probability that a failure has a lower confidence than another case, ties counting half.
    aupr
        Average precision: precision at the end of each tie block, weighted by the recall gained there.
    fpr_at_95_tpr
        Smallest share of the other cases that is flagged where at least 95 % of the failures are.
    spearman, pearson
        Correlation between confidence and Dice over all cases; these do not depend on the cut-off.

    Notes
    -----
    Without a failure, or with nothing but failures, ``auroc``, ``aupr`` and ``fpr_at_95_tpr`` are NaN. A
    correlation is NaN where all confidences or all losses are equal.
    """

    cutoff: float
    n: int
    failures: int
    auroc: float
    aupr: float
    fpr_at_95_tpr: float
    spearman: float
    pearson: float


def failure_detection(confidence: Any, loss: Any, *, cutoff: float) -> FailureDetection:
    """Give AUROC, AUPR, FPR at 95 % TPR and the correlations at a Dice cut-off.

    Parameters
    ----------
    confidence
        Of each case; at least 2.
    loss
        One minus the Dice of each case, in [0, 1]. A loss that equals ``1 - cutoff`` up to rounding is no
        failure.
    cutoff
        In [0, 1]; cases with a lower Dice are failures.

    Examples
    --------
    >>> found = failure_detection([0.9, 0.8, 0.4, 0.3], [0.05, 0.1, 0.3, 0.6], cutoff=0.75)
    >>> found.auroc, found.failures
    (1.0, 2)
    """
    confidence = confidences_of(confidence, fewest=2)
    loss = losses_of(loss, confidence.size, unit=True)
    cutoff = check_fraction(cutoff, "cutoff")
    failed = (loss > 1.0 - cutoff) & (1.0 - loss < cutoff)  # either alone would be fooled by rounding
    spearman, pearson = _correlations(confidence, 1.0 - loss)
    scores = _scores(*_blocks(confidence, failed))
    return FailureDetection(cutoff, confidence.size, int(failed.sum()), *scores, spearman, pearson)


def _blocks(confidence: Any, failed: Any) -> tuple[Any, Any]:
    """Failures and others flagged so far, from the lowest confidence up, at the end of each tie block."""
    order = np.argsort(confidence)
    last = np.append(np.diff(confidence[order]) > 0.0, True)
    caught = np.cumsum(failed[order])[last]
    return caught, np.flatnonzero(last) + 1 - caught


def _scores(caught: Any, alarms: Any) -> tuple[float, float, float]:
    """AUROC, average precision and false alarms at 95 % of the failures."""
    failures, others = int(caught[-1]), int(alarms[-1])
    if failures == 0 or others == 0:
        return _NAN, _NAN, _NAN
    gained = np.diff(caught, prepend=0)
    spared = others - alarms + np.diff(alarms, prepend=0) / 2.0
    auroc = float(np.sum(gained * spared)) / (failures * others)
    precision = float(np.sum(gained * caught / (caught + alarms))) / failures
    enough = int(np.argmax(caught / failures >= TRUE_POSITIVES))
    return auroc, precision, float(alarms[enough]) / others


def _correlations(confidence: Any, score: Any) -> tuple[float, float]:
    """Spearman's and Pearson's."""
    from scipy.stats import rankdata

    return _correlation(rankdata(confidence), rankdata(score)), _correlation(confidence, score)


def _correlation(x: Any, y: Any) -> float:
    if x.min() == x.max() or y.min() == y.max():
        return _NAN
    x, y = _deviations(x), _deviations(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _deviations(values: Any) -> Any:
    """Give deviations from the mean, in a unit in which their squares are neither 0 nor infinite.

    Numbers close together are first taken as distances from one of them, which are exact: the mean of numbers
    that differ in their last digits is rounded as coarsely as they differ.
    """
    scaled = np.ldexp(values, -int(np.frexp(np.abs(values).max())[1]))  # by a power of 2: exactly
    distances = scaled - scaled[0]
    deviations = distances - distances.mean()
    return deviations / np.abs(deviations).max()
