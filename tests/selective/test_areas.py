"""Areas under each convention."""

import numpy as np
import pytest

from segtrust.errors import UnknownNameError
from segtrust.selective.areas import CONVENTIONS, areas_of, normalise
from segtrust.selective.curve import risk_coverage_curve
from tests.selective import brute


def test_areas_against_slow_ones():
    rng = np.random.default_rng(0)
    for n in rng.integers(2, 12, 500):
        confidence, loss, weights = brute.cases(
            rng, n, levels=rng.choice([None, 4]), weighted=bool(rng.integers(2))
        )
        curve = risk_coverage_curve(confidence, loss, weights=weights)
        coverages, risks, _ = brute.points(confidence, loss, weights)
        assert curve.area() == pytest.approx(brute.area(coverages, risks), abs=1e-14)
        assert curve.area("plugin") == pytest.approx(brute.plugin(confidence, loss, weights), abs=1e-14)
        first = brute.area(coverages[1:], risks[1:])
        assert curve.area("trapezoid-from-first") == pytest.approx(first, abs=1e-14)


def test_generalised_area_of_errors_is_that_of_the_ranking():
    """AUGRC = (1 − AUROC)·acc·(1 − acc) + ½(1 − acc)² for losses of 0 and 1, ties or not."""
    rng = np.random.default_rng(1)
    for n in rng.integers(4, 60, 300):
        confidence = rng.integers(0, rng.integers(1, 30), n).astype(float)
        failed = rng.random(n) < 0.4
        failed[:2] = True, False
        accuracy = 1 - failed.mean()
        auroc = brute.auroc(confidence, failed)
        expected = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
        assert risk_coverage_curve(confidence, failed).augrc == pytest.approx(expected, abs=1e-12)


def test_conventions_meet_where_there_are_many_cases():
    rng = np.random.default_rng(2)
    curve = risk_coverage_curve(rng.random(100_000), rng.random(100_000))
    assert np.ptp([curve.area(each) for each in CONVENTIONS]) < 1e-4


def test_untied_plugin_is_the_mean_of_the_risks():
    curve = risk_coverage_curve([3, 2, 1], [0.0, 0.3, 0.6])
    assert curve.area("plugin") == pytest.approx(np.mean([0, 0.15, 0.3]))


def test_from_first_of_one_block_is_nothing():
    areas = areas_of(np.array([0.0, 1.0]), np.array([0.3, 0.3]))
    assert areas.from_first == 0
    assert areas.paper == pytest.approx(0.3)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_normalised_ends(convention):
    loss = np.array([0.1, 0.5, 0.2, 0.9, 0.0])
    curve = risk_coverage_curve(-loss, loss)
    assert curve.normalised(convention) == pytest.approx(0, abs=1e-15)
    assert (
        normalise(curve.random_area(convention), curve.area(convention), curve.random_area(convention)) == 1
    )
    assert risk_coverage_curve(loss, loss).normalised(convention) > 1


def test_unknown_convention():
    with pytest.raises(UnknownNameError, match="Unknown convention 'mean'"):
        areas_of(np.array([0.0, 1.0]), np.array([0.3, 0.3])).by("mean")
