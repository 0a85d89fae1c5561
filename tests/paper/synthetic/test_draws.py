"""The draws are NumPy's, bit for bit where the logarithm is the same function, and whatever their number."""

import numpy as np
import pytest

from segtrust.paper.synthetic import draws
from segtrust.paper.synthetic.draws import standard_normals


def numpy_normals(first, count, n):
    return np.stack([np.random.RandomState(first + row).normal(size=n) for row in range(count)])


@pytest.mark.parametrize(
    ("first", "count", "n"),
    [
        (0, 300, 10),
        (5000, 1, 10),
        (33, 65, 1),
        (7, 64, 9),
        (123, 63, 26),
        (0, 3, 27),
        (2**31, 70, 1),
        (5, 2, 1000),
    ],
)
def test_each_row_is_that_of_its_own_seed(first, count, n):
    np.testing.assert_allclose(standard_normals(first, count, n), numpy_normals(first, count, n), rtol=1e-14)


def test_last_seed_there_is():
    np.testing.assert_allclose(
        standard_normals(2**32 - 3, 3, 10), numpy_normals(2**32 - 3, 3, 10), rtol=1e-14
    )


def test_a_row_that_needs_more_words_than_kept_is_drawn_by_numpy(monkeypatch):
    monkeypatch.setattr(draws, "_words_for", lambda n: 24)  # six attempts for five pairs
    found = standard_normals(0, 200, 10)
    np.testing.assert_allclose(found, numpy_normals(0, 200, 10), rtol=1e-14)


def test_no_row_at_all():
    assert standard_normals(0, 0, 10).shape == (0, 10)
