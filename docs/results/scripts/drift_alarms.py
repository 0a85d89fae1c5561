"""Measure false alarms and delays of the drift checks, for docs/results/drift.md.

Run ``python -m docs.results.scripts.drift_alarms [DATA]``; ten minutes. DATA contains
``polyp/<set>/{masks,predictions}``, 8-bit PNG files; without it the delays on real maps are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import stats

import segtrust as st

ALPHA = 0.05
QUICK = {"alpha": ALPHA, "permutations": 199}


def untied(rng, n):
    """Draw confidences without ties."""
    return rng.beta(8, 2, n)


def tied(rng, n):
    """Draw confidences of one decimal, of which a tenth are 0, as those of empty masks are."""
    return np.where(rng.random(n) < 0.1, 0.0, rng.beta(8, 2, n).round(1))


def write(text, hits, draws):
    """Print a share with its 95 % interval (Clopper and Pearson)."""
    low, high = stats.binomtest(int(hits), draws).proportion_ci()
    sys.stdout.write(f"{text}: {hits / draws:.1%} ({low:.1%} to {high:.1%}) of {draws}\n")
    sys.stdout.flush()


def one_batch(draws=2000):
    """Print how often a test alarms on one batch if nothing has changed."""
    for draw in (untied, tied):
        for reference in (50, 200, 1000):
            for batch in (10, 50, 200):
                rng = np.random.default_rng(reference + batch)
                hits = sum(
                    st.drift_test(
                        reference=draw(rng, reference), new=draw(rng, batch), **QUICK, seed=seed
                    ).alarm
                    for seed in range(draws)
                )
                write(f"one test per batch, {draw.__name__}, {reference} reference, {batch} new", hits, draws)


def repeated(draws=500, every=20, cases=500):
    """Print how often a test that is repeated as the table grows alarms at some look."""
    for draw in (untied, tied):
        hits = np.zeros(cases // every)
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            reference, new = draw(rng, 200), draw(rng, cases)
            looks = range(every, cases + 1, every)
            alarms = [
                st.drift_test(reference=reference, new=new[:n], **QUICK, seed=seed).alarm for n in looks
            ]
            hits += np.maximum.accumulate(alarms)
        for looks in (1, 5, 10, hits.size):
            write(
                f"test repeated every {every} cases, {draw.__name__}, {looks} looks", hits[looks - 1], draws
            )


def streams(cases=1000):
    """Print how often the martingale has alarmed within a stream in which nothing has changed."""
    for draw, n_reference, draws in ((untied, 200, 1000), (tied, 200, 1000), (untied, 50, 500)):
        alarmed_at = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            watch = st.ExchangeabilityMartingale(draw(rng, n_reference), alpha=ALPHA, seed=seed)
            alarmed_at.append(watch.extend(draw(rng, cases)).alarmed_at or np.inf)
        for n in (100, 300, cases):
            text = f"martingale, {draw.__name__}, {n_reference} reference, {n} cases"
            write(text, np.count_nonzero(np.array(alarmed_at) <= n), draws)


def polyps_from_elsewhere(data, draws=500):
    """Print how often and how soon images of other hospitals are noticed."""
    from docs.results.scripts.watch_results import INSIDE, OUTSIDE, polyps

    (inside, _), (outside, _) = (polyps(Path(data) / "polyp", sets) for sets in (INSIDE, OUTSIDE))
    for batch in (10, 20, 50, 100):
        rng = np.random.default_rng(batch)
        hits = sum(
            st.drift_test(reference=inside, new=rng.permutation(outside)[:batch], **QUICK, seed=seed).alarm
            for seed in range(draws)
        )
        write(f"one test, {inside.size} images in distribution, {batch} out of it", hits, draws)
    for quiet in (0, 41):
        delays = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            known, arriving = np.split(rng.permutation(inside), [inside.size - quiet])
            watch = st.ExchangeabilityMartingale(known, alpha=ALPHA, seed=seed)
            if not watch.extend(arriving).alarm:
                at = watch.extend(rng.permutation(outside)[:200]).alarmed_at
                delays.append(np.inf if at is None else at - quiet)
        delays = np.array(delays)
        median, slowest = np.median(delays), np.quantile(delays, 0.9, method="higher")
        delay = f"half by image {median:.0f}, 90 % by {slowest:.0f}"
        text = f"martingale, {quiet} images in distribution first, {delay}, within 200"
        write(text, np.count_nonzero(np.isfinite(delays)), delays.size)


def main() -> None:
    """Print all tables."""
    one_batch()
    repeated()
    streams()
    for data in sys.argv[1:]:
        polyps_from_elsewhere(data)


if __name__ == "__main__":
    main()
