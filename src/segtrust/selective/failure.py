"""Failure detection: how well a confidence separates failures from the other cases at a Dice cutoff."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from segtrust._arguments import check_fraction
from segtrust._display import Displayed
from segtrust._types import VectorLike
from segtrust.selective.vectors import check_confidences, check_outcomes, check_same_index, is_failure

TRUE_POSITIVE_RATE = 0.95
"""Share of the failures that must be flagged where the false positive rate is measured."""


@dataclass(frozen=True, repr=False)
class FailureDetection(Displayed):
    """How well low confidence detects failures; failures are the positive class.

    Attributes
    ----------
    cutoff
        A case is a failure if its Dice is below this.
    n, failures
        Number of cases, and of failures among them.
    auroc
        Probability that a failure has a lower confidence than another case; ties count half.
    aupr
        Average precision: precision at the end of each tie block, weighted by the recall gained there.
    fpr_at_95_tpr
        Smallest share of the other cases that is flagged if at least 95 % of the failures are.
    spearman, pearson
        Correlation between confidence and Dice over all cases; these do not depend on the cutoff.

    Notes
    -----
    Without failures, or if all cases are failures, ``auroc``, ``aupr`` and ``fpr_at_95_tpr`` are NaN. A
    correlation is NaN if all confidences or all losses are equal.
    """

    cutoff: float
    n: int
    failures: int
    auroc: float
    aupr: float
    fpr_at_95_tpr: float
    spearman: float
    pearson: float

    def _shown(self) -> dict[str, Any]:
        return asdict(self)

    def _caption(self) -> str:
        return f"{self.failures} of {self.n} cases have a Dice below {self.cutoff:g}"


def failure_detection(
    confidence: VectorLike, loss: VectorLike | None = None, *, dice: VectorLike | None = None, cutoff: float
) -> FailureDetection:
    """Compute AUROC, AUPR, FPR at 95 % TPR and the correlations at a Dice cutoff.

    Parameters
    ----------
    confidence
        Confidence of each case, on any scale; higher means a lower expected loss. At least 2 cases.
    loss
        One minus the Dice of each case, in [0, 1]. A loss that equals ``1 - cutoff`` up to rounding is not a
        failure.
    dice
        Dice of each case, in [0, 1], instead of the loss.
    cutoff
        Cases with a Dice below this number, in [0, 1], are failures.

    Examples
    --------
    >>> detection = failure_detection([0.9, 0.8, 0.4, 0.3], [0.05, 0.1, 0.3, 0.6], cutoff=0.75)
    >>> detection.auroc, detection.failures
    (1.0, 2)
    """
    check_same_index(confidence=confidence, loss=loss, dice=dice)
    confidence = check_confidences(confidence, fewest=2)
    return detect_failures(confidence, check_outcomes(confidence, loss, dice, unit=True), cutoff)


def detect_failures(confidence: Any, loss: Any, cutoff: float) -> FailureDetection:
    """Compute the scores of a ranking that may be a bad one: `failure_detection` without its warning.

    Parameters
    ----------
    confidence, loss
        One number per case, as arrays that were checked; losses in [0, 1].
    cutoff
        Cases with a Dice below this number, in [0, 1], are failures.
    """
    from scipy.stats import rankdata

    cutoff = check_fraction(cutoff, "cutoff")
    failed = is_failure(loss, cutoff)
    dice = 1.0 - loss
    spearman = _correlation(rankdata(confidence), rankdata(dice))
    pearson = _correlation(confidence, dice)
    auroc, aupr, fpr = _detection_scores(confidence, failed)
    return FailureDetection(cutoff, confidence.size, int(failed.sum()), auroc, aupr, fpr, spearman, pearson)


def _detection_scores(confidence: Any, failed: Any) -> tuple[float, float, float]:
    """Return AUROC, average precision and the false positive rate at 95 % true positives."""
    order = np.argsort(confidence)
    block_ends = np.append(np.diff(confidence[order]) > 0.0, True)
    # Failures and other cases flagged so far, from the least confident up, at the end of each tie block.
    caught = np.cumsum(failed[order])[block_ends]
    alarms = np.flatnonzero(block_ends) + 1 - caught
    failures, others = int(caught[-1]), int(alarms[-1])
    if failures == 0 or others == 0:
        return float("nan"), float("nan"), float("nan")
    gained = np.diff(caught, prepend=0)
    spared = others - alarms + np.diff(alarms, prepend=0) / 2.0
    auroc = float(np.sum(gained * spared)) / (failures * others)
    aupr = float(np.sum(gained * caught / (caught + alarms))) / failures
    enough = int(np.argmax(caught / failures >= TRUE_POSITIVE_RATE))
    return auroc, aupr, float(alarms[enough]) / others


def _correlation(x: Any, y: Any) -> float:
    if x.min() == x.max() or y.min() == y.max():
        return float("nan")
    x, y = _deviations(x), _deviations(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _deviations(values: Any) -> Any:
    """Return the deviations from the mean, scaled so that their squares neither underflow nor overflow.

    Differences from one of the values are taken first. They are exact for values close together, whereas the
    mean of values that differ only in their last digits is rounded as coarsely as they differ.
    """
    scaled = np.ldexp(values, -int(np.frexp(np.abs(values).max())[1]))  # a power of 2: exact
    distances = scaled - scaled[0]
    deviations = distances - distances.mean()
    return deviations / np.abs(deviations).max()
