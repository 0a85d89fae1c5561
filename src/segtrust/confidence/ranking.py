"""How well many candidate confidences rank the same few cases, all candidates at once."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["rank_correlations", "ranking_areas"]


def ranking_areas(confidences: Any, losses: Any) -> Any:
    """Give the AURC of each candidate, as `segtrust.risk_coverage_curve` does for one of them.

    Parameters
    ----------
    confidences
        Of shape (candidates, cases).
    losses
        Of each case, at least 0.

    Returns
    -------
    numpy.ndarray
        One area a candidate: the trapezoid over one point a tie block and the first risk at coverage 0.

    Examples
    --------
    >>> confidences = np.array([[0.9, 0.2, 0.5], [0.1, 0.2, 0.3]])
    >>> ranking_areas(confidences, np.array([0.0, 1.0, 0.5])).round(4).tolist()
    [0.1667, 0.5833]
    """
    order = np.argsort(-confidences, axis=1, kind="stable")
    ranked = np.take_along_axis(confidences, order, 1)
    n = ranked.shape[1]
    risks = np.cumsum(losses[order], axis=1) / np.arange(1, n + 1)
    is_last = np.append(ranked[:, 1:] != ranked[:, :-1], np.ones((len(ranked), 1), bool), axis=1)
    return np.array(
        [_area(np.flatnonzero(last) + 1, row) / n for last, row in zip(is_last, risks, strict=True)]
    )


def _area(ends: Any, risks: Any) -> float:
    """Integrate over the number of accepted cases, given where each tie block ends."""
    at_ends = risks[ends - 1]
    before = np.append(at_ends[0], at_ends[:-1])
    return float(np.sum(np.diff(ends, prepend=0) * (before + at_ends)) / 2.0)


def rank_correlations(confidences: Any, dices: Any) -> Any:
    """Give the correlation of each candidate's ranks, ties at their mean rank, with the Dice of the cases.

    The area under coverage × risk (AUGRC) falls linearly in the covariance of rank and Dice, so this orders
    candidates as that area does, but for ties. 0 where the candidate or the Dice does not vary.

    Examples
    --------
    >>> rank_correlations(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]), np.array([0.1, 0.5, 0.9])).tolist()
    [1.0, 0.0]
    """
    from scipy.stats import rankdata

    ranks = rankdata(confidences, axis=1)
    ranks = ranks - ranks.mean(1, keepdims=True)
    dices = dices - dices.mean()
    scale = np.sqrt(np.sum(ranks**2, axis=1) * np.sum(dices**2))
    return np.divide(ranks @ dices, scale, out=np.zeros(len(ranks)), where=scale > 0.0)
