"""Means of probabilities, and what Proposition 1 says about them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import (
    AverageClassProbability,
    AverageMaxProbability,
    average_class_probability,
    average_max_probability,
)
from segtrust.maps import Prediction
from tests.references import all_truths, amsp, apc, close, truths_and_weights

maps = arrays.arrays(float, st.integers(1, 200), elements=st.floats(0, 1))


@given(maps, st.floats(0, 1))
def test_equal_the_formulas(p, threshold):
    assert average_max_probability(p) == pytest.approx(amsp(p), rel=1e-14)
    reference = apc(p, p >= threshold)
    assert average_class_probability(p, threshold=threshold) == pytest.approx(reference, abs=1e-15)


@given(maps)
def test_are_the_same_where_the_likelier_class_is_predicted(p):
    assert average_class_probability(p) == pytest.approx(average_max_probability(p), rel=1e-14)


def test_differ_where_it_is_not():
    p = np.array([0.4, 0.9])
    assert average_class_probability(p, threshold=0.3) == pytest.approx(0.65)
    assert average_max_probability(p) == pytest.approx(0.75)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_class_probability_is_one_minus_the_expected_hamming_loss(threshold):
    p = np.random.default_rng(0).random(10)
    y_hat = p >= threshold
    truths, weights = truths_and_weights(p)
    expected_loss = (weights * (truths != y_hat).mean(-1)).sum()
    assert close(average_class_probability(p, threshold=threshold), 1 - expected_loss)


def test_class_probability_needs_no_independence():
    """Proposition 1 holds for any posterior: here pixels come in equal pairs, so only the marginals count."""
    rng = np.random.default_rng(3)
    truths = np.repeat(all_truths(4), 2, axis=1)
    weights = rng.dirichlet(np.ones(len(truths)))
    marginals = weights @ truths
    y_hat = rng.random(8) < 0.5
    expected_loss = weights @ (truths != y_hat).mean(-1)
    assert close(average_class_probability(np.minimum(marginals, 1), y_hat), 1 - expected_loss)


@pytest.mark.parametrize("n", [10, 10**6])
def test_are_right_close_to_certainty(n):
    p = np.full(n, 1e-15)
    assert average_max_probability(p) == pytest.approx(1 - 1e-15, abs=2e-16)
    assert average_class_probability(p) == pytest.approx(1 - 1e-15, abs=2e-16)


def test_mask_and_threshold_go_by_name():
    p = np.array([0.4, 0.9])
    assert average_class_probability(p=p, mask=np.array([1, 0])) == pytest.approx(0.25)
    with pytest.raises(TypeError, match="positional argument"):
        average_class_probability(p, None, 0.3)


def test_estimators_and_functions_agree():
    p = np.random.default_rng(0).random((5, 6))
    prediction = Prediction(p, mask=p > 0.7)
    assert AverageMaxProbability().score(prediction) == average_max_probability(p)
    assert AverageClassProbability().score(prediction) == average_class_probability(p, p > 0.7)
