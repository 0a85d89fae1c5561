"""aMSP, aPC, aNE, MMMC and PLA by their public names, and Proposition 1 of the paper."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import (
    AverageClassProbability,
    AverageMaxProbability,
    AverageNegativeEntropy,
    MedianMinMax,
    PatchLevel,
    average_class_probability,
    average_max_probability,
    average_negative_entropy,
    median_min_max_confidence,
    patch_level_confidence,
)
from segtrust.errors import ParameterError
from segtrust.maps import Prediction
from tests.references import (
    all_truths,
    amsp,
    ane,
    apc,
    close,
    logit_normal,
    mmmc,
    pla,
    truths_and_weights,
)

ordinary = st.floats(0, 1).map(lambda p: p if p > 1e-290 else 0.0)
lines = arrays.arrays(float, st.integers(1, 200), elements=st.floats(0, 1))
images = arrays.arrays(float, st.tuples(st.integers(1, 15), st.integers(1, 15)), elements=ordinary)


@given(lines, st.floats(0, 1))
def test_means_of_probabilities_equal_the_formulas(p, threshold):
    assert average_max_probability(p) == pytest.approx(amsp(p), rel=1e-14)
    reference = apc(p, p >= threshold)
    assert average_class_probability(p, threshold=threshold) == pytest.approx(reference, abs=1e-15)


@given(lines)
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


@given(images, st.integers(1, 20))
def test_aggregations_of_entropies_equal_the_formulas(p, size):
    assert close(average_negative_entropy(p), ane(p), 1e-13)
    assert close(median_min_max_confidence(p), mmmc(p), 1e-13)
    assert close(patch_level_confidence(p, size=size), pla(p, size), 1e-13)


def test_of_a_large_map():
    p = logit_normal((1200, 1100)).astype(np.float32)
    assert close(average_negative_entropy(p), ane(p), 1e-13)
    assert close(median_min_max_confidence(p), mmmc(p), 1e-13)


def test_median_of_an_even_number_is_the_mean_of_two_entropies():
    p = np.array([0.5, 0.1])
    u = -ane(p[1:])
    assert close(median_min_max_confidence(p), -((1 + u) / 2 + u), 1e-14)


@pytest.mark.parametrize(
    "function", [average_negative_entropy, median_min_max_confidence, patch_level_confidence]
)
def test_certain_maps_score_a_plain_zero(function):
    assert str(function(np.array([[0.0, 1.0], [1.0, 1.0]]))) == "0.0"


def test_a_box_of_one_pixel_is_the_highest_entropy():
    assert close(patch_level_confidence(np.array([0.1, 0.5, 0.9]), size=1), -1, 1e-13)


def test_a_size_goes_by_name():
    assert close(patch_level_confidence(p=np.full((3, 3), 0.5), size=2), -4, 1e-13)
    with pytest.raises(TypeError, match="positional argument"):
        patch_level_confidence(np.full((3, 3), 0.5), 2)


@pytest.mark.parametrize("size", [np.int64(3), 3])
def test_any_whole_number_is_a_size(size):
    assert PatchLevel(size).score(Prediction(np.full((5, 5), 0.5))) == pytest.approx(-9)


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", None])
def test_sizes_without_a_pixel(size):
    with pytest.raises(ParameterError, match="size: expected a whole number of at least 1, got"):
        patch_level_confidence(np.zeros(3), size=size)


def test_estimators_and_functions_agree():
    p = logit_normal((20, 30))
    prediction = Prediction(p, mask=p > 0.7)
    assert AverageMaxProbability().score(prediction) == average_max_probability(p)
    assert AverageClassProbability().score(prediction) == average_class_probability(p, p > 0.7)
    assert AverageNegativeEntropy().score(prediction) == average_negative_entropy(p)
    assert MedianMinMax().score(prediction) == median_min_max_confidence(p)
    assert PatchLevel(7).score(prediction) == patch_level_confidence(p, size=7)
