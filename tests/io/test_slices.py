"""Slices to begin with."""

import numpy as np
import pytest

from segtrust.io.slices import doubt_of, middle_slice


@pytest.mark.parametrize(
    ("filled", "expected"),
    [
        ([], 0),
        ([0], 0),
        ([1], 0),
        ([0, 0, 0, 0], 2),
        ([0, 0, 0, 1], 3),
        ([1, 0, 0, 0, 1, 1], 4),
        ([1, 1, 1], 1),
    ],
)
def test_the_middle_is_that_of_what_is_filled(filled, expected):
    assert middle_slice(np.array(filled, bool)) == expected


def test_doubt_is_least_where_all_is_sure():
    assert doubt_of(np.array([[0.0, 1.0]])) == 0.0
    assert doubt_of(np.full((2, 2), 0.5)) == 2.0
