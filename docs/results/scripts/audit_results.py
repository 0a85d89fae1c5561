"""Print what docs/results/audit.md reports: error rates, widths and delays of audits of accepted cases.

Run ``python -m docs.results.scripts.audit_results``; about one minute. No data are needed. The error rates
of many streams use the bets of `AuditBound` at the true mean only, which decide whether it errs; they are
compared with `AuditBound` itself on the first streams.
"""

# ruff: noqa: T201

import numpy as np
from scipy.stats import beta, binom

import segtrust as st
from segtrust.selective.audit import _LOWER_STAKES, _UPPER_STAKES, _factors

STREAMS, CASES, AT_ONCE = 20_000, 500, 500
LOOKS = (50, 100, 200, 500)
LEVEL = 0.05
POPULATIONS = {
    "failures, 2 %": (0.02, lambda rng, shape: (rng.random(shape) < 0.02) * 1.0),
    "failures, 10 %": (0.10, lambda rng, shape: (rng.random(shape) < 0.10) * 1.0),
    "beta(1, 9) losses": (0.10, lambda rng, shape: rng.beta(1, 9, shape)),
    "beta(0.2, 1.8) losses": (0.10, lambda rng, shape: rng.beta(0.2, 1.8, shape)),
    "constant loss 0.1": (0.10, lambda rng, shape: np.full(shape, 0.10)),
}


def first_time(values, mean, stakes):
    """Return for each stream after how many cases the bets rule out the mean; infinity if never."""
    with np.errstate(over="ignore"):  # of streams that have long been decided
        passed = np.cumprod(_factors(values, mean, stakes), axis=1).mean(axis=2) >= 1.0 / LEVEL
    return np.where(passed.any(axis=1), 1 + passed.argmax(axis=1), np.inf)


def error_rates(mean, draw):
    """Return how often the upper bound ever falls below the mean, and a target equal to it ever alarms."""
    errors = np.zeros(2)
    for seed in range(STREAMS // AT_ONCE):
        losses = draw(np.random.default_rng(seed), (AT_ONCE, CASES))
        low = np.isfinite(first_time(losses, mean, _UPPER_STAKES))
        alarms = first_time(1.0 - losses, 1.0 - mean, _LOWER_STAKES)
        errors += low.sum(), np.isfinite(alarms).sum()
        if seed == 0:  # the same answers as the class gives
            for stream, is_low, alarm in zip(losses[:10], low, alarms, strict=False):
                audit = st.AuditBound(mean)
                audit.extend(stream)
                assert audit.confirmed == is_low
                assert (audit.state.alarmed_at or np.inf) == alarm
    return errors / STREAMS


def repeated_clopper_pearson(rate):
    """Return how often a 95 % bound for a fixed number of cases is ever below the rate, if repeated."""
    n = np.arange(1, CASES + 1)
    fewest = binom.ppf(LEVEL, n, rate)  # the bound is below the rate for fewer failures
    fewest = np.where(binom.cdf(fewest, n, rate) < LEVEL, fewest + 1, fewest)
    rng = np.random.default_rng(0)
    failures = np.cumsum(rng.random((STREAMS, CASES), np.float32) < rate, axis=1, dtype=np.int16)
    return (failures < fewest).any(axis=1).mean()


def finite_populations(draws=1000, size=100):
    """Return how often the bounds on the mean of a batch, audited to the end, are ever wrong."""
    below = above = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        batch = np.repeat([1.0, 0.0], [10, size - 10])
        audit = st.AuditBound(0.10, population=size)
        audit.extend(rng.permutation(batch))
        states = audit.history[:-1]
        below += min(state.upper for state in states) < 0.10
        above += max(state.lower for state in states) >= 0.10
    return below / draws, above / draws


def widths(mean, draw, streams=100):
    """Return the mean upper bound at each look: of the audit, of Clopper-Pearson, and of Hoeffding."""
    found = []
    for seed in range(streams):
        losses = draw(np.random.default_rng(seed), CASES)
        audit = st.AuditBound()
        audit.extend(losses)
        for n in LOOKS:
            seen = losses[:n]
            is_rate = np.isin(losses, (0, 1)).all()
            exact = beta.ppf(1.0 - LEVEL, seen.sum() + 1, n - seen.sum()) if is_rate else np.nan
            hoeffding = seen.mean() + np.sqrt(-np.log(LEVEL) / (2 * n))
            found.append([audit.history[n - 1].upper, exact, hoeffding])
    return np.reshape(found, (streams, len(LOOKS), 3)).mean(axis=0)


def delays(target, factor=2.0, streams=2000, cases=3000):
    """Return after how many cases half and 90 % of the streams alarm, and the share that does by 500."""
    at = []
    for seed in range(streams // 100):
        losses = (np.random.default_rng(seed).random((100, cases)) < factor * target) * 1.0
        at.append(first_time(1.0 - losses, 1.0 - target, _LOWER_STAKES))
    at = np.concatenate(at)
    return *np.quantile(at, [0.5, 0.9], method="inverted_cdf"), (at <= CASES).mean()


def main():
    """Print all tables."""
    print(f"{STREAMS} streams of {CASES}: upper bound ever below the mean; false alarm ever")
    for name, (mean, draw) in POPULATIONS.items():
        print(f"  {name}: {error_rates(mean, draw)}", flush=True)
    for rate in (0.02, 0.10):
        print(
            f"  Clopper-Pearson after every case, {rate:.0%}: {repeated_clopper_pearson(rate):.4f}",
            flush=True,
        )
    print("1,000 batches of 100 with 10 failures, without replacement:", finite_populations(), flush=True)
    print(f"upper bound (audit, Clopper-Pearson, Hoeffding) at n = {LOOKS}")
    for name, (mean, draw) in POPULATIONS.items():
        print(f"  {name}:", *widths(mean, draw).round(4).tolist(), flush=True)
    print("failure rate of twice the target: median delay, 90 % quantile, share by 500")
    for target in (0.02, 0.05, 0.10, 0.20):
        print(f"  target {target:.0%}:", *delays(target), flush=True)
    print("plans, 90 % power")
    for target, expected in ((0.10, 0.02), (0.10, 0.04), (0.10, 0.06), (0.05, 0.01), (0.05, 0.02)):
        print(" ", st.audit_plan(st.Target(target, below_dice=0.8), expected), flush=True)
    print(" ", st.audit_plan(0.10, 0.06))


if __name__ == "__main__":
    main()
