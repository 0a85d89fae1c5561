"""Risk-coverage curves the slow and obvious way."""

import numpy as np


def points(confidence, loss, weights=None):
    """(coverage, risk, threshold) at each threshold, after the point at coverage 0."""
    weights = np.ones(len(loss)) if weights is None else weights
    found = []
    for threshold in sorted(set(confidence), reverse=True):
        accepted = confidence >= threshold
        mass = weights[accepted].sum()
        if weights[confidence == threshold].any():
            risk = (weights * loss)[accepted].sum() / mass
            found.append((mass / weights.sum(), risk, threshold))
    return np.array([(0, found[0][1], np.inf), *found]).T


def area(coverages, risks):
    return np.sum(np.diff(coverages) * (risks[1:] + risks[:-1]) / 2)


def plugin(confidence, loss, weights=None):
    """Mean over the cases of the risk where they are just accepted."""
    weights = np.ones(len(loss)) if weights is None else weights
    own = [
        np.average(loss[confidence >= t], weights=weights[confidence >= t]) if w else 0
        for t, w in zip(confidence, weights, strict=True)
    ]
    return np.average(own, weights=weights)


def auroc(confidence, failed):
    """Probability that a failure has the lower confidence, ties counting half, pair by pair."""
    low, high = confidence[failed][:, None], confidence[~failed][None, :]
    return np.mean((low < high) + 0.5 * (low == high))


def cases(rng, n, *, levels=None, weighted=False):
    """Confidences, losses and weights; with few levels there are ties."""
    confidence = rng.integers(0, levels, n) / 4 if levels else rng.standard_normal(n)
    loss = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n))
    weights = np.where(rng.random(n) < 0.2, 0, rng.random(n)) if weighted else None
    if weighted:
        weights[rng.integers(n)] = 1
    return confidence, loss, weights
