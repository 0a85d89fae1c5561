"""Sums over the pixels that are put into the integrals one by one."""

import numpy as np
import pytest

from segtrust.kernels.generating import generating_sums
from tests.references import Exact

Y = np.array([0.0, 1e-9, 1e-3, 0.5, 3.0, 40.0, 300.0])
T, U = np.exp(-Y), -np.expm1(-Y)


def reference(values, y):
    values, y = values.astype(Exact), y.astype(Exact)[:, None]
    factors = (1 - values) + values * np.exp(-y)
    with np.errstate(divide="ignore"):
        logarithms = np.where(factors > 0.5, np.log1p(values * np.expm1(-y)), np.log(factors))
        return logarithms.sum(1), (values / factors).sum(1)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 1000])
@pytest.mark.parametrize("low", [0.004, 0.9, 1 - 1e-12])
def test_equal_the_formula(size, low):
    values = np.random.default_rng(size).uniform(low, 1, size)
    logarithms, slopes = generating_sums(values, T, U)
    expected_logarithms, expected_slopes = reference(values, Y)
    finite = np.isfinite(logarithms)  # a product that underflows has a logarithm of minus infinity
    assert (expected_logarithms[~finite] < -700).all()
    error = logarithms[finite] - expected_logarithms[finite]
    assert (np.abs(error) <= -4e-15 * expected_logarithms[finite]).all()
    assert np.allclose(slopes, expected_slopes.astype(float), rtol=1e-12)


def test_certain_pixels_count_fully():
    logarithms, slopes = generating_sums(np.ones(3), T[:-1], U[:-1])
    assert np.allclose(logarithms, 3 * np.log(T[:-1]))
    assert np.allclose(slopes, 3 / T[:-1])


def test_of_nothing_are_zero():
    assert [each.tolist() for each in generating_sums(np.empty(0), T, U)] == [[0] * T.size] * 2
