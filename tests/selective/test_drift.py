"""Drift: the two-sample test by enumeration and simulation; the martingale, its false alarms and its file."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.integrate import quad

from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    ParameterError,
    SavedStateError,
    SeenCasesError,
    TooFewCasesError,
)
from segtrust.selective import ExchangeabilityMartingale, HashedIds, drift_test
from segtrust.selective.drift import STATISTICS, _densities, _Pool
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
    found = {
        name: drift_test(reference=reference, new=new, statistic=name, permutations=19) for name in STATISTICS
    }
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
        return drift_test(
            reference=values[rest], new=values[list(chosen)], statistic=name, permutations=19
        ).value

    exactly = np.mean([value(each) >= value(new) - 1e-12 for each in combinations(range(10), 5)])
    rest = [i for i in range(10) if i not in new]
    found = drift_test(reference=values[rest], new=values[list(new)], statistic=name, permutations=20_000)
    assert found.p_value == pytest.approx(exactly, abs=4 * math.sqrt(exactly * (1 - exactly) / 20_000))


@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("name", STATISTICS)
def test_false_alarms_of_the_test(name, levels):
    rng, draws, alarms = np.random.default_rng(1), 600, 0
    for seed in range(draws):
        pair = rng.random(30), rng.random(20)
        if levels:
            pair = tuple(np.floor(each * levels) for each in pair)
        alarms += drift_test(
            reference=pair[0], new=pair[1], statistic=name, permutations=99, alpha=0.1, seed=seed
        ).alarm
    assert alarms / draws <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / draws)


def test_direction():
    low, high = np.arange(20), np.arange(20) + 30
    assert drift_test(reference=high, new=low).direction == "less confident"
    assert drift_test(reference=low, new=high).direction == "more confident"
    assert drift_test(reference=low, new=low).direction == "as confident"
    assert drift_test(reference=low, new=low).p_value == 1.0
    assert (
        "Drift detected (two-sample test, ks 1, p = 0.0005): 20 new cases compared with 20 reference cases"
        in drift_test(reference=high, new=low).explain()
    )
    assert "No drift detected (two-sample test, ks 0, p = 1)" in drift_test(reference=low, new=low).explain()


def test_tied_samples():
    for name in STATISTICS:
        found = drift_test(reference=[0.5] * 9, new=[0.5] * 4, statistic=name)
        assert (found.value, found.p_value, found.rank_shift) == (0.0, 1.0, 0.0)


def test_same_seed_same_answer_whatever_the_block(monkeypatch):
    rng = np.random.default_rng(0)
    pair = rng.random(40), rng.random(30) + 0.1
    first = drift_test(reference=pair[0], new=pair[1], seed=3)
    assert drift_test(reference=pair[0], new=pair[1], seed=3) == first
    monkeypatch.setattr("segtrust.selective.drift._LABELS_AT_A_TIME", 100)
    assert drift_test(reference=pair[0], new=pair[1], seed=3) == first
    assert json.loads(json.dumps(first.to_dict()))["alarm"] == first.alarm


def test_no_more_labels_are_held_than_a_block_of_whole_rows(monkeypatch):
    monkeypatch.setattr("segtrust.selective.drift._LABELS_AT_A_TIME", 1000)
    pool = _Pool.of(np.arange(40.0), np.arange(30.0))
    rows = [len(labels) for labels in pool.permutations(30, np.random.default_rng(0))]
    assert rows == [14, 14, 2]


def test_invalid_arguments_of_the_test():
    with pytest.raises(ParameterError, match="statistic: expected one of ks, energy, mann-whitney"):
        drift_test(reference=[1, 2], new=[1, 2], statistic="t")
    with pytest.raises(ParameterError, match="permutations"):
        drift_test(reference=[1, 2], new=[1, 2], permutations=0)
    with pytest.raises(ParameterError, match="permutations"):
        drift_test(reference=[1, 2], new=[1, 2], permutations=True)
    with pytest.raises(ParameterError, match="statistic"):
        drift_test(reference=[1, 2], new=[1, 2], statistic=["ks"])
    with pytest.raises(ParameterError, match="alpha"):
        drift_test(reference=[1, 2], new=[1, 2], alpha=0)
    with pytest.raises(TooFewCasesError, match="new confidence: expected at least 1"):
        drift_test(reference=[1, 2], new=[])
    with pytest.raises(CaseValueError, match=r"new confidence: .* for case 1"):
        drift_test(reference=[1, 2], new=[1, np.nan])


@pytest.mark.needs("data:polyp", "PIL")
def test_the_test_detects_polyps_out_of_distribution(data):
    inside, outside = (vectors(data("polyp"), sets)[0] for sets in (INSIDE, OUTSIDE))
    for name in STATISTICS:
        found = drift_test(reference=inside, new=outside, statistic=name)
        assert found.alarm
        assert found.rank_shift == pytest.approx(-0.394, abs=0.001)


def test_permutations_that_can_never_alarm_are_refused():
    with pytest.raises(ParameterError, match=r"smallest p-value is 0\.17, and alpha = 0\.05 .* at least 19"):
        drift_test(reference=np.arange(10.0), new=np.arange(10.0), permutations=5)


def p_values(watch):
    return np.array([state.p_value for state in watch.history])


def test_bets_are_fair():
    for bet in range(7):
        assert quad(lambda p, bet=bet: _densities(p)[bet], 0, 1)[0] == pytest.approx(1, abs=1e-12)
    assert min(_densities(p).min() for p in np.linspace(0, 1, 101)) >= 0


def test_p_values_are_ranks_with_ties_broken_at_random():
    watch = ExchangeabilityMartingale([0.1, 0.5, 0.5, 0.9])
    state = watch.update(0.5)
    assert 1 / 5 < state.p_value < 4 / 5  # one below; it and its two ties share the rest
    assert 4 / 6 < watch.update(0.7).p_value < 5 / 6
    assert 0 < watch.update(0.0).p_value < 1 / 7


@pytest.mark.parametrize("levels", [None, 3])
def test_p_values_are_uniform_and_independent(levels):
    rng, found = np.random.default_rng(0), []
    for seed in range(40):
        stream = rng.random(130) if levels is None else np.floor(rng.random(130) * levels)
        watch = ExchangeabilityMartingale(stream[:30], seed=seed)
        watch.extend(stream[30:])
        found.append(p_values(watch))
    found = np.array(found)
    assert stats.kstest(found.ravel(), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]) < 0.05


@pytest.mark.parametrize("levels", [None, 3])
def test_false_alarms_ever(levels):
    rng, draws, alpha, alarms = np.random.default_rng(0), 150, 0.1, 0
    for seed in range(draws):
        stream = rng.random(200) if levels is None else np.floor(rng.random(200) * levels)
        watch = ExchangeabilityMartingale(stream[:40], alpha=alpha, seed=seed)
        alarms += watch.extend(stream[40:]).alarm
    assert alarms / draws <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / draws)


@pytest.mark.parametrize("change", [lambda r: r * 0.6, lambda r: 0.5 + r, lambda r: 0.5 + 0.1 * (r - 0.5)])
def test_lower_higher_and_narrower_are_noticed(change):
    rng = np.random.default_rng(0)
    watch = ExchangeabilityMartingale(rng.random(100))
    assert not watch.extend(rng.random(100)).alarm
    state = watch.extend(change(rng.random(300)))
    assert state.alarm
    assert state.alarmed_at > 100


def test_an_alarm_stays():
    watch = ExchangeabilityMartingale(np.linspace(0.5, 1, 50))
    first = watch.extend(np.zeros(40))
    later = watch.extend(np.random.default_rng(0).permutation(np.linspace(0.5, 1, 200)))
    assert first.alarm
    assert later.alarm
    assert later.alarmed_at == first.alarmed_at
    assert later.log10_peak >= later.log10_capital
    assert [state.alarm for state in watch.history].index(True) + 1 == first.alarmed_at


@pytest.mark.parametrize("arrived", [2, 3, 5])
def test_it_alarms_where_the_capital_is_one_divided_by_alpha(arrived):
    reference, stream = np.linspace(0.5, 1, 50), np.zeros(arrived)
    capital = 10.0 ** ExchangeabilityMartingale(reference).extend(stream).log10_capital
    below, above = (
        ExchangeabilityMartingale(reference, alpha=1.0 / (capital * share)).extend(stream)
        for share in (1 - 1e-9, 1 + 1e-9)
    )
    assert (below.alarm, below.alarmed_at) == (True, arrived)
    assert not above.alarm


@pytest.mark.parametrize(("alpha", "limit"), [(0.05, "10^1.3"), (0.01, "10^2.0")])
def test_it_explains_at_which_capital_it_alarms(alpha, limit):
    assert (
        f"in 0 cases (evidence 10^0.0, alarm at {limit})."
        in ExchangeabilityMartingale([0.5], alpha=alpha).explain()
    )


def test_starts_with_a_capital_of_one():
    watch = ExchangeabilityMartingale([0.5])
    assert (watch.state.n, watch.state.log10_capital, watch.alarm, watch.history) == (0, 0.0, False, ())
    assert watch.state.log10_peak == 0.0
    assert "No drift detected in 0 cases" in watch.explain()


def test_neither_long_gains_nor_long_losses_break_it():
    watch = ExchangeabilityMartingale([0.0])
    gains = watch.extend(range(1, 3001))
    assert gains.log10_capital > 308
    assert "Drift detected after" in watch.explain()
    assert math.isfinite(watch.extend(np.random.default_rng(0).random(3000) * 3000).log10_capital)


def test_survives_a_restart(tmp_path):
    rng = np.random.default_rng(0)
    stream = np.round(rng.random(60), 1)
    whole = ExchangeabilityMartingale(stream[:20], alpha=0.01, seed=5)
    whole.extend(stream[20:])
    part = ExchangeabilityMartingale(stream[:20], alpha=0.01, seed=5)
    part.extend(stream[20:40])
    part.save(tmp_path / "watch.json")
    part.save(tmp_path / "watch.json")
    again = ExchangeabilityMartingale.load(tmp_path / "watch.json")
    assert again.history == part.history
    again.extend(stream[40:])
    assert again.history == whole.history
    assert [path.name for path in tmp_path.iterdir()] == ["watch.json"]


def test_a_refused_case_leaves_no_trace():
    watch = ExchangeabilityMartingale([0.1, 0.2])
    before = json.dumps(watch.to_dict())
    for bad in (np.nan, np.inf, "x"):
        with pytest.raises(CaseValueError):
            watch.update(bad)
    with pytest.raises(CaseValueError, match="for case 1"):
        watch.extend([0.5, np.nan])
    assert json.dumps(watch.to_dict()) == before


def test_invalid_arguments_of_the_martingale():
    with pytest.raises(ParameterError, match="alpha"):
        ExchangeabilityMartingale([0.5], alpha=1.0)
    with pytest.raises(SeenCasesError):
        ExchangeabilityMartingale([0.5], ids=["a"], used_ids=["a"])
    with pytest.raises(CaseLengthError, match="ids: expected 2 values"):
        ExchangeabilityMartingale([0.5, np.nan], ids=["a"])
    with pytest.raises(SeenCasesError):
        ExchangeabilityMartingale([0.5, 0.6], ids=iter("ab"), used_ids=HashedIds.of(["b"], "salt"))


BROKEN = {
    "no JSON": ("{", "expected JSON, got something else"),
    "a list": ("[]", "expected format 'segtrust-martingale-1', got list"),
    "another format": ({"format": "other"}, "expected format 'segtrust-martingale-1', got 'other'"),
    "another version": ({"format": "segtrust-martingale-9"}, "of another version of segtrust"),
    "incomplete": ({"alpha": ...}, "'alpha' is missing"),
    "more": ({"more": 1}, "'more' is unknown"),
    "lengths": ({"p_values": [0.5]}, "p_values: expected 2, one for each case that has arrived, got 1"),
    "p-values": ({"p_values": [0.5, 1.5]}, r"p_values: expected a number in \[0, 1\], got 1.5"),
    "NaN": ({"arrived": [0.5, np.nan]}, "arrived: expected a finite number, got nan for case 1"),
    "text": ({"arrived": "ab"}, "arrived: expected numbers"),
    "nothing": ({"p_values": None}, "p_values: expected"),
    "level": ({"alpha": "0.05"}, "alpha: expected a number"),
    "seed": ({"seed": -1}, "seed: expected a whole number"),
    "reference": ({"reference": []}, "confidence: expected at least 1 cases"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named(tmp_path, name):
    change, words = BROKEN[name]
    watch = ExchangeabilityMartingale([0.5, 0.6])
    watch.extend([0.1, 0.2])
    saved = {**watch.to_dict(), **change} if isinstance(change, dict) else change
    text = saved if isinstance(saved, str) else json.dumps({k: v for k, v in saved.items() if v is not ...})
    (tmp_path / "watch.json").write_text(text)
    with pytest.raises(SavedStateError, match=rf"watch\.json: .*{words}"):
        ExchangeabilityMartingale.load(tmp_path / "watch.json")


@pytest.mark.needs("data:polyp", "PIL")
def test_the_martingale_detects_polyps_out_of_distribution(data):
    inside, outside = (vectors(data("polyp"), sets)[0] for sets in (INSIDE, OUTSIDE))
    at = []
    for seed in range(20):
        watch = ExchangeabilityMartingale(inside, seed=seed)
        at.append(watch.extend(np.random.default_rng(seed).permutation(outside)[:100]).alarmed_at)
    assert None not in at
    assert np.median(at) < 40


def test_samples_are_passed_by_name():
    with pytest.raises(TypeError, match="positional"):
        drift_test([1, 2], [1, 2])
