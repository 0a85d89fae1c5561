"""The made-up lesions: repeatable, and telling."""

import numpy as np

import segtrust as st
from segtrust.demo.lesions import lesion_cases, mostly_empty_volume


def test_cases_are_the_same_every_time():
    for one, other in zip(lesion_cases(), lesion_cases(), strict=True):
        assert np.array_equal(one.prediction.probabilities, other.prediction.probabilities)


def test_confidence_orders_them_better_than_the_mean_pixel():
    cases = lesion_cases()
    dice = np.array([st.dice(case.truth, case.prediction.probabilities >= 0.5) for case in cases])
    sdc = np.array([st.get_estimator("sdc").score(case) for case in cases])
    amsp = np.array([st.get_estimator("amsp").score(case) for case in cases])
    assert np.corrcoef(sdc, dice)[0, 1] > 0.9 > np.corrcoef(amsp, dice)[0, 1]


def test_the_volume_is_mostly_empty():
    p = mostly_empty_volume((62, 96, 96))
    assert p.dtype == np.float32
    assert 0.002 < (p >= 0.5).mean() < 0.03
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    assert (p < 1e-6).mean() > 0.8
