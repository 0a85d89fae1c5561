"""How often equal estimators are told apart: the figures of docs/design/selective.md.

Run ``python -m docs.results.scripts.paired_tests``; a few minutes. Two kinds of equal estimators are drawn:
interchangeable ones (the negative loss with noise of the same size), and ones of equal AURC that err
differently (noise everywhere against a confidence that is perfect but for a share of cases, where it knows
nothing).
"""

from __future__ import annotations

import numpy as np

import segtrust as st
from segtrust.selective.bootstrap import Sample, get_statistic
from segtrust.selective.compare import shift_p_value, sign_flip_p_value

DRAWS = 2000
LEVEL = 0.05
SHARE = 0.2428  # of cases without a clue, at which both AURCs are 0.0942 in 100,000 cases


def losses(rng, n):
    """Draw losses of which a fifth are bad."""
    return np.where(rng.random(n) < 0.8, rng.beta(2, 18, n), rng.beta(4, 4, n))


def noisy(rng, loss):
    """Err a little everywhere."""
    return -loss + 0.15 * rng.standard_normal(loss.size)


def clueless_at_times(rng, loss):
    """Err rarely and grossly."""
    return np.where(rng.random(loss.size) < SHARE, rng.permutation(-loss), -loss)


def rejections(other, n):
    """Whether sign flips, shifting, the larger of both, percentile and BCa intervals see a difference."""
    rng = np.random.default_rng(n)
    for seed in range(DRAWS):
        loss = losses(rng, n)
        a, b = noisy(rng, loss), other(rng, loss)
        plan = st.Bootstrap(resamples=999, method="percentile", seed=seed)
        found = st.compare_estimators(a, b, loss, bootstrap=plan)
        skewed = st.compare_estimators(a, b, loss, bootstrap=st.Bootstrap(resamples=999, seed=seed))
        resamples = Sample.of(loss, n).resamples(get_statistic("aurc"), [(1.0, a), (-1.0, b)])
        flips = sign_flip_p_value(resamples, found.difference, plan)
        p_values = flips, shift_p_value(resamples.drawn(plan.states()), found.difference), found.p_value
        outside = [not each.low <= 0.0 <= each.high for each in (found, skewed)]
        yield [*(p <= LEVEL for p in p_values), *outside]


def covered(n, truth):
    """Whether BCa and percentile intervals of one AURC hold the truth."""
    rng = np.random.default_rng(n)
    for seed in range(DRAWS):
        loss = losses(rng, n)
        plans = (st.Bootstrap(resamples=999, method=method, seed=seed) for method in ("bca", "percentile"))
        confidence = noisy(rng, loss)
        found = [st.bootstrap_interval(confidence, loss, bootstrap=plan) for plan in plans]
        yield [each.low <= truth <= each.high for each in found]


def large_area():
    """AURC of a million cases."""
    rng = np.random.default_rng(99)
    loss = losses(rng, 10**6)
    return st.risk_coverage_curve(noisy(rng, loss), loss).aurc


if __name__ == "__main__":
    truth = large_area()
    for n in (30, 100, 300):
        print("one AURC", n, np.mean(list(covered(n, truth)), axis=0))  # noqa: T201
    for name, other in (("interchangeable", noisy), ("equal AURC", clueless_at_times)):
        for n in (30, 100, 300, 1000):
            print(name, n, np.mean(list(rejections(other, n)), axis=0))  # noqa: T201
