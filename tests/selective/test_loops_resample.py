"""Resampling loops against curves of repeated cases."""

import numpy as np
import pytest
from scipy import stats

from segtrust.selective.curve import risk_coverage_curve
from segtrust.selective.loops_draw import LANES, MANY, TURNS, new_room
from segtrust.selective.loops_resample import STATE, leave_out, resample
from segtrust.selective.sample import Sample
from segtrust.selective.statistic import coverage_at_risk, get_statistic
from segtrust.settings import use_threads
from tests.selective import brute

STATISTICS = ("aurc", "augrc", coverage_at_risk(0.3))


def statistic_of(statistic, confidence, loss, weights):
    curve = risk_coverage_curve(confidence, loss, weights=weights)
    if statistic == "aurc":
        return curve.aurc
    return curve.augrc if statistic == "augrc" else curve.coverage_at_risk(0.3) or 0.0


def drawn_counts(states, units, turn=0):
    """How often each unit is drawn in one group of resamples, as the loop leaves it behind."""
    cases = Sample.of(np.ones(units), units)
    found = cases.resamples(get_statistic("aurc"), [(1.0, np.arange(units, dtype=float))])
    room = new_room(units, STATE)
    some = states[: (turn + 1) * LANES]
    resample(some, found.walks[0][1], found.what, room, np.empty(some.size))
    return room.counts[room.labels].astype(int)


def states_of(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_resample_is_the_curve_of_what_was_drawn(statistic, levels, clustered, weighted):
    rng = np.random.default_rng(4)
    for n in (2, 5, 9, 30):
        confidence, loss, weights = brute.cases(rng, n, levels=levels)
        patients = np.arange(n) // 3 if clustered and n > 3 else None
        weights = rng.random(n) + 0.1 if weighted else np.ones(n)
        sample = Sample.of(loss, n, patients, weights)
        found = sample.resamples(get_statistic(statistic), [(1.0, confidence)])
        states = states_of(LANES, n)
        times = drawn_counts(states, sample.units)[sample.unit]
        expected = [statistic_of(statistic, confidence, loss, weights * each) for each in times.T]
        np.testing.assert_allclose(found.drawn(states), expected, atol=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@pytest.mark.parametrize("levels", [None, 5])
def test_leaving_out_is_the_curve_of_the_others(statistic, levels):
    rng = np.random.default_rng(5)
    confidence, loss, _ = brute.cases(rng, 100, levels=levels)
    patients = rng.integers(0, 80, 100)
    sample = Sample.of(loss, 100, patients)
    groups = np.arange(sample.units) % 40
    found = sample.resamples(get_statistic(statistic), [(1.0, confidence)]).left_out(groups)
    kept = [groups[sample.unit] != group for group in range(40)]
    expected = [statistic_of(statistic, confidence[k], loss[k], np.ones(k.sum())) for k in kept]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("units", [2, 3, 255, 1000, 65_535, 65_536, 70_000])
def test_as_many_draws_as_units(units):
    counts = drawn_counts(states_of(LANES), units)
    np.testing.assert_array_equal(counts.sum(axis=0), units)


@pytest.mark.parametrize(("units", "turn"), [(2, 0), (7, 0), (100, 0), (MANY, 0), (MANY, 1), (1000, 3)])
def test_units_are_equally_likely_and_counts_binomial(units, turn):
    several = [drawn_counts(states_of(TURNS * LANES, seed), units, turn) for seed in range(150)]
    counts = np.hstack(several)
    assert stats.chisquare(counts.sum(axis=1)).pvalue > 1e-3
    expected = stats.binom(units, 1 / units).pmf(np.arange(units + 1)) * counts.size
    seen = np.bincount(counts.ravel(), minlength=units + 1)[: units + 1]
    large = expected > 50
    spread = (seen - expected)[large] / np.sqrt(expected[large])
    assert np.abs(spread).max() < 5


@pytest.mark.parametrize("turn", range(1, TURNS + 1))
def test_resamples_have_nothing_to_do_with_each_other(turn):
    """Within a group, and with the group whose counts are relabelled; from `TURNS` on they are drawn anew."""
    states = states_of((TURNS + 1) * LANES)
    both = np.hstack([drawn_counts(states, 1000), drawn_counts(states, 1000, turn)])
    alike = np.corrcoef(both.T)[np.triu_indices(2 * LANES, 1)]
    assert np.abs(alike).max() < 5 / np.sqrt(1000)


def test_few_units_are_drawn_anew_each_time():
    states = states_of(2 * LANES)
    first, second = (np.sort(drawn_counts(states, MANY - 1, turn), axis=0) for turn in (0, 1))
    assert (first != second).any()
    first, second = (np.sort(drawn_counts(states, MANY, turn), axis=0) for turn in (0, 1))
    assert (first == second).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [MANY, 1000])
def test_relabelled_draws_are_worth_as_much_as_new_ones(n):
    """Quantiles of 1024 resamples scatter no more than those of 1024 resamples that share nothing."""
    rng = np.random.default_rng(0)
    loss = rng.beta(2, 8, n)
    found = Sample.of(loss, n).resamples(get_statistic("aurc"), [(1.0, -loss + 0.1 * rng.standard_normal(n))])
    shared, apart = [], []
    for seed in range(300):
        shared.append(np.quantile(found.drawn(states_of(1024, seed)), [0.025, 0.975]))
        groups = np.split(states_of(1024, 1000 + seed), 1024 // LANES)
        apart.append(np.quantile(np.hstack([found.drawn(group) for group in groups]), [0.025, 0.975]))
    ratios = np.std(shared, axis=0) / np.std(apart, axis=0)
    assert np.all(np.abs(ratios - 1) < 0.15)
    assert np.mean(shared, axis=0) == pytest.approx(np.mean(apart, axis=0), abs=4e-4)


def ready(statistic="aurc", n=50):
    cases = Sample.of(np.linspace(0, 1, n), n)
    return cases.resamples(get_statistic(statistic), [(1.0, np.sin(np.arange(n)))])


def test_a_resample_does_not_depend_on_its_neighbours():
    found, states = ready(), states_of(2 * LANES + 5)
    np.testing.assert_allclose(found.drawn(states)[:3], found.drawn(states[:3]), rtol=1e-14)
    again = found.drawn(states[2 * LANES :])  # of few units, so that each group is drawn anew
    np.testing.assert_allclose(found.drawn(states)[2 * LANES :], again, rtol=1e-14)


def test_threads_change_no_digit():
    found, states = ready(n=300), states_of(1000)
    alone = found.drawn(states)
    for threads in (2, 3, 5, 40):
        with use_threads(threads):
            np.testing.assert_array_equal(found.drawn(states), alone)


def test_room_is_used_again():
    found = ready("augrc")
    room, values = new_room(50, STATE), np.empty((2, 50))
    for out in values:
        leave_out(np.arange(50), found.walks[0][1], found.what, room, out)
    np.testing.assert_array_equal(*values)
