"""Measure how often intervals contain the true value, for docs/results/selective.md.

Run ``python -m docs.results.scripts.interval_coverage PART [DATA]``, where PART is

- ``cases``: bootstrap intervals of an area and of a coverage, by case and by patient; eight minutes.
- ``rare``: bootstrap intervals of areas if failures are rare; eight minutes.
- ``real``: usual and conservative intervals of the AURC of real images.
- ``mean``: intervals of the mean Dice with few labelled cases; ten minutes.

The last two need DATA, which contains ``polyp/<set>/{masks,predictions}`` and
``busi-predictions/{masks,BCE_plain,dice_plain}``, 8-bit PNG files.

The true value is that of a population of a million cases. In the part ``mean`` the real images are the
population, from which cases are drawn with replacement.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

import segtrust as st
from segtrust.errors import SegtrustWarning

DRAWS = 1000
RESAMPLES = 999
TARGET = 0.10
RARE = ("ranked", "half ranked", "unranked", "confident", "binary")
BINS = (0, 1, 2, 5, 10, 20, 50, np.inf)


def write(line):
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def cases(rng, n, noise=0.15):
    """Draw losses of which a fifth are bad, and a confidence that knows them up to noise."""
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


def rare(kind, rate, rng, n):
    """Draw cases with a mean loss of 0.1, but for rare failures of 0.8; the kind says how these are ranked.

    The confidence knows each failure up to noise ("ranked"), half of the failures ("half ranked"), or none:
    they look like other cases ("unranked") or better ("confident"). Losses of "binary" are 0 or 1, and the
    confidence is random.
    """
    failed, usual, failure = rng.random(n) < rate, rng.beta(2, 18, n), rng.beta(8, 2, n)
    loss = np.where(failed, failure, usual)
    if kind == "binary":
        return rng.random(n), failed.astype(float)
    known = {
        "ranked": loss,
        "half ranked": np.where(failed & (rng.random(n) < 0.5), loss, usual),
        "unranked": usual,
        "confident": np.where(failed, 0.5 * usual, usual),
    }[kind]
    noise = {"ranked": 0.15, "half ranked": 0.1}.get(kind, 0.05)
    return -known + noise * rng.standard_normal(n), loss


def truth(draw, statistic):
    """Return the value in a population."""
    confidence, loss, *_ = draw(np.random.default_rng(1), 1_000_000)
    curve = st.risk_coverage_curve(confidence, loss)
    if statistic == "coverage":
        return curve.coverage_at_risk(TARGET) or 0.0
    return getattr(curve, statistic)


def intervals(draw, n, statistic, methods):
    """Return low, high and notable losses of each draw and method: an array (draws, methods, 3)."""
    rng, rows = np.random.default_rng(n), []
    asked = st.coverage_at_risk(TARGET) if statistic == "coverage" else statistic
    for seed in range(DRAWS):
        confidence, loss, *who = draw(rng, n)
        labels = {"patients": who[0]} if who else {}
        for method in methods:
            options = st.Bootstrap(resamples=RESAMPLES, method=method, seed=seed)
            found = st.bootstrap_interval(confidence, loss, asked, bootstrap=options, **labels)
            rows.append((found.low, found.high, found.notable_losses))
    return np.array(rows).reshape(DRAWS, len(methods), 3)


def describe(found, true):
    """Return the share of intervals that contain the true value, and their mean width, per method."""
    low, high = found[..., 0], found[..., 1]
    contained, width = ((low <= true) & (true <= high)).mean(0), (high - low).mean(0)
    return "  ".join(f"{share:.3f} ({size:.3f})" for share, size in zip(contained, width, strict=True))


def power(n, statistic):
    """Return the share of draws in which a clearly better estimator differs from a worse one at 5 %."""
    rng, hits = np.random.default_rng(n), 0
    asked = statistic if statistic == "aurc" else st.coverage_at_risk(TARGET)
    for seed in range(DRAWS):
        _, loss = cases(rng, n)
        better, worse = (-loss + noise * rng.standard_normal(n) for noise in (0.08, 0.25))
        options = st.Bootstrap(resamples=RESAMPLES, method="percentile", seed=seed)
        found = st.compare_estimators(better, worse, loss, statistic=asked, bootstrap=options)
        hits += found.p_value <= 0.05
    return hits / DRAWS


def measure_cases():
    """Print coverage and width of intervals by case and by patient, and the power of comparisons."""
    write("95 % intervals: share that contains the true value (mean width); BCa, percentile, conservative")
    for draw, sizes in ((cases, (30, 100, 300, 1000)), (patients, (20, 60, 200)), (uneven, (20, 60, 200))):
        for statistic in ("aurc", "coverage"):
            methods = ("bca", "percentile") + (("conservative",) if statistic == "aurc" else ())
            for n in sizes:
                found = describe(intervals(draw, n, statistic, methods), truth(draw, statistic))
                write(f"{draw.__name__:9} n = {n:5} {statistic:9} {found}")
    write("a better estimator differs from a worse one at 5 %")
    for statistic in ("aurc", "coverage"):
        for n in (30, 100, 300):
            write(f"n = {n:5} {statistic:9} {power(n, statistic):.3f}")


def measure_rare():
    """Print coverage and width of intervals if failures are rare, and the coverage by notable losses."""
    methods, pooled = ("bca", "percentile", "conservative"), []
    write("95 % intervals: share that contains the true value (mean width); BCa, percentile, conservative;")
    write("median of the notable losses, share of intervals marked as resting on few")
    for statistic, kinds in (("aurc", RARE), ("augrc", RARE[2:3]), ("e_aurc", RARE[2:3])):
        for kind in kinds:
            for rate in (0.02, 0.08):
                true = truth(partial(rare, kind, rate), statistic)
                for n in (30, 100, 500):
                    found = intervals(partial(rare, kind, rate), n, statistic, methods)
                    notable = found[:, 0, 2]
                    few = f"{np.median(notable):5.1f} {(notable < 20).mean():.2f}"
                    write(f"{statistic:7} {kind:11} {rate:.0%} n = {n:3}  {describe(found, true)}  {few}")
                    if statistic == "aurc":
                        contained = (found[:, :2, 0] <= true) & (true <= found[:, :2, 1])
                        pooled.append(np.column_stack([notable, contained]))
    pooled = np.concatenate(pooled)
    write("AURC, all draws above by notable losses: BCa, percentile, number of intervals")
    for low, high in pairwise(BINS):
        inside = pooled[(pooled[:, 0] >= low) & (pooled[:, 0] < high), 1:]
        if inside.size:
            write(f"{low:3} to {high:3}: {inside.mean(0).round(3)} {len(inside)}")


def smooth(rng, n):
    """Draw cases without failures: a Dice that scatters around a function of the confidence."""
    confidence = rng.beta(8, 2, n)
    return confidence, np.clip(confidence**1.5 + rng.normal(0, 0.25 * (1 - confidence) + 0.03), 0, 1)


def failing(rng, n):
    """Draw cases of which 3 % have a low Dice at a usual confidence."""
    confidence, dice = smooth(rng, n)
    return confidence, np.where(rng.random(n) < 0.03, rng.beta(2, 8, n), dice)


def drawn_from(confidence, dice, rng, n):
    """Draw cases from real ones, with replacement."""
    at = rng.integers(0, confidence.size, n)
    return confidence[at], dice[at]


def real_sets(data):
    """Return confidence (SDC) and Dice of polyps in and out of distribution, and of breast ultrasound."""
    from docs.results.scripts.watch_results import INSIDE, OUTSIDE, polyps, scores

    root = Path(data)
    found = {name: polyps(root / "polyp", sets) for name, sets in (("ID", INSIDE), ("OOD", OUTSIDE))}
    images = root / "busi-predictions"
    for name, folder in (("ultrasound", "BCE_plain"), ("ultrasound, second", "dice_plain")):
        found[name] = scores(images / folder, images / "masks")
    return found


def measure_real(data):
    """Print the usual and the conservative interval of the AURC of real images."""
    for name, (confidence, dice) in real_sets(data).items():
        for method in ("bca", "conservative"):
            options = st.Bootstrap(method=method)
            found = st.bootstrap_interval(confidence, dice=dice, bootstrap=options)
            write(f"{name}, {method}: {found}; notable losses {found.notable_losses:.1f}")


def measure_mean(data, draws=300):
    """Print how often the interval of the mean Dice contains that of the population and of the new cases."""
    real = real_sets(data)
    populations = {"smooth": smooth, "3 % failures": failing}
    populations |= {name: partial(drawn_from, *real[name]) for name in ("ID", "OOD", "ultrasound")}
    write(
        "95 % intervals of the mean Dice: share that contains the mean of the population, of the new cases;"
    )
    write("mean width; share withheld")
    for name, draw in populations.items():
        mean = real[name][1].mean() if name in real else draw(np.random.default_rng(1), 1_000_000)[1].mean()
        for n in (10, 20, 50, 200):
            for n_new in (50, 200):
                rng, rows = np.random.default_rng(n * 1000 + n_new), []
                for seed in range(draws):
                    estimator = st.MeanDiceEstimator(resamples=200, seed=seed).fit(*draw(rng, n))
                    confidence, dice = draw(rng, n_new)
                    found = estimator.estimate(confidence)
                    if not found.withheld:
                        hits = [found.lower <= each <= found.upper for each in (mean, dice.mean())]
                        rows.append([*hits, found.upper - found.lower])
                shares = " ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
                write(f"{name:12} n = {n:3} new {n_new:3}  {shares}  {1 - len(rows) / draws:.3f}")


def main() -> None:
    """Print the tables of one part."""
    warnings.simplefilter("ignore", SegtrustWarning)  # random rankings of few cases
    part, *data = sys.argv[1:]
    parts = {"cases": measure_cases, "rare": measure_rare, "real": measure_real, "mean": measure_mean}
    parts[part](*data)


if __name__ == "__main__":
    main()
