"""Many rankings of the same cases at once, against one at a time."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import rankdata

from segtrust.confidence.ranking import rank_correlations, ranking_areas
from segtrust.selective import risk_coverage_curve

numbers = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
tables = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        arrays.arrays(float, (3, n), elements=numbers), arrays.arrays(float, n, elements=numbers)
    )
)


@given(tables)
def test_areas_equal_those_of_the_curve(table):
    confidences, losses = table
    expected = [risk_coverage_curve(each, losses).aurc for each in confidences]
    np.testing.assert_allclose(ranking_areas(confidences, losses), expected, rtol=1e-12, atol=1e-15)


def test_one_case_has_its_loss():
    assert ranking_areas(np.array([[0.3]]), np.array([0.7])).tolist() == [0.7]


@given(tables)
def test_correlations_equal_their_definition(table):
    confidences, dices = table
    for each, found in zip(confidences, rank_correlations(confidences, dices), strict=True):
        ranks = rankdata(each)
        varies = np.ptp(ranks) > 0 and dices.std() > 1e-9
        if varies:
            assert found == pytest.approx(np.corrcoef(ranks, dices)[0, 1], abs=1e-6)
        assert -1 - 1e-12 <= found <= 1 + 1e-12


def test_correlations_order_rankings_without_ties_as_the_generalised_area_does():
    rng = np.random.default_rng(0)
    confidences, losses = rng.random((50, 20)), rng.random(20)
    areas = [risk_coverage_curve(each, losses).augrc for each in confidences]
    found = rank_correlations(confidences, 1 - losses)
    assert np.corrcoef(areas, found)[0, 1] == pytest.approx(-1, abs=1e-12)


@pytest.mark.parametrize("dices", [[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
def test_what_does_not_vary_has_no_correlation(dices):
    assert rank_correlations(np.full((2, 3), 0.5), np.array(dices)).tolist() == [0, 0]
