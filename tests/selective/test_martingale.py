"""The martingale: uniform p-values, false alarms below α, and state that survives a restart."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    ParameterError,
    SavedStateError,
    SeenCasesError,
)
from segtrust.selective.martingale import ExchangeabilityMartingale, _densities
from segtrust.selective.seen import HashedIds
from tests.selective.polyps import INSIDE, OUTSIDE, vectors


def p_values(watch):
    return np.array([state.p_value for state in watch.history])


@pytest.mark.parametrize("bet", range(7))
def test_bets_are_fair(bet):
    assert quad(lambda p: _densities(p)[bet], 0, 1)[0] == pytest.approx(1, abs=1e-12)
    assert min(_densities(p)[bet] for p in np.linspace(0, 1, 101)) >= 0


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
    rng, draws, alpha, alarms = np.random.default_rng(0), 300, 0.1, 0
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
def test_it_rings_where_the_capital_is_one_divided_by_alpha(arrived):
    reference, stream = np.linspace(0.5, 1, 50), np.zeros(arrived)
    capital = 10.0 ** ExchangeabilityMartingale(reference).extend(stream).log10_capital
    below, above = (
        ExchangeabilityMartingale(reference, alpha=1.0 / (capital * share)).extend(stream)
        for share in (1 - 1e-9, 1 + 1e-9)
    )
    assert (below.alarm, below.alarmed_at) == (True, arrived)
    assert not above.alarm


@pytest.mark.parametrize(("alpha", "limit"), [(0.05, "10^1.3"), (0.01, "10^2.0")])
def test_it_says_from_which_capital_on_it_rings(alpha, limit):
    assert f"in 0 cases, alarm at {limit})" in ExchangeabilityMartingale([0.5], alpha=alpha).explain()


def test_starts_with_a_capital_of_one():
    watch = ExchangeabilityMartingale([0.5])
    assert (watch.state.n, watch.state.log10_capital, watch.alarm, watch.history) == (0, 0.0, False, ())
    assert watch.state.log10_peak == 0.0
    assert "Nothing speaks against" in watch.explain()


def test_neither_long_gains_nor_long_losses_break_it():
    watch = ExchangeabilityMartingale([0.0])
    gains = watch.extend(range(1, 3001))
    assert gains.log10_capital > 308
    assert "alarm after" in watch.explain()
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


def test_refusals():
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
def test_polyps_out_of_distribution_ring(data):
    inside, outside = (vectors(data("polyp"), sets)[0] for sets in (INSIDE, OUTSIDE))
    at = []
    for seed in range(20):
        watch = ExchangeabilityMartingale(inside, seed=seed)
        at.append(watch.extend(np.random.default_rng(seed).permutation(outside)[:100]).alarmed_at)
    assert None not in at
    assert np.median(at) < 40
