"""A map cut at its threshold is the mask that the estimators see."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.kernels.masks import count_differing, thresholded
from segtrust.kernels.opening import open_map

KINDS = ("float16", "float32", "float64", "uint8", "uint16", "bool")


def made(kind, seed=0, shape=(13, 17)):
    p = np.random.default_rng(seed).random(shape)
    if kind == "bool":
        return p > 0.5
    return p.astype(kind) if kind.startswith("float") else np.round(p * np.iinfo(kind).max).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", [0.0, 0.35, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("turn", [lambda p: p, lambda p: p.T, lambda p: p[::-1, ::2], np.asfortranarray])
def test_as_many_pixels_as_the_estimators_count(kind, threshold, turn):
    p = turn(made(kind))
    mask = thresholded(p, threshold=threshold)
    assert (mask.shape, mask.dtype) == (p.shape, bool)
    assert mask.sum() == open_map(p, threshold=threshold).count().k


def test_equals_the_comparison_of_numpy():
    p = made("float32")
    np.testing.assert_array_equal(thresholded(p), p >= 0.5)


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.floats(0, 1)))
def test_differences_are_counted(p):
    mask = np.random.default_rng(p.size).random(p.shape) > 0.5
    assert count_differing(p, mask) == np.count_nonzero((p >= 0.5) != mask)


def test_masks_of_numbers_and_large_maps():
    p = made("float32", shape=(300, 500))
    mask = (p > 0.4).astype(np.uint8)
    assert count_differing(p, mask) == np.count_nonzero((p >= 0.5) != (p > 0.4))
