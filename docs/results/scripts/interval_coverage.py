"""How often bootstrap intervals hold the truth with few cases, for docs/how-to/compare-estimators.md.

Run ``python -m docs.results.scripts.interval_coverage``; five minutes. Losses of which a fifth are bad, a
confidence that errs a little everywhere, and a population of a million that gives the truth. Cases of a
patient resemble each other: four a patient, or one to twenty that are nearly alike.
"""

from __future__ import annotations

import sys

import numpy as np

import segtrust as st

DRAWS = 1000
RESAMPLES = 999
TARGET = 0.10
METHODS = ("bca", "percentile")


def cases(rng, n, noise=0.15):
    """Draw losses, and a confidence that knows them up to noise."""
    loss = np.where(rng.random(n) < 0.8, rng.beta(2, 18, n), rng.beta(4, 4, n))
    return -loss + noise * rng.standard_normal(n), loss


def patients(rng, n, each=4):
    """Draw patients with several cases that resemble each other."""
    hard = np.repeat(rng.random(n) < 0.2, each)
    own = np.repeat(rng.beta(2, 4, n), each)
    loss = np.where(hard, 0.3 + 0.7 * own, 0.2 * own) * rng.beta(9, 1, n * each)
    error = 0.10 * np.repeat(rng.standard_normal(n), each) + 0.10 * rng.standard_normal(n * each)
    return -loss + error, loss, np.repeat(np.arange(n), each)


def uneven(rng, n):
    """Draw patients of 1 to 20 cases that are nearly alike, one in ten of them hard."""
    sizes = rng.integers(1, 21, n)
    hard, own, error = rng.random(n) < 0.1, rng.beta(2, 4, n), 0.15 * rng.standard_normal(n)
    loss = np.repeat(np.where(hard, 0.3 + 0.7 * own, 0.1 * own), sizes) * rng.beta(30, 1, sizes.sum())
    return -loss + np.repeat(error, sizes), loss, np.repeat(np.arange(n), sizes)


def truth(draw, statistic):
    """Value in a population."""
    confidence, loss, *_ = draw(np.random.default_rng(1), 1_000_000)
    curve = st.risk_coverage_curve(confidence, loss)
    return curve.aurc if statistic == "aurc" else curve.coverage_at_risk(TARGET)


def held(draw, n, statistic):
    """Give the share of draws in which each method's interval holds the truth."""
    rng, true, hits = np.random.default_rng(n), truth(draw, statistic), np.zeros(2)
    asked = statistic if statistic == "aurc" else st.coverage_at_risk(TARGET)
    for seed in range(DRAWS):
        confidence, loss, *who = draw(rng, n)
        for at, method in enumerate(METHODS):
            plan = st.Bootstrap(resamples=RESAMPLES, method=method, seed=seed)
            labels = {"patients": who[0]} if who else {}
            found = st.bootstrap_interval(confidence, loss, asked, bootstrap=plan, **labels)
            hits[at] += found.low <= true <= found.high
    return hits / DRAWS


def power(n, statistic):
    """Give the share of draws in which a clearly better estimator is told from a worse one."""
    rng, hits = np.random.default_rng(n), 0
    asked = statistic if statistic == "aurc" else st.coverage_at_risk(TARGET)
    for seed in range(DRAWS):
        _, loss = cases(rng, n)
        better, worse = (-loss + noise * rng.standard_normal(n) for noise in (0.08, 0.25))
        plan = st.Bootstrap(resamples=RESAMPLES, method="percentile", seed=seed)
        hits += st.compare_estimators(better, worse, loss, statistic=asked, bootstrap=plan).p_value <= 0.05
    return hits / DRAWS


def main() -> None:
    """Print the tables."""
    write = sys.stdout.write
    write("95 % intervals hold the truth        BCa   percentile\n")
    for draw, sizes in ((cases, (30, 100, 300, 1000)), (patients, (20, 60, 200)), (uneven, (20, 60, 200))):
        for statistic in ("aurc", "coverage at risk"):
            for n in sizes:
                share = held(draw, n, statistic)
                write(f"{draw.__name__:9} n = {n:5} {statistic:18} {share[0]:.3f} {share[1]:.3f}\n")
    write("a better estimator is told from a worse one at 5 %\n")
    for statistic in ("aurc", "coverage at risk"):
        for n in (30, 100, 300):
            write(f"n = {n:5} {statistic:18} {power(n, statistic):.3f}\n")


if __name__ == "__main__":
    main()
