"""Print how often guarantees at δ = 0.05 are broken if a rule of certification is not kept.

Run it with ``python -m docs.results.scripts.certify_misuse``; it takes a few seconds.
"""

# ruff: noqa: T201

import numpy as np

import segtrust as st
from segtrust.paper.validity import dice_population
from segtrust.selective import find_threshold


def read_off(n, draws=2000):
    """Return the share of draws in which a threshold read off the calibration curve is above its target."""
    population, target = dice_population(), 0.10
    true_risks = population.true_risks(st.Target(target))
    broken = 0
    for draw in range(draws):
        confidence, loss = population.draw(np.random.default_rng([draw, n]), n)
        order = np.argsort(-confidence)
        risks = np.cumsum(loss[order]) / np.arange(1, n + 1)
        kept = np.flatnonzero(risks <= target)
        if kept.size:
            threshold = confidence[order][kept[-1]]
            broken += true_risks[population.accepted(threshold) - 1] > target
    return broken / draws


def copied(images=20, copies=15, draws=1000):
    """Return the share of draws in which copies certify a population whose risk is just above the target."""
    rng, broken = np.random.default_rng(0), 0
    for draw in range(draws):
        loss = np.repeat((rng.random(images) < 0.101) * 1.0, copies)
        cases = st.CalibrationCases(np.repeat(rng.random(images), copies), loss)
        found = find_threshold(cases, st.Target(0.10), 0.05, st.Procedure(seed=draw))
        broken += found.threshold is not None
    return broken / draws


def best_of_starts(starts, draws=3000, n=100):
    """Return the share of draws in which the best of several starts certifies a risk above the target."""
    broken = 0
    for draw in range(draws):
        rng = np.random.default_rng([9, draw])
        loss = (rng.random(n) < 0.2001) * 1.0
        cases = st.CalibrationCases(rng.random(n), loss)
        tries = (st.Procedure(start_coverages=(start,)) for start in starts)
        broken += any(
            find_threshold(cases, st.Target(0.2), 0.05, each).threshold is not None for each in tries
        )
    return broken / draws


def main():
    """Print all shares."""
    for n in (100, 300, 1000):
        print(f"threshold read off the curve of {n} cases: {read_off(n):.1%}")
    print(f"20 images, 15 copies of each: {copied():.1%}")
    print(f"one start: {best_of_starts((0.5,)):.1%}; best of three: {best_of_starts((0.5, 0.3, 0.8)):.1%}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", st.errors.SegtrustWarning)  # confidences that know nothing
    main()
