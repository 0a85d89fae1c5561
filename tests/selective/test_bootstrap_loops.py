"""Resampling loops, compared with curves of repeated cases and with published random generators."""

from itertools import count, product

import numpy as np
import pytest
from scipy import stats

from segtrust._compile import use_threads
from segtrust.selective import bootstrap, coverage_at_risk, risk_coverage_curve
from segtrust.selective.bootstrap import Sample, get_statistic
from segtrust.selective.bootstrap_loops import LANES, MANY_UNITS, TURNS, leave_out, new_workspace, resample
from tests.selective import brute

STATISTICS = ("aurc", "augrc", coverage_at_risk(0.3))


def statistic_of(statistic, confidence, loss, weights):
    curve = risk_coverage_curve(confidence, loss, weights=weights)
    if statistic == "aurc":
        return curve.aurc
    return curve.augrc if statistic == "augrc" else curve.coverage_at_risk(0.3) or 0.0


def drawn_counts(states, units, turn=0):
    """How often each unit is drawn in one group of resamples, as the loop leaves it in its memory."""
    sample = Sample.of(np.ones(units), units)
    resamples = sample.resamples(get_statistic("aurc"), [(1.0, np.arange(units, dtype=float))])
    space = new_workspace(units)
    used = states[: (turn + 1) * LANES]
    resample(used, resamples.rankings[0][1], resamples.kind, resamples.limit, space, np.empty(used.size))
    return space.counts[space.labels].astype(int)


def states_of(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize("clustered", [False, True])
def test_each_resample_is_the_curve_of_the_drawn_cases(statistic, clustered):
    rng = np.random.default_rng(4)
    for n, levels, weighted in product((2, 5, 9, 30), (None, 3), (False, True)):
        confidence, loss, _ = brute.cases(rng, n, levels=levels)
        patients = np.arange(n) // 3 if clustered and n > 3 else None
        weights = rng.random(n) + 0.1 if weighted else np.ones(n)
        sample = Sample.of(loss, n, patients, weights)
        resamples = sample.resamples(get_statistic(statistic), [(1.0, confidence)])
        states = states_of(LANES, n)
        counts = drawn_counts(states, sample.units)[sample.unit]
        expected = [statistic_of(statistic, confidence, loss, weights * times) for times in counts.T]
        np.testing.assert_allclose(resamples.drawn(states), expected, atol=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize("levels", [None, 5])
def test_leaving_out_is_the_curve_of_the_others(statistic, levels):
    rng = np.random.default_rng(5)
    confidence, loss, _ = brute.cases(rng, 100, levels=levels)
    patients = rng.integers(0, 80, 100)
    sample = Sample.of(loss, 100, patients)
    groups = np.arange(sample.units) % 40
    values = sample.resamples(get_statistic(statistic), [(1.0, confidence)]).left_out(groups)
    kept = [groups[sample.unit] != group for group in range(40)]
    expected = [statistic_of(statistic, confidence[k], loss[k], np.ones(k.sum())) for k in kept]
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("units", [3, 1000, 65_535, 65_536])
def test_as_many_draws_as_units(units):
    counts = drawn_counts(states_of(LANES), units)
    np.testing.assert_array_equal(counts.sum(axis=0), units)


def scrambled(state):
    """SplitMix64, in whole numbers of Python."""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def words_after(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield scrambled(state)


def numbers_of(words, units, bits=16):
    """One random number per unit, from parts of random words."""
    needed = [next(words) for _ in range(-(-units * bits // 64))]
    return [word >> shift & (2**bits - 1) for word in needed for shift in range(0, 64, bits)][:units]


def is_rejected(number, units, bits=16):
    """Whether a unit would be more likely than others if this number were accepted."""
    return number * units % 2**bits < 2**bits % units


def drawn_plainly(state, units, bits=16):
    """Units drawn by Lemire's method from parts of random words; rejected draws are repeated at the end."""
    words, counts = words_after(int(state)), [0] * units
    rejected = 0
    for number in numbers_of(words, units, bits):
        if is_rejected(number, units, bits):
            rejected += 1
        else:
            counts[number * units >> bits] += 1
    while rejected:
        product = (next(words) >> 32) * units
        if product % 2**32 >= 2**32 % units:
            counts[product >> 32] += 1
            rejected -= 1
    return counts


@pytest.mark.parametrize("units", [2, 5, 60, 250])
def test_draws_are_those_of_the_published_methods(units):
    """So the same seed gives the same interval in each release."""
    states = states_of(LANES, seed=units)
    counts = drawn_counts(states, units)
    np.testing.assert_array_equal(counts.T, [drawn_plainly(state, units) for state in states])


def unscrambled(word):
    """Return the state whose random word in SplitMix64 is this one."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        word ^= word >> shift ^ word >> 2 * shift
        word = word * pow(factor, -1, 2**64) % 2**64
    return word


def state_before(word, steps):
    return (unscrambled(word) - steps * 0x9E3779B97F4A7C15) % 2**64


@pytest.mark.parametrize("rest", [0, 15, 16, 41, 42, 46])
def test_repeated_draws_are_rejected_by_the_published_method(rest):
    """Of 47 draws one is rejected, and the next word leaves a rest that is rejected (below 42) or not."""
    units, words = 47, 12
    upper = rest * pow(units, -1, 2**32) % 2**32
    states = (state_before(upper << 32 | lower, words + 1) for lower in count())
    state = next(
        state
        for state in states
        if any(is_rejected(number, units) for number in numbers_of(words_after(state), units))
    )
    counts = drawn_counts(np.array([state], np.uint64), units)
    np.testing.assert_array_equal(counts[:, 0], drawn_plainly(state, units))


def shuffled_plainly(state, n):
    """Fisher and Yates, from the last place to the first."""
    words, labels = words_after(int(state)), list(range(n))
    for at in range(n - 1, 0, -1):
        product = (next(words) >> 32) * (at + 1)
        while product % 2**32 < 2**32 % (at + 1):
            product = (next(words) >> 32) * (at + 1)
        other = product >> 32
        labels[at], labels[other] = labels[other], labels[at]
    return labels


def test_relabelled_draws_are_shuffled_by_the_published_method():
    states = states_of(2 * LANES)
    first, second = (drawn_counts(states, MANY_UNITS, turn) for turn in (0, 1))
    np.testing.assert_array_equal(second, first[shuffled_plainly(~states[LANES], MANY_UNITS)])


def test_many_units_are_drawn_from_longer_numbers():
    states = states_of(LANES)
    counts = drawn_counts(states, 70_000)
    np.testing.assert_array_equal(counts[:, 5], drawn_plainly(states[5], 70_000, bits=32))


@pytest.mark.parametrize(("units", "turn"), [(2, 0), (7, 0), (100, 0), (MANY_UNITS, 0), (MANY_UNITS, 1)])
def test_units_are_equally_likely_and_counts_binomial(units, turn):
    counts = np.hstack([drawn_counts(states_of(TURNS * LANES, seed), units, turn) for seed in range(150)])
    assert stats.chisquare(counts.sum(axis=1)).pvalue > 1e-3
    expected = stats.binom(units, 1 / units).pmf(np.arange(units + 1)) * counts.size
    seen = np.bincount(counts.ravel(), minlength=units + 1)[: units + 1]
    large = expected > 50
    spread = (seen - expected)[large] / np.sqrt(expected[large])
    assert np.abs(spread).max() < 5


def test_resamples_are_uncorrelated():
    """Within a group, and with the groups whose counts are relabelled; after `TURNS` groups they are new."""
    states = states_of((TURNS + 1) * LANES)
    for turn in range(1, TURNS + 1):
        both = np.hstack([drawn_counts(states, 1000), drawn_counts(states, 1000, turn)])
        correlations = np.corrcoef(both.T)[np.triu_indices(2 * LANES, 1)]
        assert np.abs(correlations).max() < 5 / np.sqrt(1000)


def test_one_resample_of_many_units():
    """The first group is drawn; it is not a relabelling of whatever the memory contained."""
    states = states_of(1)
    counts = drawn_counts(states, MANY_UNITS)
    np.testing.assert_array_equal(counts[:, 0], drawn_plainly(states[0], MANY_UNITS))


def test_five_units_are_drawn_again_for_each_group():
    states = states_of(LANES + 1)
    counts = drawn_counts(states, 5, turn=1)
    np.testing.assert_array_equal(counts[:, 0], drawn_plainly(states[LANES], 5))


def test_only_many_units_share_counts():
    states = states_of(2 * LANES)
    first, second = (np.sort(drawn_counts(states, MANY_UNITS - 1, turn), axis=0) for turn in (0, 1))
    assert (first != second).any()
    first, second = (np.sort(drawn_counts(states, MANY_UNITS, turn), axis=0) for turn in (0, 1))
    assert (first == second).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [MANY_UNITS, 1000])
def test_relabelled_draws_are_worth_as_much_as_new_ones(n):
    """Quantiles of 1024 resamples vary no more than those of 1024 resamples that share nothing."""
    rng = np.random.default_rng(0)
    loss = rng.beta(2, 8, n)
    confidence = -loss + 0.1 * rng.standard_normal(n)
    resamples = Sample.of(loss, n).resamples(get_statistic("aurc"), [(1.0, confidence)])
    shared, apart = [], []
    for seed in range(300):
        shared.append(np.quantile(resamples.drawn(states_of(1024, seed)), [0.025, 0.975]))
        groups = np.split(states_of(1024, 1000 + seed), 1024 // LANES)
        apart.append(np.quantile(np.hstack([resamples.drawn(group) for group in groups]), [0.025, 0.975]))
    ratios = np.std(shared, axis=0) / np.std(apart, axis=0)
    assert np.all(np.abs(ratios - 1) < 0.15)
    assert np.mean(shared, axis=0) == pytest.approx(np.mean(apart, axis=0), abs=4e-4)


def resamples_of(statistic="aurc", n=50):
    sample = Sample.of(np.linspace(0, 1, n), n)
    return sample.resamples(get_statistic(statistic), [(1.0, np.sin(np.arange(n)))])


def test_a_resample_does_not_depend_on_its_neighbours():
    resamples, states = resamples_of(), states_of(2 * LANES + 5)
    np.testing.assert_allclose(resamples.drawn(states)[:3], resamples.drawn(states[:3]), rtol=1e-14)
    rest = resamples.drawn(states[2 * LANES :])  # of few units, so that each group is drawn again
    np.testing.assert_allclose(resamples.drawn(states)[2 * LANES :], rest, rtol=1e-14)


@pytest.mark.parametrize(
    ("threads", "sizes"), [(1, [1000]), (2, [512, 488]), (3, [512, 488]), (40, [256, 256, 256, 232])]
)
def test_threads_compute_whole_sets_of_groups_and_change_no_digit(threads, sizes, monkeypatch):
    resamples, states = resamples_of(n=300), states_of(1000)
    alone = resamples.drawn(states)
    parts = []

    def in_order(work, tasks):
        parts.extend(task.size for task in tasks)
        return threaded(work, tasks)

    threaded = bootstrap.map_in_threads
    monkeypatch.setattr(bootstrap, "map_in_threads", in_order)
    with use_threads(threads):
        np.testing.assert_array_equal(resamples.drawn(states), alone)
    assert parts == sizes


def test_memory_is_used_again():
    resamples = resamples_of("augrc")
    space, values = new_workspace(50), np.empty((2, 50))
    for out in values:
        ranking = resamples.rankings[0][1]
        leave_out(np.arange(50), ranking, resamples.kind, resamples.limit, space, out)
    np.testing.assert_array_equal(*values)
