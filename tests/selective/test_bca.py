"""Bias-corrected and accelerated levels."""

import numpy as np
import pytest
from scipy import stats

from segtrust.selective.bca import acceleration, bca_levels, bias

TAILS = np.array([0.025, 0.975])


def test_bias_counts_equal_values_half():
    assert bias(np.array([0.0, 1, 1, 1]), 1.0) == pytest.approx(stats.norm.ppf(2.5 / 4))
    assert bias(np.array([0.1 + 0.2, 0.1, 0.5]), 0.3) == 0


def test_bias_stays_finite_where_all_lie_on_one_side():
    assert bias(np.zeros(1000), 1.0) == pytest.approx(stats.norm.ppf(0.9995))


def test_no_bias_and_no_acceleration_leave_the_levels_alone():
    values = np.linspace(-1, 1, 1001)
    np.testing.assert_allclose(bca_levels(values, 0.0, np.ones(9), TAILS), TAILS)


def test_acceleration_of_a_mean_is_a_sixth_of_its_skewness():
    x = np.random.default_rng(0).exponential(size=50)
    without = (x.sum() - x) / 49
    assert acceleration(without) == pytest.approx(stats.skew(x) / (6 * np.sqrt(50)))


def test_acceleration_does_not_depend_on_the_scale():
    x = np.random.default_rng(0).exponential(size=50)
    for scale in (1e-200, 1e200):
        assert acceleration(x * scale) == pytest.approx(acceleration(x))


def test_levels_are_those_of_scipy():
    """The interval of a mean, from the very resamples that SciPy drew."""
    x = np.random.default_rng(1).exponential(size=40)
    result = stats.bootstrap((x,), np.mean, n_resamples=5000, rng=2, method="BCa")
    levels = bca_levels(result.bootstrap_distribution, x.mean(), (x.sum() - x) / 39, TAILS)
    low, high = np.quantile(result.bootstrap_distribution, levels)
    assert (low, high) == pytest.approx(tuple(result.confidence_interval), abs=2e-3)


def test_a_correction_beyond_its_range_ends_at_the_extremes():
    levels = bca_levels(np.array([0.0, 1, 1, 1]), 1.0, np.array([0.0, 0, 0, 9]), np.array([1e-9, 1 - 1e-9]))
    assert np.all((levels >= 0) & (levels <= 1))
    assert levels[0] < levels[1]
