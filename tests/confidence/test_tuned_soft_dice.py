"""SDC*: the weight of the background's probability, and when it is left alone."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import rankdata

from segtrust.confidence import SoftDice, TunedSoftDice
from segtrust.confidence.tuned_soft_dice import WEIGHTS
from segtrust.errors import ParameterError
from segtrust.maps import EmptyPolicy, Prediction
from tests.references import close
from tests.tuning_cases import blobs

maps = arrays.arrays(float, st.integers(1, 50), elements=st.floats(0, 1))


@given(maps, st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_equals_the_formula(p, weight):
    mask = p >= 0.5
    k, s, lam = mask.sum(), p[mask].astype(np.longdouble).sum(), p[~mask].astype(np.longdouble).sum()
    expected = 2 * s / (k + s + weight * lam) if k else 0
    assert close(TunedSoftDice(weight).score(Prediction(p)), expected)


@pytest.mark.parametrize("empty", EmptyPolicy)
def test_a_weight_of_one_is_the_sdc(empty):
    for p in (np.random.default_rng(0).random((9, 9)), np.full((5, 5), 0.1), np.zeros((3, 3))):
        expected = SoftDice(empty).score(Prediction(p))
        tuned = TunedSoftDice(1.0, empty=empty)
        assert tuned.score(Prediction(p)) == expected
        assert tuned.score_observation(tuned.observe(Prediction(p))) == pytest.approx(expected, rel=1e-15)


def test_only_an_empty_mask_is_observed_with_a_confidence():
    tuned = TunedSoftDice(empty="agree")
    assert tuned.observe(Prediction(np.array([0.75, 0.25])))["counts"].tolist() == [1, 0.75, 0.25, 0]
    assert tuned.observe(Prediction(np.array([0.25, 0.25])))["counts"] == pytest.approx([0, 0, 0.5, 0.75**2])


def observed(counts):
    return [{"counts": np.array([*row, 0.0])} for row in counts]


def chosen_by_hand(counts, dices):
    """The rule of the class, written plainly."""
    lacks = []
    for weight in WEIGHTS:
        scores = [2 * s / (k + s + weight * lam) if k else 0 for k, s, lam in counts]
        ranks = rankdata(scores)
        varies = np.ptp(ranks) > 0 and np.ptp(dices) > 0
        lacks.append(1 - np.corrcoef(ranks, dices)[0, 1] if varies else 1)
    best = int(np.argmin(lacks))
    enough = lacks[best] < lacks[WEIGHTS.index(1.0)] * (1 - 0.4 / np.sqrt(len(dices)))
    return WEIGHTS[best] if enough else 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 40])
def test_follows_its_rule(n):
    found = set()
    for seed in range(60):
        rng = np.random.default_rng([seed, n])
        k = rng.integers(0, 5, n) * rng.integers(0, 200, n)
        s, lam = k * rng.uniform(0.6, 1, n), rng.exponential(100, n)
        dices = np.clip(s / np.maximum(k, 1) + rng.normal(0, 0.1, n), 0, 1)
        counts = np.column_stack([k, s, lam])
        weight = TunedSoftDice().fit_observations(observed(counts), 1 - dices).weight
        assert weight == chosen_by_hand(counts, dices)
        found.add(weight)
    assert len(found) > 1 or n < 3


def test_finds_a_background_that_means_nothing():
    rng = np.random.default_rng(0)
    k = np.full(40, 100.0)
    s = k * rng.uniform(0.5, 1, 40)
    lam = rng.exponential(300, 40)
    fitted = TunedSoftDice().fit_observations(observed(np.column_stack([k, s, lam])), 1 - s / k)
    assert fitted.weight == 0


def test_stays_the_sdc_where_it_ranks_perfectly():
    rng = np.random.default_rng(0)
    k = np.full(30, 100.0)
    s, lam = k * rng.uniform(0.5, 1, 30), rng.exponential(30, 30)
    dices = 2 * s / (k + s + lam)
    ranks = rankdata(dices) / 30
    assert TunedSoftDice().fit_observations(observed(np.column_stack([k, s, lam])), 1 - ranks).weight == 1


@pytest.mark.parametrize("dices", [np.full(6, 0.8), np.zeros(6), np.ones(6)])
def test_stays_the_sdc_where_all_dices_are_equal(dices):
    counts = np.random.default_rng(0).random((6, 3)) * 100
    assert TunedSoftDice().fit_observations(observed(counts), 1 - dices).weight == 1


def test_stays_the_sdc_where_all_masks_are_empty():
    assert TunedSoftDice().fit_observations(observed(np.zeros((5, 3))), np.ones(5)).weight == 1


def test_order_of_the_cases_does_not_matter():
    cases = blobs(12)
    assert TunedSoftDice().fit(cases) == TunedSoftDice().fit(cases[::-1])


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf, "1", [1.0]])
def test_weights_that_mean_nothing_are_refused(weight):
    with pytest.raises(ParameterError, match="weight: expected a finite number of at least 0"):
        TunedSoftDice(weight)
