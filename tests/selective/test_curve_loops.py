"""The order of cases, compared with a stable sort."""

import numpy as np
import pytest
from hypothesis import given, strategies as some

from segtrust.selective.curve_loops import _direction, descending_order


def stable(confidence):
    return np.argsort(-confidence, kind="stable")


@given(some.lists(some.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_order_is_that_of_a_stable_sort(values):
    values = np.array(values)
    np.testing.assert_array_equal(descending_order(values), stable(values))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x - 0.5,
        lambda x: x.round(2) - 0.5,
        np.zeros_like,
        lambda x: np.where(x < 0.5, 0.0, -0.0),
        lambda x: 1 + x * 2.0**-36,  # differ only in the bits that the index replaces, a few at a time
        lambda x: 1 + x * 2.0**-45,  # nearly all of them: the ordinary sort takes over
        lambda x: x * 1e-310,
        np.sort,
        lambda x: np.sort(x)[::-1].copy(),
        lambda x: np.sort(x.round(2)),
        lambda x: np.append(np.sort(x)[1:], x.min()),  # sorted except for the last
    ],
)
def test_long_vectors(make):
    for n in (2, 1000, 30_000):
        values = make(np.random.default_rng(n).random(n))
        np.testing.assert_array_equal(descending_order(values), stable(values))


def test_zeros_of_both_signs_keep_their_order():
    values = np.array([0.5, -0.0, 0.0, -0.5, -0.0, 1.0, 0.0])
    assert descending_order(values).tolist() == [5, 0, 1, 2, 4, 6, 3]


@pytest.mark.parametrize(
    ("values", "direction"),
    [([1, 2, 3], 1), ([3, 2, 1], -1), ([3, 2, 2], -1), ([1, 2, 2], 0), ([1, 3, 2], 0), ([7], -1)],
)
def test_sorted_cases_are_recognised(values, direction):
    """Ties keep their order, so a rising table with ties cannot just be reversed."""
    assert _direction(np.array(values, float)) == direction
