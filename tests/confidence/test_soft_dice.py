"""SDC and its bounds: Theorem 1 and its corollary, the equality cases of the appendix, invariance."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import (
    IdealDice,
    PairwiseDice,
    SoftDice,
    dice_bounds,
    ideal_dice_confidence,
    soft_dice_confidence,
)
from segtrust.errors import ParameterError
from segtrust.kernels import worst_relative_error
from segtrust.kernels.bounds import binomial_lower_bound
from segtrust.maps import EmptyPolicy, Prediction
from tests.references import close, enumerated_tversky, logit_normal, lower_bound, sdc, upper_bound

ROUNDING = 1e-12

ordinary = st.floats(0, 1).map(lambda p: p if p > 1e-290 else 0.0)
probability = ordinary | st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1 - 1e-9])
maps = arrays.arrays(float, st.integers(1, 300), elements=probability)


@st.composite
def maps_and_masks(draw):
    p = draw(maps)
    return p, draw(arrays.arrays(bool, p.shape))


def both(p, y):
    return soft_dice_confidence(p, y), ideal_dice_confidence(p, y)


class TestTheorem1:
    @given(maps_and_masks())
    def test_the_ratio_lies_between_the_bounds_and_the_error_below_its_bound(self, example):
        p, y = example
        soft, ideal = both(p, y)
        assert (soft == 0) == (p[y].sum() == 0) == (ideal == 0)  # nothing inside means zero for both
        assume(soft > 0)
        bounds = dice_bounds(p, y)
        assert bounds.lower <= 1 <= bounds.upper
        assert bounds.lower * (1 - ROUNDING) <= ideal / soft <= bounds.upper * (1 + ROUNDING)
        assert abs(soft - ideal) / ideal <= bounds.relative_error + ROUNDING
        assert bounds.relative_error <= worst_relative_error(bounds.s) * (1 + ROUNDING)

    @given(maps_and_masks())
    def test_bounds_equal_the_formulas_and_the_binomial_bound_is_tighter(self, example):
        p, y = example
        bounds = dice_bounds(p, y)
        assume(bounds.k)
        assert bounds.k == y.sum()
        assert math.isclose(bounds.s, p[y].sum(), rel_tol=1e-13)
        assert math.isclose(bounds.lam, p[~y].sum(), rel_tol=1e-13)
        assert close(bounds.lower, lower_bound(bounds.k, bounds.mu, bounds.lam))
        assert close(bounds.upper, upper_bound(bounds.k, bounds.mu, bounds.lam))
        soft, ideal = both(p, y)
        tighter = binomial_lower_bound(bounds.k, bounds.mu, bounds.lam)
        assert bounds.lower * soft * (1 - ROUNDING) <= tighter <= ideal * (1 + ROUNDING)

    @pytest.mark.parametrize("mean", [-9, -4, 0])
    def test_one_percent_from_a_mass_of_17_16_on(self, mean):
        for seed in range(20):
            p = logit_normal(3000, seed, mean)
            if dice_bounds(p).s > 17.16:
                assert math.isclose(*both(p, None), rel_tol=0.01)


class TestEqualityCases:
    @pytest.mark.parametrize("k", [1, 2, 9])
    @pytest.mark.parametrize("mu", [0.001, 0.4, 1.0])
    @pytest.mark.parametrize("background", [[], [0.0, 0.0, 1.0], [1.0] * 7])
    def test_equal_probabilities_inside_and_certain_background_reach_the_binomial_bound(
        self, k, mu, background
    ):
        p = np.array([mu] * k + background)
        bounds = dice_bounds(p, np.arange(p.size) < k)
        ideal = ideal_dice_confidence(p, np.arange(p.size) < k)
        assert close(ideal, binomial_lower_bound(k, mu, sum(background)))
        if k == 1 or mu == 1:
            assert close(ideal, bounds.lower * sdc(p, np.arange(p.size) < k))
        else:
            assert ideal > bounds.lower * soft_dice_confidence(p, np.arange(p.size) < k)

    @pytest.mark.parametrize("p", [[0.4, 0.5, 0.0], [0.4, 0.4, 0.1], [0.4, 0.4, 0.999]])
    def test_any_other_map_lies_above_the_binomial_bound(self, p):
        y = np.array([True, True, False])
        bounds = dice_bounds(np.array(p), y)
        above = ideal_dice_confidence(np.array(p), y) / binomial_lower_bound(2, bounds.mu, bounds.lam)
        assert above > 1 + 1e-6

    @pytest.mark.parametrize("certain", [[1.0], [1.0, 1.0], [1.0] * 20])
    @pytest.mark.parametrize("lam", [0.1, 2.0, 30.0])
    def test_thin_background_approaches_the_upper_bound(self, certain, lam):
        distances = []
        for size in (100, 10_000, 1_000_000):
            p = np.concatenate([certain, np.full(size, lam / size)])
            y = np.arange(p.size) < len(certain)
            soft, ideal = both(p, y)
            distances.append(1 - ideal / soft / dice_bounds(p, y).upper)
        assert distances[0] > distances[1] > distances[2] > 0
        assert distances[1] == pytest.approx(distances[0] / 100, rel=0.3)
        assert distances[2] == pytest.approx(distances[1] / 100, rel=0.3)


@given(maps_and_masks(), st.randoms(use_true_random=False))
def test_the_order_of_pixels_does_not_matter(example, random):
    p, y = example
    places = list(range(p.size))
    random.shuffle(places)
    for one, other in zip(both(p, y), both(p[places], y[places]), strict=True):
        assert math.isclose(one, other, rel_tol=1e-12)


@pytest.mark.parametrize("times", [(2,), (3, 1), (1, 4)])
def test_tiling_repeats_the_soft_dice(times):
    p = logit_normal((12, 15))
    assert soft_dice_confidence(np.tile(p, times)) == pytest.approx(soft_dice_confidence(p), rel=1e-13)


@given(maps_and_masks(), st.data())
def test_more_probability_inside_raises_it_and_outside_lowers_it(example, data):
    p, y = example
    at = data.draw(st.integers(0, p.size - 1))
    raised = p.copy()
    raised[at] = data.draw(st.floats(p[at], 1))
    before, after = soft_dice_confidence(p, y), soft_dice_confidence(raised, y)
    slack = 1e-15 * before
    assert after >= before - slack if y[at] else after <= before + slack


def test_a_clear_rise_is_seen():
    p, y = np.array([0.6, 0.2, 0.1]), np.array([True, False, False])
    before = soft_dice_confidence(p, y)
    assert soft_dice_confidence(np.array([0.7, 0.2, 0.1]), y) > before
    assert soft_dice_confidence(np.array([0.6, 0.3, 0.1]), y) < before


class TestEmptyMask:
    P = np.array([0.2, 0.4, 0.1])

    def test_is_worth_nothing_in_the_paper(self):
        assert soft_dice_confidence(self.P) == ideal_dice_confidence(self.P) == 0

    @pytest.mark.parametrize("function", [soft_dice_confidence, ideal_dice_confidence])
    def test_agrees_with_an_empty_truth(self, function):
        found = function(self.P, empty="agree")
        assert found == pytest.approx(0.8 * 0.6 * 0.9, rel=1e-14)
        assert type(found) is float

    @pytest.mark.parametrize("function", [soft_dice_confidence, ideal_dice_confidence])
    def test_policy_changes_nothing_else(self, function):
        assert function(self.P, threshold=0.3, empty="agree") == function(self.P, threshold=0.3)

    @pytest.mark.parametrize("function", [soft_dice_confidence, ideal_dice_confidence])
    def test_unknown_policy(self, function):
        with pytest.raises(ParameterError, match="empty: expected one of 'paper', 'agree', got 'ignore'"):
            function(self.P, empty="ignore")

    @pytest.mark.parametrize("make", [SoftDice, IdealDice, PairwiseDice])
    def test_unknown_policy_of_an_estimator(self, make):
        assert make("agree").empty is EmptyPolicy.AGREE
        with pytest.raises(ParameterError, match="empty: expected one of 'paper', 'agree', got 'typo'"):
            make("typo")

    def test_has_no_bounds(self):
        bounds = dice_bounds(self.P)
        assert (bounds.k, bounds.s) == (0, 0)
        assert close(bounds.lam, 0.7, 1e-15)
        assert all(
            math.isnan(each) for each in (bounds.mu, bounds.lower, bounds.upper, bounds.relative_error)
        )


def test_estimator_and_function_agree():
    p = logit_normal((9, 9))
    prediction = Prediction(p, mask=p > 0.2)
    assert SoftDice().score(prediction) == soft_dice_confidence(p, p > 0.2)
    assert SoftDice(EmptyPolicy.AGREE).score(Prediction(p, threshold=1.0)) == soft_dice_confidence(
        p, threshold=1.0, empty="agree"
    )


def test_dice_of_the_expectation_is_not_the_expectation():
    p = np.array([0.5, 0.5])
    assert soft_dice_confidence(p) == 2 / 3
    assert close(ideal_dice_confidence(p), enumerated_tversky(p, np.array([True, True])))
