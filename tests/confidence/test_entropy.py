"""Mean, order statistics and worst patch of the entropy map, by their public names."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import (
    AverageNegativeEntropy,
    MedianMinMax,
    PatchLevel,
    average_negative_entropy,
    median_min_max_confidence,
    patch_level_confidence,
)
from segtrust.errors import ParameterError
from segtrust.maps import Prediction
from tests.references import ane, close, logit_normal, mmmc, pla

ordinary = st.floats(0, 1).map(lambda p: p if p > 1e-290 else 0.0)
maps = arrays.arrays(float, st.tuples(st.integers(1, 15), st.integers(1, 15)), elements=ordinary)


@given(maps, st.integers(1, 20))
def test_equal_the_formulas(p, size):
    assert close(average_negative_entropy(p), ane(p), 1e-13)
    assert close(median_min_max_confidence(p), mmmc(p), 1e-13)
    assert close(patch_level_confidence(p, size=size), pla(p, size), 1e-13)


@pytest.mark.parametrize("shape", [(1200, 1100), (30, 200, 190)])
def test_of_a_large_map(shape):
    p = logit_normal(shape).astype(np.float32)
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
    prediction = Prediction(p)
    assert AverageNegativeEntropy().score(prediction) == average_negative_entropy(p)
    assert MedianMinMax().score(prediction) == median_min_max_confidence(p)
    assert PatchLevel(7).score(prediction) == patch_level_confidence(p, size=7)
