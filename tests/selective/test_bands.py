"""Bands around a risk-coverage curve."""

import numpy as np
import pytest

from segtrust.errors import TooFewCasesError
from segtrust.selective.bands import risk_band
from segtrust.selective.curve import risk_coverage_curve
from segtrust.selective.resample import Bootstrap

COVERAGES = np.linspace(0.05, 1.0, 20)


def cases(n=200, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, np.clip(1.0 - confidence + rng.normal(0.0, 0.2, n), 0.0, 1.0)


def test_a_band_is_that_of_curves_of_resamples():
    confidence, loss = cases(60)
    band = risk_band(confidence, loss, COVERAGES, bootstrap=Bootstrap(resamples=100))
    draw, risks = np.random.default_rng(0), []
    for _ in range(100):
        at = draw.integers(0, 60, 60)
        curve = risk_coverage_curve(confidence[at], loss[at])
        risks.append([curve.risk_at_coverage(each) for each in COVERAGES])
    low, high = np.quantile(risks, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(band.low, low, atol=1e-12)
    np.testing.assert_allclose(band.high, high, atol=1e-12)


def test_bands_hold_the_true_risk_about_as_often_as_they_say():
    truth = risk_coverage_curve(*cases(100_000, seed=99)).risk_at_coverage(0.5)
    held = 0
    for seed in range(200):
        band = risk_band(*cases(seed=seed), [0.5], bootstrap=Bootstrap(resamples=200, seed=seed))
        held += bool(band.low[0] <= truth <= band.high[0])
    assert held >= 180


def test_ties_are_accepted_together():
    band = risk_band(np.ones(10), np.linspace(0.0, 1.0, 10), [0.1, 1.0])
    assert band.low[0] == band.low[1]
    assert band.high[0] == band.high[1]


def test_patients_are_drawn_as_wholes():
    confidence, loss = cases(40)
    alone = risk_band(confidence, loss, [1.0])
    twice = risk_band(np.tile(confidence, 4), np.tile(loss, 4), [1.0], patients=np.tile(np.arange(40), 4))
    np.testing.assert_allclose(alone.high - alone.low, twice.high - twice.low, rtol=0.2)


def test_one_case_is_too_few():
    with pytest.raises(TooFewCasesError):
        risk_band([0.5], [0.5], [1.0])
