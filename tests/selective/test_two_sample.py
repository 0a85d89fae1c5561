"""The two-sample test: exact statistics, p-values by enumeration, false alarms by simulation."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from segtrust.errors import CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective.two_sample import STATISTICS, _Pool, drift_test
from tests.selective.polyps import INSIDE, OUTSIDE, vectors

samples = st.lists(st.integers(0, 6).map(lambda i: i / 6), min_size=2, max_size=15)


def rank_shift(reference, new):
    signs = np.sign(np.subtract.outer(new, reference))
    return signs.mean()


def energy(reference, new):
    def mean_distance(a, b):
        return np.abs(np.subtract.outer(a, b)).mean()

    return 2 * mean_distance(reference, new) - mean_distance(reference, reference) - mean_distance(new, new)


@given(samples, samples)
def test_statistics_are_the_textbook_ones(reference, new):
    found = {name: drift_test(reference, new, statistic=name, permutations=19) for name in STATISTICS}
    ks = stats.ks_2samp(reference, new, method="asymp").statistic
    assert found["ks"].value == pytest.approx(ks, abs=1e-12)
    assert found["energy"].value == pytest.approx(energy(reference, new), abs=1e-12)
    shift = rank_shift(reference, new)
    assert found["ks"].rank_shift == pytest.approx(shift, abs=1e-12)
    assert found["mann-whitney"].value == pytest.approx(abs(shift), abs=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
def test_p_value_is_that_of_all_permutations(name):
    """The share of the 252 ways to say who is new that give as large a value."""
    values = np.array([0.1, 0.2, 0.2, 0.2, 0.4, 0.5, 0.5, 0.7, 0.8, 0.9])
    new = (0, 1, 2, 4, 5)

    def value(chosen):
        rest = [i for i in range(10) if i not in chosen]
        return drift_test(values[rest], values[list(chosen)], statistic=name, permutations=19).value

    exactly = np.mean([value(each) >= value(new) - 1e-12 for each in combinations(range(10), 5)])
    rest = [i for i in range(10) if i not in new]
    found = drift_test(values[rest], values[list(new)], statistic=name, permutations=20_000)
    assert found.p_value == pytest.approx(exactly, abs=4 * math.sqrt(exactly * (1 - exactly) / 20_000))


@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("name", STATISTICS)
def test_false_alarms(name, levels):
    rng, draws, alarms = np.random.default_rng(1), 600, 0
    for seed in range(draws):
        pair = rng.random(30), rng.random(20)
        if levels:
            pair = tuple(np.floor(each * levels) for each in pair)
        alarms += drift_test(*pair, statistic=name, permutations=99, alpha=0.1, seed=seed).alarm
    assert alarms / draws <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / draws)


def test_direction():
    low, high = np.arange(20), np.arange(20) + 30
    assert drift_test(high, low).direction == "less confident"
    assert drift_test(low, high).direction == "more confident"
    assert drift_test(low, low).direction == "as confident"
    assert drift_test(low, low).p_value == 1.0
    assert (
        "differ in confidence (ks 1, p = 0.0005; new cases are less confident"
        in drift_test(high, low).explain()
    )
    assert "do not differ demonstrably" in drift_test(low, low).explain()


def test_all_tied():
    for name in STATISTICS:
        found = drift_test([0.5] * 9, [0.5] * 4, statistic=name)
        assert (found.value, found.p_value, found.rank_shift) == (0.0, 1.0, 0.0)


def test_same_seed_same_answer_whatever_the_block(monkeypatch):
    rng = np.random.default_rng(0)
    pair = rng.random(40), rng.random(30) + 0.1
    first = drift_test(*pair, seed=3)
    assert drift_test(*pair, seed=3) == first
    monkeypatch.setattr("segtrust.selective.two_sample._BLOCK", 100)
    assert drift_test(*pair, seed=3) == first
    assert json.loads(json.dumps(first.to_dict()))["alarm"] == first.alarm


def test_no_more_labels_are_held_than_a_block_of_whole_rows(monkeypatch):
    monkeypatch.setattr("segtrust.selective.two_sample._BLOCK", 1000)
    pool = _Pool.of(np.arange(40.0), np.arange(30.0))
    rows = [len(labels) for labels in pool.permutations(30, np.random.default_rng(0))]
    assert rows == [14, 14, 2]


def test_refusals():
    with pytest.raises(ParameterError, match="statistic: expected one of ks, energy, mann-whitney"):
        drift_test([1, 2], [1, 2], statistic="t")
    with pytest.raises(ParameterError, match="permutations"):
        drift_test([1, 2], [1, 2], permutations=0)
    with pytest.raises(ParameterError, match="permutations"):
        drift_test([1, 2], [1, 2], permutations=True)
    with pytest.raises(ParameterError, match="statistic"):
        drift_test([1, 2], [1, 2], statistic=["ks"])
    with pytest.raises(ParameterError, match="alpha"):
        drift_test([1, 2], [1, 2], alpha=0)
    with pytest.raises(TooFewCasesError, match="new confidence: expected at least 1"):
        drift_test([1, 2], [])
    with pytest.raises(CaseValueError, match=r"new confidence: .* for case 1"):
        drift_test([1, 2], [1, np.nan])


@pytest.mark.needs("data:polyp", "PIL")
def test_polyps_out_of_distribution_are_noticed(data):
    inside, outside = (vectors(data("polyp"), sets)[0] for sets in (INSIDE, OUTSIDE))
    for name in STATISTICS:
        found = drift_test(inside, outside, statistic=name)
        assert found.alarm
        assert found.rank_shift == pytest.approx(-0.394, abs=0.001)


def test_permutations_that_can_never_alarm_are_refused():
    with pytest.raises(ParameterError, match=r"smallest p-value is 0\.17, and alpha = 0\.05 .* at least 19"):
        drift_test(np.arange(10.0), np.arange(10.0), permutations=5)
