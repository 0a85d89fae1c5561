"""Slow, obvious twins of what the library computes: plain NumPy, written as in the paper.

Probabilities and sums are long doubles, so that the twin is the more exact of the two.
"""

from functools import cache
from itertools import product

import mpmath
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

LEVELS = {"b": 1, "u1": 255, "u2": 65535}
Exact = np.longdouble


def probabilities(p):
    """Foreground probabilities of an array: floats as they are, codes divided by the highest one."""
    p = np.asarray(p)
    levels = LEVELS.get("b" if p.dtype.kind == "b" else f"{p.dtype.kind}{p.dtype.itemsize}", 1)
    return (p.astype(np.float64) / levels).astype(Exact)


def mask_of(p, mask=None, threshold=0.5):
    """The mask as given, or ``p >= threshold``, floats compared in their own type as NumPy does."""
    if mask is not None:
        return np.asarray(mask) != 0
    p = np.asarray(p)
    return p >= threshold if p.dtype.kind == "f" else probabilities(p).astype(float) >= threshold


def close(found, reference, tolerance=1e-12):
    """Whether two numbers agree relatively; 0 agrees with nothing but 0."""
    return bool(np.abs(found - Exact(reference)) <= tolerance * np.abs(reference))


def logit_normal(shape, seed=0, mean=-3.0, spread=3.0):
    """Probabilities of a map whose logits are normal."""
    logits = np.random.default_rng(seed).normal(mean, spread, shape)
    return 1 / (1 + np.exp(-logits))


# Section 4: estimators


def sdc(p, y):
    p = probabilities(p)
    return 2 * (p * y).sum() / (p + y).sum() if y.any() else Exact(0)


def amsp(p):
    p = probabilities(p)
    return np.maximum(p, 1 - p).mean()


def apc(p, y):
    p = probabilities(p)
    return (p * y + (1 - p) * ~y).mean()


def entropies(p):
    p = probabilities(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = -((1 - p) * np.log1p(-p) / np.log(Exact(2)) + p * np.log2(p))
    return np.where((p == 0) | (p == 1), 0, u)


def ane(p):
    return ane_of(entropies(p))


def ane_of(u):
    return -u.mean()


def mmmc(p):
    return mmmc_of(entropies(p))


def mmmc_of(u):
    return -(np.median(u) + u.min()) / u.max() if u.any() else Exact(0)


def tla(p, tau):
    return tla_of(entropies(p), tau)


def tla_of(u, tau):
    return -u[u > tau].mean() if (u > tau).any() else Exact(0)


def tau_of(maps, masks):
    alpha = np.mean([y.mean() for y in masks])
    return np.quantile(np.concatenate([entropies(p).ravel() for p in maps]), 1 - alpha)


def pla(p, size=10):
    return pla_of(entropies(p), size)


def pla_of(u, size):
    sums = np.atleast_1d(u)
    for axis, length in enumerate(sums.shape):
        sums = sliding_window_view(sums, min(size, length), axis).sum(-1)
    return -sums.max()


# Section 5: expectations over the truth, and the bounds


def tversky(y, y_hat, alpha, beta):
    """TP / (TP + alpha FP + beta FN) along the last axis, 0 where nothing is true and predicted."""
    hits, false, missed = ((a * b).sum(-1) for a, b in ((y, y_hat), (1 - y, y_hat), (y, 1 - y_hat)))
    return np.divide(hits, hits + alpha * false + beta * missed, out=np.zeros(np.shape(hits)), where=hits > 0)


@cache
def all_truths(n):
    return np.array(list(product((0, 1), repeat=n)))


def truths_and_weights(p):
    """All 2ⁿ truths and the probability of each if pixels are independent."""
    p = probabilities(p).ravel()
    truths = all_truths(p.size)
    return truths, np.where(truths == 1, p, 1 - p).prod(-1)


def enumerated_tversky(p, y_hat, alpha=0.5, beta=0.5):
    truths, weights = truths_and_weights(p)
    return (weights * tversky(truths, y_hat.ravel().astype(int), alpha, beta)).sum()


def full_posterior(q, y_hat):
    """IDC(x) of section 6: the truth is never empty, and the other truths share its probability."""
    truths, weights = truths_and_weights(q)
    weights = np.where(truths.any(-1), weights, 0)
    return (weights * tversky(truths, y_hat.ravel().astype(int), 0.5, 0.5)).sum() / weights.sum()


def poisson_binomial(p):
    """Probability of each number of true pixels, pixel by pixel."""
    counts = np.zeros(p.size + 1, Exact)
    counts[0] = 1
    for done, q in enumerate(p.ravel()):
        more = counts[: done + 1] * q
        counts[: done + 1] *= 1 - q
        counts[1 : done + 2] += more
    return counts


def counted_tversky(p, y_hat, alpha=0.5, beta=0.5):
    """Expected Tversky index from the distributions of the counts on both sides of the mask."""
    p = probabilities(p)
    k = np.count_nonzero(y_hat)
    inside, outside = poisson_binomial(p[y_hat])[1:], poisson_binomial(p[~y_hat])
    hits, missed = np.flatnonzero(_counts(inside)) + 1, np.flatnonzero(_counts(outside))
    places = hits.astype(Exact)[:, None]
    scores = places / (places + Exact(alpha) * (k - places) + Exact(beta) * missed)
    return inside[hits - 1] @ (scores @ outside[missed])


def _counts(chances):
    """Whether a number of true pixels adds anything: not where it is 1e-30 times as probable as another."""
    return chances > 1e-30 * chances.max(initial=0)


def expected_by_size(p):
    """Expected Dice of the mask of the k largest, for k from 1 to n, from the distributions of the counts."""
    p = np.sort(np.asarray(p, np.float64))[::-1]
    inside, outside = _of_the_first(p), _of_the_first(p[::-1])[::-1]
    return np.array([dice_of_counts(inside[k], outside[k], k) for k in range(1, p.size + 1)])


def _of_the_first(p):
    """Distributions of the numbers of true pixels among the first 0, 1, … n."""
    found = [np.ones(1)]
    for each in p:
        found.append(np.convolve(found[-1], [1.0 - each, each]))
    return found


def dice_of_counts(inside, outside, k):
    hits, misses = np.arange(inside.size)[:, None], np.arange(outside.size)[None, :]
    return 2.0 * inside @ (hits / (k + hits + misses)) @ outside


def integrated_dice(p, y_hat):
    """IDC of a map of any size that has at most a few thousand different probabilities."""
    p = probabilities(p)
    return integrated_dice_of(*(np.unique(part, return_counts=True) for part in (p[y_hat], p[~y_hat])))


def integrated_dice_of(inside, outside):
    """IDC = 2 ∫ tᵏ G₁'(t) G₀(t) dt with t = exp(-x / M), by Gauss-Legendre; for M = k + Σp of 100 and more.

    Each side of the mask is given by its different probabilities and the number of pixels that have them.
    """
    (p1, n1), (p0, n0) = inside, outside
    k = n1.sum()
    scale = k + (n1 * p1).sum() + (n0 * p0).sum()
    x, weights = gauss_legendre(0, 70, panels=7)
    t, u = np.exp(-x / scale)[:, None], -np.expm1(-x / scale)[:, None]
    logarithm = -k * x / scale + (n1 * np.log1p(-u * p1)).sum(1) + (n0 * np.log1p(-u * p0)).sum(1)
    slope = (n1 * p1 / (1 - u * p1)).sum(1)
    return 2 * (weights * np.exp(logarithm) * slope * t[:, 0]).sum() / scale


def gauss_legendre(start, stop, panels):
    nodes, weights = (each.astype(Exact) for each in np.polynomial.legendre.leggauss(24))
    half = Exact(stop - start) / panels / 2
    middles = start + half * (2 * np.arange(panels) + 1)
    return (middles[:, None] + half * nodes).ravel(), np.tile(half * weights, panels)


def idc(p, y_hat):
    """Ideal Dice confidence by whichever twin suits the size."""
    if p.size <= 12:
        return enumerated_tversky(p, y_hat)
    return counted_tversky(p, y_hat) if p.size <= 5000 else integrated_dice(p, y_hat)


def scores(p, y_hat, tau, size):
    """What every estimator gives."""
    u = entropies(p)
    return {
        "sdc": sdc(p, y_hat),
        "idc": idc(p, y_hat),
        "amsp": amsp(p),
        "apc": apc(p, y_hat),
        "ane": ane_of(u),
        "mmmc": mmmc_of(u),
        "tla": tla_of(u, tau),
        "pla": pla_of(u, size),
    }


def lower_bound(k, mu, lam):
    return (k + k * mu + lam) / (k + 1 + (k - 1) * mu + lam)


def upper_bound(k, mu, lam):
    """The Poisson series of Theorem 1."""
    c = k + k * Exact(mu)
    counts, weights = _poisson(lam)
    return (weights * (c + lam) / (c + counts)).sum()


def _poisson(lam):
    """Numbers that a Poisson variable may have, and the probability of each."""
    lam = Exact(lam)
    counts = np.arange(int(lam + 20 * np.sqrt(lam)) + 60)
    return counts, np.exp(-lam) * np.cumprod(np.append(Exact(1), lam / counts[1:]))


def upper_bound_excess(c, lam):
    """b_U - 1 = lam E[1 / ((c + W)(c + W + 1))], in which nothing cancels."""
    c, (counts, weights) = Exact(c), _poisson(lam)
    return Exact(lam) * (weights / ((c + counts) * (c + counts + 1))).sum()


def upper_bound_excess_by_theorem(c, lam):
    """b_U - 1 as the paper writes it: the Poisson series, in enough digits to subtract 1."""
    with mpmath.workdps(70):
        c, lam = mpmath.mpf(c), mpmath.mpf(lam)
        weight, total, i = mpmath.exp(-lam), mpmath.mpf(0), 0
        while i < lam or weight > mpmath.eps:
            total += weight * (c + lam) / (c + i)
            i += 1
            weight *= lam / i
        return total - 1
