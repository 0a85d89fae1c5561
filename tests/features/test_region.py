"""Bounding boxes against NumPy."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.features.region import bounding_box
from segtrust.kernels.view import packed

some_masks = arrays(np.uint8, array_shapes(min_dims=3, max_dims=3, max_side=6), elements=st.integers(0, 1))


@given(some_masks)
def test_box(mask):
    low, high = bounding_box(packed(mask))
    places = np.argwhere(mask)
    expected = (places.min(axis=0), places.max(axis=0) + 1) if len(places) else (np.zeros(3), np.zeros(3))
    assert (low == expected[0]).all()
    assert (high == expected[1]).all()
