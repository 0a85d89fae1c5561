"""Intervals of a mean: they invert their tests, and cover."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from segtrust.selective import chernoff_interval, clopper_pearson
from segtrust.selective.intervals import bernoulli_divergence


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (1, 1), (500, 1000)])
def test_clopper_pearson_inverts_the_binomial_test(hits, n):
    low, high = clopper_pearson(hits, n, 0.9)
    assert low == 0 if hits == 0 else binom.sf(hits - 1, n, low) == pytest.approx(0.05)
    assert high == 1 if hits == n else binom.cdf(hits, n, high) == pytest.approx(0.05)


@given(st.floats(0, 1), st.integers(1, 10**6), st.floats(0.01, 0.999))
def test_chernoff_inverts_the_divergence(mean, n, level):
    low, high = chernoff_interval(mean, n, level)
    assert 0 <= low <= mean <= high <= 1
    allowed = np.log(2 / (1 - level)) / n
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:
            assert bernoulli_divergence(mean, end) == pytest.approx(allowed, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("n", [5, 60])
def test_chernoff_covers_coins(n):
    for truth in (0.01, 0.3, 0.5, 0.95):
        hits = np.arange(n + 1)
        ends = [chernoff_interval(k / n, n, 0.95) for k in hits]
        inside = np.array([low <= truth <= high for low, high in ends])
        assert binom.pmf(hits, n, truth)[inside].sum() >= 0.95


def test_chernoff_is_wider_than_the_exact_interval():
    (low, high), (inner_low, inner_high) = chernoff_interval(0.6, 50, 0.95), clopper_pearson(30, 50, 0.95)
    assert low < inner_low < inner_high < high
