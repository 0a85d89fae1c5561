"""The one-factor copula: exact means over the factor, right marginals, and truths that are drawn."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from segtrust.paper.synthetic.batch import expected_dices
from segtrust.paper.synthetic.factor import conditionals, factor_dices, factor_rule
from tests.references import enumerated_tversky

RNG = np.random.default_rng(3)
Q = 1 / (1 + np.exp(-RNG.normal(-1.0, 3.0, (5, 6))))
MASKS = np.array(Q >= 0.5)
MASKS[:, 0] = True


@pytest.mark.parametrize("correlation", [0.01, 0.1, 0.25, 0.5])
def test_mean_over_the_factor_against_adaptive_quadrature_of_enumerated_means(correlation):
    expected, _ = factor_dices(Q, MASKS, correlation)
    for q, mask, found in zip(Q, MASKS, expected, strict=True):

        def integrand(factor, q=q, mask=mask):
            given = ndtr((ndtri(q) - math.sqrt(correlation) * factor) / math.sqrt(1 - correlation))
            return (
                float(enumerated_tversky(given, mask)) * math.exp(-(factor**2) / 2) / math.sqrt(2 * math.pi)
            )

        wanted = quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-13, limit=500)[0]
        assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("correlation", [0.1, 0.25, 0.5])
def test_pixels_keep_their_probabilities(correlation):
    mean = sum(weight * given for weight, given in conditionals(Q, correlation))
    np.testing.assert_allclose(mean, Q, rtol=0, atol=1e-14)


def trapezoidal_means(q, masks, correlation):
    """Give the mean over the factor by equal steps, which converge fast for such integrands."""
    step = 0.12
    levels, total = ndtri(q), np.zeros(q.shape[0])
    for factor in np.arange(-8.64, 8.7, step):
        given = ndtr((levels - math.sqrt(correlation) * factor) / math.sqrt(1 - correlation))
        density = math.exp(-(factor**2) / 2) / math.sqrt(2 * math.pi)
        total += step * density * expected_dices(given, masks)
    return total


@pytest.mark.parametrize("correlation", [0.1, 0.25, 0.5])
@pytest.mark.parametrize(("n", "sharpness"), [(10, 1.0), (100, 1.0), (100, 0.25), (1000, 0.25)])
def test_nodes_are_enough_for_1e_12(n, sharpness, correlation):
    rng, images = np.random.default_rng(n), 40 if n < 1000 else 8
    mean = np.linspace(-10.0, 0.0, images)[:, None]  # where there is little foreground it is hardest
    q = 1 / (1 + np.exp(-sharpness * (mean + 5.0 * rng.standard_normal((images, n)))))
    masks = q >= 0.5
    wanted = trapezoidal_means(q, masks, correlation)
    np.testing.assert_allclose(factor_dices(q, masks, correlation)[0], wanted, rtol=0, atol=1e-12)


def test_against_drawn_truths():
    rng = np.random.default_rng(0)
    q, mask, correlation, draws = Q[0], MASKS[0], 0.5, 200_000
    common, own = rng.standard_normal((draws, 1)), rng.standard_normal((draws, q.size))
    truths = math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own < ndtri(q)
    dices = 2 * (truths & mask).sum(1) / (truths.sum(1) + mask.sum())
    expected, swing = factor_dices(Q[:1], MASKS[:1], correlation)
    assert abs(dices.mean() - expected[0]) < 4 * dices.std() / math.sqrt(draws)
    assert 0 < swing[0] < dices.std()


def test_without_correlation_it_is_the_plain_expectation():
    expected, swing = factor_dices(Q, MASKS, 0.0)
    np.testing.assert_allclose(expected, expected_dices(Q, MASKS), rtol=1e-12)
    np.testing.assert_allclose(swing, 0.0, atol=1e-7)


def test_certain_pixels_stay_certain():
    expected, swing = factor_dices(np.array([[1.0, 0.0]]), np.array([[True, False]]), 0.5)
    assert expected[0] == pytest.approx(1.0, abs=1e-15)
    assert swing[0] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.25, 0.5])
def test_weights_add_up(correlation):
    assert factor_rule(correlation)[1].sum() == pytest.approx(1.0, abs=1e-15)
