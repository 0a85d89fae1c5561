"""Risk-coverage curves the slow and obvious way."""

import numpy as np


def points(confidence, loss, weights=None):
    """(coverage, risk, threshold) at each threshold, after the point at coverage 0."""
    weights = np.ones(len(loss)) if weights is None else weights
    thresholds = np.unique(confidence[weights > 0])[::-1]
    accepted = np.where(confidence >= thresholds[:, None], weights, 0)
    mass = accepted.sum(1)
    risks = (accepted * loss).sum(1) / mass
    found = np.stack([mass / mass[-1], risks, thresholds])
    return np.concatenate([[[0], risks[:1], [np.inf]], found], axis=1)


def area(coverages, risks):
    return np.sum(np.diff(coverages) * (risks[1:] + risks[:-1]) / 2)


def plugin(confidence, loss, weights=None):
    """Mean over the cases of the risk where they are just accepted."""
    weights = np.ones(len(loss)) if weights is None else weights
    accepted = np.where(confidence >= confidence[:, None], weights, 0)
    own = (accepted * loss).sum(1) / np.where(weights > 0, accepted.sum(1), 1)
    return (weights * own).sum() / weights.sum()


def generalised(coverages, risks):
    """Area under coverage × risk from (0, 0)."""
    return area(coverages, coverages * risks)


def auroc(confidence, failed):
    """Probability that a failure has the lower confidence, ties counting half, pair by pair."""
    low, high = confidence[failed][:, None], confidence[~failed][None, :]
    return np.mean((low < high) + 0.5 * (low == high))


def _flagged(confidence, failed):
    """Failures and others flagged with each confidence and all below it."""
    flagged = confidence <= np.unique(confidence)[:, None]
    return (flagged & failed).sum(1), (flagged & ~failed).sum(1)


def average_precision(confidence, failed):
    """Precision with each confidence flagged and all below it, weighted by the recall gained there."""
    caught, alarms = _flagged(confidence, failed)
    return np.sum(np.diff(caught, prepend=0) * caught / (caught + alarms)) / failed.sum()


def false_alarms(confidence, failed, share=0.95):
    """Smallest share of the others that is flagged where this share of the failures is."""
    caught, alarms = _flagged(confidence, failed)
    return min(alarms[caught >= share * failed.sum()]) / (~failed).sum()


def ranks(values):
    """Rank of each, ties sharing the mean of theirs."""
    return (values < values[:, None]).sum(1) + ((values == values[:, None]).sum(1) + 1) / 2


def correlation(x, y):
    x, y = (np.asarray(each, np.longdouble) for each in (x, y))
    x, y = (each - each[0] for each in (x, y))  # exact, also of numbers that differ in their last digits
    x, y = x - x.mean(), y - y.mean()
    return (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())


def cases(rng, n, *, levels=None, weighted=False):
    """Confidences, losses and weights; with few levels there are ties."""
    confidence = rng.integers(0, levels, n) / 4 if levels else rng.standard_normal(n)
    loss = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n))
    weights = np.where(rng.random(n) < 0.2, 0, rng.random(n)) if weighted else None
    if weighted:
        weights[rng.integers(n)] = 1
    return confidence, loss, weights
