"""Boxes and sums of coordinates against NumPy."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.kernels.regions import bounding_box, spread_of
from segtrust.kernels.view import packed

some_masks = arrays(np.uint8, array_shapes(min_dims=3, max_dims=3, max_side=6), elements=st.integers(0, 1))


@given(some_masks)
def test_box(mask):
    low, high = bounding_box(packed(mask))
    places = np.argwhere(mask)
    expected = (places.min(axis=0), places.max(axis=0) + 1) if len(places) else (np.zeros(3), np.zeros(3))
    assert (low == expected[0]).all()
    assert (high == expected[1]).all()


@given(some_masks)
def test_spread(mask):
    z, y, x = np.argwhere(mask).T
    terms = (np.ones_like(z), z, y, x, z * z, z * y, z * x, y * y, y * x, x * x)
    assert spread_of(mask).tolist() == [int(term.sum()) for term in terms]
